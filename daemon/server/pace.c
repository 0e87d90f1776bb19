#include "pace.h"

#include <time.h>

static uint64_t
read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void
pace_init(struct pace *p)
{
	*p = (struct pace){.wall_ns = read_ns(CLOCK_MONOTONIC)};
	p->handshakes.saved_ns = p->requests.saved_ns = PACE_BURST_NS;
}

uint64_t
pace_cpu_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void
pace_charge(struct pace_account *a, uint64_t ns)
{
	a->saved_ns -= (int64_t)ns;
	if (a->saved_ns < -PACE_DEBT_NS)
		a->saved_ns = -PACE_DEBT_NS;
}

void
pace_refund(struct pace_account *a, uint64_t ns)
{
	atomic_fetch_add(&a->refunded_ns, ns);
}

bool
pace_owes(const struct pace_account *a)
{
	return !a->unlimited && a->saved_ns < 0;
}

bool
pace_strained(const struct pace_account *a)
{
	return !a->unlimited && a->saved_ns < PACE_BURST_NS / 2;
}

static void
earn(struct pace_account *a, uint64_t ns)
{
	a->saved_ns += (int64_t)(ns + atomic_exchange(&a->refunded_ns, 0));
	if (a->saved_ns > PACE_BURST_NS)
		a->saved_ns = PACE_BURST_NS;
}

/* Adds to each account half of the share of the time that has passed. */
static void
earn_both(struct pace *p, uint32_t percent)
{
	uint64_t now = read_ns(CLOCK_MONOTONIC);
	uint64_t half = (now - p->wall_ns) * percent / 200;

	p->wall_ns = now;
	earn(&p->handshakes, half);
	earn(&p->requests, half);
}

/* Time until the account owes nothing. */
static uint64_t
debt_ns(const struct pace_account *a, uint32_t percent)
{
	return pace_owes(a) ? (uint64_t)-a->saved_ns * 200 / percent + 1 : 0;
}

void
pace_wait(struct pace *p, uint32_t percent)
{
	earn_both(p, percent);
	p->handshakes.unlimited = p->requests.unlimited = percent >= 100;
	uint64_t a = debt_ns(&p->handshakes, percent), b = debt_ns(&p->requests, percent);
	uint64_t least = a < b ? a : b, most = a < b ? b : a;
	if (most == 0)
		return;
	/* Who owes nothing is not kept waiting, but who does would be found ready again and again. */
	uint64_t ns = least ? least : most < PACE_GLANCE_NS ? most : PACE_GLANCE_NS;
	const struct timespec t = {0, (long)(ns < PACE_SLEEP_NS ? ns : PACE_SLEEP_NS)};
	(void)nanosleep(&t, NULL);
	earn_both(p, percent);
}
