/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator_fixture.h"
#include "report.h"

/* Jobs that are over go, with all that only they hold, and never come back. */

#define TEXT JOB("gone", "\"goal\":1", ",\"stop\":{\"rounds\":2}")

static void
round_of(struct coordinator *c, const uint8_t id[16], unsigned number)
{
	struct task t;

	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, (float)number, 100));
	await_rounds(c, id, number);
}

/* Its last round leaves the folder a moment after its state is done. */
static enum err
delete_job(struct coordinator *c, const uint8_t id[16], bool dry, struct engine_deletion *gone)
{
	uint64_t until = clock_ms() + 60000;
	enum err e;

	do {
		c->why.text[0] = '\0';
		e = engine_delete(c->s.engine, id, "somebody", dry, gone, &c->why);
	} while (e == ERR_STATE && strstr(c->why.text, "folded") && clock_ms() < until &&
	    usleep(1000) == 0);
	return e;
}

static size_t
files(struct coordinator *c, const char *dir)
{
	char command[256], text[32] = "";

	snprintf(command, sizeof(command), "ls '%s' | wc -l", coordinator_path(c, dir));
	FILE *f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	pclose(f);
	return strtoul(text, NULL, 10);
}

static enum err
resubmit(struct coordinator *c, const char *text)
{
	uint8_t id[16];
	bool created;

	return engine_submit(c->s.engine,
	    &(struct engine_document){.text = text, .len = strlen(text)}, id, &created, &c->why);
}

static void
goes(void **state)
{
	struct coordinator *c = *state;
	struct engine_deletion dry, gone;
	struct engine_report r;
	uint8_t id[16], other[16];

	c->config.keep_deltas = true;
	submit(c, TEXT, id);
	assert_int_equal(delete_job(c, id, false, &gone), ERR_STATE);
	round_of(c, id, 1);
	round_of(c, id, 2);
	await_state(c, id, "done");
	submit(c, JOB("other", "\"goal\":1", ""), other);
	assert_int_equal(delete_job(c, id, true, &dry), ERR_OK);
	assert_int_equal(dry.deltas, 2);
	assert_int_equal(dry.models, 3);
	assert_true(job_is(c, id, "done"));
	assert_int_equal(files(c, "kept"), 2);

	assert_int_equal(delete_job(c, id, false, &gone), ERR_OK);
	assert_memory_equal(&gone, &dry, sizeof(gone));
	assert_true(gone.bytes > 0);
	assert_null(job_json(c, id));
	assert_int_equal(files(c, "kept"), 0);
	assert_int_equal(files(c, "models"), 1);
	assert_int_equal(delete_job(c, id, false, &gone), ERR_NOTFOUND);
	jobs_report(c->s.engine, &r);
	assert_int_equal(r.jobs[JOB_DONE], 0);
	assert_int_equal(resubmit(c, TEXT), ERR_STATE);
	assert_non_null(strstr(c->why.text, "deleted"));
	rounds_tick(c->s.engine);
	assert_true(job_is(c, other, "running"));

	coordinator_stop(c);
	coordinator_start(c);
	assert_null(job_json(c, id));
	assert_int_equal(resubmit(c, TEXT), ERR_STATE);
	assert_true(job_is(c, other, "running"));
}

/* A stopped one: the delta of its open round, and the optimizer's state, which no other round is needed to forget. */
static void
leaves_nothing(void **state)
{
	struct coordinator *c = *state;
	struct engine_deletion gone;
	uint8_t id[16];
	struct task t;
	uint64_t until = clock_ms() + 60000;

	submit(c,
	    JOB("adam", "\"goal\":1",
		",\"aggregate\":{\"server_optimizer\":{\"name\":\"adam\",\"rate\":0.1}}"),
	    id);
	round_of(c, id, 1);
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_int_equal(delete_job(c, id, false, &gone), ERR_OK);
	while (files(c, "models") > 0 && clock_ms() < until)
		rounds_tick(c->s.engine);
	assert_int_equal(files(c, "models"), 0);
	assert_int_equal(files(c, "spool"), 0);
	rounds_tick(c->s.engine);
}

/* After [retention] ended_jobs, and not before. */
static void
goes_by_age(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16], other[16];

	submit(c, TEXT, id);
	submit(c, JOB("other", "\"goal\":1", ""), other);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	engine_delete_old(c->s.engine);
	c->config.ended_jobs_s = 3600;
	engine_delete_old(c->s.engine);
	assert_true(job_is(c, id, "stopped"));
	c->config.ended_jobs_s = 1;
	usleep(1100000);
	engine_delete_old(c->s.engine);
	assert_null(job_json(c, id));
	assert_true(job_is(c, other, "running"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(goes, coordinator_setup, coordinator_teardown),
	    cmocka_unit_test_setup_teardown(goes_by_age, coordinator_setup, coordinator_teardown),
	    cmocka_unit_test_setup_teardown(
		leaves_nothing, coordinator_setup, coordinator_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
