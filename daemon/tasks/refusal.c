#include <string.h>

#include "bytes.h"
#include "clock.h"
#include "tasks_inside.h"

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
tasks_refusal_print(const struct offer *o)
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
		/* Older agents do not say: theirs stay what they were. */
		if (o->data[i].tokens)
			mix(&h, &o->data[i].tokens, sizeof(o->data[i].tokens));
	}
	return h;
}

/* Where a refusal stands, or would stand. */
static size_t
place_of(const struct job *j, const uint8_t device[32], enum task_kind kind)
{
	uint8_t key[33];

	memcpy(key, device, 32);
	key[32] = (uint8_t)kind;
	return bytes_place(j->refusals, j->refusal_count, sizeof(*j->refusals), key, sizeof(key));
}

static struct engine_refusal *
find_refusal(const struct job *j, const uint8_t device[32], enum task_kind kind)
{
	size_t at = place_of(j, device, kind);
	struct engine_refusal *r = at < j->refusal_count ? &j->refusals[at] : NULL;

	return r && r->kind == kind && memcmp(r->device, device, 32) == 0 ? r : NULL;
}

static struct engine_refusal *
add_refusal(struct job *j, size_t at)
{
	struct engine_refusal *all =
	    bytes_grow(j->refusals, j->refusal_count, &j->refusal_room, sizeof(*all));

	if (!all)
		return NULL;
	j->refusals = all;
	memmove(&all[at + 1], &all[at], (j->refusal_count++ - at) * sizeof(*all));
	return &all[at];
}

bool
tasks_refusal_note(
    struct job *j, const struct invite *v, enum task_kind kind, struct abort_cause cause)
{
	if (cause.reason != ABORT_OUT_OF_MEMORY || cause.needed_bytes == 0)
		return false;
	struct engine_refusal *r = find_refusal(j, v->device, kind);
	if (!r)
		r = add_refusal(j, place_of(j, v->device, kind));
	if (!r)
		return false;
	*r = (struct engine_refusal){.kind = (uint8_t)kind,
	    .print = v->print,
	    .needed_bytes = cause.needed_bytes,
	    .memory_bytes = cause.memory_bytes,
	    .at = clock_wall()};
	memcpy(r->device, v->device, 32);
	if (kind == TASK_EVALUATE)
		roster_forget(j, v->device);
	return true;
}

void
tasks_refusal_forget(struct job *j, const uint8_t device[32])
{
	for (int kind = 0; kind < TASK_UNKNOWN; kind++) {
		struct engine_refusal *r = find_refusal(j, device, (enum task_kind)kind);
		if (r)
			memmove(
			    r, r + 1, (size_t)(j->refusals + --j->refusal_count - r) * sizeof(*r));
	}
}

bool
tasks_refusal_stands(struct job *j, const uint8_t device[32], enum task_kind kind, uint64_t print)
{
	const struct engine_refusal *r = find_refusal(j, device, kind);

	if (r && r->print == print)
		return true;
	if (r)
		tasks_refusal_forget(j, device);
	return false;
}

size_t
tasks_refusals(struct engine *g, const uint8_t job[16], struct engine_refusal out[ENGINE_REFUSALS])
{
	size_t n = 0;

	lock_take(&g->lock);
	const struct job *j = jobs_find(g, job);
	for (; j && n < j->refusal_count && n < ENGINE_REFUSALS; n++) {
		out[n] = j->refusals[n];
		memcpy(out[n].job, j->id, sizeof(out[n].job));
	}
	lock_release(&g->lock);
	return n;
}

size_t
tasks_refusals_of(
    struct engine *g, const uint8_t device[32], struct engine_refusal out[ENGINE_REFUSALS])
{
	unsigned seen = 0;
	size_t n = 0;

	lock_take(&g->lock);
	for (struct job *j = g->jobs; j; j = jobs_next(g, j, &seen))
		for (int kind = 0; kind < TASK_UNKNOWN && n < ENGINE_REFUSALS; kind++) {
			const struct engine_refusal *r =
			    find_refusal(j, device, (enum task_kind)kind);
			if (!r)
				continue;
			out[n] = *r;
			memcpy(out[n++].job, j->id, sizeof(j->id));
		}
	lock_release(&g->lock);
	return n;
}

void
tasks_forget(struct engine *g, const uint8_t device[32])
{
	unsigned seen = 0;

	tails_forget_device(&g->tails, device);
	lock_take(&g->lock);
	for (struct job *j = g->jobs; j; j = jobs_next(g, j, &seen)) {
		tasks_refusal_forget(j, device);
		if (j->work)
			tempo_forget(&j->work->tempo, device);
	}
	lock_release(&g->lock);
}
