#include "lock.h"

#include <time.h>

static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void
lock_init(struct lock *l)
{
	*l = (struct lock){.taken_seconds = 0};
	pthread_mutex_init(&l->turn, NULL);
	pthread_mutex_init(&l->mutex, NULL);
}

void
lock_deinit(struct lock *l)
{
	pthread_mutex_destroy(&l->mutex);
	pthread_mutex_destroy(&l->turn);
}

static void
start(struct lock *l)
{
	l->taken_seconds = histogram_now();
	l->taken_cpu_seconds = cpu_seconds();
}

static void
take_in_turn(struct lock *l)
{
	pthread_mutex_lock(&l->turn);
	pthread_mutex_lock(&l->mutex);
	pthread_mutex_unlock(&l->turn);
	start(l);
}

void
lock_take(struct lock *l)
{
	/* Who comes while it is free need not wait until the one whose turn it is has woken up. */
	if (pthread_mutex_trylock(&l->mutex) == 0)
		start(l);
	else
		take_in_turn(l);
}

void
lock_give_way(struct lock *l)
{
	if (histogram_now() - l->taken_seconds < LOCK_TURN_SECONDS)
		return;
	lock_release(l);
	take_in_turn(l);
}

void
lock_release(struct lock *l)
{
	double cpu = cpu_seconds() - l->taken_cpu_seconds;

	histogram_add(&l->report.held_seconds, histogram_now() - l->taken_seconds);
	if (cpu > l->report.held_cpu_seconds_max)
		l->report.held_cpu_seconds_max = cpu;
	pthread_mutex_unlock(&l->mutex);
}

void
lock_report(const struct lock *l, struct lock_report *out)
{
	*out = l->report;
}
