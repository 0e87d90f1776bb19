#include "pipeline.h"

uint32_t
pipeline_contexts(const struct pipeline *s, unsigned stage)
{
	uint32_t most = 1 + 2 * (pipeline_last(s) - stage);

	return s->batches < most ? s->batches : most;
}

struct pipeline_at
pipeline_begin(const struct pipeline *s, unsigned rank)
{
	return (struct pipeline_at){.pipeline = s, .rank = rank};
}

/* In a period: forward, then, in a ring on rank 0, the last stage both ways, then back. */
static struct pipeline_op
op_of(const struct pipeline_at *at, unsigned turn, uint64_t *begins)
{
	const struct pipeline *s = at->pipeline;
	unsigned last = pipeline_last(s), turns = s->ring && at->rank == 0 ? 4 : 2;
	bool inner = turns == 4 && (turn == 1 || turn == 2);
	struct pipeline_op op = {.back = turn >= turns / 2, .stage = inner ? last : at->rank};

	*begins = op.back ? 2 * (uint64_t)last - op.stage : op.stage;
	return op;
}

bool
pipeline_next(struct pipeline_at *at, struct pipeline_op *out)
{
	const struct pipeline *s = at->pipeline;
	uint64_t periods = s->batches + 2 * (uint64_t)pipeline_last(s), begins;
	unsigned turns = s->ring && at->rank == 0 ? 4 : 2;

	for (; at->period < periods; at->period++, at->turn = 0)
		while (at->turn < turns) {
			*out = op_of(at, at->turn++, &begins);
			if (at->period < begins || at->period - begins >= s->batches)
				continue;
			out->batch = (uint32_t)(at->period - begins);
			return true;
		}
	return false;
}
