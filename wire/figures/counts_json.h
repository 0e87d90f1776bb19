#ifndef COUNTS_JSON_H
#define COUNTS_JSON_H
#include "counts.h"

/* Counts as members of a report's `evaluate`; counts of zero are left out (FORMAT.md, Report). */

void counts_json_add(struct json *evaluate, const struct counts *c);
/* Reads the counts that out->wanted asks for from one report into *out (of counts_new); other members are ignored. Sets an error if a
 * wanted member is missing, a count is given twice or for no class or bin, or counts_check finds a contradiction. */
void counts_json_read(struct counts *out, struct field *evaluate);

#endif
