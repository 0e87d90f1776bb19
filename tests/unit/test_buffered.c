/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "buffered_fixture.h"
#include "config.h"
#include "prng.h"

/* Jobs whose rounds are buffers, through the real store, spool and folder. */

/* How far the round has moved every weight. */
static double
moved(struct coordinator *c, const uint8_t job[16], uint64_t round)
{
	const struct store_round r = round_row(c, job, round);
	float before[ELEMENTS], after[ELEMENTS];

	assert_int_equal(r.state, OUTCOME_COMMITTED);
	read_weights(c, r.base, before);
	read_weights(c, r.model, after);
	return (double)after[0] - (double)before[0];
}

static void
near(double got, double want)
{
	if (fabs(got - want) > 1e-6)
		fail_msg("%.9g is not %.9g", got, want);
}

static void
a_late_delta_counts_less(void **state)
{
	struct coordinator *c = *state;
	struct task slow, quick;
	uint8_t id[16];

	submit(c, BUFFERED("late", "\"goal\":2", ""), id);
	expect(c, 1, &slow, "");
	fill(c, id, 1, 2, 3);
	near(moved(c, id, 1), 1);
	expect(c, 2, &quick, "");
	send(c, &slow, 1, 8);
	send(c, &quick, 2, 2);
	await_rounds(c, id, 2);
	/* One round old, it counts 1 / sqrt(2), and the divisor stays. */
	near(moved(c, id, 2), (8 / sqrt(2) + 2) / 2);
	const struct store_round r = round_row(c, id, 2);
	assert_int_equal(r.reports, 2);
	assert_int_equal(r.examples, 200);
}

static void
a_mean_by_weights(void **state)
{
	struct coordinator *c = *state;
	struct task slow, quick;
	uint8_t id[16];

	submit(c,
	    BUFFERED("mean", "\"goal\":2",
		",\"aggregate\":{\"staleness\":{\"weight\":\"inverse\",\"divide\":\"weights\"}}"),
	    id);
	expect(c, 1, &slow, "");
	fill(c, id, 1, 2, 3);
	expect(c, 2, &quick, "");
	send(c, &slow, 1, 8);
	send(c, &quick, 2, 2);
	await_rounds(c, id, 2);
	near(moved(c, id, 2), (8 * 0.5 + 2) / 1.5);
}

static void
too_stale(void **state)
{
	struct coordinator *c = *state;
	struct task slow, now;
	uint8_t id[16];

	submit(c, BUFFERED("stale", "\"goal\":2,\"max_staleness\":1", ""), id);
	expect(c, 1, &slow, "");
	fill(c, id, 1, 2, 3);
	fill(c, id, 2, 2, 3);
	refused(c, &slow, 1, "too-stale");
	/* It holds a place, which its new task takes. */
	assert_int_equal(job_number(c, id, "invited"), 1);
	expect(c, 1, &now, "");
	assert_int_equal(now.round, 3);
	assert_int_equal(job_number(c, id, "invited"), 1);
	send(c, &now, 1, 1);
}

/* Two deltas of one device never meet in a buffer: the second is the next one's, a third has to wait. */
static void
one_of_each_device(void **state)
{
	struct coordinator *c = *state;
	struct task first, second, third, t;
	uint8_t id[16];

	submit(c, BUFFERED("one", "\"goal\":2,\"concurrency\":6", ""), id);
	expect(c, 1, &first, "");
	fill(c, id, 1, 2, 3);
	expect(c, 1, &second, "");
	assert_string_not_equal(first.task, second.task);
	fill(c, id, 2, 2, 3);
	expect(c, 1, &third, "");
	send(c, &first, 1, 1);
	send(c, &second, 1, 10);
	refused(c, &third, 1, "unavailable");
	expect(c, 1, &t, "reported");
	assert_int_equal(job_number(c, id, "reports"), 1);
	expect(c, 2, &t, "");
	send(c, &t, 2, 1);
	await_rounds(c, id, 3);
	near(moved(c, id, 3), (1 / sqrt(3) + 1) / 2);
	assert_int_equal(job_number(c, id, "reports"), 1);
	send(c, &third, 1, 1);
	expect(c, 3, &t, "");
	send(c, &t, 3, 1);
	await_rounds(c, id, 4);
	near(moved(c, id, 4), (10 / sqrt(3) + 1) / 2);
}

