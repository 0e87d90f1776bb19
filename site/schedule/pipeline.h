#ifndef PIPELINE_H
#define PIPELINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which passes a rank of a pipeline makes in which order: synchronous eager 1F1B with a flush at the end of a step. Pure.
 *
 * Stages 0 .. last; in a straight pipeline of p ranks stage s is rank s's, and last = p - 1. In a ring last = p, and rank 0 has stage 0 and
 * stage p. In period t stage s works forward on batch t - s and back on batch t - (2 last - s): a batch's output has a period to arrive,
 * and so has its gradient. What a stage needs in a period left the other stage in a period before, so no order within a period blocks.
 */
struct pipeline {
	unsigned ranks;
	bool ring;
	uint32_t batches; /* of the step */
};

struct pipeline_op {
	bool back;
	unsigned stage;
	uint32_t batch;
};

static inline unsigned
pipeline_last(const struct pipeline *s)
{
	return s->ring ? s->ranks : s->ranks - 1;
}

/* Batches that the stage may have between forward and back: min(batches, 1 + 2 (last - stage)). */
uint32_t pipeline_contexts(const struct pipeline *s, unsigned stage);

/* Where a rank stands in its list. */
struct pipeline_at {
	const struct pipeline *pipeline;
	unsigned rank;
	uint64_t period;
	unsigned turn; /* within the period */
};
struct pipeline_at pipeline_begin(const struct pipeline *s, unsigned rank);
/* The rank's next pass; false: there is none. */
bool pipeline_next(struct pipeline_at *at, struct pipeline_op *out);

#endif
