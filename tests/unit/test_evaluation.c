/* stages: gcc clang openssl address */
/* Rounds that make no model: of a job whose devices evaluate, after its last; and of one that does nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "buf.h"
#include "coordinator_fixture.h"
#include "job.h"

#define TWO "\"goal\":2,\"quorum\":2"
#define ONCE ",\"stop\":{\"rounds\":1}"
static const char plain[] = JOB("plain", TWO, ONCE);
static const char hasty[] = JOB("hasty", TWO ",\"deadline_s\":0.3", ONCE);
static const char aiming[] =
    JOB("aiming", TWO, ",\"stop\":{\"rounds\":9,\"target\":{\"accuracy\":0.5}}");
static const char wary[] = JOB("wary", "\"goal\":3,\"quorum\":3",
    ONCE ",\"aggregate\":{\"rule\":{\"name\":\"median\",\"hostile\":1}}");

/* The report of an evaluation, on its whole way as in api/deltas.c; NULL, or the word that refuses it. */
struct arrival {
	struct coordinator *c;
	struct engine_claim claim;
	struct store_accept row;
	enum err verdict;
};

static enum err
accept_report(struct store_db *db, void *arg, struct why *why)
{
	struct arrival *a = arg;

	(void)why;
	a->verdict = tasks_take(a->c->s.engine, &a->claim);
	a->row.folded = a->claim.folded;
	return a->verdict ? a->verdict : store_accept_insert(db, &a->row);
}

static struct manifest
evaluation_for(const struct task *t, uint8_t tag)
{
	struct manifest m = {.round = t->round,
	    .examples = 100,
	    .flags = MANIFEST_REPORT | 1u << MANIFEST_KIND_SHIFT,
	    .report_hash = {1}};

	assert_true(hex_decode(m.job, 16, t->job, 32));
	assert_true(hex_decode(m.task, 16, t->task, 32));
	assert_true(hex_decode(m.base, 32, t->model, 64));
	memcpy(m.device, device_id(tag), 32);
	return m;
}

static const char *
report(struct coordinator *c, const struct task *t, uint8_t tag, double loss, double accuracy)
{
	struct arrival a = {.c = c};
	struct manifest m = evaluation_for(t, tag);
	struct report r = {.has_evaluate = true,
	    .eval_examples = 100,
	    .eval_loss = loss,
	    .eval_accuracy = accuracy};
	struct buf text;

	enum problem_type problem =
	    tasks_claim(c->s.engine, &m, device_id(tag), t->task, &a.claim, &c->why);
	if (!problem)
		problem = tasks_claim_report(&a.claim, &r, &c->why);
	if (problem)
		return problem_word(problem);
	buf_init(&text, REPORT_MAX);
	assert_int_equal(messages_report_encode(&text, &r), ERR_OK);
	memcpy(a.row.job, m.job, 16);
	a.row.round = m.round;
	memcpy(a.row.device, m.device, 32);
	memcpy(a.row.task, m.task, 16);
	manifest_encode(a.row.manifest, &m);
	a.row.report = (char *)(uintptr_t)buf_str(&text);
	enum err e = store_write(c->s.store, accept_report, &a, &c->why);
	if (!a.verdict)
		tasks_settle(c->s.engine, &a.claim, e == ERR_OK, 0);
	buf_deinit(&text);
	return e == ERR_OK ? NULL : err_name(e);
}

/* All who ask evaluate, as an agent with its built-in trainer does. */
static void
can_evaluate(struct coordinator *c)
{
	strcpy(c->offer.evaluators[0], "builtin");
	c->offer.evaluator_count = 1;
}

/* The first round; its figures are of model 0. */
static void
first_round(struct coordinator *c)
{
	char figures[] = "{\"evaluate\":{\"examples\":100,\"loss\":2,\"accuracy\":0.6}}";
	struct task a, b;

	c->report = figures;
	assert_string_equal(ask(c, 1, &a), "");
	assert_string_equal(ask(c, 2, &b), "");
	assert_int_equal(a.kind, TASK_TRAIN);
	assert_null(deliver(c, &a, 1, 1, 100));
	assert_null(deliver(c, &b, 2, 1, 100));
	c->report = NULL;
}