static void
places_of_tasks(void **state)
{
	struct coordinator *c = *state;
	struct task slow, t;
	uint8_t id[16];

	submit(c, BUFFERED("places", "\"goal\":2,\"concurrency\":1,\"task_timeout_s\":1", ""), id);
	expect(c, 1, &slow, "");
	expect(c, 2, &t, "not-selected");
	const uint64_t until = clock_ms() + 20000;
	while (strcmp(ask(c, 2, &t), "") != 0) {
		assert_true(clock_ms() < until);
		rounds_tick(c->s.engine);
		usleep(5000);
	}
	/* Its place is another's, its delta is as good as any. */
	expect(c, 3, &t, "not-selected");
	send(c, &slow, 1, 1);
	assert_int_equal(job_number(c, id, "reports"), 1);
	expect(c, 3, &t, "not-selected");
	ask(c, 2, &t);
	send(c, &t, 2, 1);
	await_rounds(c, id, 1);
	expect(c, 3, &t, "");
}

static void
given_back(void **state)
{
	const struct abort_cause cause = {.reason = ABORT_UNKNOWN, .word = "tired"};
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, BUFFERED("back", "\"goal\":2,\"concurrency\":1", ""), id);
	expect(c, 1, &t, "");
	assert_int_equal(tasks_abort(c->s.engine, device_id(1), t.task, cause, NULL), ERR_OK);
	expect(c, 1, &t, "aborted");
	expect(c, 2, &t, "");
	send(c, &t, 2, 1);
	expect(c, 3, &t, "");
	send(c, &t, 3, 1);
	await_rounds(c, id, 1);
	/* In another round it may try again. */
	expect(c, 1, &t, "");
}

/* What was accepted, what is for the next round, and who may not ask: all as before a restart. */
static void
after_a_restart(void **state)
{
	struct coordinator *c = *state;
	struct task first, second, t;
	uint8_t id[16];

	submit(c, BUFFERED("again", "\"goal\":3", ""), id);
	expect(c, 1, &first, "");
	fill(c, id, 1, 2, 4);
	expect(c, 1, &second, "");
	send(c, &first, 1, 6);
	send(c, &second, 1, 3);
	expect(c, 2, &t, "");
	send(c, &t, 2, 2);
	coordinator_stop(c);
	coordinator_start(c);
	assert_int_equal(job_number(c, id, "reports"), 2);
	expect(c, 2, &t, "reported");
	expect(c, 1, &t, "reported");
	refused(c, &second, 1, "used-task");
	expect(c, 3, &t, "");
	send(c, &t, 3, 1);
	await_rounds(c, id, 2);
	near(moved(c, id, 2), (6 / sqrt(2) + 2 + 1) / 3);
	assert_int_equal(job_number(c, id, "reports"), 1);
	fill(c, id, 3, 4, 5);
	near(moved(c, id, 3), (3 / sqrt(2) + 1 + 1) / 3);
}

static enum err
put_out(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_out_put(db, arg);
}

/* Asks, and makes what must be durable so, as the API does. */
static void
has_task(struct coordinator *c, uint8_t tag, struct task *t)
{
	struct store_out row;

	expect(c, tag, t, "");
	assert_true(tasks_out_missing(c->s.engine, device_id(tag), t, &row));
	assert_int_equal(store_write(c->s.store, put_out, &row, &c->why), ERR_OK);
	tasks_out_stored(c->s.engine, &row);
	assert_false(tasks_out_missing(c->s.engine, device_id(tag), t, &row));
}

static void
restart(struct coordinator *c)
{
	coordinator_stop(c);
	coordinator_start(c);
}

/* Four may be out: so they are after a restart, whoever asks first then. */
static void
out_before_a_restart(void **state)
{
	const struct abort_cause cause = {.reason = ABORT_UNKNOWN, .word = "tired"};
	struct coordinator *c = *state;
	struct task tasks[7], t;
	uint8_t id[16];

	submit(c, BUFFERED("out", "\"goal\":2,\"concurrency\":4,\"task_timeout_s\":100", ""), id);
	for (uint8_t tag = 1; tag <= 4; tag++)
		has_task(c, tag, &tasks[tag]);
	restart(c);
	expect(c, 5, &t, "not-selected");
	assert_int_equal(job_number(c, id, "invited"), 4);
	/* It is the same task; answered, its place is free. */
	expect(c, 1, &t, "");
	assert_string_equal(t.task, tasks[1].task);
	send(c, &t, 1, 1);
	has_task(c, 5, &tasks[5]);
	expect(c, 6, &t, "not-selected");
	/* Given back; and a newer task is in the place of an older one. */
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(2), tasks[2].task, cause, NULL), ERR_OK);
	send(c, &tasks[5], 5, 1);
	await_rounds(c, id, 1);
	has_task(c, 3, &t);
	assert_int_equal(t.round, 2);
	restart(c);
	assert_int_equal(job_number(c, id, "invited"), 2);
	has_task(c, 6, &tasks[6]);
	has_task(c, 7, &t);
	expect(c, 8, &t, "not-selected");
	send(c, &tasks[4], 4, 1);
	expect(c, 8, &t, "");
}

