#ifndef TALLY_H
#define TALLY_H
#include <stddef.h>

struct counts;

/* Counts of an evaluation (counts.h) on their way from the rank that has the outputs. */
size_t tally_bytes(const struct counts *c);
void tally_pack(const struct counts *c, void *out);
/* Adds what tally_pack wrote of counts of the same figures and classes. */
void tally_add(struct counts *to, const void *packed);

#endif
