/* stages: gcc clang openssl address */
/* Jobs with control variates on the coordinator: whose counts, how many may, what is folded and kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator_fixture.h"

#define LOCAL \
	"\"local\":{\"epochs\":1,\"optimizer\":{\"rate\":0.1},\"control_variates\":{\"devices\":" \
	"3}}"
/* Three devices, of which two report to a round. */
#define VARIATES(name, more) \
	"{\"name\":\"" name \
	"\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}]," \
	"\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2}," LOCAL \
	",\"round\":{\"goal\":2}" more "}"

static const char plain[] = VARIATES("plain", "");
static const char momentum[] =
    VARIATES("momentum", ",\"aggregate\":{\"server_optimizer\":{\"momentum\":0.5}}");
static const char exploding[] =
    VARIATES("exploding", ",\"aggregate\":{\"server_optimizer\":{\"rate\":1000000}}");

static int
setup(void **state)
{
	int rc = coordinator_setup(state);

	((struct coordinator *)*state)->second = true;
	return rc;
}

/* Both devices report; the second vector holds twice the value. */
static void
one_round(struct coordinator *c, const uint8_t job[16], uint8_t a, float x, uint8_t b, float y)
{
	uint64_t before = job_number(c, job, "rounds_committed");
	struct task s, t;

	assert_string_equal(ask(c, a, &s), "");
	assert_string_equal(ask(c, b, &t), "");
	assert_null(deliver(c, &s, a, x, 100));
	assert_null(deliver(c, &t, b, y, 300));
	await_rounds(c, job, before + 1);
}

/* The last vector of a state of so many. */
static void
expect_variate(struct coordinator *c, const char *hash, size_t vectors, float want)
{
	float state[3 * ELEMENTS];
	uint8_t id[32];

	assert_true(vectors <= 3 && hex_decode(id, sizeof(id), hash, 64));
	assert_int_equal(
	    models_state_get(c->s.models, id, state, vectors * ELEMENTS, &c->why), ERR_OK);
	for (size_t i = 0; i < ELEMENTS; i++)
		if (!(fabsf(state[(vectors - 1) * ELEMENTS + i] - want) <= 1e-6f))
			fail_msg("c is %.9g, not %.9g", (double)state[(vectors - 1) * ELEMENTS + i],
			    (double)want);
}

/* c grows by the changes' sum over the job's three devices, whatever the examples; a task names it, and what counts of its device. */
static void
counts(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16], id[32];
	struct task t;

	submit(c, plain, job);
	assert_string_equal(ask(c, 1, &t), "");
	assert_true(t.counted == 0 && !t.state[0]);
	one_round(c, job, 1, 1, 2, 2);
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(t.counted, 1);
	assert_int_equal(t.state_bytes, ELEMENTS * sizeof(float));
	expect_variate(c, t.state, 1, (2 + 4) / 3.0f);
	assert_true(hex_decode(id, sizeof(id), t.state, 64));
	assert_true(engine_variate_may_read(c->s.engine, device_id(1), id));
	id[0] ^= 1;
	assert_false(engine_variate_may_read(c->s.engine, device_id(1), id));
	one_round(c, job, 1, -1, 3, 0.5f);
	/* All is there after a restart. */
	for (int restarted = 0; restarted < 2; restarted++) {
		assert_string_equal(ask(c, 2, &t), "");
		assert_int_equal(t.counted, 1);
		assert_string_equal(ask(c, 3, &t), "");
		assert_int_equal(t.counted, 2);
		expect_variate(c, t.state, 1, (2 + 4 - 2 + 1) / 3.0f);
		coordinator_stop(c);
		coordinator_start(c);
	}
}

/* Behind what the server optimizer keeps. */
static void
beside_momentum(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16];
	struct task t;

	submit(c, momentum, job);
	one_round(c, job, 1, 1, 2, 2);
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(t.state_bytes, 2 * ELEMENTS * sizeof(float));
	expect_variate(c, t.state, 2, 2);
}

