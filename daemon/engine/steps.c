#include <string.h>

#include "engine_inside.h"
#include "hex.h"
#include "models.h"

void
engine_steps_add(struct engine_job *j, const uint8_t from[32], const uint8_t to[32], uint64_t bytes)
{
	/* After a round on an older base the way begins anew. */
	if (j->step_count > 0 && memcmp(j->steps[0].to, from, 32) != 0)
		j->step_count = 0;
	if (j->step_count == ENGINE_STEPS)
		j->step_count--;
	memmove(j->steps + 1, j->steps, j->step_count * sizeof(*j->steps));
	memcpy(j->steps[0].to, to, 32);
	memcpy(j->steps[0].from, from, 32);
	j->steps[0].bytes = bytes;
	j->step_count++;
}

void
engine_steps_load(const struct services *s, struct engine_job *j)
{
	struct difference d;
	const uint8_t *to = j->model;

	for (; j->step_count < ENGINE_STEPS; j->step_count++) {
		struct engine_step *step = &j->steps[j->step_count];
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

	if (j->step_count == 0 || holds(o, out->model) ||
	    !engine_offer_names(o->codecs, o->codec_count, j->spec.download.codec))
		return;
	while (i < j->step_count && memcmp(j->steps[i].to, j->row.base, 32) != 0)
		i++;
	for (; i < j->step_count; i++) {
		bytes += j->steps[i].bytes;
		if (bytes >= j->model_bytes)
			return;
		hex_encode(from, j->steps[i].from, 32);
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
	for (size_t i = 0; j && i < j->step_count; i++)
		if (memcmp(j->steps[i].to, model, 32) == 0)
			j->step_count = i;
	lock_release(&g->lock);
}
