#include <string.h>

#include "bytes.h"
#include "clock.h"
#include "engine_inside.h"

/* Devices that said that they cannot hold a job's tasks: they are not asked again while they offer the same. */

/* FNV-1a, 64 bits (Fowler, Noll, Vo). Who offers is known: nobody gains by two offers that look alike. */
static void
mix(uint64_t *h, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		*h = (*h ^ p[i]) * 0x100000001b3u;
}

static void
mix_names(uint64_t *h, const message_name *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mix(h, names[i], strlen(names[i]) + 1);
	mix(h, &count, sizeof(count));
}

uint64_t
engine_refusal_print(const struct offer *o)
{
	uint64_t h = 0xcbf29ce484222325u;

	mix(&h, o->agent, strlen(o->agent));
	mix(&h, &o->memory_bytes, sizeof(o->memory_bytes));
	mix_names(&h, o->trainers, o->trainer_count);
	mix_names(&h, o->evaluators, o->evaluator_count);
	mix_names(&h, o->features, o->feature_count);
	for (size_t i = 0; i < o->data_count; i++) {
		mix(&h, o->data[i].name, strlen(o->data[i].name) + 1);
		mix(&h, &o->data[i].examples, sizeof(o->data[i].examples));
	}
	return h;
}

static size_t
place_of(const struct engine_job *j, const uint8_t device[32])
{
	return bytes_place(j->refusals, j->refusal_count, sizeof(*j->refusals), device, 32);
}

static bool
is_at(const struct engine_job *j, size_t at, const uint8_t device[32])
{
	return at < j->refusal_count && memcmp(j->refusals[at].device, device, 32) == 0;
}

bool
engine_refusal_note(
    struct engine_job *j, const struct invite *v, enum task_kind kind, struct abort_cause cause)
{
	size_t at = place_of(j, v->device);

	if (cause.reason != ABORT_OUT_OF_MEMORY || cause.needed_bytes == 0)
		return false;
	if (!is_at(j, at, v->device)) {
		struct engine_refusal *all =
		    bytes_grow(j->refusals, j->refusal_count, &j->refusal_room, sizeof(*all));
		if (!all)
			return false;
		j->refusals = all;
		memmove(&all[at + 1], &all[at], (j->refusal_count++ - at) * sizeof(*all));
	}
	struct engine_refusal *r = &j->refusals[at];
	*r = (struct engine_refusal){.kind = kind,
	    .print = v->print,
	    .needed_bytes = cause.needed_bytes,
	    .memory_bytes = cause.memory_bytes,
	    .at = clock_wall()};
	memcpy(r->device, v->device, 32);
	return true;
}

void
engine_refusal_forget(struct engine_job *j, const uint8_t device[32])
{
	size_t at = place_of(j, device);

	if (is_at(j, at, device))
		memmove(&j->refusals[at], &j->refusals[at + 1],
		    (--j->refusal_count - at) * sizeof(*j->refusals));
}

bool
engine_refusal_stands(
    struct engine_job *j, const uint8_t device[32], enum task_kind kind, uint64_t print)
{
	size_t at = place_of(j, device);

	if (!is_at(j, at, device))
		return false;
	if (j->refusals[at].print == print)
		return j->refusals[at].kind == kind;
	engine_refusal_forget(j, device);
	return false;
}

size_t
engine_refusals(struct engine *g, const uint8_t job[16], struct engine_refusal out[ENGINE_REFUSALS])
{
	size_t n = 0;

	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, job);
	for (; j && n < j->refusal_count && n < ENGINE_REFUSALS; n++) {
		out[n] = j->refusals[n];
		memcpy(out[n].job, j->id, sizeof(out[n].job));
	}
	lock_release(&g->lock);
	return n;
}

size_t
engine_refusals_of(
    struct engine *g, const uint8_t device[32], struct engine_refusal out[ENGINE_REFUSALS])
{
	unsigned seen = 0;
	size_t n = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j && n < ENGINE_REFUSALS;
	     j = engine_next(g, j, &seen)) {
		size_t at = place_of(j, device);
		if (!is_at(j, at, device))
			continue;
		out[n] = j->refusals[at];
		memcpy(out[n++].job, j->id, sizeof(j->id));
	}
	lock_release(&g->lock);
	return n;
}