/* Waits for the first task of the round. */
static void
await_task(struct coordinator *c, uint8_t tag, uint64_t round, struct task *t)
{
	uint64_t until = clock_ms() + 120000;

	while (*ask(c, tag, t) || t->round < round) {
		if (clock_ms() > until)
			fail_msg("no task of round %u: %s", (unsigned)round, t->reason);
		rounds_tick(c->s.engine);
		usleep(2000);
	}
	assert_int_equal(t->round, round);
}

static void
reason_is(struct coordinator *c, const uint8_t job[16], const char *want)
{
	struct job_view v;

	assert_true(engine_job(c->s.engine, job, NULL, &v));
	assert_string_equal(v.reason, want);
}

static void
metric_is(struct coordinator *c, const uint8_t job[16], uint64_t round, double accuracy)
{
	struct job_view v;

	assert_true(engine_job(c->s.engine, job, NULL, &v));
	assert_true(v.metric.known);
	assert_int_equal(v.metric_round, round);
	assert_true(fabs(v.metric.accuracy - accuracy) < 1e-9);
}

static void
the_last_model_has_its_figure(void **state)
{
	struct coordinator *c = *state;
	struct task a, b;
	uint8_t job[16];

	can_evaluate(c);
	submit(c, plain, job);
	first_round(c);
	await_task(c, 1, 2, &a);
	await_task(c, 2, 2, &b);
	assert_int_equal(a.kind, TASK_EVALUATE);
	metric_is(c, job, 0, 0.6);
	struct store_round first = round_row(c, job, 1), open = round_row(c, job, 2);
	assert_int_equal(open.state, OUTCOME_EVALUATING);
	assert_memory_equal(open.base, first.model, 32);
	assert_null(report(c, &a, 1, 1, 0.7));
	assert_true(job_is(c, job, "running"));
	assert_null(report(c, &b, 2, 3, 0.9));
	await_state(c, job, "done");
	reason_is(c, job, "all rounds done");
	metric_is(c, job, 1, 0.8);
	assert_int_equal(job_number(c, job, "rounds_committed"), 1);
	struct store_round last = round_row(c, job, 2);
	assert_int_equal(last.state, OUTCOME_EVALUATED);
	assert_memory_equal(last.model, first.model, 32);
	assert_int_equal(last.reports, 2);
	assert_int_equal(last.examples, 200);
	assert_true(isnan(last.loss) && isnan(last.accuracy) && isnan(last.norm));
	assert_true(last.evaluate.known && last.evaluate.loss == 2);
	assert_string_equal(ask(c, 3, &a), "no-job");
	/* As it was, after a start from the job's short row, and from its document. */
	coordinator_stop(c);
	coordinator_start(c);
	metric_is(c, job, 1, 0.8);
	assert_int_equal(job_number(c, job, "rounds_committed"), 1);
}

/* The target is reached by the model before: the last one is measured, too. */
static void
after_a_target(void **state)
{
	struct coordinator *c = *state;
	struct task a, b;
	uint8_t job[16];

	can_evaluate(c);
	submit(c, aiming, job);
	first_round(c);
	await_task(c, 1, 2, &a);
	await_task(c, 2, 2, &b);
	assert_int_equal(b.kind, TASK_EVALUATE);
	assert_null(report(c, &a, 1, 1, 0.1));
	assert_null(report(c, &b, 2, 1, 0.1));
	await_state(c, job, "done");
	reason_is(c, job, "target reached");
	metric_is(c, job, 1, 0.1);
}

/* Who knows no such tasks gets none; where nobody is known who does, the job waits for none. */
static void
agents_that_do_not_evaluate(void **state)
{
	struct coordinator *c = *state;
	struct offer whole = c->offer;
	struct task t;
	uint8_t job[16];

	submit(c, plain, job);
	first_round(c);
	await_state(c, job, "done");
	reason_is(c, job,
	    "all rounds done; its last model has no figure: fewer devices than the quorum "
	    "evaluate");
	metric_is(c, job, 0, 0.6);
	assert_int_equal(job_number(c, job, "round"), 1);
	/* One that evaluates has asked. */
	can_evaluate(c);
	submit(c, hasty, job);
	first_round(c);
	await_task(c, 3, 2, &t);
	c->offer = whole;
	assert_string_equal(ask(c, 4, &t), "no-trainer");
	can_evaluate(c);
	c->offer.feature_count = 0;
	assert_string_equal(ask(c, 4, &t), "old-agent");
	await_state(c, job, "done");
	reason_is(c, job,
	    "all rounds done; its last model has no figure: no device reported before the "
	    "deadline");
	metric_is(c, job, 0, 0.6);
	assert_string_equal(round_row(c, job, 2).reason, "no device reported before the deadline");
	assert_int_equal(round_row(c, job, 2).state, OUTCOME_EVALUATED);
}

