/* stages: gcc clang openssl address */
/* Devices whose word on the model is wrong, and a delta that is damaged: neither decides anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "coordinator_fixture.h"

#define TWO "\"goal\":2,\"quorum\":2"
static const char plain[] = JOB("plain", TWO, "");
#define THREE "\"goal\":3,\"quorum\":2"
#define TARGET ",\"stop\":{\"target\":{\"accuracy\":0.9,\"loss\":0.05}}"
#define MEDIAN ",\"aggregate\":{\"rule\":{\"name\":\"median\",\"hostile\":1}}"
#define BACK \
	",\"guard\":{\"metric\":\"accuracy\",\"drop\":0.1,\"do\":\"rollback\"}," \
	"\"upload\":{\"codec\":\"f32\"}"
static const char capped[] = JOB("capped", THREE, TARGET);
static const char wary[] = JOB("wary", "\"goal\":3,\"quorum\":3", MEDIAN TARGET BACK);

#define HONEST "{\"evaluate\":{\"examples\":10,\"accuracy\":0.5,\"loss\":1}}"

/* A round of three, of which the last says what it likes. */
static void
measured(struct coordinator *c, const uint8_t job[16], uint64_t round, char *claim)
{
	static char honest[] = HONEST;
	struct task t[3];

	for (uint8_t i = 0; i < 3; i++)
		assert_string_equal(ask(c, i + 1, &t[i]), "");
	for (uint8_t i = 0; i < 3; i++) {
		c->report = i < 2 ? honest : claim;
		assert_null(deliver(c, &t[i], i + 1, 0.1f, 10));
	}
	c->report = NULL;
	await_rounds(c, job, round);
}

/* Of no more examples than it trained on. */
static void
claimed_examples(void **state)
{
	static char claim[] = "{\"evaluate\":{\"examples\":1000000,\"accuracy\":1,\"loss\":1}}";
	struct coordinator *c = *state;
	uint8_t job[16];

	submit(c, capped, job);
	measured(c, job, 1, claim);
	assert_true(job_is(c, job, "running"));
	const struct store_metric m = round_row(c, job, 1).evaluate;
	assert_int_equal(m.examples, 30);
	assert_true(fabs(m.accuracy - 2.0 / 3) < 1e-9);
}

/* Neither the end of a job nor a way back, where some may be hostile. */
static void
one_device_decides_nothing(void **state)
{
	static char claims[][72] = {"{\"evaluate\":{\"examples\":10,\"accuracy\":1,\"loss\":0}}",
	    "{\"evaluate\":{\"examples\":10,\"accuracy\":0,\"loss\":-1e308}}",
	    "{\"evaluate\":{\"examples\":10}}"};
	struct coordinator *c = *state;
	uint8_t job[16];

	submit(c, wary, job);
	for (uint64_t n = 1; n <= 3; n++) {
		measured(c, job, n, claims[n - 1]);
		const struct store_round r = round_row(c, job, n);
		assert_true(job_is(c, job, "running"));
		assert_string_equal(r.reason, "");
		assert_true(r.evaluate.known && r.evaluate.accuracy == 0.5 && r.evaluate.loss == 1);
	}
}

/* A damaged delta pauses the job and keeps the round; repaired and resumed, it is folded. */
static void
a_damaged_delta(void **state)
{
	struct coordinator *c = *state;
	struct task a, b;
	uint8_t job[16];
	char path[160];

	submit(c, plain, job);
	assert_string_equal(ask(c, 1, &a), "");
	assert_string_equal(ask(c, 2, &b), "");
	assert_null(deliver(c, &a, 1, 1, 100));
	snprintf(path, sizeof(path), "%s/spool/%s.delta", c->dir, a.task);
	assert_int_equal(truncate(path, SPOOL_BYTES - 1), 0);
	assert_null(deliver(c, &b, 2, 1, 100));
	await_state(c, job, "paused");
	assert_int_equal(job_number(c, job, "rounds_committed"), 0);
	assert_int_equal(job_number(c, job, "reports"), 2);
	assert_int_equal(round_row(c, job, 1).state, OUTCOME_OPEN);
	/* The byte that was cut off is the upper one of 1.0f. */
	int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "\x3f", 1, SPOOL_BYTES - 1), 1);
	close(fd);
	assert_int_equal(engine_command(c->s.engine, job, JOB_RUNNING, NULL, &c->why), ERR_OK);
	await_rounds(c, job, 1);
	assert_int_equal(round_row(c, job, 1).state, OUTCOME_COMMITTED);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(claimed_examples),
	    WITH(one_device_decides_nothing),
	    WITH(a_damaged_delta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
