#include "team.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Multiply-adds that are worth handing to a thread that is awake, some 5 microseconds; and what is worth waking one, which takes its caller
 * longer and brings the thread some 30 microseconds later. */
#define PIECE 2e5
#define ROUSING 1.6e6
/* Per thread at most, so that one that is late holds up less. */
#define PIECES_EACH 4
/* The calls of a step follow each other faster than waking pays: before a thread sleeps it lets others run so many times and looks again, some
 * 300 microseconds where nobody else wants the processor. */
#define LOOKS 1000
/* The last pieces are as good as done: so often the caller looks at them before it sleeps, some 40 microseconds, about what waking it would
 * take. */
#define GLANCES 60000
#define GLANCES_ALONE 4000

struct call {
	void (*fn)(void *arg, size_t piece, unsigned lane);
	void *arg;
	size_t count;
};

/* The state: the call's number, whether threads may still join it, how many are in it. */
#define INSIDE 0xffu
#define OPEN 0x100u
#define NUMBER 0x200u

struct team {
	unsigned threads;
	atomic_uint active; /* of them may work, the first lanes */
	atomic_uint state;
	/* Set while nobody is inside. */
	struct call call;
	atomic_size_t taken, behind; /* pieces, and those of them from the end on */
	/* The lanes that sleep, a bit each, and whether the caller does; changed with the lock held. */
	pthread_mutex_t lock;
	pthread_cond_t done;
	atomic_ullong asleep;
	atomic_bool waiting, stopping;
	struct helper {
		struct team *team;
		unsigned lane;
		pthread_t id;
		pthread_cond_t wake;
	} helpers[TEAM_MAX];
};

/* Of those that may work, the lanes that sleep. */
static unsigned long long
sleepers(struct team *t)
{
	unsigned long long lanes = ~0ull >> (TEAM_MAX - atomic_load(&t->active));

	return atomic_load(&t->asleep) & lanes;
}

static unsigned
count_sleepers(struct team *t)
{
	return (unsigned)__builtin_popcountll(sleepers(t));
}

/* The caller begins in front, the others behind: from call to call each meets again what it left in its cache. */
static void
work(struct team *t, const struct call *c, unsigned lane)
{
	for (size_t front = 0; atomic_fetch_add(&t->taken, 1) < c->count;) {
		size_t piece = lane == 0 ? front++ : c->count - 1 - atomic_fetch_add(&t->behind, 1);
		c->fn(c->arg, piece, lane);
	}
}

/* Whoever sleeps holds the lock from when it says so until it does. */
static void
rouse(struct team *t, pthread_cond_t *who)
{
	pthread_mutex_lock(&t->lock);
	pthread_mutex_unlock(&t->lock);
	pthread_cond_signal(who);
}

/* One more for the call, if there are more pieces than those who are awake will begin; that one sees to the next. */
static void
rouse_helper(struct team *t, unsigned awake)
{
	unsigned long long asleep = sleepers(t);

	if (asleep && atomic_load(&t->taken) + awake < t->call.count)
		rouse(t, &t->helpers[__builtin_ctzll(asleep)].wake);
}

/* Is a call open to this lane that is not the one of state `seen`? */
static bool
is_new(const struct helper *h, unsigned state, unsigned seen)
{
	return state & OPEN && state / NUMBER != seen / NUMBER &&
	    h->lane < atomic_load(&h->team->active);
}

/* Into a call that is not `seen`, which becomes that one; false: there is none. */
static bool
join(const struct helper *h, unsigned *seen)
{
	struct team *t = h->team;
	unsigned state = atomic_load(&t->state);

	while (is_new(h, state, *seen))
		if (atomic_compare_exchange_weak(&t->state, &state, state + 1)) {
			*seen = state;
			return true;
		}
	return false;
}

static void
leave(struct team *t)
{
	unsigned left = atomic_fetch_sub(&t->state, 1) - 1;

	if ((left & (INSIDE | OPEN)) == 0 && atomic_load(&t->waiting))
		rouse(t, &t->done);
}

static void
nap(struct helper *h, unsigned seen)
{
	struct team *t = h->team;

	pthread_mutex_lock(&t->lock);
	atomic_fetch_or(&t->asleep, 1ull << h->lane);
	while (!is_new(h, atomic_load(&t->state), seen) && !atomic_load(&t->stopping))
		pthread_cond_wait(&h->wake, &t->lock);
	atomic_fetch_and(&t->asleep, ~(1ull << h->lane));
	pthread_mutex_unlock(&t->lock);
}

