/* Jobs that a program of a named device measures: who trains, who is asked to measure, and which report counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit_rows.h"
#include "engine_fixture.h"

static const char job[] =
    "{\"name\":\"central\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\","
    "\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},"
    "\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},"
    "\"evaluate\":{\"by\":\"program\",\"devices\":[\"device-3\",\"device-4\"],\"deadline_s\":3600},"
    "\"round\":{\"goal\":2},\"stop\":{\"rounds\":2}}";

/* What Python's rivulet.evaluations offers. */
static const char *
ask_to_measure(struct coordinator *c, uint8_t tag, struct task *t)
{
	const struct offer trains = c->offer;

	c->offer.trainer_count = c->offer.data_count = c->offer.codec_count = 0;
	strcpy(c->offer.evaluators[0], "builtin");
	c->offer.evaluator_count = 1;
	strcpy(c->offer.features[c->offer.feature_count++], RECIPE_FEATURE_EVALUATE_PROGRAM);
	const char *got = ask(c, tag, t);
	static char word[64];
	snprintf(word, sizeof(word), "%s", got);
	c->offer = trains;
	return word;
}

/* Two devices have reported, and the model of round 1 waits. */
static void
fold_one(struct coordinator *c, uint8_t id[16], struct task *t)
{
	const uint64_t until = clock_ms() + 120000;

	submit(c, job, id);
	for (uint8_t tag = 1; tag <= 2; tag++) {
		assert_string_equal(ask(c, tag, t), "");
		assert_int_equal(t->kind, TASK_TRAIN);
		assert_null(deliver(c, t, tag, 1, 100));
	}
	while (*ask_to_measure(c, 3, t)) {
		if (clock_ms() > until)
			fail_msg("nothing is to be measured");
		engine_tick(c->s.engine);
		usleep(2000);
	}
}

static struct manifest
measured(const struct task *t, uint8_t tag)
{
	struct manifest m = {.round = t->round,
	    .examples = 5,
	    .flags = MANIFEST_REPORT | (uint32_t)TASK_EVALUATE << MANIFEST_KIND_SHIFT};

	assert_true(hex_decode(m.job, 16, t->job, 32));
	assert_true(hex_decode(m.task, 16, t->task, 32));
	assert_true(hex_decode(m.base, 32, t->model, 64));
	memcpy(m.device, device_id(tag), 32);
	return m;
}

static enum problem_type
claim(struct coordinator *c, const struct manifest *m, const struct task *t, uint8_t tag,
    struct engine_claim *out)
{
	return engine_claim(c->s.engine, m, device_id(tag), t->task, out, &c->why);
}

static void
evaluators_train_nothing(void **state)
{
	struct coordinator *c = *state;
	struct engine_reach reach;
	struct task t;
	uint8_t id[16];

	submit(c, job, id);
	/* They have all that it takes, and are selected: nothing is said of an evaluator but that. */
	expect(c, 3, "no-trainer");
	expect(c, 4, "no-trainer");
	assert_true(engine_reach(c->s.engine, id, &reach));
	assert_int_equal(reach.devices, DEVICES - 2);
	assert_int_equal(reach.evaluators.devices, 2);
	assert_int_equal(reach.evaluators.ready, 0);
	expect(c, 1, "");
	/* Their program has nothing to measure yet, and a trainer's never will. */
	assert_string_equal(ask_to_measure(c, 3, &t), "not-selected");
	assert_string_equal(ask_to_measure(c, 2, &t), "no-data");
	assert_int_equal(job_number(c, id, "invited"), 1);
}

static void
the_first_report_counts(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim first, second;
	struct task t, other;
	uint8_t id[16];

	fold_one(c, id, &t);
	assert_int_equal(t.kind, TASK_EVALUATE);
	assert_int_equal(t.round, 1);
	assert_true(t.deadline_s > 3000);
	assert_string_equal(ask_to_measure(c, 4, &other), "");
	assert_string_not_equal(t.task, other.task);
	assert_string_equal(t.model, other.model);
	/* Who trains gets no such task, and cannot report. */
	assert_string_not_equal(ask_to_measure(c, 1, &other), "");
	struct manifest m = measured(&t, 1);
	assert_int_equal(claim(c, &m, &t, 1, &first), PROBLEM_WRONG_TASK);
	assert_string_equal(c->why.text, "this device is none of the job's evaluators");
	/* Nor with the other evaluator's task, of another model, or of no examples. */
	m = measured(&t, 4);
	assert_int_equal(claim(c, &m, &t, 4, &first), PROBLEM_WRONG_TASK);
	m = measured(&t, 3);
	m.base[0] ^= 1;
	assert_int_equal(claim(c, &m, &t, 3, &first), PROBLEM_WRONG_BASE);
	m = measured(&t, 3);
	m.examples = 0;
	assert_int_equal(claim(c, &m, &t, 3, &first), PROBLEM_NO_EXAMPLES);
	/* The evaluator's task is none to train by. */
	assert_string_equal(deliver(c, &t, 3, 1, 100), "wrong-task");
	/* One is on its way to the disk and gets lost: the next may come. */
	m = measured(&t, 3);
	assert_int_equal(claim(c, &m, &t, 3, &first), PROBLEM_NONE);
	assert_true(first.central && !first.late);
	assert_int_equal(engine_take(c->s.engine, &first), ERR_OK);
	assert_string_equal(ask_to_measure(c, 4, &other), "");
	m = measured(&other, 4);
	assert_int_equal(claim(c, &m, &other, 4, &second), PROBLEM_NONE);
	assert_int_equal(engine_take(c->s.engine, &second), ERR_AGAIN);
	engine_settle(c->s.engine, &first, false, 0);
	assert_int_equal(engine_take(c->s.engine, &second), ERR_OK);
	engine_settle(c->s.engine, &second, true, 0);
	assert_int_equal(engine_take(c->s.engine, &first), ERR_STATE);
	m = measured(&t, 3);
	assert_int_equal(claim(c, &m, &t, 3, &first), PROBLEM_ROUND_CLOSED);
	/* Its row, which the test has not written, has no figure: the round goes on without. */
	await_rounds(c, id, 1);
	assert_false(round_row(c, id, 1).evaluate.known);
	assert_int_equal(round_row(c, id, 1).reports, 2);
}

