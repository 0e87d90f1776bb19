/* stages: gcc clang openssl address */
/* Jobs of one priority that share devices, on a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "share.h"

#define HOUR SHARE_HALF_LIFE_MS
#define JOBS 4
#define DEVICES 8

static void
halves(void **state)
{
	struct share_use u = share_none();

	(void)state;
	assert_true(share_seconds(&u, 5) == 0);
	share_charge(&u, 100, 1000);
	assert_float_equal(share_seconds(&u, 1000), 100, 1e-9);
	assert_float_equal(share_seconds(&u, 1000 + HOUR), 50, 1e-9);
	share_charge(&u, 10, 1000 + HOUR);
	assert_float_equal(share_seconds(&u, 1000 + HOUR), 60, 1e-9);
	assert_float_equal(share_seconds(&u, 1000 + 3 * (uint64_t)HOUR), 15, 1e-9);
	share_charge(&u, -20, 1000 + HOUR);
	assert_float_equal(share_seconds(&u, 1000 + HOUR), 40, 1e-9);
	share_charge(&u, -50, 1000 + HOUR);
	assert_true(share_seconds(&u, 1000 + HOUR) == 0);
	assert_true(isinf(share_key(&u, 1)));
}

/* Years on one clock: nothing runs over, and a second more still tells. */
static void
long_clock(void **state)
{
	const uint64_t years = 20ull * 365 * 24 * HOUR;
	struct share_use a = share_none(), b = share_none();

	(void)state;
	share_charge(&a, 1000, years);
	share_charge(&b, 1001, years);
	assert_true(share_key(&a, 1) < share_key(&b, 1));
	assert_float_equal(share_seconds(&b, years + HOUR), 500.5, 1e-3);
	share_charge(&a, -1e9, years);
	assert_true(share_seconds(&a, years) == 0);
}

static void
beforehand(void **state)
{
	struct share_use u = share_none();

	(void)state;
	assert_float_equal(share_begin(&u, 0), 1, 0);
	share_end(&u, 1, 30, 0);
	assert_float_equal(share_seconds(&u, 0), 30, 1e-9);
	assert_float_equal(share_begin(&u, 0), 30, 1e-9);
	assert_float_equal(share_begin(&u, 0), 30, 1e-9);
	assert_float_equal(share_seconds(&u, 0), 90, 1e-9);
	share_end(&u, 30, 20, 0);
	assert_float_equal(share_seconds(&u, 0), 80, 1e-9);
	assert_float_equal(u.task_seconds, 29, 1e-9);
}

static void
raised(void **state)
{
	struct share_use old = share_none(), fresh = share_none();

	(void)state;
	share_charge(&old, 300, 0);
	share_raise(&fresh, 3, share_key(&old, 1));
	assert_float_equal(share_seconds(&fresh, 0), 900, 1e-6);
	assert_float_equal(share_key(&fresh, 3), share_key(&old, 1), 1e-12);
	share_raise(&fresh, 3, -INFINITY);
	share_raise(&fresh, 3, 0);
	assert_float_equal(share_seconds(&fresh, 0), 900, 1e-6);
}

/* --- a fleet that always has work */

struct played {
	struct share_use use;
	uint32_t share, goal; /* reports that end a round */
	double task_seconds;
	uint32_t reports, rounds;
	double seconds; /* of devices, without decay */
	uint64_t served_ms, longest_ms; /* when last, and how long it was not */
};

struct worker {
	size_t job;
	uint64_t from_ms, until_ms;
	double charged;
};

static size_t
least(const struct played *jobs, size_t count)
{
	size_t best = 0;

	for (size_t i = 1; i < count; i++)
		if (share_key(&jobs[i].use, jobs[i].share) <
		    share_key(&jobs[best].use, jobs[best].share))
			best = i;
	return best;
}

static void
hand_out(struct worker *w, struct played *jobs, size_t count, uint64_t now)
{
	*w = (struct worker){.job = least(jobs, count), .from_ms = now};
	struct played *j = &jobs[w->job];
	if (now - j->served_ms > j->longest_ms)
		j->longest_ms = now - j->served_ms;
	j->served_ms = now;
	w->charged = share_begin(&j->use, now);
	w->until_ms = now + (uint64_t)(j->task_seconds * 1000);
}

