#ifndef OUTPUT_H
#define OUTPUT_H
#include "json.h"
#include "play.h"

/* What a simulation says, as JSON (docs/simulate.md). The caller frees. Pure. */
struct json *simulate_output_line(const struct simulate_line *l);
/* {"summary": ...} */
struct json *simulate_output_summary(const struct simulate_result *r, const struct fleet *fleet);

#endif