static void *
help(void *arg)
{
	struct helper *h = arg;
	struct team *t = h->team;
	unsigned seen = 0, looks = 0;

	while (!atomic_load(&t->stopping)) {
		if (join(h, &seen)) {
			const struct call call = t->call;
			rouse_helper(t, 1);
			work(t, &call, h->lane);
			leave(t);
			looks = 0;
		} else if (looks++ < LOOKS) {
			sched_yield();
		} else {
			nap(h, seen);
			looks = 0;
		}
	}
	return NULL;
}

enum err
team_new(struct team **out, unsigned threads)
{
	struct team *t = calloc(1, sizeof(*t));

	if (!t)
		return ERR_NOMEM;
	t->threads = 1;
	atomic_store(&t->active, 1);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->done, NULL);
	/* Fewer than asked for is slower, not wrong. */
	while (t->threads < threads && t->threads < TEAM_MAX) {
		struct helper *h = &t->helpers[t->threads];
		*h = (struct helper){.team = t, .lane = t->threads};
		pthread_cond_init(&h->wake, NULL);
		if (pthread_create(&h->id, NULL, help, h) != 0) {
			pthread_cond_destroy(&h->wake);
			break;
		}
		t->threads++;
	}
	atomic_store(&t->active, t->threads);
	*out = t;
	return ERR_OK;
}

void
team_free(struct team *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	atomic_store(&t->stopping, true);
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 1; i < t->threads; i++)
		pthread_cond_signal(&t->helpers[i].wake);
	for (unsigned i = 1; i < t->threads; i++) {
		pthread_join(t->helpers[i].id, NULL);
		pthread_cond_destroy(&t->helpers[i].wake);
	}
	pthread_cond_destroy(&t->done);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

unsigned
team_size(const struct team *t)
{
	return t ? t->threads : 1;
}

unsigned
team_active(const struct team *t)
{
	return t ? atomic_load(&t->active) : 1;
}

void
team_use(struct team *t, unsigned threads)
{
	assert(threads > 0);
	if (t)
		atomic_store(&t->active, threads < t->threads ? threads : t->threads);
}

static bool
is_busy(struct team *t)
{
	return atomic_load(&t->state) & INSIDE;
}

/* For those who are inside a call that is closed. */
static void
wait_for(struct team *t)
{
	pthread_mutex_lock(&t->lock);
	atomic_store(&t->waiting, true);
	while (is_busy(t))
		pthread_cond_wait(&t->done, &t->lock);
	atomic_store(&t->waiting, false);
	pthread_mutex_unlock(&t->lock);
}

void
team_run(
    struct team *t, size_t count, void (*fn)(void *arg, size_t piece, unsigned lane), void *arg)
{
	if (team_active(t) == 1 || count < 2) {
		for (size_t i = 0; i < count; i++)
			fn(arg, i, 0);
		return;
	}
	t->call = (struct call){fn, arg, count};
	atomic_store(&t->taken, 0);
	atomic_store(&t->behind, 0);
	atomic_store(&t->state, (atomic_load(&t->state) / NUMBER + 1) * NUMBER + OPEN);
	rouse_helper(t, team_active(t) - count_sleepers(t));
	work(t, &t->call, 0);
	/* Nothing is left to begin: who has not woken yet need not. */
	atomic_fetch_and(&t->state, ~OPEN);
	for (unsigned i = 1; i <= GLANCES && is_busy(t); i++)
		if (i % GLANCES_ALONE == 0)
			sched_yield(); /* who is busy may wait for this very processor */
	if (is_busy(t))
		wait_for(t);
}

/* Whether all sleep is as it happens: nothing but time hangs on how work is cut. */
size_t
team_pieces(struct team *t, double work, size_t most)
{
	double worth = work / PIECE, limit = (double)team_active(t) * PIECES_EACH;

	if (team_active(t) == 1 || worth < 2 ||
	    (work < ROUSING && count_sleepers(t) == team_active(t) - 1))
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

/* Elements that a thread begins with. */
#define ELEMENTS 1024

void
team_elements(struct team *t, size_t n, double each,
    void (*fn)(void *arg, size_t first, size_t count, unsigned lane), void *arg)
{
	team_share(
	    t, &(struct team_work){.n = n, .least = ELEMENTS, .each = each, .fn = fn, .arg = arg});
}

size_t
team_groups(const struct team *t, size_t n, size_t most)
{
	size_t threads = team_active(t), least = (n + most - 1) / most;
	size_t groups = (least + threads - 1) / threads * threads;

	return groups < n ? groups : n;
}
