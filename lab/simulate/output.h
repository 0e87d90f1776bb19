#ifndef OUTPUT_H
#define OUTPUT_H
#include "json.h"
#include "play.h"

/* The output of a simulation as JSON (docs/simulate.md): a round's line; {"summary": ...}. The caller frees. Pure. */
struct json *simulate_output_line(const struct simulate_line *l);
/* {"summary": ...} */
struct json *simulate_output_summary(const struct simulate_result *r, const struct fleet *fleet);

#endif