/* The time of a task runs on while nobody is there to see it. */
static void
over_before_a_restart(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, BUFFERED("over", "\"goal\":2,\"concurrency\":2,\"task_timeout_s\":2", ""), id);
	has_task(c, 1, &t);
	struct store_out old = {.round = 1, .at = clock_wall() - 3};
	memcpy(old.job, id, sizeof(old.job));
	memcpy(old.device, device_id(1), sizeof(old.device));
	assert_int_equal(store_write(c->s.store, put_out, &old, &c->why), ERR_OK);
	has_task(c, 2, &t);
	restart(c);
	expect(c, 3, &t, "");
	expect(c, 4, &t, "not-selected");
	const uint64_t until = clock_ms() + 20000;
	while (strcmp(ask(c, 4, &t), "") != 0) {
		assert_true(clock_ms() < until);
		rounds_tick(c->s.engine);
		usleep(5000);
	}
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
}

/* The base of a task that is out can be fetched and is kept, however many rounds have passed. */
static void
bases_stay(void **state)
{
	struct coordinator *c = *state;
	struct task slow;
	struct models_map *map = NULL;
	uint8_t id[16], base[32], second[32];

	((struct config *)(uintptr_t)c->s.fixed)->keep_last = 1;
	c->config.keep_last = 1;
	submit(c, BUFFERED("bases", "\"goal\":2", ",\"keep\":{\"last\":1,\"every\":0}"), id);
	fill(c, id, 1, 2, 3);
	expect(c, 1, &slow, "");
	assert_true(hex_decode(base, 32, slow.model, 64));
	for (uint64_t n = 2; n <= 5; n++)
		fill(c, id, n, 2, 3);
	memcpy(second, round_row(c, id, 2).model, 32);
	const uint64_t until = clock_ms() + 20000;
	while (models_get(c->s.models, second, &map, &c->why) != ERR_NOTFOUND) {
		models_map_release(map);
		map = NULL;
		assert_true(clock_ms() < until);
		usleep(5000);
	}
	assert_true(engine_may_read(c->s.engine, device_id(1), base, NULL));
	assert_int_equal(models_get(c->s.models, base, &map, &c->why), ERR_OK);
	models_map_release(map);
	send(c, &slow, 1, 1);
}

static void
late_ones_of_a_synchronous_job(void **state)
{
	static const char text[] =
	    JOB("next", "\"goal\":2,\"over_select\":3,\"late\":\"next\"", "");
	struct coordinator *c = *state;
	struct task slow, slower, t;
	uint8_t id[16];

	submit(c, text, id);
	expect(c, 1, &slow, "");
	expect(c, 4, &slower, "");
	fill(c, id, 1, 2, 3);
	send(c, &slow, 1, 8);
	assert_int_equal(job_number(c, id, "reports"), 1);
	/* It works on this round as well. */
	expect(c, 1, &t, "");
	send(c, &t, 1, 2);
	await_rounds(c, id, 2);
	near(moved(c, id, 2), (8 / sqrt(2) + 2) / 2);
	refused(c, &slower, 4, "too-stale");
}

/* Nine devices ask, three fast ones would fill every buffer of one: each waits for two others. (No rule bears a hostile one among so few:
 * the engine is told that this one does.) */
static void
turns_with_hostile_devices(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, BUFFERED("turns", "\"goal\":1,\"concurrency\":1", ""), id);
	change_facts(jobs_find(c->s.engine, id))->round.policy.hostile = 1;
	for (uint8_t tag = 1; tag <= DEVICES; tag++)
		expect(c, tag, &t, tag == 1 ? "" : "not-selected");
	expect(c, 1, &t, "");
	send(c, &t, 1, 1);
	await_rounds(c, id, 1);
	for (uint8_t tag = 2; tag <= 3; tag++) {
		expect(c, 1, &t, "reported");
		fill(c, id, tag, tag, tag);
	}
	fill(c, id, 4, 1, 1);
}

/* A job is over, and has forgotten its work, while a delta is on its way to the disk. */
static void
settled_after_the_end(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim claim = {.kind = TASK_TRAIN, .round = 1};
	struct task t;
	uint8_t id[16];

	submit(c, BUFFERED("over", "\"goal\":2", ""), id);
	job_round(jobs_find(c->s.engine, id))->policy.hostile = 1;
	expect(c, 1, &t, "");
	memcpy(claim.job_id, id, 16);
	memcpy(claim.device, device_id(1), 32);
	assert_int_equal(tasks_take(c->s.engine, &claim), ERR_OK);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_null(job_facts(jobs_find(c->s.engine, id))->work);
	tasks_settle(c->s.engine, &claim, true, 100);
	assert_true(job_is(c, id, "stopped"));
}