static void
give_back(struct coordinator *c, uint8_t tag, const struct task *t)
{
	struct abort_cause cause = abort_reason_cause(ABORT_OUT_OF_MEMORY);

	cause.needed_bytes = 5000;
	cause.memory_bytes = 1000;
	assert_int_equal(tasks_abort(c->s.engine, device_id(tag), t->task, cause, NULL), ERR_OK);
}

/* To measure a model takes less memory than to train it: who refuses the one may do the other, and who refuses both is asked for neither. */
static void
too_small(void **state)
{
	struct coordinator *c = *state;
	struct engine_refusal shown[ENGINE_REFUSALS];
	struct task t;
	uint8_t job[16];

	can_evaluate(c);
	submit(c, plain, job);
	for (uint8_t tag = 3; tag <= 4; tag++) {
		assert_string_equal(ask(c, tag, &t), "");
		give_back(c, tag, &t);
		assert_string_equal(ask(c, tag, &t), "out-of-memory");
	}
	first_round(c);
	await_task(c, 3, 2, &t);
	give_back(c, 3, &t);
	assert_string_equal(ask(c, 3, &t), "out-of-memory");
	assert_int_equal(tasks_refusals(c->s.engine, job, shown), 3);
	assert_int_equal(shown[0].kind, TASK_TRAIN);
	assert_int_equal(shown[1].kind, TASK_EVALUATE);
	assert_memory_equal(shown[1].device, device_id(3), 32);
	assert_int_equal(tasks_refusals_of(c->s.engine, device_id(3), shown), 2);
	for (uint8_t tag = 1; tag <= 4; tag += 3) {
		await_task(c, tag, 2, &t);
		assert_null(report(c, &t, tag, 1, 0.9));
	}
	await_state(c, job, "done");
	metric_is(c, job, 1, 0.9);
}

static void
less_than_the_quorum(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t job[16];

	can_evaluate(c);
	submit(c, hasty, job);
	first_round(c);
	await_task(c, 1, 2, &t);
	assert_null(report(c, &t, 1, 1, 0.9));
	await_state(c, job, "done");
	reason_is(c, job,
	    "all rounds done; its last model has no figure: 1 of 2 reports before the deadline");
	metric_is(c, job, 0, 0.6);
	assert_false(round_row(c, job, 2).evaluate.known);
}

/* What nobody can say of a model that gives no numbers is a figure all the same: none. */
static void
no_numbers(void **state)
{
	struct coordinator *c = *state;
	struct task a, b;
	uint8_t job[16];

	can_evaluate(c);
	submit(c, plain, job);
	first_round(c);
	await_task(c, 1, 2, &a);
	await_task(c, 2, 2, &b);
	assert_null(report(c, &a, 1, NAN, NAN));
	assert_null(report(c, &b, 2, NAN, NAN));
	await_state(c, job, "done");
	reason_is(c, job, "all rounds done");
	struct store_metric m = round_row(c, job, 2).evaluate;
	assert_true(m.known && isnan(m.loss) && isnan(m.accuracy));
}

/* A few devices decide no figure, here as in a round. */
static void
hostile_reports(void **state)
{
	static const double figures[] = {0.5, 0.6, 1};
	char told[] = "{\"evaluate\":{\"examples\":100,\"loss\":2,\"accuracy\":0.6}}";
	struct coordinator *c = *state;
	struct task t[3];
	uint8_t job[16];

	can_evaluate(c);
	submit(c, wary, job);
	c->report = told;
	for (uint8_t i = 0; i < 3; i++)
		assert_string_equal(ask(c, i + 1, &t[i]), "");
	for (uint8_t i = 0; i < 3; i++)
		assert_null(deliver(c, &t[i], i + 1, 1, 100));
	for (uint8_t i = 0; i < 3; i++)
		await_task(c, i + 1, 2, &t[i]);
	for (uint8_t i = 0; i < 3; i++)
		assert_null(report(c, &t[i], i + 1, 1, figures[i]));
	await_state(c, job, "done");
	metric_is(c, job, 1, 0.6);
}

