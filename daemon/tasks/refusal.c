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
place_of(const struct job_refusals *l, const uint8_t device[32], enum task_kind kind)
{
	uint8_t key[33];

	memcpy(key, device, 32);
	key[32] = (uint8_t)kind;
	return bytes_place(l->items, l->count, sizeof(*l->items), key, sizeof(key));
}

static struct engine_refusal *
find_refusal(const struct job_refusals *l, const uint8_t device[32], enum task_kind kind)
{
	size_t at = place_of(l, device, kind);
	struct engine_refusal *r = at < l->count ? &l->items[at] : NULL;

	return r && r->kind == kind && memcmp(r->device, device, 32) == 0 ? r : NULL;
}

static struct engine_refusal *
add_refusal(struct job_refusals *l, size_t at)
{
	struct engine_refusal *all = bytes_grow(l->items, l->count, &l->room, sizeof(*all));

	if (!all)
		return NULL;
	l->items = all;
	memmove(&all[at + 1], &all[at], (l->count++ - at) * sizeof(*all));
	return &all[at];
}

bool
tasks_refusal_note(
    struct job *j, const struct invite *v, enum task_kind kind, struct abort_cause cause)
{
	if (cause.reason != ABORT_OUT_OF_MEMORY || cause.needed_bytes == 0)
		return false;
	struct job_refusals *l = job_refusals(j);
	struct engine_refusal *r = find_refusal(l, v->device, kind);
	if (!r)
		r = add_refusal(l, place_of(l, v->device, kind));
	if (!r)
		return false;
	*r = (struct engine_refusal){.kind = (uint8_t)kind,
	    .print = v->print,
	    .needed_bytes = cause.needed_bytes,
	    .memory_bytes = cause.memory_bytes,
	    .at = clock_wall()};
	memcpy(r->device, v->device, 32);
	if (kind == TASK_EVALUATE)
		invites_forget(j, v->device);
	return true;
}

void
tasks_refusal_forget(struct job *j, const uint8_t device[32])
{
	struct job_refusals *l = job_refusals(j);

	for (int kind = 0; kind < TASK_UNKNOWN; kind++) {
		struct engine_refusal *r = find_refusal(l, device, (enum task_kind)kind);
		if (r)
			memmove(r, r + 1, (size_t)(l->items + --l->count - r) * sizeof(*r));
	}
}

bool
tasks_refusal_stands(struct job *j, const uint8_t device[32], enum task_kind kind, uint64_t print)
{
	const struct engine_refusal *r = find_refusal(job_refusals(j), device, kind);

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

	jobs_lock(g);
	struct job *j = jobs_find(g, job);
	const struct job_refusals *l = j ? job_refusals(j) : NULL;
	for (; l && n < l->count && n < ENGINE_REFUSALS; n++) {
		out[n] = l->items[n];
		memcpy(out[n].job, job_facts(j)->id, sizeof(out[n].job));
	}
	jobs_unlock(g);
	return n;
}

size_t
tasks_refusals_of(
    struct engine *g, const uint8_t device[32], struct engine_refusal out[ENGINE_REFUSALS])
{
	unsigned seen = 0;
	size_t n = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j; j = jobs_next(g, j, &seen))
		for (int kind = 0; kind < TASK_UNKNOWN && n < ENGINE_REFUSALS; kind++) {
			const struct engine_refusal *r =
			    find_refusal(job_refusals(j), device, (enum task_kind)kind);
			if (!r)
				continue;
			out[n] = *r;
			memcpy(out[n++].job, job_facts(j)->id, sizeof(job_facts(j)->id));
		}
	jobs_unlock(g);
	return n;
}

void
tasks_forget(struct engine *g, const uint8_t device[32])
{
	unsigned seen = 0;

	tails_forget_device(jobs_tails(g), device);
	jobs_lock(g);
	for (struct job *j = jobs_first(g); j; j = jobs_next(g, j, &seen)) {
		tasks_refusal_forget(j, device);
		if (job_facts(j)->work)
			speeds_forget(job_speeds(j), device);
	}
	jobs_unlock(g);
}
