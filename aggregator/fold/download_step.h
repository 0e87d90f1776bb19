#ifndef DOWNLOAD_STEP_H
#define DOWNLOAD_STEP_H
#include "difference.h"

struct download_spec;

/*
 * What arrives of a step, in a job that sends new models as differences (wire/codec/difference.h): the new weights are the old ones plus what
 * decoding the encoded difference gives, so that those who add it and those who fold agree to the bit. With feedback, what the
 * codec loses is kept and goes into the next difference.
 *
 * Tiles of DIFFERENCE_TILE elements are independent of each other.
 */
struct download_step {
	/* Codec NULL: new weights are taken as they are; else codec, seed and sizes. */
	struct difference difference;
	bool feedback;
	/* difference.payload_bytes, filled tile by tile; NULL if nobody wants it. */
	uint8_t *payload;
};

/* What the rounding of a round's difference begins with. */
uint64_t download_step_seed(uint64_t job_seed, uint64_t round);
/* For models of so many elements; payload is the caller's to set. ERR_UNSUPPORTED if the codec is not in this build. */
ERR_MUST_USE enum err download_step_choose(struct download_step *d,
    const struct download_spec *spec, uint64_t elements, uint64_t seed, struct why *why);
/* The tile that begins with element `first`: weights[] are the wanted ones, and become those that arrive; lost[], likewise `count`
 * elements or NULL, is what earlier rounds lost, and becomes what this one loses with it. ERR_NUMERIC if something is not finite, or
 * too large for the codec; weights and lost are then of no use. */
ERR_MUST_USE enum err download_step_run(
    const struct download_step *d, uint64_t first, const float *old, float *weights, float *lost);

#endif