static void
hand_in(struct worker *w, struct played *jobs)
{
	struct played *j = &jobs[w->job];
	double seconds = (double)(w->until_ms - w->from_ms) / 1000;

	share_end(&j->use, w->charged, seconds, w->until_ms);
	j->seconds += seconds;
	if (++j->reports == j->goal) {
		j->reports = 0;
		j->rounds++;
	}
}

static struct worker *
first(struct worker *workers)
{
	struct worker *w = workers;

	for (size_t i = 1; i < DEVICES; i++)
		if (workers[i].until_ms < w->until_ms)
			w = &workers[i];
	return w;
}

/* Until all together have so many rounds; tasks that still run then count for what they have taken. */
static uint64_t
play(struct played *jobs, size_t count, uint32_t rounds, uint64_t now)
{
	struct worker workers[DEVICES];
	uint32_t done = 0;

	for (size_t i = 0; i < count; i++)
		jobs[i].served_ms = now;
	for (size_t i = 0; i < DEVICES; i++)
		hand_out(&workers[i], jobs, count, now);
	while (done < rounds) {
		struct worker *w = first(workers);
		now = w->until_ms;
		hand_in(w, jobs);
		hand_out(w, jobs, count, now);
		done = 0;
		for (size_t i = 0; i < count; i++)
			done += jobs[i].rounds;
	}
	for (size_t i = 0; i < DEVICES; i++)
		jobs[workers[i].job].seconds += (double)(now - workers[i].from_ms) / 1000;
	return now;
}

/* Tasks that take longer than the half-life are few at a time: then each weighs more than what is left of those before. */
static void
one_to_three(void **state)
{
	static const struct {
		double seconds[2], tolerance;
	} rows[] = {{{10, 10}, 0.05}, {{3, 40}, 0.05}, {{40, 3}, 0.05}, {{600, 60}, 0.05},
	    {{60, 600}, 0.05}, {{7200, 5000}, 0.25}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct played jobs[2];
		for (size_t n = 0; n < 2; n++)
			jobs[n] = (struct played){.use = share_none(),
			    .share = n == 0 ? 1 : 3,
			    .goal = 4,
			    .task_seconds = rows[i].seconds[n]};
		(void)play(jobs, 2, 200, 1000);
		double ratio = jobs[1].seconds / jobs[0].seconds;
		print_message("%g s and %g s: 1:%.3f, rounds %u and %u\n", rows[i].seconds[0],
		    rows[i].seconds[1], ratio, jobs[0].rounds, jobs[1].rounds);
		assert_true(fabs(ratio / 3 - 1) < rows[i].tolerance);
	}
}

/* The least share among the largest waits no longer than its part of the fleet's turns. */
static void
nobody_starves(void **state)
{
	struct played jobs[JOBS];

	(void)state;
	for (size_t i = 0; i < JOBS; i++)
		jobs[i] = (struct played){
		    .use = share_none(), .share = i == 0 ? 1 : 100, .goal = 5, .task_seconds = 10};
	(void)play(jobs, JOBS, 2000, 0);
	/* 1 task of 301, of a fleet that begins 0.8 a second: 376 s. */
	print_message("waited %g s at most, %g s of use\n", (double)jobs[0].longest_ms / 1000,
	    jobs[0].seconds);
	assert_in_range(jobs[0].longest_ms, 1, 2 * 376 * 1000);
}

/* A new job gets its share, and not more than that until it has caught up. */
static void
newcomer(void **state)
{
	struct played jobs[3] = {
	    {.use = share_none(), .share = 1, .goal = 4, .task_seconds = 10},
	    {.use = share_none(), .share = 1, .goal = 4, .task_seconds = 10},
	    {.use = share_none(), .share = 1, .goal = 4, .task_seconds = 10},
	};

	(void)state;
	uint64_t now = play(jobs, 2, 1000, 0);
	share_raise(&jobs[2].use, 1, share_key(&jobs[least(jobs, 2)].use, 1));
	for (size_t i = 0; i < 3; i++) {
		jobs[i].seconds = 0;
		jobs[i].rounds = 0;
	}
	(void)play(jobs, 3, 60, now);
	assert_in_range((uint64_t)jobs[2].seconds, 760, 840); /* of 2400 and some */
}

/* --- the order */

static struct share_member
member(int64_t priority, uint32_t share, uint64_t serial)
{
	return (struct share_member){
	    .use = share_none(), .priority = priority, .share = share, .serial = serial};
}

