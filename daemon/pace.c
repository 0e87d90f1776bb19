#include "pace.h"

#include <time.h>

static uint64_t
read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t
pace_cpu_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void
pace_refund(struct pace *p, uint64_t ns)
{
	atomic_fetch_add(&p->refunded_ns, ns);
}

/* Adds the share of the time that has passed, takes what was used. */
static void
settle(struct pace *p, uint32_t percent)
{
	uint64_t wall = read_ns(CLOCK_MONOTONIC), cpu = pace_cpu_ns();
	uint64_t passed = p->wall_ns ? (wall - p->wall_ns) * percent / 100 : PACE_BURST_NS;
	uint64_t used = p->wall_ns ? cpu - p->cpu_ns : 0;

	p->saved_ns += (int64_t)(passed + atomic_exchange(&p->refunded_ns, 0)) - (int64_t)used;
	if (p->saved_ns > PACE_BURST_NS)
		p->saved_ns = PACE_BURST_NS;
	p->wall_ns = wall;
	p->cpu_ns = cpu;
}

void
pace_wait(struct pace *p, uint32_t percent)
{
	if (percent >= 100)
		return;
	settle(p, percent);
	if (p->saved_ns >= 0)
		return;
	uint64_t ns = (uint64_t)-p->saved_ns * 100 / percent;
	if (ns > PACE_SLEEP_NS) {
		ns = PACE_SLEEP_NS;
		/* What is owed beyond is forgotten: one long piece of work must not close the door for seconds. */
		p->saved_ns = -(int64_t)(ns * percent / 100);
	}
	const struct timespec t = {0, (long)ns};
	(void)nanosleep(&t, NULL);
}