/* What a failed round accepted counts neither here nor in what devices are told. */
static void
a_failed_round(void **state)
{
	struct coordinator *c = *state;
	char before[65];
	uint8_t job[16];
	struct task t;

	submit(c, exploding, job);
	one_round(c, job, 1, 1e-6f, 2, 1e-6f);
	assert_string_equal(ask(c, 1, &t), "");
	strcpy(before, t.state);
	one_round(c, job, 1, 3e38f / 2, 3, 3e38f / 2);
	assert_int_equal(round_row(c, job, 2).state, OUTCOME_FAILED);
	for (int restarted = 0; restarted < 2; restarted++) {
		assert_string_equal(ask(c, 1, &t), "");
		assert_string_equal(t.state, before);
		assert_int_equal(t.counted, 1);
		assert_string_equal(ask(c, 3, &t), "");
		assert_int_equal(t.counted, 0);
		coordinator_stop(c);
		coordinator_start(c);
	}
}

/* With more devices than the job says, c would be no mean any more. */
static void
no_more_devices(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16];
	struct task t;

	submit(c, plain, job);
	one_round(c, job, 1, 1, 2, 2);
	one_round(c, job, 1, 1, 3, 2);
	for (int restarted = 0; restarted < 2; restarted++) {
		assert_string_equal(ask(c, 4, &t), "job-full");
		assert_string_equal(ask(c, 2, &t), "");
		coordinator_stop(c);
		coordinator_start(c);
	}
	assert_string_equal(ask(c, 4, &t), "job-full");
}

/* A task from before: the place was given to another device meanwhile. */
static void
a_place_given_away(void **state)
{
	struct coordinator *c = *state;
	static const char narrow[] = JOB("narrow", "\"goal\":1", "");
	char text[1024];
	uint8_t job[16];
	struct task one, two;

	const char *at = strstr(narrow, "\"batch\"");
	snprintf(text, sizeof(text), "%.*s\"control_variates\":{\"devices\":1},%s",
	    (int)(at - narrow), narrow, at);
	submit(c, text, job);
	assert_string_equal(ask(c, 1, &one), "");
	assert_string_equal(ask(c, 2, &two), "job-full");
	assert_int_equal(tasks_abort(c->s.engine, device_id(1), one.task,
			     abort_reason_cause(ABORT_STOPPED), NULL),
	    ERR_OK);
	assert_string_equal(ask(c, 2, &two), "");
	assert_string_equal(deliver(c, &one, 1, 1, 100), "wrong-state");
	assert_null(deliver(c, &two, 2, 1, 100));
	await_rounds(c, job, 1);
	assert_string_equal(ask(c, 1, &one), "job-full");
}

/* What a live job counts, it counts from the device's reports: they cannot be erased. */
static void
held_devices(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16], ordinary[16];
	struct task t;

	submit(c, JOB("ordinary", "\"goal\":2", ",\"priority\":-1"), ordinary);
	submit(c, plain, job);
	assert_string_equal(ask(c, 3, &t), "");
	assert_false(engine_variate_holds(c->s.engine, device_id(3)));
	assert_null(deliver(c, &t, 3, 1, 100));
	assert_true(engine_variate_holds(c->s.engine, device_id(3)));
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 1, 100));
	await_rounds(c, job, 1);
	assert_true(engine_variate_holds(c->s.engine, device_id(1)));
	assert_false(engine_variate_holds(c->s.engine, device_id(2)));
	assert_int_equal(engine_command(c->s.engine, job, JOB_PAUSED, NULL, &c->why), ERR_OK);
	assert_true(engine_variate_holds(c->s.engine, device_id(3)));
	assert_int_equal(engine_command(c->s.engine, job, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_false(engine_variate_holds(c->s.engine, device_id(3)));
	assert_false(engine_variate_holds(c->s.engine, device_id(1)));
}

static void
manifests(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim claim;
	uint8_t job[16];
	struct task t;

	submit(c, plain, job);
	assert_string_equal(ask(c, 1, &t), "");
	struct manifest m = manifest_for(&t, 1);
	assert_int_equal(tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why),
	    PROBLEM_UNSUPPORTED);
	m.flags = MANIFEST_SECOND;
	assert_int_equal(tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why),
	    PROBLEM_WRONG_LENGTH);
	m.payload_bytes *= 2;
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	assert_int_equal(claim.payload_bytes, 2 * ELEMENTS * sizeof(float));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {WITH(counts), WITH(beside_momentum),
	    WITH(a_failed_round), WITH(no_more_devices), WITH(a_place_given_away),
	    WITH(held_devices), WITH(manifests)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
