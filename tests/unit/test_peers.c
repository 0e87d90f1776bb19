/* stages: gcc openssl address thread */
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

	return peers_enter(p, address, &limits) == TALLY_ROOM;
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
		snprintf(address, sizeof(address), "10.0.0.%d", i % 100);
		assert_true(enter(address));
	}
	assert_false(enter("10.0.0.9"));
	peers_leave(p, "10.0.0.3");
	assert_true(enter("10.0.0.9"));
}

/* Any key: of an address, or of an identity. */
static const uint8_t *
key_of_number(uint32_t i)
{
	static uint8_t key[TALLY_KEY];

	memcpy(key, &i, sizeof(i));
	return key;
}

static uint32_t
events(uint32_t number, uint64_t now_ms)
{
	struct entry *e = find(p, key_of_number(number));

	return e ? sum(e, now_ms) : 0;
}

static bool
enter_number(uint32_t number, uint32_t most_each)
{
	const struct tally_limits limits = {.most = 2 * TALLY_MAX, .most_each = most_each};

	return tally_enter(p, key_of_number(number), &limits) == TALLY_ROOM;
}

static void
held_bytes(void **state)
{
	uint64_t a = 0, b = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_true(enter_number(1, 9));
	/* The first has room whatever it holds. */
	assert_true(tally_hold(p, key_of_number(1), &a, 50, 10));
	assert_false(tally_hold(p, key_of_number(1), &b, 1, 50));
	assert_int_equal(b, 0);
	assert_true(tally_hold(p, key_of_number(1), &b, 1, 51));
	assert_false(tally_hold(p, key_of_number(1), &a, 51, 51));
	assert_true(tally_hold(p, key_of_number(1), &a, 49, 0));
	assert_true(tally_hold(p, key_of_number(1), &a, 0, 0));
	assert_true(tally_hold(p, key_of_number(1), &b, UINT64_MAX, 0));
	assert_false(tally_hold(p, key_of_number(1), &a, UINT64_MAX, UINT64_MAX - 1));
	assert_int_equal(a, 0);
	for (int i = 0; i < 2; i++)
		tally_leave(p, key_of_number(1));
}

/* What was refused holds nothing, and what has left is forgotten, but for its events of the last minute. */
static void
nothing_is_left_behind(void **state)
{
	(void)state;
	assert_true(enter_number(1, 1));
	assert_int_equal(p->count, 1);
	tally_leave(p, key_of_number(1));
	assert_int_equal(p->count, 0);
	tally_leave(p, key_of_number(1));
	assert_int_equal(p->count, 0);
	tally_add(p, key_of_number(1), 1, NOW);
	assert_true(enter_number(1, 1));
	tally_leave(p, key_of_number(1));
	assert_int_equal(events(1, NOW), 1);
	tally_add(p, key_of_number(2), 1, NOW + 2 * MINUTE);
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
		assert_true(enter_of(rows[i].a, 5, 1));
		assert_int_equal(enter_of(rows[i].b, 5, 1), !rows[i].same);
	}
}

/* One event a second over two minutes, then silence. */
static void
the_window_slides(void **state)
{
	uint64_t t = NOW;

	(void)state;
	for (uint32_t i = 1; i <= 120; i++, t += 1000) {
		tally_add(p, key_of_number(1), 1, t);
		assert_in_range(events(1, t), i < 55 ? i : 55, i < 60 ? i : 60);
	}
	uint32_t before = 60;
	for (uint32_t i = 0; i <= 60; i++, t += 1000) {
		uint32_t n = events(1, t);
		assert_true(n <= before);
		assert_true(n + i + 6 >= 60 && n + i <= 66);
		before = n;
	}
	assert_int_equal(before, 0);
}

static void
a_clock_that_seems_to_go_back(void **state)
{
	(void)state;
	tally_add(p, key_of_number(1), 1, NOW);
	tally_add(p, key_of_number(1), 1, NOW - 6000);
	assert_int_equal(events(1, NOW - 6000), 2);
	assert_int_equal(events(1, NOW), 2);
	assert_int_equal(events(1, NOW + 3 * MINUTE), 0);
}

/* Full, the table gives up who has been idle the longest, and never one with something in hand. */
static void
a_full_table(void **state)
{
	(void)state;
	assert_true(enter_number(0, 1));
	for (uint32_t i = 0; i < TALLY_MAX; i++)
		tally_add(p, key_of_number(i), 1, NOW);
	assert_int_equal(p->count, TALLY_MAX);
	tally_add(p, key_of_number(1), 1, NOW);
	tally_add(p, key_of_number(TALLY_MAX), 1, NOW);
	assert_int_equal(p->count, TALLY_MAX);
	assert_int_equal(events(0, NOW), 1);
	assert_int_equal(events(1, NOW), 2);
	assert_int_equal(events(2, NOW), 0);
	assert_int_equal(events(TALLY_MAX, NOW), 1);
	/* All but the one at hand are over. */
	tally_add(p, key_of_number(1), 1, NOW + 2 * MINUTE);
	assert_int_equal(p->count, 2);
	assert_false(enter_number(0, 1));
}

