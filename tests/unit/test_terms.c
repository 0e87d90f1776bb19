/* stages: gcc openssl address */
/* What a job is run by, changed after its submission. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator_fixture.h"
#include "jobs_inside.h"

static enum err
set_as(struct coordinator *c, const uint8_t id[16], const char *text, bool bounded)
{
	struct override_set change;

	c->why.text[0] = '\0';
	assert_int_equal(override_parse(&change, text, strlen(text), &c->why), ERR_OK);
	return engine_set(c->s.engine, id,
	    &(struct engine_terms_change){.change = &change, .by = "test", .bounded = bounded},
	    &c->why);
}

static void
set(struct coordinator *c, const uint8_t id[16], const char *text)
{
	if (set_as(c, id, text, false))
		fail_msg("%s: %s", text, c->why.text);
}

static const struct job_terms *
terms(struct coordinator *c, const uint8_t id[16])
{
	return &jobs_find(c->s.engine, id)->work->terms;
}

static void
restart(struct coordinator *c)
{
	coordinator_stop(c);
	coordinator_start(c);
}

static void
play_round(struct coordinator *c, const uint8_t job[16], uint64_t round)
{
	struct task t;

	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 1, 100));
	await_rounds(c, job, round);
}

/* A restart and the same document again change nothing of it; what is taken back is the document's again. */
static void
stays(void **state)
{
	static const char text[] = JOB("n", "\"goal\":1,\"deadline_s\":500", ",\"share\":5");
	struct coordinator *c = *state;
	uint8_t id[16];
	bool created;

	submit(c, text, id);
	set(c, id, "{\"share\":3,\"round.deadline_s\":300,\"stop.rounds\":7}");
	set(c, id, "{\"share\":4,\"priority\":2}");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(terms(c, id)->share, 4);
		assert_int_equal(terms(c, id)->stop.rounds, 7);
		assert_int_equal(jobs_find(c->s.engine, id)->member.share, 4);
		assert_int_equal(jobs_find(c->s.engine, id)->member.priority, 2);
		assert_int_equal(
		    jobs_find(c->s.engine, id)->facts.round.policy.deadline_ms, 300000);
		assert_int_equal(job_number(c, id, "priority"), 2);
		restart(c);
		assert_int_equal(engine_submit(c->s.engine,
				     &(struct engine_document){.text = text, .len = strlen(text)},
				     id, &created, &c->why),
		    ERR_OK);
		assert_false(created);
	}
	set(c, id,
	    "{\"share\":null,\"priority\":null,\"stop.rounds\":null,\"round.deadline_s\":null}");
	restart(c);
	assert_int_equal(terms(c, id)->share, 5);
	assert_int_equal(terms(c, id)->stop.rounds, 0);
	assert_int_equal(jobs_find(c->s.engine, id)->facts.round.policy.deadline_ms, 500000);
}

/* The open round's deadline is the new one: so much before, or after, what it was. */
static void
open_round(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, JOB("n", "\"goal\":2,\"deadline_s\":500", ""), id);
	assert_string_equal(ask(c, 1, &t), "");
	const struct round *r = &jobs_find(c->s.engine, id)->facts.round;
	const uint64_t before = r->deadline_ms;
	set(c, id, "{\"round.deadline_s\":2000}");
	assert_int_equal(r->deadline_ms, before + 1500000);
	assert_int_equal(job_number(c, id, "reopened"), 0);
	set(c, id, "{\"round.deadline_s\":0.1}");
	while (job_number(c, id, "reopened") == 0) {
		rounds_tick(c->s.engine);
		usleep(1000);
	}
}

/* stop.rounds ends it with the open round, also where more are behind it; the rounds say what was in force. */
static enum err
read_round_override(struct store_db *db, void *arg, struct why *why)
{
	struct round_query *q = arg;
	char *text = NULL;

	(void)why;
	enum err e = store_override_of_round(db, q->job, q->round, &text);
	if (!e && strcmp(text, "{\"stop.rounds\":2}") != 0)
		e = ERR_INVALID;
	free(text);
	return e;
}

static void
an_end(void **state)
{
	struct coordinator *c = *state;
	struct round_query q = {.round = 3};
	uint8_t id[16];

	submit(c, JOB("n", "\"goal\":1", ",\"stop\":{\"rounds\":10}"), id);
	play_round(c, id, 1);
	play_round(c, id, 2);
	set(c, id, "{\"stop.rounds\":2}");
	assert_true(job_is(c, id, "running"));
	play_round(c, id, 3);
	await_state(c, id, "done");
	q.job = id;
	assert_int_equal(store_read(c->s.store, read_round_override, &q, &c->why), ERR_OK);
	q.round = 2;
	assert_int_equal(store_read(c->s.store, read_round_override, &q, &c->why), ERR_NOTFOUND);
	assert_int_equal(set_as(c, id, "{\"stop.rounds\":20}", false), ERR_STATE);
}

/* Reports are counted from the beginning, also when nobody asked for that before. */
static void
reports(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, JOB("n", "\"goal\":1", ""), id);
	play_round(c, id, 1);
	play_round(c, id, 2);
	set(c, id, "{\"stop.reports\":4}");
	play_round(c, id, 3);
	assert_true(job_is(c, id, "running"));
	play_round(c, id, 4);
	await_state(c, id, "done");
}

