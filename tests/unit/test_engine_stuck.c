/* stages: gcc clang openssl address thread */
/* Why an engine's jobs cannot move. Time is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "engine_fixture.h"
#include "health.h"

static atomic_ullong ahead_ms;

uint64_t
clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 + ahead_ms;
}

double
clock_seconds(void)
{
	return (double)clock_ms() / 1000;
}

double
clock_wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int64_t
clock_unix(void)
{
	return (int64_t)clock_wall();
}

/* --- an engine's jobs */

/* Both devices must report. */
#define TWO(round) \
	JOB("n", "\"goal\":2," round, ",\"select\":{\"devices\":[\"device-1\",\"device-2\"]}")

static void
pass(struct coordinator *c, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		ahead_ms += 1000;
		rounds_tick(c->s.engine);
	}
}

/* What the job's view says now; the reason has these words. */
static void
stuck_as(struct coordinator *c, const uint8_t job[16], enum stuck_kind kind, const char *words)
{
	uint64_t count[STUCK_KINDS];
	struct job_view v;

	assert_true(engine_job(c->s.engine, job, NULL, &v));
	if (v.stuck.kind != kind || !strstr(v.stuck.reason, words))
		fail_msg("%s: \"%s\", not %s: \"%s\"", stuck_name(v.stuck.kind), v.stuck.reason,
		    stuck_name(kind), words);
	rounds_stuck(c->s.engine, count);
	for (enum stuck_kind k = STUCK_NONE; k < STUCK_KINDS; k++)
		assert_int_equal(count[k], k == kind && kind);
}

static void
give_up(struct coordinator *c, uint8_t tag, const char *word)
{
	struct task t;

	expect(c, tag, "");
	assert_string_equal(ask(c, tag, &t), "");
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(tag), t.task, abort_reason_parse(word), NULL),
	    ERR_OK);
}

static void
suspend(struct coordinator *c, uint8_t tag, enum device_state state)
{
	struct registry_view v;

	assert_int_equal(registry_get(c->s.registry, device_id(tag), &v), ERR_OK);
	v.row.state = state;
	assert_int_equal(registry_put(c->s.registry, &v.row), ERR_OK);
}

static void
no_data(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, TWO("\"deadline_s\":600"), id);
	expect(c, 1, "");
	c->offer.data[0].examples = 9;
	expect(c, 2, "no-data");
	pass(c, 2);
	stuck_as(c, id, STUCK_NONE, "");
	pass(c, 6);
	stuck_as(
	    c, id, STUCK_NO_DATA, "round 1 needs 2 reports, and 1 can come; 1 wait (no-data 1)");
	c->offer.data[0].examples = 100;
	expect(c, 2, "");
	pass(c, 2);
	stuck_as(c, id, STUCK_NONE, "");
}

static void
all_gave_up(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, TWO("\"deadline_s\":20"), id);
	give_up(c, 1, "trainer-failed");
	give_up(c, 2, "cosmic-ray");
	pass(c, 6);
	stuck_as(c, id, STUCK_GAVE_UP, "2 gave up (trainer-failed 1, other 1)");
	/* The round is opened again, and they try again. */
	pass(c, 15);
	give_up(c, 1, "trainer-failed");
	assert_string_equal(ask(c, 2, &t), "");
	pass(c, 2);
	stuck_as(c, id, STUCK_GAVE_UP, "");
	assert_null(deliver(c, &t, 2, 1, 100));
	assert_string_equal(ask(c, 1, &t), "aborted");
	pass(c, 10);
	stuck_as(c, id, STUCK_GAVE_UP, "1 can come; 1 gave up (trainer-failed 1)");
	pass(c, 20);
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 1, 100));
	await_rounds(c, id, 1);
	pass(c, 2);
	stuck_as(c, id, STUCK_NONE, "");
}