/* Each step of it may be the last before a restart. */
static void
restarts(void **state)
{
	struct coordinator *c = *state;
	struct task a, again, b;
	uint8_t job[16];

	can_evaluate(c);
	submit(c, plain, job);
	first_round(c);
	await_task(c, 1, 2, &a);
	coordinator_stop(c);
	coordinator_start(c);
	await_task(c, 1, 2, &again);
	assert_string_equal(a.task, again.task);
	assert_int_equal(again.kind, TASK_EVALUATE);
	assert_null(report(c, &a, 1, 1, 0.7));
	coordinator_stop(c);
	coordinator_start(c);
	assert_int_equal(job_number(c, job, "rounds_committed"), 1);
	assert_int_equal(job_number(c, job, "reports"), 1);
	assert_string_equal(report(c, &a, 1, 1, 0.7), "used-task");
	assert_string_equal(ask(c, 1, &again), "reported");
	await_task(c, 2, 2, &b);
	assert_null(report(c, &b, 2, 1, 0.9));
	await_state(c, job, "done");
	reason_is(c, job, "all rounds done");
	metric_is(c, job, 1, 0.8);
}

/* Nobody has asked since the start: that says nothing about who could. */
static void
a_restart_before_the_last_fold(void **state)
{
	struct coordinator *c = *state;
	struct task a, b;
	uint8_t job[16];

	can_evaluate(c);
	submit(c, plain, job);
	assert_string_equal(ask(c, 1, &a), "");
	assert_string_equal(ask(c, 2, &b), "");
	assert_null(deliver(c, &a, 1, 1, 100));
	rounds_stop(c->s.engine);
	assert_null(deliver(c, &b, 2, 1, 100));
	coordinator_stop(c);
	coordinator_start(c);
	await_task(c, 1, 2, &a);
	assert_int_equal(a.kind, TASK_EVALUATE);
}

static void
wrong_kinds(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim claim;
	struct task t;
	uint8_t job[16];

	can_evaluate(c);
	submit(c, plain, job);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(report(c, &t, 1, 1, 0.5), "wrong-kind");
	first_round(c);
	assert_string_equal(report(c, &t, 1, 1, 0.5), "used-task");
	await_task(c, 1, 2, &t);
	assert_string_equal(deliver(c, &t, 1, 1, 100), "wrong-kind");

	struct manifest m = evaluation_for(&t, 1);
	struct report r = {.has_evaluate = true, .eval_examples = 99, .eval_loss = 1};
	m.examples = 0;
	assert_int_equal(tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why),
	    PROBLEM_NO_EXAMPLES);
	m.examples = 1000001;
	assert_int_equal(tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why),
	    PROBLEM_TOO_MANY_EXAMPLES);
	m.examples = 100;
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	/* Another number than the manifest says, a loss below zero, no figures at all. */
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
	r.eval_examples = 100;
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_NONE);
	r.eval_loss = -1;
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
	r = (struct report){.metric_count = 0};
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
	m.base[0] ^= 1;
	assert_int_equal(tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why),
	    PROBLEM_WRONG_BASE);
	m.base[0] ^= 1;
	m.round = 1;
	assert_int_equal(tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why),
	    PROBLEM_STALE_ROUND);
}