/* The time of the buffers' tasks is over while the evaluation that follows them is open: those of that are out until its deadline. */
static void
no_time_over_in_rounds(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, JOB("rounds", "\"goal\":2", ""), id);
	struct job *j = jobs_find(c->s.engine, id);
	expect(c, 1, &t, "");
	job_pace(j)->expiry_ms = 1;
	jobs_pace(c->s.engine)->look_ms = 0;
	rounds_tick(c->s.engine);
	expect(c, 1, &t, "");
	assert_int_equal(job_facts(j)->round.invited, 1);
	assert_true(job_pace(j)->expiry_ms == UINT64_MAX);
}

static void
not_for_old_agents(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, BUFFERED("new", "\"goal\":2", ""), id);
	c->offer.feature_count = 0;
	expect(c, 1, &t, "old-agent");
}

static void
what_cannot_hold(void **state)
{
	struct coordinator *c = *state;

	coordinator_refuses(c, BUFFERED("a", "\"goal\":2,\"over_select\":2", ""), "over_select");
	coordinator_refuses(c, JOB("c", "\"goal\":2,\"concurrency\":3", ""), "concurrency");
	coordinator_refuses(c,
	    JOB("d", "\"goal\":2", ",\"aggregate\":{\"staleness\":{\"weight\":\"sqrt\"}}"),
	    "stale");
	coordinator_refuses(c,
	    BUFFERED("e", "\"goal\":3",
		",\"aggregate\":{\"rule\":{\"name\":\"median\",\"hostile\":1},\"staleness\":{"
		"\"divide\":\"weights\"}}"),
	    "plain mean");
}

/* --- the order of arrival */

struct arrival_order {
	struct task tasks[8];
	uint8_t tags[8];
};

/* A buffer of six from three bases, in an order drawn; its weights. */
static void
one_order(struct coordinator *c, struct prng *r, unsigned number, float out[ELEMENTS])
{
	char text[1024];
	uint8_t id[16], order[6] = {1, 2, 3, 4, 5, 6};
	struct task tasks[7];

	snprintf(text, sizeof(text),
	    BUFFERED("order-%u", "\"goal\":6,\"quorum\":1,\"concurrency\":9", ""), number);
	submit(c, text, id);
	struct job *j = jobs_find(c->s.engine, id);
	for (uint64_t n = 1; n <= 3; n++) {
		expect(c, (uint8_t)(2 * n - 1), &tasks[2 * n - 1], "");
		expect(c, (uint8_t)(2 * n), &tasks[2 * n], "");
		if (n == 3)
			break;
		struct task t;
		expect(c, 9, &t, "");
		send(c, &t, 9, 0.5f);
		lock_take(&c->s.engine->lock);
		change_facts(j)->round.deadline_ms = 0;
		c->s.engine->pace.look_ms = 0;
		lock_release(&c->s.engine->lock);
		await_rounds(c, id, n);
	}
	for (unsigned i = 6; i > 1; i--) {
		const unsigned k = (unsigned)(prng_u64(r) % i);
		const uint8_t tag = order[i - 1];
		order[i - 1] = order[k];
		order[k] = tag;
	}
	for (unsigned i = 0; i < 6; i++)
		send(c, &tasks[order[i]], order[i], 0.1f * (float)(order[i] * order[i]));
	await_rounds(c, id, 3);
	read_weights(c, round_row(c, id, 3).model, out);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
}

/* ORDERS=1000 tries so many. */
static void
arrival_does_not_matter(void **state)
{
	const char *orders = getenv("ORDERS"), *seed = getenv("SEED");
	const unsigned most = orders ? (unsigned)atoi(orders) : 12;
	struct prng r;
	float first[ELEMENTS], other[ELEMENTS];

	prng_seed(&r, seed ? (uint64_t)atoll(seed) : clock_ms());
	one_order(*state, &r, 0, first);
	for (unsigned i = 1; i < most; i++) {
		one_order(*state, &r, i, other);
		assert_memory_equal(first, other, sizeof(first));
	}
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, coordinator_setup, coordinator_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(a_late_delta_counts_less),
	    TEST(a_mean_by_weights),
	    TEST(too_stale),
	    TEST(one_of_each_device),
	    TEST(places_of_tasks),
	    TEST(given_back),
	    TEST(after_a_restart),
	    TEST(out_before_a_restart),
	    TEST(over_before_a_restart),
	    TEST(bases_stay),
	    TEST(late_ones_of_a_synchronous_job),
	    TEST(turns_with_hostile_devices),
	    TEST(settled_after_the_end),
	    TEST(no_time_over_in_rounds),
	    TEST(not_for_old_agents),
	    TEST(what_cannot_hold),
	    TEST(arrival_does_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