static void
a_table_full_of_what_is_in_hand(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < TALLY_MAX; i++)
		assert_true(enter_number(i, 1));
	assert_false(enter_number(TALLY_MAX, 1));
	tally_add(p, key_of_number(TALLY_MAX), 1, NOW);
	assert_int_equal(p->count, TALLY_MAX);
	tally_leave(p, key_of_number(7));
	assert_true(enter_number(TALLY_MAX, 1));
}

/* --- limits */

static enum tally_room
room_for(const char *address)
{
	const struct tally_limits limits = {.most = 4, .most_each = 2};

	return peers_enter(p, address, &limits);
}

static void
which_limit_it_was(void **state)
{
	(void)state;
	assert_int_equal(room_for("10.0.0.1"), TALLY_ROOM);
	assert_int_equal(room_for("10.0.0.1"), TALLY_ROOM);
	assert_int_equal(room_for("10.0.0.1"), TALLY_KEY_FULL);
	assert_int_equal(room_for("10.0.0.2"), TALLY_ROOM);
	assert_int_equal(room_for("10.0.0.3"), TALLY_ROOM);
	assert_int_equal(room_for("10.0.0.4"), TALLY_FULL);
}

static enum tally_room
crowd_of(const char *address)
{
	const struct tally_limits limits = {.most = 100, .most_each = 2, .crowd = 12};

	return peers_enter(p, address, &limits);
}

/* Alone an address has all of the crowd; others make its part smaller, down to two. */
static void
a_fair_part_of_a_crowd(void **state)
{
	char address[16];

	(void)state;
	for (int i = 0; i < 12; i++)
		assert_int_equal(crowd_of("10.0.0.1"), TALLY_ROOM);
	assert_int_equal(crowd_of("10.0.0.1"), TALLY_KEY_FULL);
	for (int i = 0; i < 6; i++)
		assert_int_equal(crowd_of("10.0.0.2"), TALLY_ROOM);
	assert_int_equal(crowd_of("10.0.0.2"), TALLY_KEY_FULL);
	for (int i = 3; i < 12; i++) {
		snprintf(address, sizeof(address), "10.0.0.%d", i % 100);
		assert_int_equal(crowd_of(address), TALLY_ROOM);
		assert_int_equal(crowd_of(address), TALLY_ROOM);
	}
	assert_int_equal(crowd_of(address), TALLY_KEY_FULL);
	for (int i = 0; i < 12; i++)
		peers_leave(p, "10.0.0.1");
	assert_int_equal(crowd_of("10.0.0.1"), TALLY_ROOM);
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
a_tenth_in_five_seconds(void **state)
{
	const uint8_t key[TALLY_KEY] = {1};
	uint32_t n = 0;

	(void)state;
	while (n < 2000 && tally_take(p, key, 1200, NOW) == 0)
		n++;
	assert_int_equal(n, 120);
	assert_in_range(tally_take(p, key, 1200, NOW), 1, 6);
	assert_int_equal(tally_take(p, key, 1200, NOW + 6000), 0);
}

/* --- threads */

static void *
hammer(void *arg)
{
	static const uint8_t third[TALLY_KEY] = {3};
	uint32_t entered = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		const char *address = i & 1 ? "10.0.0.1" : "10.0.0.2";
		if (enter_of(address, 3, 2)) {
			entered++;
			peers_leave(p, address);
		}
		tally_add(p, third, 1, NOW + i);
	}
	*(uint32_t *)arg = entered;
	return NULL;
}

static void
many_threads(void **state)
{
	uint32_t entered[4], in_all = 0;
	pthread_t t[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammer, &entered[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		in_all += entered[i];
	}
	/* One that is stopped while it is inside may keep the others out. */
	assert_true(in_all > 0);
	assert_int_equal(events(3, NOW + 20000), 80000);
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
	    TEST(held_bytes),
	    TEST(nothing_is_left_behind),
	    TEST(one_host_is_one_address),
	    TEST(the_window_slides),
	    TEST(a_clock_that_seems_to_go_back),
	    TEST(a_full_table),
	    TEST(a_table_full_of_what_is_in_hand),
	    TEST(which_limit_it_was),
	    TEST(a_fair_part_of_a_crowd),
	    TEST(so_many_a_minute),
	    TEST(a_tenth_in_five_seconds),
	    TEST(many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
