/* stages: gcc openssl address */
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

static int
setup(void **state)
{
	(void)state;
	pace_init(&p);
	assert_false(pace_strained(&p.handshakes) || pace_owes(&p.handshakes));
	pace_wait(&p, 10);
	return 0;
}

static void
a_burst_is_free(void **state)
{
	(void)state;
	uint64_t before = pace_cpu_ns();
	work(PACE_BURST_NS / 1000000 / 2);
	pace_charge(&p.requests, pace_cpu_ns() - before);
	assert_true(!pace_owes(&p.requests));
	work(PACE_BURST_NS / 1000000 / 2 + 1);
	pace_charge(&p.requests, pace_cpu_ns() - before);
	assert_true(pace_owes(&p.requests));
}

/* Does nothing but wait until nothing is owed; the milliseconds that took. */
static uint64_t
pay_ms(uint32_t percent)
{
	uint64_t start = clock_ms();

	do
		pace_wait(&p, percent);
	while (pace_owes(&p.requests));
	return clock_ms() - start;
}

static void
work_is_followed_by_rest(void **state)
{
	(void)state;
	p.requests.saved_ns = -20000000;
	assert_true(pace_owes(&p.requests));
	/* A tenth of the time; some of it may have passed since the last look at the clock. */
	assert_true(pay_ms(20) >= 100);
}

/* Over some time it is the share, however it comes. */
static void
the_share_is_kept(void **state)
{
	(void)state;
	p.requests.saved_ns = 0;
	uint64_t start = clock_ms(), before = pace_cpu_ns();
	for (int i = 0; i < 20; i++) {
		uint64_t since = pace_cpu_ns();
		work((uint64_t)i);
		pace_charge(&p.requests, pace_cpu_ns() - since);
		pay_ms(50);
	}
	uint64_t used = (pace_cpu_ns() - before) / 1000000, passed = clock_ms() - start;
	assert_true(used >= 190);
	assert_true(used <= passed / 4 + 20);
}

static void
what_is_refunded_costs_nothing(void **state)
{
	(void)state;
	p.requests.saved_ns = 0;
	uint64_t before = pace_cpu_ns();
	work(50);
	pace_charge(&p.requests, pace_cpu_ns() - before);
	assert_true(pace_owes(&p.requests));
	pace_refund(&p.requests, (uint64_t)-p.requests.saved_ns);
	pace_wait(&p, 1);
	assert_true(!pace_owes(&p.requests));
}

static void
no_limit(void **state)
{
	(void)state;
	p.requests.saved_ns = -60000000000;
	pace_wait(&p, 100);
	assert_true(!pace_owes(&p.requests));
}

/* The least of five, in milliseconds. */
static uint64_t
shortest_wait_ms(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t start = clock_ms();
		pace_wait(&p, 50);
		uint64_t took = clock_ms() - start;
		least = took < least ? took : least;
	}
	return least;
}

/* A long rest saves no more than a burst, and no sleep is long. */
static void
what_is_saved_and_slept_is_limited(void **state)
{
	(void)state;
	p.requests.saved_ns = 60000000000;
	pace_wait(&p, 50);
	assert_true(p.requests.saved_ns == PACE_BURST_NS);
	p.requests.saved_ns = p.handshakes.saved_ns = -60000000000;
	uint64_t least = shortest_wait_ms();
	assert_true(least + 1 >= PACE_SLEEP_NS / 1000000 && least < 1000);
	assert_true(pace_owes(&p.requests) && pace_owes(&p.handshakes));
}

/* Requests that may not go on keep no handshake waiting. */
static void
each_has_its_own(void **state)
{
	(void)state;
	p.requests.saved_ns = -60000000000;
	assert_true(shortest_wait_ms() < PACE_SLEEP_NS / 1000000);
	assert_true(pace_owes(&p.requests) && !pace_owes(&p.handshakes));
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
	    cmocka_unit_test_setup(what_is_saved_and_slept_is_limited, setup),
	    cmocka_unit_test_setup(each_has_its_own, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
