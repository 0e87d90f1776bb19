#ifndef COUNTS_PACK_H
#define COUNTS_PACK_H
#include <stddef.h>

struct counts;

/* Counts of an evaluation (counts.h) on their way from the rank that has the outputs. */
size_t counts_pack_bytes(const struct counts *c);
void counts_pack(const struct counts *c, void *out);
/* Adds what counts_pack wrote of counts of the same figures and classes. */
void counts_pack_add(struct counts *to, const void *packed);

#endif