static void
too_slow(void **state)
{
	static const char *const words[] = {NULL, "deadline"};
	struct coordinator *c = *state;
	struct job_view v;
	struct task t;

	/* Silent until it is too late, or they say so themselves. */
	for (int i = 0; i < 2; i++) {
		uint8_t id[16];
		submit(c, i ? TWO("\"deadline_s\":10") : TWO("\"deadline_s\":10.5"), id);
		for (int again = 0; again < 3; again++) {
			if (!words[i])
				stuck_as(c, id, STUCK_NONE, "");
			assert_string_equal(ask(c, 1, &t), "");
			expect(c, 2, "");
			pass(c, 5);
			if (words[i])
				give_up(c, 2, words[i]);
			while (job_number(c, id, "reopened") == (uint64_t)again)
				pass(c, 1);
		}
		pass(c, 1);
		stuck_as(c, id, STUCK_TOO_SLOW,
		    "opened again 3 times with 0 of 2 reports; 2 tasks were not answered within "
		    "10");
		assert_true(engine_job(c->s.engine, id, NULL, &v));
		assert_int_equal(v.open.reopened, 3);
		assert_int_equal(
		    engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
		stuck_as(c, id, STUCK_NONE, "");
	}
}

static void
all_suspended(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, TWO("\"deadline_s\":600"), id);
	expect(c, 1, "");
	expect(c, 2, "");
	/* What revoking or suspending one does, with its tasks. */
	for (uint8_t tag = 1; tag <= 2; tag++) {
		suspend(c, tag, DEVICE_SUSPENDED);
		tasks_device_gone(c->s.engine, device_id(tag), "suspended");
	}
	/* One that had asked before gets no task that would wait for it. */
	expect(c, 1, "ineligible");
	/* Others are there, but not for this job. */
	expect(c, 3, "ineligible");
	pass(c, 10);
	stuck_as(c, id, STUCK_SUSPENDED, "needs 2 reports, and 0 can come; 2 are suspended");
	suspend(c, 1, DEVICE_ACTIVE);
	suspend(c, 2, DEVICE_ACTIVE);
	expect(c, 1, "");
	expect(c, 2, "");
	pass(c, 5);
	stuck_as(c, id, STUCK_NONE, "");
}

static void
owners_rules(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, TWO("\"deadline_s\":600"), id);
	strcpy(c->offer.unready, "hours");
	expect(c, 1, "hours");
	strcpy(c->offer.unready, "data-cap");
	expect(c, 2, "data-cap");
	pass(c, 6);
	stuck_as(c, id, STUCK_OWNERS, "2 wait (hours 1, data-cap 1)");
}

static void
nobody_is_heard(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, TWO("\"deadline_s\":600"), id);
	pass(c, 50);
	stuck_as(c, id, STUCK_NONE, "");
	pass(c, 15);
	stuck_as(c, id, STUCK_SILENT, "2 did not ask for work lately");
	expect(c, 1, "");
	expect(c, 2, "");
	pass(c, 4);
	stuck_as(c, id, STUCK_NONE, "");
}

/* Devices that work for another job will come. */
static void
its_turn(void **state)
{
	struct coordinator *c = *state;
	uint8_t first[16], id[16];

	submit(c, JOB("first", "\"goal\":9", ",\"priority\":5"), first);
	submit(c, TWO("\"deadline_s\":600"), id);
	for (uint8_t tag = 1; tag <= DEVICES; tag++)
		expect(c, tag, "");
	pass(c, 90);
	stuck_as(c, id, STUCK_NONE, "");
}

static void
disk(void **state)
{
	struct coordinator *c = *state;
	enum wait_reason was;
	uint8_t id[16];

	submit(c, TWO("\"deadline_s\":600"), id);
	expect(c, 1, "");
	expect(c, 2, "");
	assert_int_equal(health_new(&c->s.health), ERR_OK);
	health_note(c->s.health, ERR_NOSPACE, 0, "write models/x");
	pass(c, 2);
	stuck_as(c, id, STUCK_NOT_READY, "disk-full: write models/x");
	health_clear(c->s.health, &was);
	pass(c, 2);
	stuck_as(c, id, STUCK_NONE, "");
	health_free(c->s.health);
	c->s.health = NULL;
}

static void
paused(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, TWO("\"deadline_s\":600"), id);
	assert_int_equal(engine_command(c->s.engine, id, JOB_PAUSED, NULL, &c->why), ERR_OK);
	rounds_tick(c->s.engine);
	stuck_as(c, id, STUCK_PAUSED, "paused by hand");
	coordinator_stop(c);
	coordinator_start(c);
	rounds_tick(c->s.engine);
	stuck_as(c, id, STUCK_PAUSED, "paused by hand");
	assert_int_equal(engine_command(c->s.engine, id, JOB_RUNNING, NULL, &c->why), ERR_OK);
	rounds_tick(c->s.engine);
	stuck_as(c, id, STUCK_NONE, "");
}

static void
base_missing(void **state)
{
	struct coordinator *c = *state;
	struct job_view v;
	char hex[65];
	uint8_t id[16];

	submit(c, TWO("\"deadline_s\":600"), id);
	assert_true(engine_job(c->s.engine, id, NULL, &v));
	coordinator_stop(c);
	hex_encode(hex, v.model, 32);
	coordinator_path(c, "models/");
	strncat(c->path, hex, sizeof(c->path) - strlen(c->path) - 1);
	assert_int_equal(unlink(c->path), 0);
	coordinator_start(c);
	rounds_tick(c->s.engine);
	hex[12] = '\0';
	stuck_as(c, id, STUCK_SET_ASIDE, hex);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(no_data),
	    WITH(all_gave_up),
	    WITH(too_slow),
	    WITH(all_suspended),
	    WITH(owners_rules),
	    WITH(nobody_is_heard),
	    WITH(its_turn),
	    WITH(disk),
	    WITH(paused),
	    WITH(base_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
