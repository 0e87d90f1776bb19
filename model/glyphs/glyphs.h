#ifndef GLYPHS_H
#define GLYPHS_H
#include "dataset.h"

/*
 * A drawn data set: handwritten-style digits 0..9, 28 x 28 grey bytes, made from strokes. Every `hand` (a writer) has
 * a slant, stroke width, size, jitter and a taste in digits of its own, all derived from (seed, hand): non-identical
 * data without a download. Example i of a hand is the same bytes on every machine; no libm beyond sqrt.
 */
#define GLYPHS_SIDE 28
#define GLYPHS_CLASSES 10

/* count examples of one hand. With skew, the hand prefers some digits (0 = uniform .. 1 = only two digits). */
ERR_MUST_USE enum err glyphs_make(
    struct dataset *out, uint64_t seed, uint64_t hand, uint32_t count, double skew);
/* A set drawn by many hands, one example each in turn: for the coordinator's evaluation. Hands from first_hand up. */
ERR_MUST_USE enum err glyphs_mixed(
    struct dataset *out, uint64_t seed, uint64_t first_hand, uint32_t hands, uint32_t count);

#endif
