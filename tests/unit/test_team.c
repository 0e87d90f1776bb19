/* stages: gcc clang address thread */
/* Every piece once, on lanes of their own, whether the threads of a team are awake or have gone to sleep between two calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "prng.h"
#include "team.h"

#define CALLS 4000
#define PIECES 40
#define ALL ((size_t)1000)

struct call {
	unsigned
	    done[PIECES]; /* of one call after the other, without atomics: a thread's own piece */
	unsigned lane[TEAM_MAX]; /* likewise its own lane */
	atomic_uint inside[TEAM_MAX];
	atomic_uint twice;
	uint64_t work;
};

static void
take(void *arg, size_t piece, unsigned lane)
{
	struct call *c = arg;

	if (atomic_fetch_add(&c->inside[lane], 1) > 0)
		atomic_fetch_add(&c->twice, 1);
	for (volatile uint64_t i = 0; i < c->work; i++)
		;
	c->done[piece]++;
	c->lane[lane]++;
	atomic_fetch_sub(&c->inside[lane], 1);
}

/* Long enough that threads sleep, or not. */
static void
pause_between(struct prng *r)
{
	struct timespec t = {.tv_nsec = 2000000};

	if (prng_below(r, 16) == 0)
		nanosleep(&t, NULL);
	for (volatile uint64_t i = prng_below(r, 2000); i > 0; i--)
		;
}

static void
run_calls(unsigned threads)
{
	struct team *t = NULL;
	struct prng r;

	prng_seed(&r, threads);
	assert_int_equal(team_new(&t, threads), ERR_OK);
	assert_int_equal(team_size(t), threads);
	assert_int_equal(team_active(t), threads);
	for (unsigned k = 0; k < CALLS / threads; k++) {
		struct call c = {.work = prng_below(&r, 3000)};
		if (k % 8 == 7)
			team_use(t, 1 + (unsigned)prng_below(&r, threads));
		size_t count = prng_below(&r, PIECES + 1), lanes = 0;
		team_run(t, count, take, &c);
		for (size_t i = 0; i < PIECES; i++)
			assert_int_equal(c.done[i], i < count);
		for (unsigned i = 0; i < TEAM_MAX; i++) {
			lanes += c.lane[i];
			assert_true(c.lane[i] == 0 || i < team_active(t));
		}
		assert_int_equal(lanes, count);
		assert_int_equal(c.twice, 0);
		pause_between(&r);
	}
	team_free(t);
}

static void
each_piece_is_done_once(void **state)
{
	static const unsigned threads[] = {1, 2, 3, 5, TEAM_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		run_calls(threads[i]);
}

struct shares {
	unsigned done[ALL];
};

static void
take_some(void *arg, size_t first, size_t count, unsigned lane)
{
	struct shares *s = arg;

	(void)lane;
	for (size_t i = first; i < first + count; i++)
		s->done[i]++;
}

static void
shares_are_the_whole(void **state)
{
	struct team *t = NULL;

	(void)state;
	assert_int_equal(team_new(&t, 3), ERR_OK);
	for (size_t n = 0; n <= ALL; n += 37)
		for (double each = 1; each < 1e8; each *= 100) {
			struct shares s = {{0}};
			team_share(t,
			    &(struct team_work){
				.n = n, .least = 8, .each = each, .fn = take_some, .arg = &s});
			for (size_t i = 0; i < ALL; i++)
				assert_int_equal(s.done[i], i < n);
		}
	team_free(t);
}

static void
little_work_is_one_piece(void **state)
{
	struct team *t = NULL;

	(void)state;
	assert_int_equal(team_new(&t, 2), ERR_OK);
	assert_int_equal(team_pieces(t, 1e3, 100), 1);
	assert_int_equal(team_pieces(t, 1e9, 3), 3);
	assert_true(team_pieces(t, 1e9, 100) >= 2);
	assert_null(team_worth(t, 1e3));
	assert_ptr_equal(team_worth(t, 1e9), t);
	assert_int_equal(team_pieces(NULL, 1e9, 100), 1);
	team_free(t);
	team_free(NULL);
}

static void
ignore(void *arg, size_t piece, unsigned lane)
{
	(void)arg;
	(void)piece;
	(void)lane;
}

/* Waits for the last lane to come, five seconds at most. */
static void
wait_for_last(void *arg, size_t piece, unsigned lane)
{
	const struct timespec shortly = {.tv_nsec = 1000000};
	atomic_bool *came = arg;

	(void)piece;
	if (lane == 2)
		atomic_store(came, true);
	for (unsigned i = 0; i < 5000 && !atomic_load(came); i++)
		nanosleep(&shortly, NULL);
}

static void
who_was_not_needed_comes_back(void **state)
{
	struct team *t = NULL;

	(void)state;
	assert_int_equal(team_new(&t, 3), ERR_OK);
	for (unsigned k = 0; k < 20; k++) {
		atomic_bool came = false;
		team_use(t, 1 + k % 2);
		for (unsigned i = 0; i < 100 * (k % 3); i++)
			team_run(t, 2, ignore, NULL);
		team_use(t, 100);
		assert_int_equal(team_active(t), 3);
		team_run(t, 3, wait_for_last, &came);
		assert_true(came);
	}
	team_free(t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_piece_is_done_once),
	    cmocka_unit_test(shares_are_the_whole),
	    cmocka_unit_test(little_work_is_one_piece),
	    cmocka_unit_test(who_was_not_needed_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
