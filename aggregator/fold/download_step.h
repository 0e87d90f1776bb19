#ifndef DOWNLOAD_STEP_H
#define DOWNLOAD_STEP_H
#include "difference.h"

struct download_spec;

/*
 * The new weights in a job that sends new models as differences (wire/codec/difference.h): the old weights plus the decoded difference, so
 * that a device, which adds the decoded difference, and the coordinator agree to the bit. With feedback, what the codec loses is kept and
 * added to the next difference.
 *
 * Tiles of DIFFERENCE_TILE elements are independent of each other.
 */
struct download_step {
	/* Codec, seed and sizes of the difference. Codec NULL: no differences, the new weights stay as they are. */
	struct difference difference;
	bool feedback;
	/* The encoded difference: room for difference.payload_bytes, filled tile by tile; NULL if nobody wants it. */
	uint8_t *payload;
};

/* The seed of the random rounding of a round's difference. */
uint64_t download_step_seed(uint64_t job_seed, uint64_t round);
/* Sets up *d for models of so many elements; the caller sets d->payload. ERR_UNSUPPORTED if the codec is not in this build. */
ERR_MUST_USE enum err download_step_choose(struct download_step *d,
    const struct download_spec *spec, uint64_t elements, uint64_t seed, struct why *why);
/* Encodes and decodes the tile that begins with element `first`. weights[]: in, the weights that the step wants; out, the weights that
 * devices will have. lost[] (NULL without feedback): in, what the codec lost in earlier rounds; out, what is lost with this round. All
 * arrays are as long as the tile. ERR_NUMERIC if a value is not finite, or too large for the codec; weights and lost are then undefined. */
ERR_MUST_USE enum err download_step_run(
    const struct download_step *d, uint64_t first, const float *old, float *weights, float *lost);

#endif
