#ifndef AUGMENT_H
#define AUGMENT_H
#include <stdint.h>

struct augment_spec;
struct draw;

/*
 * Changes training examples at random, before they are normalised, in this order: mirrors, shifts (as Krizhevsky, 2009, pads and crops),
 * adds noise, cuts out a square (DeVries and Taylor, 2017; its centre is any pixel, and a part outside the picture is ignored).
 *
 * By place: the key of Philox4x32-10 is the seed; the counter, low word first, is block (48 bits), AUGMENT_LAYER (16), step's low word,
 * micro-batch (16), step's high part (16). Example n of a micro-batch has blocks n b to n b + b - 1, where b = 1 + ceil(features / 2):
 * the first decides (word 0 mirroring, 1 and 2 the shift, 3 the square's centre), each of the others makes noise for two values. Noise is
 * the sum of eight bytes, centred and scaled: whole numbers, so that every machine has the same bits; it ends at 4.9 deviations.
 */
#define AUGMENT_LAYER 0xffff /* no layer of a network has this number */

/* x: an example of shape [channels, height, width], number `example` of the draw's micro-batch; scratch: room for another. */
void augment_example(const struct augment_spec *a, const uint32_t shape[3], const struct draw *draw,
    uint64_t example, float *x, float *scratch);

#endif
