#ifndef COUNTS_JSON_H
#define COUNTS_JSON_H
#include "counts.h"

/* Counts as members of a report's `evaluate`, sparse: what was not seen is absent (FORMAT.md, Report). */

void counts_json_add(struct json *evaluate, const struct counts *c);
/* Into *out, which counts_new made: all that is wanted, from one report; other members are passed over. An error if something is
 * missing, given twice, beyond the classes or bins, or contradicts counts_check. */
void counts_json_read(struct counts *out, struct field *evaluate);

#endif
