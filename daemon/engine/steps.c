#include <string.h>

#include "engine_inside.h"
#include "hex.h"
#include "models.h"

void
engine_steps_add(struct engine_job *j, const uint8_t from[32], const uint8_t to[32], uint64_t bytes)
{
	/* After a round on an older base the way begins anew. */
	if (j->work->step_count > 0 && memcmp(j->work->steps[0].to, from, 32) != 0)
		j->work->step_count = 0;
	if (j->work->step_count == ENGINE_STEPS)
		j->work->step_count--;
	memmove(j->work->steps + 1, j->work->steps, j->work->step_count * sizeof(*j->work->steps));
	memcpy(j->work->steps[0].to, to, 32);
	memcpy(j->work->steps[0].from, from, 32);
	j->work->steps[0].bytes = bytes;
	j->work->step_count++;
}

void
engine_steps_load(const struct services *s, struct engine_job *j)
{
	struct difference d;
	const uint8_t *to = j->model;

	for (; j->work->step_count < ENGINE_STEPS; j->work->step_count++) {
		struct engine_step *step = &j->work->steps[j->work->step_count];
		if (models_difference_head(s->models, to, &d, NULL) ||
		    memcmp(d.job, j->id, sizeof(d.job)) != 0)
			return;
		memcpy(step->to, to, 32);
		memcpy(step->from, d.from, 32);
		step->bytes = DIFFERENCE_HEAD + d.payload_bytes;
		to = step->from;
	}
}

static bool
holds(const struct offer *o, const char *id)
{
	for (size_t i = 0; i < o->held_count; i++)
		if (strcmp(o->held_models[i], id) == 0)
			return true;
	return false;
}

void
engine_steps_offer(const struct engine_job *j, const struct offer *o, struct task *out)
{
	uint64_t bytes = 0;
	char from[65];
	size_t i = 0;

	if (j->work->step_count == 0 || holds(o, out->model) ||
	    !engine_offer_names(o->codecs, o->codec_count, j->work->spec.download.codec))
		return;
	while (i < j->work->step_count && memcmp(j->work->steps[i].to, j->row.base, 32) != 0)
		i++;
	for (; i < j->work->step_count; i++) {
		bytes += j->work->steps[i].bytes;
		if (bytes >= j->model_bytes)
			return;
		hex_encode(from, j->work->steps[i].from, 32);
		if (!holds(o, from))
			continue;
		memcpy(out->from, from, sizeof(from));
		out->from_bytes = bytes;
		return;
	}
}

void
engine_steps_gone(struct engine *g, const uint8_t job[16], const uint8_t model[32])
{
	lock_take(&g->lock);
	struct engine_job *j = engine_find(g, job);
	for (size_t i = 0; j && j->work && i < j->work->step_count; i++)
		if (memcmp(j->work->steps[i].to, model, 32) == 0)
			j->work->step_count = i;
	lock_release(&g->lock);
}