/* A job that comes to another priority begins beside those that are there. */
static void
another_priority(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t a[16], b[16];
	char hex[33];

	submit(c, JOB("a", "\"goal\":9", ",\"priority\":1"), a);
	submit(c, JOB("b", "\"goal\":9", ""), b);
	share_charge(&jobs_find(c->s.engine, a)->member.use, 500, clock_ms());
	share_order_move(&c->s.engine->order, &jobs_find(c->s.engine, a)->member);
	set(c, b, "{\"priority\":1}");
	assert_float_equal(
	    share_seconds(&jobs_find(c->s.engine, b)->member.use, clock_ms()), 500, 5);
	set(c, b, "{\"priority\":7}");
	hex_encode(hex, b, 16);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(t.job, hex);
}

static void
bounded(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, JOB("n", "\"goal\":1", ",\"keep\":{\"every\":1},\"stop\":{\"rounds\":3}"), id);
	assert_int_equal(set_as(c, id, "{\"priority\":1}", true), ERR_DENIED);
	assert_non_null(strstr(c->why.text, "owner_priority"));
	assert_int_equal(set_as(c, id, "{\"share\":2}", true), ERR_DENIED);
	assert_non_null(strstr(c->why.text, "owner_share"));
	c->config.owner_share = 2;
	assert_int_equal(set_as(c, id, "{\"share\":2,\"priority\":-3}", true), ERR_OK);
	/* What an administrator gave may be lowered, not raised. */
	set(c, id, "{\"share\":9}");
	assert_int_equal(set_as(c, id, "{\"share\":8}", true), ERR_OK);
	assert_int_equal(set_as(c, id, "{\"share\":9}", true), ERR_DENIED);
	/* Its models are promised room for. */
	c->config.owner_model_bytes = 10 * jobs_find(c->s.engine, id)->facts.model_bytes;
	assert_int_equal(set_as(c, id, "{\"stop.rounds\":100}", true), ERR_DENIED);
	assert_non_null(strstr(c->why.text, "owner_model_bytes"));
	assert_int_equal(set_as(c, id, "{\"stop.rounds\":0}", true), ERR_DENIED);
	assert_int_equal(set_as(c, id, "{\"stop.rounds\":5}", true), ERR_OK);
}

/* Fewer reports will do, in the open round too; the rounds say so. */
static void
fewer_reports(void **state)
{
	struct coordinator *c = *state;
	struct job_view v;
	struct task t;
	uint8_t id[16];

	submit(c, JOB("n", "\"goal\":3,\"deadline_s\":500", ""), id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 1, 100));
	assert_int_equal(set_as(c, id, "{\"round.goal\":4}", false), ERR_INVALID);
	assert_non_null(strstr(c->why.text, "can only be lowered"));
	set(c, id, "{\"round.goal\":2}");
	assert_true(engine_job(c->s.engine, id, NULL, &v));
	assert_int_equal(v.open.goal, 2);
	assert_int_equal(v.open.quorum, 2);
	restart(c);
	assert_string_equal(ask(c, 2, &t), "");
	assert_null(deliver(c, &t, 2, 1, 100));
	await_rounds(c, id, 1);
	assert_int_equal(round_row(c, id, 1).goal, 2);
	assert_int_equal(round_row(c, id, 1).reports, 2);
	assert_int_equal(round_row(c, id, 2).goal, 2);
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 1, 100));
	set(c, id, "{\"round.goal\":1}");
	await_rounds(c, id, 2);
	assert_int_equal(round_row(c, id, 2).goal, 1);
	set(c, id, "{\"round.goal\":null}");
	assert_int_equal(terms(c, id)->round.quorum, 3);
}

/* The aggregation rule must be able to work with so many. */
static void
too_few_for_the_rule(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c,
	    JOB("n", "\"goal\":7", ",\"aggregate\":{\"rule\":{\"name\":\"krum\",\"hostile\":2}}"),
	    id);
	assert_int_equal(set_as(c, id, "{\"round.quorum\":4}", false), ERR_INVALID);
	assert_non_null(strstr(c->why.text, "aggregate.rule: "));
	assert_int_equal(terms(c, id)->round.quorum, 7);
}

static void
wrong(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16], none[16] = {1};

	submit(c, JOB("n", "\"goal\":1", ""), id);
	assert_int_equal(set_as(c, none, "{\"share\":2}", false), ERR_NOTFOUND);
	assert_int_equal(set_as(c, id, "{\"round.concurrency\":2}", false), ERR_INVALID);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_int_equal(set_as(c, id, "{\"share\":2}", false), ERR_STATE);
	assert_non_null(strstr(c->why.text, "stopped"));
}

/* With the job goes what was set of it and of its rounds. */
static enum err
count_rows(struct store_db *db, void *arg, struct why *why)
{
	char *text = NULL;

	(void)why;
	enum err e = store_override_get(db, arg, &text);
	if (e == ERR_NOTFOUND)
		e = store_override_of_round(db, arg, 1, &text);
	free(text);
	return e;
}

static void
deleted(void **state)
{
	struct coordinator *c = *state;
	struct engine_deletion gone;
	uint8_t id[16];

	submit(c, JOB("n", "\"goal\":1", ""), id);
	set(c, id, "{\"share\":2,\"stop.rounds\":1}");
	play_round(c, id, 1);
	await_state(c, id, "done");
	assert_int_equal(store_read(c->s.store, count_rows, id, &c->why), ERR_OK);
	while (engine_delete(c->s.engine, id, NULL, false, &gone, &c->why) == ERR_STATE)
		usleep(1000);
	assert_int_equal(store_read(c->s.store, count_rows, id, &c->why), ERR_NOTFOUND);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(stays),
	    WITH(open_round),
	    WITH(an_end),
	    WITH(reports),
	    WITH(another_priority),
	    WITH(bounded),
	    WITH(fewer_reports),
	    WITH(too_few_for_the_rule),
	    WITH(wrong),
	    WITH(deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