static void
pause_stop_and_giving_back(void **state)
{
	struct coordinator *c = *state;
	struct task a, b;
	uint8_t job[16];

	can_evaluate(c);
	submit(c, plain, job);
	first_round(c);
	await_task(c, 1, 2, &a);
	assert_int_equal(engine_command(c->s.engine, job, JOB_PAUSED, NULL, &c->why), ERR_OK);
	assert_string_equal(ask(c, 2, &b), "paused");
	coordinator_stop(c);
	coordinator_start(c);
	assert_string_equal(ask(c, 2, &b), "paused");
	/* What is done is taken all the same. */
	assert_null(report(c, &a, 1, 1, 0.7));
	assert_int_equal(engine_command(c->s.engine, job, JOB_RUNNING, NULL, &c->why), ERR_OK);
	assert_string_equal(ask(c, 2, &b), "");
	assert_string_equal(ask(c, 3, &a), "not-selected");
	/* Its place goes to another one. */
	struct abort_cause cause = {.reason = ABORT_NO_DATA, .word = "no-data"};
	assert_int_equal(tasks_abort(c->s.engine, device_id(2), b.task, cause, NULL), ERR_OK);
	assert_string_equal(ask(c, 2, &b), "aborted");
	assert_string_equal(ask(c, 3, &a), "");
	tasks_device_gone(c->s.engine, device_id(3), "stopped");
	assert_string_equal(ask(c, 4, &b), "");
	assert_int_equal(engine_command(c->s.engine, job, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_string_equal(report(c, &b, 4, 1, 0.7), "stale-round");
	assert_true(job_is(c, job, "stopped"));
	metric_is(c, job, 0, 0.6);
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(job_is(c, job, "stopped"));
	assert_int_equal(job_number(c, job, "rounds_committed"), 1);
}

/* A job that has no rounds: the last model of another, measured by whoever has its data. */
static void
a_job_that_only_evaluates(void **state)
{
	struct coordinator *c = *state;
	char text[1024], model[65];
	struct task a, b;
	uint8_t job[16], other[16];
	struct job_view v;

	submit(c, plain, job);
	first_round(c);
	await_state(c, job, "done");
	hex_encode(model, round_row(c, job, 1).model, 32);
	snprintf(text, sizeof(text),
	    "{\"name\":\"alone\",\"kind\":\"evaluate\",\"seed\":3,\"model\":{\"layers\":[{\"type\":"
	    "\"linear\","
	    "\"name\":\"fc\",\"out\":2}],\"loss\":\"cross_entropy\",\"init\":\"%s\"},\"data\":{"
	    "\"name\":\"d\","
	    "\"shape\":[4],\"classes\":2},\"local\":{\"optimizer\":{\"rate\":0.1}},\"evaluate\":{"
	    "\"by\":"
	    "\"devices\"},\"round\":{" TWO "}}",
	    model);
	submit(c, text, other);
	assert_string_equal(ask(c, 1, &a), "no-trainer");
	can_evaluate(c);
	assert_string_equal(ask(c, 1, &a), "");
	assert_int_equal(a.kind, TASK_EVALUATE);
	assert_int_equal(a.round, 1);
	assert_string_equal(a.model, model);
	assert_null(report(c, &a, 1, 1, 0.2));
	coordinator_stop(c);
	coordinator_start(c);
	assert_string_equal(ask(c, 2, &b), "");
	assert_null(report(c, &b, 2, 1, 0.4));
	await_state(c, other, "done");
	reason_is(c, other, "evaluated");
	metric_is(c, other, 0, 0.3);
	/* A start reads its short row. */
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(engine_job(c->s.engine, other, NULL, &v));
	assert_true(v.only_evaluates);
	assert_int_equal(v.rounds_committed, 0);
	metric_is(c, other, 0, 0.3);
	assert_true(engine_job(c->s.engine, job, NULL, &v));
	assert_false(v.only_evaluates);
}

/* Its tasks go to nobody whose agent would refuse the recipe. */
static void
a_deadline_of_its_own(void **state)
{
	struct coordinator *c = *state;
	struct offer whole = c->offer;
	struct task t;
	uint8_t job[16];

	can_evaluate(c);
	submit(c,
	    "{\"name\":\"own\",\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\",\"out\":"
	    "2}],"
	    "\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2,"
	    "\"validation\":0.1},\"local\":{\"optimizer\":{\"rate\":0.1}},\"evaluate\":{\"by\":"
	    "\"devices\","
	    "\"deadline_s\":0.2},\"round\":{" TWO ",\"deadline_s\":3600},\"stop\":{\"rounds\":1}}",
	    job);
	c->offer.feature_count = 0;
	assert_string_equal(ask(c, 1, &t), "old-agent");
	c->offer = whole;
	can_evaluate(c);
	first_round(c);
	await_state(c, job, "done");
	reason_is(c, job,
	    "all rounds done; its last model has no figure: no device reported before the "
	    "deadline");
}

int
main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)
	const struct CMUnitTest tests[] = {
	    EACH(the_last_model_has_its_figure),
	    EACH(after_a_target),
	    EACH(agents_that_do_not_evaluate),
	    EACH(too_small),
	    EACH(less_than_the_quorum),
	    EACH(no_numbers),
	    EACH(hostile_reports),
	    EACH(restarts),
	    EACH(a_restart_before_the_last_fold),
	    EACH(wrong_kinds),
	    EACH(pause_stop_and_giving_back),
	    EACH(a_job_that_only_evaluates),
	    EACH(a_deadline_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
