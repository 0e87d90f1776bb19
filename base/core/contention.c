#include "contention.h"

#include <stdio.h>

/* Seconds. */
#define WINDOW 0.03
/* Of a window, what a thread may wait on a machine that has little else to do. */
#define ALLOWED 0.15
/* Windows: before more threads are tried again, four times as many each time that it did not pay, and those after which it did. */
#define SOON 4
#define RARELY 64
#define PROVEN 8

/* As before, if the kernel says nothing. */
static void
read_waited(double *waited)
{
	unsigned long long nanoseconds;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (f && fscanf(f, "%*u %llu", &nanoseconds) == 1)
		*waited = 1e-9 * (double)nanoseconds;
	if (f)
		fclose(f);
}

void
contention_begin(struct contention *c, unsigned most, double now)
{
	*c = (struct contention){.most = most, .threads = most, .looked = now, .patience = SOON};
	if (most > 1)
		read_waited(&c->waited);
}

/* One, of many a quarter. */
static unsigned
some_of(unsigned threads)
{
	return threads >= 8 ? threads / 4 : 1;
}

static void
lower(struct contention *c)
{
	if (!c->raised) {
		c->threads -= some_of(c->threads);
		return;
	}
	c->threads = c->before;
	c->raised = false;
	c->patience = 4 * c->patience < RARELY ? 4 * c->patience : RARELY;
}

static void
raise(struct contention *c)
{
	unsigned more = c->threads + some_of(c->threads);

	c->before = c->threads;
	c->threads = more < c->most ? more : c->most;
	c->raised = true;
	c->calm = 0;
}

unsigned
contention_decide(struct contention *c, double share)
{
	if (share > ALLOWED) {
		c->calm = 0;
		if (c->threads > 1)
			lower(c);
		return c->threads;
	}
	c->calm++;
	if (c->raised && c->calm >= PROVEN) {
		c->raised = false;
		c->patience = SOON;
	}
	if (c->threads < c->most && c->calm >= c->patience)
		raise(c);
	return c->threads;
}

unsigned
contention_threads(struct contention *c, double now)
{
	if (c->most == 1 || now < c->looked + WINDOW)
		return c->threads;
	double before = c->waited, time = now - c->looked;
	read_waited(&c->waited);
	c->looked = now;
	return contention_decide(c, (c->waited - before) / time);
}
