/* stages: gcc clang openssl address thread */
/* What a manifest and a report are held to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "engine_fixture.h"

static const char limits[] =
    JOB("limits", "\"goal\":2", ",\"aggregate\":{\"max_examples\":500,\"max_norm\":3.5}");

static const char normalising[] =
    JOB("normalising", "\"goal\":2", ",\"aggregate\":{\"normalise\":true}");

/* A job that scales deltas by their work must know it. */
static void
no_normaliser(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim claim;
	struct task t;
	uint8_t id[16];

	submit(c, normalising, id);
	assert_string_equal(ask(c, 1, &t), "");
	struct manifest m = manifest_for(&t, 1);
	m.normaliser = 0;
	as_wrong(c, &t, &m, PROBLEM_NO_NORMALISER);
	m.normaliser = 7;
	m.optimizer = MANIFEST_ADAM;
	as_wrong(c, &t, &m, PROBLEM_NO_NORMALISER);
	m.optimizer = MANIFEST_ADAMW;
	as_wrong(c, &t, &m, PROBLEM_NO_NORMALISER);
	m.optimizer = MANIFEST_EXTERNAL;
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	m.optimizer = MANIFEST_SGD;
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
}

static void
wrong_manifests(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim claim;
	struct task t, t2;
	uint8_t id[16];

	submit(c, limits, id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(ask(c, 2, &t2), "");
	const struct manifest good = manifest_for(&t, 1);
	struct manifest m;
#define WRONG(change, word) (m = good, change, as_wrong(c, &t, &m, word))
	WRONG(memcpy(m.device, device_id(2), 32), PROBLEM_WRONG_DEVICE);
	WRONG(m.job[0] ^= 1, PROBLEM_UNKNOWN_JOB);
	WRONG(m.round = 0, PROBLEM_STALE_ROUND);
	WRONG(m.round = 2, PROBLEM_STALE_ROUND);
	WRONG(m.task[15] ^= 1, PROBLEM_WRONG_TASK);
	WRONG(hex_decode(m.task, 16, t2.task, 32), PROBLEM_WRONG_TASK);
	WRONG(m.base[0] ^= 1, PROBLEM_WRONG_BASE);
	WRONG(m.flags = MANIFEST_MASKED, PROBLEM_UNSUPPORTED);
	WRONG(m.flags = MANIFEST_SECOND, PROBLEM_UNSUPPORTED);
	WRONG(m.flags = 1u << MANIFEST_KIND_SHIFT, PROBLEM_WRONG_KIND);
	WRONG(m.flags = 2u << MANIFEST_KIND_SHIFT, PROBLEM_UNSUPPORTED);
	WRONG(m.slice = 1, PROBLEM_UNSUPPORTED);
	WRONG(m.codec = 1, PROBLEM_UNKNOWN_CODEC);
	WRONG(m.codec = 999, PROBLEM_UNKNOWN_CODEC);
	WRONG(m.elements++, PROBLEM_BAD_MANIFEST);
	WRONG(m.elements = UINT64_MAX, PROBLEM_BAD_MANIFEST);
	WRONG(m.block = 64, PROBLEM_BAD_MANIFEST);
	WRONG(m.payload_bytes--, PROBLEM_WRONG_LENGTH);
	WRONG(m.payload_bytes++, PROBLEM_WRONG_LENGTH);
	WRONG(m.payload_bytes = UINT64_MAX, PROBLEM_WRONG_LENGTH);
	WRONG(m.examples = 0, PROBLEM_NO_EXAMPLES);
	WRONG(m.examples = 501, PROBLEM_TOO_MANY_EXAMPLES);
	/* The right manifest at another task's address. */
	as_wrong(c, &t2, &good, PROBLEM_WRONG_TASK);
	assert_int_equal(job_number(c, id, "reports"), 0);
	assert_int_equal(
	    tasks_claim(c->s.engine, &good, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	assert_memory_equal(claim.device, device_id(1), 32);
	assert_int_equal(claim.payload_bytes, ELEMENTS * sizeof(float));
	assert_true(claim.max_norm == 3.5);
	m = good;
	m.examples = 500;
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
}

static void
wrong_reports(void **state)
{
	struct coordinator *c = *state;
	struct report r = {.has_evaluate = true, .eval_examples = 500, .eval_accuracy = 1};
	struct engine_claim claim;
	struct task t;
	uint8_t id[16];

	submit(c, limits, id);
	assert_string_equal(ask(c, 1, &t), "");
	const struct manifest m = manifest_for(&t, 1);
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_NONE);
	r.eval_loss = -1e-9;
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
	r.eval_loss = NAN;
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_NONE);
	r.eval_examples = 501;
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
}

/* An accuracy is the share of the labels that the report tells. */
static void
accuracy_of_no_labels(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim claim = {
	    .kind = TASK_TRAIN, .max_examples = 100, .accuracy = 0.333333343f};
	struct report r = {.trained = {true, 3, true, 3, 1}};

	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_NONE);
	r.trained.right = 2;
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
	assert_non_null(strstr(c->why.text, "trained.right"));
	r.trained.labels = r.trained.right = 0;
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
	claim.accuracy = NAN;
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_NONE);
	r.has_evaluate = true;
	r.eval_examples = 10;
	r.eval_accuracy = 0.5;
	r.evaluated = (struct report_counted){true, 8, true, 8, 4};
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_NONE);
	r.evaluated.right = 8;
	assert_int_equal(tasks_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
	assert_non_null(strstr(c->why.text, "evaluate.right"));
}

static void
used_and_too_late(void **state)
{
	struct coordinator *c = *state;
	struct task t[4];
	uint8_t id[16];

	submit(c, plain, id);
	for (uint8_t i = 1; i <= 3; i++)
		assert_string_equal(ask(c, i, &t[i]), "");
	assert_null(deliver(c, &t[1], 1, 1, 100));
	struct manifest m = manifest_for(&t[1], 1);
	as_wrong(c, &t[1], &m, PROBLEM_USED_TASK);
	/* The round stays closed while nothing is folded any more. */
	rounds_stop(c->s.engine);
	assert_null(deliver(c, &t[2], 2, 1, 100));
	assert_string_equal(deliver(c, &t[3], 3, 1, 100), "round-closed");
	assert_int_equal(job_number(c, id, "reports"), 2);
	expect(c, 4, "restarting");
}

/* Two uploads of one task reach the store together: one is accepted, the other undone, and the count is right. */
static void
twice_at_once(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim a, b;
	struct task t;
	uint8_t id[16];

	submit(c, plain, id);
	assert_string_equal(ask(c, 1, &t), "");
	struct manifest m = manifest_for(&t, 1);
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &a, &c->why), PROBLEM_NONE);
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &b, &c->why), PROBLEM_NONE);
	assert_int_equal(tasks_take(c->s.engine, &a), ERR_OK);
	assert_int_equal(tasks_take(c->s.engine, &b), ERR_OK);
	tasks_settle(c->s.engine, &a, true, 72);
	tasks_settle(c->s.engine, &b, false, 72);
	assert_int_equal(job_number(c, id, "reports"), 1);
	assert_int_equal(job_number(c, id, "invited"), 1);
	assert_int_equal(job_number(c, id, "bytes_up"), 72);
	assert_int_equal(tasks_take(c->s.engine, &b), ERR_STATE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(wrong_manifests),
	    WITH(wrong_reports),
	    WITH(accuracy_of_no_labels),
	    WITH(no_normaliser),
	    WITH(used_and_too_late),
	    WITH(twice_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
