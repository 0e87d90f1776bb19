#include "change.h"

#include <string.h>

#include "clock.h"
#include "jobs_inside.h"
#include "services.h"
#include "wake.h"

/* --- what counts */

/* FNV-1a, of numbers and of bytes. */
#define PRIME 0x100000001b3u

static uint64_t
mix_numbers(uint64_t h, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		h = (h ^ numbers[i]) * PRIME;
	return h;
}

static uint64_t
mix(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * PRIME;
	return h;
}

static uint64_t
mix_text(uint64_t h, const char *text)
{
	return mix(h, text, strlen(text) + 1);
}

static uint64_t
mix_metric(uint64_t h, const struct store_metric *m)
{
	uint64_t figures[] = {m->known, m->examples, 0, 0};

	memcpy(&figures[2], &m->loss, sizeof(m->loss));
	memcpy(&figures[3], &m->accuracy, sizeof(m->accuracy));
	return mix_numbers(h, figures, sizeof(figures) / sizeof(*figures));
}

static uint64_t
mix_settings(uint64_t h, const struct override_set *o)
{
	h = mix(h, o->state, sizeof(o->state));
	return mix(h, o->value, sizeof(o->value));
}

/* The facts that count, as one number. */
static uint64_t
count(const struct job *j)
{
	const struct job_facts *f = &j->facts;
	const struct job_work *w = j->work;
	const uint64_t numbers[] = {f->gone, f->state, f->row.round, f->round.accepted,
	    f->round.next_accepted, f->round.reopened, f->metric_round, w && w->central.open,
	    w ? w->stuck.watch.said.kind : 0};
	uint64_t h = mix_numbers(0xcbf29ce484222325u, numbers, sizeof(numbers) / sizeof(*numbers));

	h = mix_text(h, f->reason);
	h = mix_text(h, round_state_name(&f->round));
	h = mix(h, f->model, sizeof(f->model));
	h = mix_metric(h, &f->metric);
	return w ? mix_settings(h, &w->overrides) : h;
}

void
jobs_change_settle(struct engine *g)
{
	struct changes *c = &g->changes;
	struct job *j = c->touched;

	c->touched = NULL;
	if (!j)
		return;
	const uint64_t now = count(j);
	if (j->counted == now)
		return;
	j->counted = now;
	c->counter++;
	g->report.changes_total++;
	/* All who wait hear of one ring, and wait anew. */
	if (c->awaited)
		wake_ring(&g->services->changed);
	c->awaited = false;
}

struct job_facts *
change_facts(struct job *j)
{
	struct engine *g = j->set;

	if (g && g->changes.touched != j) {
		jobs_change_settle(g);
		g->changes.touched = j;
	}
	return &j->changing;
}

void
jobs_change_begin(struct engine *g)
{
	jobs_change_settle(g);
	g->changes.counter = (uint64_t)(clock_wall() * 1000);
	g->report.changes_total = 0;
}

/* --- who waits */

static void
leave(struct engine *g, struct change_reader *r)
{
	if (!r->at)
		return;
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	r->at = NULL;
	g->changes.reader_count--;
}

static bool
has_room(const struct engine *g, const struct change_reader *r)
{
	static const uint8_t socket[32];
	const bool local = memcmp(r->owner, socket, sizeof(socket)) == 0;
	unsigned most = local ? CHANGE_READERS_OF_SOCKET : CHANGE_READERS_OF_ONE, own = 0;

	for (const struct change_reader *o = g->changes.readers; o; o = o->next)
		own += memcmp(o->owner, r->owner, sizeof(o->owner)) == 0;
	return own < most && g->changes.reader_count < CHANGE_READERS_MAX;
}

static void
enter(struct engine *g, struct change_reader *r)
{
	r->at = &g->changes.readers;
	r->next = *r->at;
	if (r->next)
		r->next->at = &r->next;
	*r->at = r;
	g->changes.reader_count++;
}

enum change_wait
jobs_change_wait(struct engine *g, struct change_reader *r, uint64_t after, uint64_t *counter)
{
	enum change_wait got = CHANGE_PARKED;

	lock_take(&g->lock);
	/* What another thread has changed, which holds the lock only now and then. */
	jobs_change_settle(g);
	*counter = g->changes.counter;
	if (after != *counter) {
		leave(g, r);
		got = CHANGE_KNOWN;
	} else if (!r->at && !has_room(g, r)) {
		g->changes.refused_total++;
		got = CHANGE_FULL;
	} else {
		if (!r->at)
			enter(g, r);
		g->changes.awaited = true;
	}
	lock_release(&g->lock);
	return got;
}

uint64_t
jobs_change_leave(struct engine *g, struct change_reader *r)
{
	lock_take(&g->lock);
	leave(g, r);
	jobs_change_settle(g);
	uint64_t counter = g->changes.counter;
	lock_release(&g->lock);
	return counter;
}
