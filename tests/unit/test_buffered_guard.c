/* stages: gcc openssl address */
/* Buffered jobs whose devices measure: which base a figure is of, and a guard that goes back by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "buffered_fixture.h"

/* Devices measure what their tasks started from: a figure is of the newest base that the quorum has measured, in whatever rounds. */
static void
figures_by_base(void **state)
{
	char first[] = "{\"evaluate\":{\"examples\":10,\"loss\":1}}";
	char second[] = "{\"evaluate\":{\"examples\":10,\"loss\":3}}";
	char third[] = "{\"evaluate\":{\"examples\":30,\"loss\":5}}";
	struct coordinator *c = *state;
	struct task slow, early, t;
	uint8_t id[16];

	submit(c,
	    BUFFERED("figures", "\"goal\":2,\"concurrency\":9",
		",\"evaluate\":{\"by\":\"devices\"},\"guard\":{\"metric\":\"loss\",\"factor\":1.5,"
		"\"do\":\"pause\"}"),
	    id);
	expect(c, 1, &slow, "");
	c->report = first;
	fill(c, id, 1, 2, 3);
	struct store_round r = round_row(c, id, 1);
	assert_true(r.evaluate.known && r.evaluate.loss == 1 && r.measured == 1);
	/* One of round 2, and one of round 1, whose base has its figure. */
	expect(c, 4, &early, "");
	expect(c, 2, &t, "");
	c->report = second;
	send(c, &slow, 1, 1);
	send(c, &t, 2, 1);
	await_rounds(c, id, 2);
	r = round_row(c, id, 2);
	assert_false(r.evaluate.known);
	coordinator_stop(c);
	coordinator_start(c);
	/* With the second of round 2 its base is known, and the guard sees it. */
	expect(c, 3, &t, "");
	c->report = third;
	send(c, &early, 4, 1);
	send(c, &t, 3, 1);
	await_rounds(c, id, 3);
	r = round_row(c, id, 3);
	assert_true(r.evaluate.known && r.measured == 2);
	assert_true(r.evaluate.loss == (10 * 3 + 30 * 5) / 40.0);
	assert_int_equal(r.evaluate.examples, 40);
	await_state(c, id, "paused");
	c->report = NULL;
}

/* The guard of a synchronous job goes back to what round 1 made: a late delta that started from round 2's model is of no more use. */
static void
a_rollback_begins_a_branch(void **state)
{
	static const char text[] = JOB("branch", "\"goal\":2,\"over_select\":3,\"late\":\"next\"",
	    ",\"monitor\":{\"metric\":\"metrics.q\",\"mode\":\"max\"},\"guard\":{\"metric\":"
	    "\"metrics.q\",\"drop\":0.5,\"do\":\"rollback\"}");
	char good[] = "{\"metrics\":{\"q\":0.9}}", bad[] = "{\"metrics\":{\"q\":0.1}}";
	struct coordinator *c = *state;
	struct task lost, t;
	uint8_t id[16];

	submit(c, text, id);
	c->report = good;
	fill(c, id, 1, 2, 3);
	fill(c, id, 2, 2, 3);
	expect(c, 4, &lost, "");
	assert_int_equal(lost.round, 3);
	c->report = bad;
	fill(c, id, 3, 2, 3);
	assert_memory_equal(round_row(c, id, 4).base, round_row(c, id, 1).model, 32);
	c->report = good;
	refused(c, &lost, 4, "stale-base");
	coordinator_stop(c);
	coordinator_start(c);
	refused(c, &lost, 4, "stale-base");
	expect(c, 4, &t, "");
	send(c, &t, 4, 1);
	c->report = NULL;
}

#define GOES_BACK(name) \
	BUFFERED(name, "\"goal\":2,\"concurrency\":9", \
	    ",\"aggregate\":{\"server_optimizer\":{\"momentum\":0.5}},\"evaluate\":{\"by\":" \
	    "\"devices\"},\"guard\":{\"metric\":\"loss\",\"factor\":1.5,\"do\":\"rollback\"}")

static void
restart(struct coordinator *c, bool restarts)
{
	if (!restarts)
		return;
	coordinator_stop(c);
	coordinator_start(c);
}

/* What comes while the round is folded. */
static const char *
while_it_folds(struct coordinator *c, const uint8_t job[16], const struct task *t, uint8_t tag)
{
	struct job *j = jobs_find(c->s.engine, job);

	lock_take(&c->s.engine->lock);
	change_facts(j)->round.state = ROUND_FOLDING;
	lock_release(&c->s.engine->lock);
	const char *got = deliver(c, t, tag, 1, 100);
	lock_take(&c->s.engine->lock);
	change_facts(j)->round.state = ROUND_OPEN;
	lock_release(&c->s.engine->lock);
	return got;
}

