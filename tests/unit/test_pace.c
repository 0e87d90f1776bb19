#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "clock.h"
#include "pace.h"

static struct pace p;

/* Works for so long in processor time. */
static void
work(uint64_t ms)
{
	uint64_t end = pace_cpu_ns() + ms * 1000000;

	while (pace_cpu_ns() < end)
		;
}

/* Milliseconds that pace_wait took. */
static uint64_t
wait_ms(uint32_t percent)
{
	uint64_t start = clock_ms();

	pace_wait(&p, percent);
	return clock_ms() - start;
}

static int
setup(void **state)
{
	(void)state;
	memset(&p, 0, sizeof(p));
	pace_wait(&p, 10);
	return 0;
}

static void
a_burst_is_free(void **state)
{
	(void)state;
	work(PACE_BURST_NS / 1000000 / 2);
	pace_wait(&p, 10);
	assert_true(p.saved_ns > 0);
}

static void
work_is_followed_by_rest(void **state)
{
	(void)state;
	p.saved_ns = 0;
	work(20);
	/* 20 ms are a fifth of 100: the time of the work itself counts, and more if others had the processor. */
	uint64_t slept = wait_ms(20);
	assert_true(p.saved_ns < 0 ? slept + 1 >= (uint64_t)-p.saved_ns * 5 / 1000000 : slept < 5);
	/* Then the debt is paid, but for what the functions themselves cost. */
	pace_wait(&p, 20);
	assert_true(p.saved_ns > -5000000);
}

/* Over some time it is the share, however it comes. */
static void
the_share_is_kept(void **state)
{
	(void)state;
	p.saved_ns = 0;
	uint64_t start = clock_ms(), before = pace_cpu_ns();
	for (int i = 0; i < 20; i++) {
		work((uint64_t)i);
		pace_wait(&p, 50);
	}
	uint64_t used = (pace_cpu_ns() - before) / 1000000, passed = clock_ms() - start;
	assert_true(used >= 190);
	assert_true(used <= passed / 2 + 20);
}

static void
what_is_refunded_costs_nothing(void **state)
{
	(void)state;
	p.saved_ns = 0;
	uint64_t before = pace_cpu_ns();
	work(50);
	pace_refund(&p, pace_cpu_ns() - before);
	pace_wait(&p, 1);
	/* But for what the functions themselves cost. */
	assert_true(p.saved_ns > -5000000);
}

static void
no_limit(void **state)
{
	(void)state;
	p.saved_ns = 0;
	work(50);
	pace_wait(&p, 100);
	assert_true(p.saved_ns == 0);
}

/* One long piece of work closes no door for long, and a long rest saves no more than a burst. */
static void
neither_debt_nor_savings_grow(void **state)
{
	(void)state;
	p.saved_ns = -60000000000;
	pace_wait(&p, 50);
	assert_true(p.saved_ns >= -(int64_t)(PACE_SLEEP_NS / 2));
	p.saved_ns = 60000000000;
	pace_wait(&p, 50);
	assert_true(p.saved_ns == PACE_BURST_NS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_burst_is_free, setup),
	    cmocka_unit_test_setup(work_is_followed_by_rest, setup),
	    cmocka_unit_test_setup(the_share_is_kept, setup),
	    cmocka_unit_test_setup(what_is_refunded_costs_nothing, setup),
	    cmocka_unit_test_setup(no_limit, setup),
	    cmocka_unit_test_setup(neither_debt_nor_savings_grow, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