static void
who_gives_up_is_not_asked_again(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	fold_one(c, id, &t);
	assert_int_equal(engine_abort(c->s.engine, device_id(1), t.task,
			     abort_reason_parse("trainer-failed"), NULL),
	    ERR_NOTFOUND);
	assert_int_equal(
	    engine_abort(c->s.engine, device_id(3), t.task, abort_reason_parse("stopped"), NULL),
	    ERR_OK);
	assert_string_equal(ask_to_measure(c, 3, &t), "");
	assert_int_equal(engine_abort(c->s.engine, device_id(3), t.task,
			     abort_reason_parse("trainer-failed"), "no memory"),
	    ERR_OK);
	assert_string_equal(ask_to_measure(c, 3, &t), "aborted");
	assert_string_equal(ask_to_measure(c, 4, &t), "");
	/* A stop ends the wait. */
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	await_rounds(c, id, 1);
	assert_string_not_equal(ask_to_measure(c, 4, &t), "");
}

static enum err
put_report(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_evaluation_put(db, arg);
}

/* Of the model of the task, with these figures: what a coordinator accepted that died before the round's commit. */
static void
report(struct coordinator *c, const struct task *t, uint8_t tag, char *text)
{
	struct manifest m = measured(t, tag);
	struct store_accept row = {.round = t->round, .report = text, .accepted_at = 1};

	hash_sha256(m.report_hash, text, strlen(text));
	memcpy(row.job, m.job, 16);
	memcpy(row.device, m.device, 32);
	memcpy(row.task, m.task, 16);
	manifest_encode(row.manifest, &m);
	assert_int_equal(store_write(c->s.store, put_report, &row, &c->why), ERR_OK);
}

static enum err
no_task(void *ctx, const uint8_t task[16])
{
	(void)ctx;
	(void)task;
	return ERR_OK;
}

static enum err
erase_3(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_audit_erase(db, device_id(3), no_task, NULL, arg);
}

static enum err
find_row(struct store_db *db, void *arg, struct why *why)
{
	struct store_accept row;

	(void)why;
	enum err e = store_evaluation_get(db, arg, 1, NULL, &row);
	free(row.report);
	return e;
}

static void
what_was_reported_before_a_start_counts(void **state)
{
	static char good[] = "{\"evaluate\":{\"examples\":5,\"loss\":0.25,\"accuracy\":0.5},"
			     "\"metrics\":{\"f1\":0.75}}";
	static char other[] = "{\"evaluate\":{\"examples\":5,\"loss\":9,\"accuracy\":0.1}}";
	struct coordinator *c = *state;
	struct task t, again;
	uint8_t id[16];

	/* Of a model that the round does not come to: it is as if there were none. */
	fold_one(c, id, &t);
	char model[65];
	memcpy(model, t.model, sizeof(model));
	memset(t.model, 'a', 64);
	report(c, &t, 3, other);
	coordinator_stop(c);
	coordinator_start(c);
	const uint64_t until = clock_ms() + 120000;
	while (*ask_to_measure(c, 4, &again) && clock_ms() < until) {
		engine_tick(c->s.engine);
		usleep(2000);
	}
	/* The model is the same to the bit, and the wait began anew. */
	assert_string_equal(again.model, model);
	assert_true(again.deadline_s > 3000);
	memcpy(t.model, model, sizeof(model));
	report(c, &t, 3, good);
	/* Its round is still to name it. */
	struct store_erased erased;
	assert_int_equal(store_write(c->s.store, erase_3, &erased, &c->why), ERR_STATE);
	coordinator_stop(c);
	coordinator_start(c);
	await_rounds(c, id, 1);
	const struct store_round r = round_row(c, id, 1);
	assert_true(r.evaluate.known && r.evaluate.loss == 0.25 && r.evaluate.accuracy == 0.5);
	assert_int_equal(r.evaluate.examples, 5);
	assert_int_equal(job_number(c, id, "round"), 2);
	char hex[65];
	hex_encode(hex, r.model, 32);
	assert_string_equal(hex, model);
	assert_int_equal(store_read(c->s.store, find_row, id, &c->why), ERR_OK);
	assert_int_equal(store_write(c->s.store, erase_3, &erased, &c->why), ERR_OK);
	assert_int_equal(erased.details, 2);
	assert_int_equal(store_read(c->s.store, find_row, id, &c->why), ERR_NOTFOUND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(evaluators_train_nothing),
	    WITH(the_first_report_counts),
	    WITH(who_gives_up_is_not_asked_again),
	    WITH(what_was_reported_before_a_start_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