/* The model of round 2 is bad, which is known when round 4 is over: back to that of round 1, with its state. */
static void
goes_back(struct coordinator *c, const char *text, bool restarts)
{
	char good[] = "{\"evaluate\":{\"examples\":10,\"loss\":1}}";
	char bad[] = "{\"evaluate\":{\"examples\":10,\"loss\":5}}";
	struct task slow, fourth, fifth, sixth, lost, t;
	uint8_t id[16];

	submit(c, text, id);
	c->report = good;
	fill(c, id, 1, 2, 3);
	expect(c, 1, &slow, "");
	fill(c, id, 2, 2, 3);
	expect(c, 4, &fourth, "");
	expect(c, 5, &fifth, "");
	restart(c, restarts);
	send(c, &slow, 1, 1);
	c->report = bad;
	send(c, &fourth, 4, 1);
	await_rounds(c, id, 3);
	assert_false(round_row(c, id, 3).evaluate.known);
	restart(c, restarts);
	expect(c, 6, &sixth, "");
	expect(c, 7, &lost, "");
	assert_int_equal(lost.round, 4);
	const char *got = while_it_folds(c, id, &lost, 7);
	assert_true(got && strcmp(got, "unavailable") == 0);
	send(c, &sixth, 6, 1);
	send(c, &fifth, 5, 1);
	await_rounds(c, id, 4);
	const struct store_round first = round_row(c, id, 1), last = round_row(c, id, 4);
	assert_int_equal(last.measured, 3);
	assert_memory_equal(last.reason, "guard: loss 5, after 1 of round 1", 33);
	restart(c, restarts);
	refused(c, &lost, 7, "stale-base");
	const struct store_round open = round_row(c, id, 5);
	assert_memory_equal(open.base, first.model, 32);
	assert_memory_equal(open.optimizer_state, first.optimizer_state, 32);
	/* It is measured again under its new number, and is the best as before. */
	c->report = good;
	fill(c, id, 5, 2, 3);
	assert_int_equal(round_row(c, id, 5).measured, 5);
	expect(c, 7, &t, "");
	send(c, &t, 7, 1);
	c->report = NULL;
}

static void
a_guard_by_devices_goes_back(void **state)
{
	goes_back(*state, GOES_BACK("back"), false);
}

static void
and_after_restarts(void **state)
{
	goes_back(*state, GOES_BACK("back-again"), true);
}

/* The model of round 2 is the best, which is known when round 4 is over: until then its state is held, and then round 6 starts from it. */
static void
held_until_measured(void **state)
{
	char good[] = "{\"evaluate\":{\"examples\":10,\"loss\":1}}";
	char better[] = "{\"evaluate\":{\"examples\":10,\"loss\":0.5}}";
	char bad[] = "{\"evaluate\":{\"examples\":10,\"loss\":5}}";
	struct coordinator *c = *state;
	struct task slow, t[9];
	uint8_t id[16];

	submit(c, GOES_BACK("held"), id);
	c->report = good;
	fill(c, id, 1, 2, 3);
	expect(c, 1, &slow, "");
	fill(c, id, 2, 2, 3);
	for (uint8_t tag = 4; tag <= 5; tag++)
		expect(c, tag, &t[tag], "");
	c->report = better;
	send(c, &slow, 1, 1);
	send(c, &t[4], 4, 1);
	await_rounds(c, id, 3);
	restart(c, true);
	for (uint8_t tag = 6; tag <= 7; tag++)
		expect(c, tag, &t[tag], "");
	send(c, &t[5], 5, 1);
	send(c, &t[6], 6, 1);
	await_rounds(c, id, 4);
	assert_int_equal(round_row(c, id, 4).measured, 3);
	restart(c, true);
	expect(c, 8, &t[8], "");
	c->report = bad;
	send(c, &t[7], 7, 1);
	send(c, &t[8], 8, 1);
	await_rounds(c, id, 5);
	assert_int_equal(round_row(c, id, 5).measured, 4);
	const struct store_round second = round_row(c, id, 2), open = round_row(c, id, 6);
	assert_memory_equal(open.base, second.model, 32);
	assert_memory_equal(open.optimizer_state, second.optimizer_state, 32);
	c->report = NULL;
}

/* Who finds no numbers has measured the open base, and ends the buffer where nobody else works on it. A task of an older one says
 * nothing of it. */
static void
a_base_without_numbers(void **state)
{
	const struct abort_cause cause = {.reason = ABORT_NOT_FINITE, .word = "not-finite"};
	char good[] = "{\"evaluate\":{\"examples\":10,\"loss\":1}}";
	struct coordinator *c = *state;
	struct task old, t;
	uint8_t id[16];

	submit(c, GOES_BACK("none"), id);
	c->report = good;
	expect(c, 1, &old, "");
	fill(c, id, 1, 2, 3);
	for (uint8_t tag = 4; tag <= 5; tag++) {
		expect(c, tag, &t, "");
		assert_int_equal(
		    tasks_abort(c->s.engine, device_id(tag), t.task, cause, NULL), ERR_OK);
		if (tag == 4)
			assert_int_equal(
			    tasks_abort(c->s.engine, device_id(1), old.task, cause, NULL), ERR_OK);
		assert_int_equal(jobs_find(c->s.engine, id)->facts.round.no_numbers, tag - 3);
	}
	await_rounds(c, id, 2);
	const struct store_round r = round_row(c, id, 2);
	assert_int_equal(r.state, OUTCOME_FAILED);
	assert_true(r.measured == 2 && r.evaluate.known && isnan(r.evaluate.loss));
	assert_memory_equal(round_row(c, id, 3).base, round_row(c, id, 1).base, 32);
	c->report = NULL;
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, coordinator_setup, coordinator_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(figures_by_base),
	    TEST(a_rollback_begins_a_branch),
	    TEST(a_guard_by_devices_goes_back),
	    TEST(and_after_restarts),
	    TEST(held_until_measured),
	    TEST(a_base_without_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
