#include "layout.h"

uint32_t
layout_batches(const struct layout *l, unsigned replica, uint32_t pieces)
{
	uint64_t turn = (uint64_t)l->run * l->replicas, rest = pieces % turn;
	uint64_t before = (uint64_t)replica * l->run, own = rest > before ? rest - before : 0;

	return (uint32_t)(pieces / turn * l->run + (own < l->run ? own : l->run));
}

uint32_t
layout_piece(const struct layout *l, unsigned replica, uint32_t batch)
{
	return (batch / l->run * l->replicas + replica) * l->run + batch % l->run;
}

struct layout_place
layout_place(const struct layout *l, uint32_t piece)
{
	uint32_t run = piece / l->run;

	return (struct layout_place){
	    run % l->replicas, run / l->replicas * l->run + piece % l->run};
}

uint32_t
layout_flush(const struct layout *l, uint32_t batches)
{
	return l->ring && l->run < batches ? l->run : batches;
}

uint32_t
layout_contexts(const struct layout *l, unsigned stage)
{
	uint32_t most = layout_batches(l, 0, l->pieces);
	const struct pipeline p = {l->pipeline, l->ring, layout_flush(l, most)};

	return pipeline_contexts(&p, stage);
}
