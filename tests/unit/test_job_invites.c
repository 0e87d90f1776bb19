/* stages: gcc address */
/* The invitations of a job: held, found and forgotten beside a plain list of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs_inside.h"
#include "prng.h"

#define IDS 3000

static uint8_t ids[IDS][32];
static bool held[IDS], out[IDS];

static size_t
number_of(const struct invite *v)
{
	uint32_t n;

	memcpy(&n, v->task, sizeof(n));
	return n;
}

static int
compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, 32);
}

static void
check(const struct job *j)
{
	const struct invite *first[20];
	uint8_t sorted[IDS][32];
	size_t count = 0, outs = 0;

	for (size_t i = 0; i < IDS; i++) {
		const struct invite *v = invites_find(j, ids[i]);
		assert_int_equal(v != NULL, held[i]);
		count += held[i];
		if (!v)
			continue;
		assert_memory_equal(v->device, ids[i], 32);
		assert_int_equal(number_of(v), i);
		if (out[i])
			memcpy(sorted[outs++], ids[i], 32);
	}
	assert_int_equal(j->invite_count, count);
	qsort(sorted, outs, 32, compare_ids);
	const size_t n = invites_first_out(j, first, 20);
	assert_int_equal(n, outs < 20 ? outs : 20);
	for (size_t i = 0; i < n; i++)
		assert_memory_equal(first[i]->device, sorted[i], 32);
}

/* Ids of any kind: also those that begin alike, as no hashes do. */
static void
draw_ids(struct prng *rng, unsigned alike)
{
	for (size_t i = 0; i < IDS; i++) {
		for (size_t k = 0; k < 32; k++)
			ids[i][k] = k < alike ? 7 : (uint8_t)prng_u64(rng);
		ids[i][30] = (uint8_t)(i >> 8);
		ids[i][31] = (uint8_t)i;
		held[i] = out[i] = false;
	}
}

static void
play(struct prng *rng, unsigned alike)
{
	static const uint8_t id[16];
	struct job *j = job_blank(id);

	assert_non_null(j);
	j->work = calloc(1, sizeof(*j->work));
	assert_non_null(j->work);
	draw_ids(rng, alike);
	check(j);
	for (unsigned turn = 0; turn < 6; turn++) {
		for (size_t n = 0; n < IDS / 2; n++) {
			const uint32_t i = (uint32_t)prng_below(rng, IDS);
			struct invite *v = invites_hold(j, ids[i]);
			assert_non_null(v);
			if (!held[i])
				assert_int_equal(v->place.state, ROSTER_NONE);
			memcpy(v->task, &i, sizeof(i));
			held[i] = true;
			out[i] = prng_below(rng, 4) == 0;
			v->place.state = out[i] ? ROSTER_OUT : ROSTER_ACCEPTED;
		}
		check(j);
		const bool turns = turn == 3;
		invites_happens_all(j, turns ? ROSTER_TURN : ROSTER_REOPEN);
		for (size_t i = 0; i < IDS; i++)
			held[i] = held[i] && !out[i] && !turns;
		check(j);
	}
	job_free(j);
}

static void
finds_what_it_holds(void **state)
{
	const char *given = getenv("SEED");
	const uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
	struct prng rng;

	(void)state;
	printf("SEED=%llu\n", (unsigned long long)seed);
	prng_seed(&rng, seed);
	play(&rng, 0);
	play(&rng, 7);
	play(&rng, 30);
}

/* A place that comes to hold another task forgets the name and the times of the one before. */
static void
another_task(void **state)
{
	static const uint8_t id[16], device[32] = {1};
	struct job *j = job_blank(id);

	(void)state;
	assert_non_null(j);
	j->work = calloc(1, sizeof(*j->work));
	assert_non_null(j->work);
	change_facts(j)->state = JOB_RUNNING;
	change_facts(j)->row.round = 6;
	change_facts(j)->round = (struct round){.state = ROUND_OPEN,
	    .policy = {.goal = 3, .quorum = 2, .invite_max = 4, .late = true, .buffered = true}};
	j->work->spec.round.per_device = 2;
	j->work->spec.round.max_staleness = 3;
	struct invite *v = invites_hold(j, device);
	assert_non_null(v);
	v->place = (struct roster_place){.state = ROSTER_ACCEPTED, .round = 5, .now = 1};
	memset(v->task, 7, sizeof(v->task));
	v->stored = true;
	v->given_ms = 100;
	v->began_ms = 200;
	const struct roster_event e = {.kind = ROSTER_TAKE, .round = 6};
	assert_true(invites_happens(j, v, &e) & ROSTER_DO_TAKE);
	assert_int_equal(v->place.round, 6);
	assert_int_equal(v->task[0], 0);
	assert_false(v->stored);
	assert_int_equal(v->given_ms + v->began_ms, 0);
	job_free(j);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(finds_what_it_holds), cmocka_unit_test(another_task)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
