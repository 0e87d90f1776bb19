#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Multiply-adds that are worth waking a thread for: some 25 microseconds. */
#define PIECE 1e6
/* Per thread, so that one that is late holds up less. */
#define PIECES_EACH 2
/* The calls of a step follow each other faster than a thread wakes up: before it sleeps it lets others run so many times and looks again,
 * some 20 microseconds where nobody else wants the processor. */
#define LOOKS 50

struct call {
	void (*fn)(void *arg, size_t piece, unsigned lane);
	void *arg;
	size_t count;
};

struct team {
	pthread_mutex_t lock;
	pthread_cond_t wake, done;
	unsigned threads;
	/* Changed with the lock held: of the call (a thread that has seen it has no part in it any more), threads that are in it. */
	atomic_ulong number;
	atomic_uint working;
	bool open, stopping; /* open: threads may still join the call */
	struct call call;
	atomic_size_t next;
	struct helper {
		struct team *team;
		unsigned lane;
		pthread_t id;
	} helpers[TEAM_MAX];
};

static void
work(struct team *t, const struct call *c, unsigned lane)
{
	size_t piece;

	while ((piece = atomic_fetch_add(&t->next, 1)) < c->count)
		c->fn(c->arg, piece, lane);
}

/* A call after the one with that number, soon? */
static bool
comes(struct team *t, unsigned long seen)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		if (atomic_load(&t->number) != seen)
			return true;
		sched_yield();
	}
	return false;
}

static void *
help(void *arg)
{
	struct helper *h = arg;
	struct team *t = h->team;
	unsigned long seen = 0;

	pthread_mutex_lock(&t->lock);
	while (!t->stopping) {
		if (!t->open || t->number == seen) {
			seen = t->number;
			pthread_mutex_unlock(&t->lock);
			bool called = comes(t, seen);
			pthread_mutex_lock(&t->lock);
			if (!called && !t->stopping && t->number == seen)
				pthread_cond_wait(&t->wake, &t->lock);
			continue;
		}
		seen = t->number;
		t->working++;
		const struct call call = t->call;
		pthread_mutex_unlock(&t->lock);
		work(t, &call, h->lane);
		pthread_mutex_lock(&t->lock);
		if (--t->working == 0)
			pthread_cond_signal(&t->done);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

enum err
team_new(struct team **out, unsigned threads)
{
	struct team *t = calloc(1, sizeof(*t));

	if (!t)
		return ERR_NOMEM;
	t->threads = 1;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->wake, NULL);
	pthread_cond_init(&t->done, NULL);
	/* Fewer than asked for is slower, not wrong. */
	while (t->threads < threads && t->threads < TEAM_MAX) {
		struct helper *h = &t->helpers[t->threads];
		*h = (struct helper){.team = t, .lane = t->threads};
		if (pthread_create(&h->id, NULL, help, h) != 0)
			break;
		t->threads++;
	}
	*out = t;
	return ERR_OK;
}

void
team_free(struct team *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stopping = true;
	pthread_cond_broadcast(&t->wake);
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 1; i < t->threads; i++)
		pthread_join(t->helpers[i].id, NULL);
	pthread_cond_destroy(&t->done);
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

unsigned
team_size(const struct team *t)
{
	return t ? t->threads : 1;
}

void
team_run(
    struct team *t, size_t count, void (*fn)(void *arg, size_t piece, unsigned lane), void *arg)
{
	if (team_size(t) == 1 || count < 2) {
		for (size_t i = 0; i < count; i++)
			fn(arg, i, 0);
		return;
	}
	pthread_mutex_lock(&t->lock);
	t->call = (struct call){fn, arg, count};
	atomic_store(&t->next, 0);
	t->open = true;
	t->number++;
	pthread_cond_broadcast(&t->wake);
	pthread_mutex_unlock(&t->lock);
	work(t, &t->call, 0);
	/* Nothing is left to begin: who has not woken yet need not. */
	pthread_mutex_lock(&t->lock);
	t->open = false;
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 0; i < LOOKS && atomic_load(&t->working) > 0; i++)
		sched_yield();
	if (atomic_load(&t->working) == 0)
		return;
	pthread_mutex_lock(&t->lock);
	while (t->working > 0)
		pthread_cond_wait(&t->done, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

size_t
team_pieces(const struct team *t, double work, size_t most)
{
	double worth = work / PIECE, limit = (double)team_size(t) * PIECES_EACH;

	if (team_size(t) == 1 || worth < 2)
		return 1;
	worth = worth < limit ? worth : limit;
	size_t n = (size_t)worth;
	return n < most ? n : most;
}

struct team *
team_worth(struct team *t, double work)
{
	return team_pieces(t, work, SIZE_MAX) > 1 ? t : NULL;
}

struct share {
	const struct team_work *work;
	size_t count;
};

static void
run_share(void *arg, size_t piece, unsigned lane)
{
	const struct share *s = arg;
	const struct team_work *w = s->work;
	size_t first = w->n * piece / s->count, last = w->n * (piece + 1) / s->count;

	w->fn(w->arg, first, last - first, lane);
}

void
team_share(struct team *t, const struct team_work *w)
{
	struct share s = {w, team_pieces(t, w->each * (double)w->n, w->n / w->least)};

	if (s.count > 1)
		team_run(t, s.count, run_share, &s);
	else if (w->n > 0)
		w->fn(w->arg, 0, w->n, 0);
}
