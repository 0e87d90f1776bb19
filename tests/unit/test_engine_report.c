/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator_fixture.h"
#include "report.h"

/* What the engine shows of itself, and lists longer than a slice. */

static void
many(struct coordinator *c, unsigned count)
{
	uint8_t id[16];
	char text[1024];

	for (unsigned i = 0; i < count; i++) {
		snprintf(
		    text, sizeof(text), JOB("many-%u", "\"goal\":1", ",\"priority\":%u"), i, i % 3);
		submit(c, text, id);
	}
}

/* Each job once, by priority and then by age, however many slices it takes. */
static void
long_lists(void **state)
{
	enum { COUNT = 2 * ENGINE_SLICE + 5 };
	struct coordinator *c = *state;
	struct engine_slice s = {.device = NULL};
	unsigned at = 0, slices = 0;
	char want[32];

	many(c, COUNT);
	for (; engine_jobs(c->s.engine, &s); slices++)
		for (size_t i = 0; i < s.count; i++, at++) {
			unsigned priority = (unsigned)s.jobs[i].priority, older = 0;
			for (unsigned p = 2; p > priority; p--)
				older += (COUNT + 2 - p) / 3;
			snprintf(want, sizeof(want), "many-%u", (at - older) * 3 + priority);
			assert_string_equal(s.jobs[i].name, want);
			assert_true(s.jobs[i].is_open);
			assert_int_equal(s.jobs[i].open.goal, 1);
		}
	assert_int_equal(at, COUNT);
	assert_int_equal(slices, 3);
}

static void
counted(void **state)
{
	struct coordinator *c = *state;
	struct engine_report r;
	struct task t;
	uint8_t one[16], two[16];

	submit(c, JOB("one", "\"goal\":1", ",\"stop\":{\"rounds\":1}"), one);
	submit(c, JOB("two", "\"goal\":2", ""), two);
	assert_int_equal(engine_command(c->s.engine, two, JOB_PAUSED, NULL, &c->why), ERR_OK);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(ask(c, 1, &t), "");
	jobs_report(c->s.engine, &r);
	assert_int_equal(r.jobs[JOB_RUNNING], 1);
	assert_int_equal(r.jobs[JOB_PAUSED], 1);
	assert_int_equal(r.tasks_total, 1);
	assert_null(deliver(c, &t, 1, 1, 100));
	await_state(c, one, "done");
	assert_int_equal(engine_command(c->s.engine, two, JOB_STOPPED, NULL, &c->why), ERR_OK);
	jobs_report(c->s.engine, &r);
	assert_int_equal(r.jobs[JOB_RUNNING] + r.jobs[JOB_PAUSED], 0);
	assert_int_equal(r.jobs[JOB_DONE], 1);
	assert_int_equal(r.jobs[JOB_STOPPED], 1);
	assert_int_equal(r.deltas_total, 1);
	assert_true(r.delta_bytes_total > 0);
	assert_int_equal(r.rounds_committed_total, 1);
	assert_int_equal(r.rounds_failed_total + r.tasks_aborted_total, 0);
	assert_int_equal(r.round_seconds.count, 1);
	assert_int_equal(r.fold_seconds.count, 1);
	assert_true(r.fold_seconds.sum <= r.round_seconds.sum);
	assert_true(r.lock.held_seconds.count > 10);
	assert_true(r.lock.held_cpu_seconds_max > 0);
}

/* The same after a restart as before. */
static void
counted_anew(void **state)
{
	struct coordinator *c = *state;
	struct engine_report r;
	uint8_t one[16], two[16];

	submit(c, JOB("one", "\"goal\":1", ""), one);
	submit(c, JOB("two", "\"goal\":2", ""), two);
	assert_int_equal(engine_command(c->s.engine, two, JOB_PAUSED, NULL, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	jobs_report(c->s.engine, &r);
	assert_int_equal(r.jobs[JOB_RUNNING], 1);
	assert_int_equal(r.jobs[JOB_PAUSED], 1);
	assert_int_equal(r.tasks_total, 0);
}

/* What a device may claim to have counted: the numbers that the job's model predicts, before and after a restart. */
static void
outputs_of_layers(void **state)
{
	static const char numbers[] =
	    "{\"name\":\"numbers\",\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\","
	    "\"out\":3}],"
	    "\"loss\":\"mse\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"validation\":0.1},"
	    "\"local\":{\"steps\":1,"
	    "\"batch\":10,"
	    "\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},\"evaluate\":{\"by\":\"devices\","
	    "\"figures\":[\"regression\"]},\"round\":{\"goal\":1}}";
	struct coordinator *c = *state;
	struct engine_claim claim;
	struct task t;
	uint8_t id[16];

	strcpy(c->offer.features[c->offer.feature_count++], "figures");
	submit(c, numbers, id);
	for (int again = 0; again < 2; again++) {
		assert_string_equal(ask(c, 1, &t), "");
		struct manifest m = manifest_for(&t, 1);
		m.elements = 15;
		m.payload_bytes = 60;
		assert_int_equal(
		    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why),
		    PROBLEM_NONE);
		assert_true(claim.figures.regression);
		assert_int_equal(claim.figures.outputs, 3);
		coordinator_stop(c);
		coordinator_start(c);
	}
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(long_lists),
	    WITH(counted),
	    WITH(counted_anew),
	    WITH(outputs_of_layers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
