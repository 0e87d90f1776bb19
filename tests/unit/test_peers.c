#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>

#include "peers.h"
#include "tally.c"

#define NOW 1000000u
#define MINUTE TALLY_WINDOW_MS

static struct tally *p;

static int
setup(void **state)
{
	(void)state;
	return tally_new(&p) == ERR_OK ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	tally_free(p);
	return 0;
}

static bool
enter_of(const char *address, uint32_t most, uint32_t most_each)
{
	const struct tally_limits limits = {.most = most, .most_each = most_each};

	return peers_enter(p, address, &limits, NOW) == TALLY_ROOM;
}

static bool
enter(const char *address)
{
	return enter_of(address, 5, 3);
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
	assert_int_equal(p->count, 1);
	peers_leave(p, "10.0.0.1");
	assert_int_equal(p->count, 0);
	peers_leave(p, "10.0.0.1");
	assert_int_equal(peers_failures(p, "10.0.0.1", NOW), 0);
	assert_int_equal(p->count, 0);
	peers_failed(p, "10.0.0.1", NOW);
	assert_true(enter("10.0.0.1"));
	peers_leave(p, "10.0.0.1");
	assert_int_equal(peers_failures(p, "10.0.0.1", NOW), 1);
	peers_failed(p, "10.0.0.2", NOW + 2 * MINUTE);
	assert_int_equal(p->count, 1);
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
	assert_int_equal(p->count, 0);
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
	for (uint32_t i = 1; i < TALLY_MAX; i++)
		peers_failed(p, nth(i), NOW);
	assert_int_equal(p->count, TALLY_MAX);
	peers_failed(p, nth(1), NOW);
	peers_failed(p, nth(TALLY_MAX), NOW);
	assert_int_equal(p->count, TALLY_MAX);
	assert_int_equal(peers_failures(p, nth(0), NOW), 1);
	assert_int_equal(peers_failures(p, nth(1), NOW), 2);
	assert_int_equal(peers_failures(p, nth(2), NOW), 0);
	assert_int_equal(peers_failures(p, nth(TALLY_MAX), NOW), 1);
	/* All but the one at hand are over. */
	peers_failed(p, nth(1), NOW + 2 * MINUTE);
	assert_int_equal(p->count, 2);
	assert_false(enter_of(nth(0), 5, 1));
}

static void
a_table_full_of_handshakes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < TALLY_MAX; i++)
		assert_true(enter_of(nth(i), 2 * TALLY_MAX, 1));
	assert_false(enter_of(nth(TALLY_MAX), 2 * TALLY_MAX, 1));
	peers_failed(p, nth(TALLY_MAX), NOW);
	assert_int_equal(p->count, TALLY_MAX);
	peers_leave(p, nth(7));
	assert_true(enter_of(nth(TALLY_MAX), 2 * TALLY_MAX, 1));
}

/* --- limits */

static enum tally_room
enter_calm(const char *address, uint64_t now_ms)
{
	const struct tally_limits limits = {.most = 4, .most_each = 2, .calm = 3};

	return peers_enter(p, address, &limits, now_ms);
}

static void
which_limit_it_was(void **state)
{
	(void)state;
	assert_int_equal(enter_calm("10.0.0.1", NOW), TALLY_ROOM);
	assert_int_equal(enter_calm("10.0.0.1", NOW), TALLY_ROOM);
	assert_int_equal(enter_calm("10.0.0.1", NOW), TALLY_KEY_FULL);
	assert_int_equal(enter_calm("10.0.0.2", NOW), TALLY_ROOM);
	assert_int_equal(enter_calm("10.0.0.3", NOW), TALLY_ROOM);
	assert_int_equal(enter_calm("10.0.0.4", NOW), TALLY_FULL);
}

/* From its third failure on, an address gets so many at once and then one every TALLY_SLOW_MS. */
static void
who_failed_is_slowed_down(void **state)
{
	uint32_t entered = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 100; k++) {
			assert_int_equal(enter_calm("10.0.0.1", NOW), TALLY_ROOM);
			peers_leave(p, "10.0.0.1");
		}
		peers_failed(p, "10.0.0.1", NOW);
	}
	for (uint64_t ms = 0; ms < 1000; ms++) {
		if (enter_calm("10.0.0.1", NOW + ms) != TALLY_ROOM)
			continue;
		peers_leave(p, "10.0.0.1");
		entered++;
	}
	assert_in_range(entered, TALLY_BURST + 1000 / TALLY_SLOW_MS - 1,
	    TALLY_BURST + 1000 / TALLY_SLOW_MS + 1);
	assert_int_equal(enter_calm("10.0.0.2", NOW + 999), TALLY_ROOM);
	/* Once its failures are a minute old it is as good as any. */
	for (int k = 0; k < 100; k++) {
		assert_int_equal(enter_calm("10.0.0.1", NOW + 2 * MINUTE), TALLY_ROOM);
		peers_leave(p, "10.0.0.1");
	}
}

static void
so_many_a_minute(void **state)
{
	const uint8_t key[TALLY_KEY] = {1}, other[TALLY_KEY] = {2};
	uint64_t t = NOW;

	(void)state;
	for (int i = 0; i < 30; i++, t += 500)
		assert_int_equal(tally_take(p, key, 30, t), 0);
	uint32_t wait = tally_take(p, key, 30, t);
	assert_in_range(wait, 1, 60);
	assert_int_equal(tally_take(p, other, 30, t), 0);
	assert_int_equal(tally_recent(p, key, t), 30);
	/* Who waits as told gets through, and not much earlier. */
	assert_int_not_equal(tally_take(p, key, 30, t + (wait - 6) * 1000), 0);
	assert_int_equal(tally_take(p, key, 30, t + wait * 1000), 0);
	/* Many at once: the wait is as long as it takes until enough of them are forgotten. */
	t += wait * 1000;
	tally_add(p, key, 1000, t);
	wait = tally_take(p, key, 30, t);
	assert_in_range(wait, 55, 61);
	assert_int_equal(tally_take(p, key, 30, t + wait * 1000), 0);
}

/* A large allowance is not used up at once. */
static void
a_sixth_in_five_seconds(void **state)
{
	const uint8_t key[TALLY_KEY] = {1};
	uint32_t n = 0;

	(void)state;
	while (n < 2000 && tally_take(p, key, 1200, NOW) == 0)
		n++;
	assert_int_equal(n, 200);
	assert_in_range(tally_take(p, key, 1200, NOW), 1, 6);
	assert_int_equal(tally_take(p, key, 1200, NOW + 6000), 0);
}

/* --- threads */

static void *
hammer(void *arg)
{
	uint32_t entered = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		const char *address = i & 1 ? "10.0.0.1" : "10.0.0.2";
		if (enter_of(address, 3, 2)) {
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
	assert_int_equal(p->count, 1);
	for (int i = 0; i < 3; i++)
		assert_true(enter_of("10.0.0.1", 3, 3));
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
	    TEST(which_limit_it_was),
	    TEST(who_failed_is_slowed_down),
	    TEST(so_many_a_minute),
	    TEST(a_sixth_in_five_seconds),
	    TEST(many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
