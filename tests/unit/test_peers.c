#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>

#include "peers.h"

#define NOW 1000000u
#define MINUTE PEERS_WINDOW_MS

static struct peers *p;

static int
setup(void **state)
{
	(void)state;
	return peers_new(&p) == ERR_OK ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	peers_free(p);
	return 0;
}

static bool
enter(const char *address)
{
	return peers_enter(p, address, 5, 3);
}

static void
handshakes_of_one_address(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(enter("10.0.0.1"));
	assert_false(enter("10.0.0.1"));
	assert_true(enter("10.0.0.2"));
	peers_leave(p, "10.0.0.1");
	assert_true(enter("10.0.0.1"));
	assert_false(enter("10.0.0.1"));
}

static void
handshakes_of_all_addresses(void **state)
{
	char address[16];

	(void)state;
	for (int i = 0; i < 5; i++) {
		snprintf(address, sizeof(address), "10.0.0.%d", i);
		assert_true(enter(address));
	}
	assert_false(enter("10.0.0.9"));
	peers_leave(p, "10.0.0.3");
	assert_true(enter("10.0.0.9"));
}

/* What was refused holds nothing, and what has left is forgotten. */
static void
nothing_is_left_behind(void **state)
{
	(void)state;
	assert_true(enter("10.0.0.1"));
	assert_int_equal(peers_count(p), 1);
	peers_leave(p, "10.0.0.1");
	assert_int_equal(peers_count(p), 0);
	peers_leave(p, "10.0.0.1");
	assert_int_equal(peers_failures(p, "10.0.0.1", NOW), 0);
	assert_int_equal(peers_count(p), 0);
	peers_failed(p, "10.0.0.1", NOW);
	assert_true(enter("10.0.0.1"));
	peers_leave(p, "10.0.0.1");
	assert_int_equal(peers_failures(p, "10.0.0.1", NOW), 1);
	peers_failed(p, "10.0.0.2", NOW + 2 * MINUTE);
	assert_int_equal(peers_count(p), 1);
}

static void
one_host_is_one_address(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
	    {"10.0.0.1", "10.0.0.2", false},
	    {"10.0.0.1", "::ffff:10.0.0.1", true},
	    {"::ffff:10.0.0.1", "::ffff:10.0.0.2", false},
	    {"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
	    {"2001:db8:1:2::1", "2001:db8:1:3::1", false},
	    {"?", "uid:0", true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		teardown(state);
		assert_int_equal(setup(state), 0);
		peers_failed(p, rows[i].a, NOW);
		assert_int_equal(peers_failures(p, rows[i].b, NOW), rows[i].same ? 1 : 0);
	}
}

/* One failure a second over two minutes, then silence. */
static void
the_window_slides(void **state)
{
	uint64_t t = NOW;

	(void)state;
	for (uint32_t i = 1; i <= 120; i++, t += 1000) {
		peers_failed(p, "10.0.0.1", t);
		uint32_t n = peers_failures(p, "10.0.0.1", t);
		assert_in_range(n, i < 55 ? i : 55, i < 60 ? i : 60);
	}
	uint32_t before = 60;
	for (uint32_t i = 0; i <= 60; i++, t += 1000) {
		uint32_t n = peers_failures(p, "10.0.0.1", t);
		assert_true(n <= before);
		assert_true(n + i + 6 >= 60 && n + i <= 66);
		before = n;
	}
	assert_int_equal(before, 0);
	assert_int_equal(peers_count(p), 0);
}

static void
a_clock_that_seems_to_go_back(void **state)
{
	(void)state;
	peers_failed(p, "10.0.0.1", NOW);
	peers_failed(p, "10.0.0.1", NOW - 6000);
	assert_int_equal(peers_failures(p, "10.0.0.1", NOW - 6000), 2);
	assert_int_equal(peers_failures(p, "10.0.0.1", NOW), 2);
	assert_int_equal(peers_failures(p, "10.0.0.1", NOW + 3 * MINUTE), 0);
}

static const char *
nth(uint32_t i)
{
	static char text[16];

	snprintf(text, sizeof(text), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
	return text;
}

/* Full, the table gives up who has been idle the longest, and never one with handshakes. */
static void
a_full_table(void **state)
{
	(void)state;
	assert_true(enter(nth(0)));
	peers_failed(p, nth(0), NOW);
	for (uint32_t i = 1; i < PEERS_MAX; i++)
		peers_failed(p, nth(i), NOW);
	assert_int_equal(peers_count(p), PEERS_MAX);
	peers_failed(p, nth(1), NOW);
	peers_failed(p, nth(PEERS_MAX), NOW);
	assert_int_equal(peers_count(p), PEERS_MAX);
	assert_int_equal(peers_failures(p, nth(0), NOW), 1);
	assert_int_equal(peers_failures(p, nth(1), NOW), 2);
	assert_int_equal(peers_failures(p, nth(2), NOW), 0);
	assert_int_equal(peers_failures(p, nth(PEERS_MAX), NOW), 1);
	/* All but the one at hand are over. */
	peers_failed(p, nth(1), NOW + 2 * MINUTE);
	assert_int_equal(peers_count(p), 2);
	assert_false(peers_enter(p, nth(0), 5, 1));
}

static void
a_table_full_of_handshakes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PEERS_MAX; i++)
		assert_true(peers_enter(p, nth(i), 2 * PEERS_MAX, 1));
	assert_false(peers_enter(p, nth(PEERS_MAX), 2 * PEERS_MAX, 1));
	peers_failed(p, nth(PEERS_MAX), NOW);
	assert_int_equal(peers_count(p), PEERS_MAX);
	peers_leave(p, nth(7));
	assert_true(peers_enter(p, nth(PEERS_MAX), 2 * PEERS_MAX, 1));
}

/* --- threads */

static void *
hammer(void *arg)
{
	uint32_t entered = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		const char *address = i & 1 ? "10.0.0.1" : "10.0.0.2";
		if (peers_enter(p, address, 3, 2)) {
			entered++;
			peers_leave(p, address);
		}
		peers_failed(p, "10.0.0.3", NOW + i);
	}
	*(uint32_t *)arg = entered;
	return NULL;
}

static void
many_threads(void **state)
{
	uint32_t entered[4];
	pthread_t t[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammer, &entered[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		assert_true(entered[i] > 0);
	}
	assert_int_equal(peers_failures(p, "10.0.0.3", NOW + 20000), 80000);
	assert_int_equal(peers_count(p), 1);
	for (int i = 0; i < 3; i++)
		assert_true(peers_enter(p, "10.0.0.1", 3, 3));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(handshakes_of_one_address),
	    TEST(handshakes_of_all_addresses),
	    TEST(nothing_is_left_behind),
	    TEST(one_host_is_one_address),
	    TEST(the_window_slides),
	    TEST(a_clock_that_seems_to_go_back),
	    TEST(a_full_table),
	    TEST(a_table_full_of_handshakes),
	    TEST(many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