/* The serials of all in order, as digits. */
static const char *
walk(const struct share_order *o, char text[16])
{
	const struct share_member *m = NULL;
	size_t n = 0;

	while (n < 15 && (m = share_order_next(o, m ? &m->at : NULL)))
		text[n++] = (char)('0' + m->serial);
	text[n] = '\0';
	return text;
}

static void
ordered(void **state)
{
	static struct share_order o;
	struct share_member m[] = {
	    member(0, 1, 1), member(5, 1, 2), member(0, 2, 3), member(0, 1, 4), member(-1, 1, 5)};
	char text[16];

	(void)state;
	for (size_t i = 0; i < 5; i++)
		assert_true(share_order_add(&o, &m[i]));
	/* None has been used: the older first, within a priority. */
	m[2].share = 1;
	share_order_move(&o, &m[2]);
	assert_string_equal(walk(&o, text), "21345");
	m[2].share = 2;
	for (size_t i = 0; i < 4; i++) {
		share_charge(&m[i].use, 10, 0);
		share_order_move(&o, &m[i]);
	}
	assert_string_equal(walk(&o, text), "23145");
	share_charge(&m[2].use, 10.1, 0);
	share_order_move(&o, &m[2]);
	assert_string_equal(walk(&o, text), "21435");
	/* The walk goes on behind one that has left. */
	const struct share_place first = m[0].at;
	share_order_remove(&o, &m[0]);
	share_order_remove(&o, &m[0]);
	assert_int_equal(share_order_next(&o, &first)->serial, 4);
	m[4].priority = 9;
	share_order_move(&o, &m[4]);
	assert_string_equal(walk(&o, text), "5243");
}

/* Who is measured by whom: not by those that wait, that nobody has worked for lately, or of another priority. */
static void
beside_the_least(void **state)
{
	static struct share_order o;
	struct share_member m[] = {member(0, 1, 1), member(0, 1, 2), member(0, 1, 3),
	    member(0, 1, 4), member(1, 1, 5), member(0, 2, 6)};
	const double use[] = {100, 10, 300, 20, 5, 0};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		/* The second's was long ago. */
		share_charge(&m[i].use, use[i], i == 1 ? 1 : 2 * (uint64_t)HOUR);
		assert_true(share_order_add(&o, &m[i]));
	}
	m[3].waits = true;
	share_order_raise(&o, &m[5], 2 * (uint64_t)HOUR);
	assert_float_equal(share_seconds(&m[5].use, 2 * (uint64_t)HOUR), 200, 1e-6);
	share_order_raise(&o, &m[2], 2 * (uint64_t)HOUR);
	assert_float_equal(share_seconds(&m[2].use, 2 * (uint64_t)HOUR), 300, 1e-6);
}

/* As many as there may be, charged at random: always in order, none lost. */
static void
many(void **state)
{
	static struct share_order o;
	static struct share_member all[SHARE_ORDER_MAX + 1];
	uint64_t random = 88172645463325252ull;
	char serials[SHARE_ORDER_MAX + 2] = {0};

	(void)state;
	for (size_t i = 0; i <= SHARE_ORDER_MAX; i++) {
		all[i] = member((int64_t)(i % 3), (uint32_t)(1 + i % 7), i + 1);
		assert_int_equal(share_order_add(&o, &all[i]), i < SHARE_ORDER_MAX);
	}
	for (uint64_t t = 0; t < 20000; t++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		struct share_member *m = &all[random % SHARE_ORDER_MAX];
		share_charge(&m->use, (double)(random >> 40), 1000 * t);
		share_order_move(&o, m);
	}
	size_t n = 0;
	for (const struct share_member *m = NULL, *next;
	     (next = share_order_next(&o, m ? &m->at : NULL)); m = next, n++) {
		assert_int_equal(serials[next->serial]++, 0);
		assert_true(!m || m->priority > next->priority ||
		    (m->priority == next->priority &&
			share_key(&m->use, m->share) <= share_key(&next->use, next->share)));
	}
	assert_int_equal(n, SHARE_ORDER_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(halves),
	    cmocka_unit_test(long_clock),
	    cmocka_unit_test(beforehand),
	    cmocka_unit_test(raised),
	    cmocka_unit_test(one_to_three),
	    cmocka_unit_test(nobody_starves),
	    cmocka_unit_test(newcomer),
	    cmocka_unit_test(ordered),
	    cmocka_unit_test(beside_the_least),
	    cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
