/* stages: gcc clang openssl address */
/* A job's guard in a coordinator: what it holds on the disk, where it goes back to, and that a restart at any round changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>

#include "config.h"
#include "coordinator_fixture.h"
#include "data_source.h"
#include "rate_control_rows.h"

/* Momentum, so that each model has a state of its own. */
static const char guarded[] = JOB("guarded", "\"goal\":1",
    ",\"aggregate\":{\"server_optimizer\":{\"momentum\":0.5}},\"guard\":{\"metric\":\"accuracy\","
    "\"drop\":0.25,\"window\":4,\"do\":\"rollback\",\"times\":1}");

static void
one_round(struct coordinator *c, const uint8_t job[16], uint64_t round, double accuracy)
{
	static char report[128];
	struct task t;

	snprintf(report, sizeof(report),
	    "{\"evaluate\":{\"examples\":10,\"loss\":1,\"accuracy\":%g}}", accuracy);
	c->report = report;
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(t.round, round);
	assert_null(deliver(c, &t, 1, (float)round, 100));
	c->report = NULL;
	await_rounds(c, job, round);
}

static bool
has_file(struct coordinator *c, const uint8_t id[32], const char *suffix)
{
	char path[256], hex[65];

	hex_encode(hex, id, 32);
	snprintf(path, sizeof(path), "%s/models/%s%s", c->dir, hex, suffix);
	return access(path, F_OK) == 0;
}

/* The folder cleans up behind the commit: waits for the number of states that must stay. */
static void
await_states(struct coordinator *c, unsigned want)
{
	uint64_t until = clock_ms() + 60000;
	unsigned n = 0;

	do {
		usleep(2000);
		DIR *d = opendir(coordinator_path(c, "models"));
		assert_non_null(d);
		n = 0;
		for (const struct dirent *e; (e = readdir(d));)
			n += strstr(e->d_name, ".state") != NULL;
		closedir(d);
	} while (n != want && clock_ms() < until);
	assert_int_equal(n, want);
}

struct load {
	const uint8_t *job;
	struct rate_control schedule;
};

static enum err
load_schedule(struct store_db *db, void *arg, struct why *why)
{
	struct load *l = arg;
	struct store_job row;

	(void)why;
	enum err e = store_job_get(db, l->job, &row);
	if (e)
		return e;
	e = rate_control_rows_of(db, &row, &l->schedule);
	free(row.document);
	return e;
}

static struct rate_control
rate_control_of(struct coordinator *c, const uint8_t job[16])
{
	struct load l = {.job = job};

	assert_int_equal(store_read(c->s.store, load_schedule, &l, &c->why), ERR_OK);
	return l.schedule;
}

/* Devices measure the base: .75 is of the initial model, .625 of model 1, and so on. */
static const double measured[] = {.75, .625, .6875, .25, .75, .625, .25, .25};

static void
run(struct coordinator *c, const uint8_t job[16], bool restarts, struct store_round out[8])
{
	for (uint64_t n = 1; n <= 8; n++) {
		if (n == 8)
			assert_int_equal(
			    engine_command(c->s.engine, job, JOB_RUNNING, NULL, &c->why), ERR_OK);
		one_round(c, job, n, measured[n - 1]);
		if (restarts) {
			coordinator_stop(c);
			coordinator_start(c);
		}
		assert_int_equal(job_is(c, job, "paused"), n == 7);
	}
	for (uint64_t n = 1; n <= 8; n++)
		out[n - 1] = round_row(c, job, n);
}

static void
went_as_it_must(const struct store_round r[8])
{
	static const uint8_t none[32];

	for (size_t n = 1; n < 8; n++) {
		bool back = n == 4 || n == 7;
		/* After round 4 the initial model was the best, and after 7 still: round 5 measured it again. */
		assert_memory_equal(r[n].base, back ? r[0].base : r[n - 1].model, 32);
		assert_int_equal(r[n - 1].reason[0] != '\0', back);
	}
	assert_memory_equal(r[3].reason, "guard: ", 7);
	/* With no state at all, as in round 1: 5 instead of 1 added, and nothing of the rounds before. */
	assert_memory_not_equal(r[4].optimizer_state, none, 32);
}

static void
back_and_back(void **state)
{
	struct coordinator *c = *state;
	struct store_round rows[8];
	float first[ELEMENTS], fifth[ELEMENTS];
	uint8_t id[16];

	c->config.keep_last = 8;
	submit(c, guarded, id);
	run(c, id, false, rows);
	went_as_it_must(rows);
	read_weights(c, rows[0].base, first);
	read_weights(c, rows[4].model, fifth);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_true(fifth[i] == first[i] + 5);
	assert_int_equal(job_number(c, id, "rounds_committed"), 8);
}

/* The same job on another disk, stopped and started after every round. */
static void
restarted(void **state)
{
	struct coordinator *c = *state;
	struct store_round rows[8];
	uint8_t id[16];

	c->config.keep_last = 8;
	submit(c, guarded, id);
	run(c, id, true, rows);
	went_as_it_must(rows);
}

/* Of four rounds that get worse and worse (but not too much) everything is held; what cannot become the best any more is not. */
static void
what_is_held(void **state)
{
	struct coordinator *c = *state;
	struct store_round r[5];
	uint8_t id[16];

	c->config.keep_last = 1;
	c->config.keep_every = 0;
	submit(c, guarded, id);
	one_round(c, id, 1, .75);
	one_round(c, id, 2, .6875);
	one_round(c, id, 3, .625);
	/* Held: the initial model, 1 and 2, the last two with states; 3 is the newest. */
	await_states(c, 3);
	for (uint64_t n = 1; n <= 3; n++)
		r[n] = round_row(c, id, n);
	for (int again = 0; again < 2; again++) {
		for (uint64_t n = 1; n <= 3; n++) {
			assert_true(has_file(c, r[n].model, ""));
			assert_true(has_file(c, r[n].optimizer_state, ".state"));
		}
		struct rate_control schedule = rate_control_of(c, id);
		assert_int_equal(schedule.guard.count, 3);
		assert_int_equal(schedule.base_round, 3);
		coordinator_stop(c);
		coordinator_start(c);
	}
	/* Model 3 is better than 1 and 2: they go, files and all. */
	one_round(c, id, 4, .71875);
	await_states(c, 2);
	r[4] = round_row(c, id, 4);
	assert_false(has_file(c, r[1].optimizer_state, ".state"));
	assert_false(has_file(c, r[2].optimizer_state, ".state"));
	assert_true(has_file(c, r[3].optimizer_state, ".state"));
	assert_true(has_file(c, r[4].optimizer_state, ".state"));
	assert_int_equal(rate_control_of(c, id).guard.count, 2);
	/* Over: the best model and the last stay, and no state. */
	assert_true(has_file(c, r[3].model, ""));
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	/* The folder's own pass may have taken the row, and is about to take the file. */
	for (uint64_t until = clock_ms() + 60000;
	     has_file(c, r[3].model, "") && clock_ms() < until;)
		usleep(2000);
	for (int again = 0; again < 2; again++) {
		assert_true(has_file(c, r[1].base, "") && has_file(c, r[4].model, ""));
		assert_false(has_file(c, r[3].model, ""));
		coordinator_stop(c);
		coordinator_start(c);
	}
	assert_false(engine_uses_state(c->s.engine, r[3].optimizer_state));
}

/* A job that is over keeps no more than others do: what a kill behind the stop leaves goes with another job's round, but for what
 * that job needs. */
static void
what_is_left(void **state)
{
	struct coordinator *c = *state;
	static const char other[] = JOB("other", "\"goal\":1", "");
	struct store_round r[5];
	char text[sizeof(other) + 128], hex[65];
	uint8_t id[16], next[16];

	c->config.keep_last = 1000;
	c->config.keep_every = 0;
	submit(c, guarded, id);
	for (uint64_t n = 1; n <= 4; n++)
		one_round(c, id, n, .75 - (double)n / 64);
	for (uint64_t n = 1; n <= 4; n++)
		r[n] = round_row(c, id, n);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	hex_encode(hex, r[2].model, 32);
	snprintf(text, sizeof(text), "%.*s,\"model\":{\"init\":\"%s\",%s",
	    (int)(strstr(other, ",\"model\":{") - other), other, hex,
	    strstr(other, ",\"model\":{") + strlen(",\"model\":{"));
	submit(c, text, next);
	assert_true(has_file(c, r[1].model, "") && has_file(c, r[3].model, ""));
	c->config.keep_last = 1;
	one_round(c, next, 1, .5);
	const uint64_t until = clock_ms() + 60000;
	while (has_file(c, r[3].model, "") && clock_ms() < until)
		usleep(2000);
	assert_false(has_file(c, r[1].model, "") || has_file(c, r[3].model, ""));
	assert_true(has_file(c, r[1].base, "") && has_file(c, r[2].model, "") &&
	    has_file(c, r[4].model, ""));
}

/* What it would go back to is gone: the job waits for a person, and goes on once it is back. */
static void
a_file_is_gone(void **state)
{
	struct coordinator *c = *state;
	struct store_round r;
	char path[256], away[256], hex[65];
	uint8_t id[16];

	submit(c, guarded, id);
	one_round(c, id, 1, .5);
	one_round(c, id, 2, .75);
	r = round_row(c, id, 1);
	hex_encode(hex, r.optimizer_state, 32);
	snprintf(path, sizeof(path), "%s/models/%s.state", c->dir, hex);
	snprintf(away, sizeof(away), "%s/away", c->dir);
	assert_int_equal(rename(path, away), 0);
	struct task t;
	static char bad[] = "{\"evaluate\":{\"examples\":10,\"loss\":1,\"accuracy\":0.25}}";
	c->report = bad;
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 3, 100));
	await_state(c, id, "paused");
	struct json *v = job_json(c, id);
	assert_non_null(strstr(json_string(json_get(v, "reason")), "what the guard goes back to"));
	json_free(v);
	assert_int_equal(job_number(c, id, "rounds_committed"), 2);
	assert_int_equal(rename(away, path), 0);
	assert_int_equal(engine_command(c->s.engine, id, JOB_RUNNING, NULL, &c->why), ERR_OK);
	await_rounds(c, id, 3);
	assert_memory_equal(round_row(c, id, 4).base, r.model, 32);
	c->report = NULL;
}

/* --- a loss that is no number */

#define BY_COORDINATOR(name, guard) \
	"{\"name\":\"" name "\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":" \
	"\"fc\",\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4]," \
	"\"classes\":2},\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"rate\":0.1}}," \
	"\"evaluate\":{\"by\":\"coordinator\",\"data\":\"four\"},\"round\":{\"goal\":1}," \
	"\"guard\":" guard "}"

static void
give_data(struct coordinator *c)
{
	struct config_data *d = &c->config.data[0];

	*d = (struct config_data){.name = "four", .source = {.format = DATA_CSV, .label = "y"}};
	snprintf(d->source.path, sizeof(d->source.path), "%s/models/four.csv", c->dir);
	c->config.data_count = 1;
	FILE *f = fopen(d->source.path, "w");
	assert_non_null(f);
	fputs("a,b,c,d,y\n4,4,4,4,0\n-4,-4,-4,-4,1\n", f);
	assert_int_equal(fclose(f), 0);
}

/* Delivers what makes finite weights whose outputs overflow, once something good is known. Restarted, the round counts as before. */
static void
overflow(struct coordinator *c, const char *text)
{
	struct store_round r[4];
	struct task t;
	uint8_t id[16];

	give_data(c);
	submit(c, text, id);
	for (uint64_t n = 1; n <= 3; n++) {
		assert_string_equal(ask(c, 1, &t), "");
		assert_null(deliver(c, &t, 1, n == 2 ? 3e38f : 0, 100));
		await_rounds(c, id, n);
		coordinator_stop(c);
		coordinator_start(c);
		r[n] = round_row(c, id, n);
		assert_int_equal(r[n].state, OUTCOME_COMMITTED);
		assert_true(r[n].evaluate.known);
		assert_int_equal(r[n].evaluate.examples, 2);
	}
	assert_true(isfinite(r[1].evaluate.loss) && isnan(r[2].evaluate.loss));
	assert_true(r[2].evaluate.accuracy == 0);
	assert_memory_equal(r[2].base, r[1].model, 32);
	assert_memory_equal(r[3].base, r[1].model, 32);
	assert_non_null(strstr(r[2].reason, "back to its model"));
	assert_int_equal(rate_control_of(c, id).guard.rollbacks, 1);
}

static void
the_loss_is_no_number(void **state)
{
	overflow(*state,
	    BY_COORDINATOR("nan", "{\"metric\":\"loss\",\"factor\":1000,\"do\":\"rollback\"}"));
}

/* With so small a drop an accuracy of 0 is below any other. */
static void
nor_is_its_accuracy_one(void **state)
{
	overflow(*state,
	    BY_COORDINATOR("zero", "{\"metric\":\"accuracy\",\"drop\":0.125,\"do\":\"rollback\"}"));
}

/* --- the same where devices measure: they give up, and cannot say it otherwise */

static void
give_up(struct coordinator *c, uint8_t tag, enum abort_reason reason)
{
	struct task t;

	assert_string_equal(ask(c, tag, &t), "");
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(tag), t.task, abort_reason_cause(reason), NULL),
	    ERR_OK);
}

static void
two_report(struct coordinator *c, const uint8_t job[16], uint64_t round)
{
	static char report[] = "{\"evaluate\":{\"examples\":10,\"loss\":1,\"accuracy\":0.75}}";
	struct task t[3];

	c->report = report;
	for (uint8_t i = 1; i <= 2; i++)
		assert_string_equal(ask(c, i, &t[i]), "");
	for (uint8_t i = 1; i <= 2; i++)
		assert_null(deliver(c, &t[i], i, 1, 100));
	c->report = NULL;
	await_rounds(c, job, round);
}

static void
measured_as_none(struct coordinator *c, const char *text)
{
	struct store_round r[4];
	uint8_t id[16];

	submit(c, text, id);
	two_report(c, id, 1);
	/* For other reasons as many may give up as want to. */
	give_up(c, 1, ABORT_NO_DATA);
	give_up(c, 2, ABORT_NOT_FINITE);
	assert_int_equal(job_number(c, id, "rounds_committed"), 1);
	coordinator_stop(c);
	coordinator_start(c);
	/* Who said so before the restart is asked again. */
	give_up(c, 2, ABORT_NOT_FINITE);
	give_up(c, 3, ABORT_NOT_FINITE);
	await_rounds(c, id, 2);
	for (int again = 0; again < 2; again++) {
		for (uint64_t n = 1; n <= 3; n++)
			r[n] = round_row(c, id, n);
		assert_int_equal(r[2].state, OUTCOME_FAILED);
		assert_non_null(strstr(r[2].reason, "not finite on 2 devices"));
		assert_memory_equal(r[2].model, r[1].model, 32);
		assert_memory_equal(r[3].base, r[1].base, 32);
		assert_true(r[2].evaluate.known && isnan(r[2].evaluate.loss));
		assert_int_equal(r[2].reports, 0);
		assert_int_equal(rate_control_of(c, id).guard.rollbacks, 1);
		coordinator_stop(c);
		coordinator_start(c);
	}
	two_report(c, id, 3);
}

static void
no_loss_on_devices(void **state)
{
	measured_as_none(*state,
	    JOB("loss", "\"goal\":2,\"quorum\":2",
		",\"guard\":{\"metric\":\"loss\",\"factor\":1000,\"do\":\"rollback\"}"));
}

static void
no_accuracy_on_devices(void **state)
{
	measured_as_none(*state,
	    JOB("accuracy", "\"goal\":2,\"quorum\":2",
		",\"guard\":{\"metric\":\"accuracy\",\"drop\":1,\"do\":\"rollback\"}"));
}

/* A report leaves out what is not finite: an evaluation with nothing in it is one that found no number. */
static void
an_empty_evaluation(void **state)
{
	struct coordinator *c = *state;
	static char report[] = "{\"evaluate\":{\"examples\":10}}";
	struct task t;
	uint8_t id[16];

	c->config.keep_last = 8;
	submit(c, guarded, id);
	one_round(c, id, 1, .125);
	c->report = report;
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 2, 100));
	await_rounds(c, id, 2);
	c->report = NULL;
	/* With a drop of .25, an accuracy of 0 would do. */
	assert_true(round_row(c, id, 2).evaluate.accuracy == 0);
	assert_memory_equal(round_row(c, id, 3).base, round_row(c, id, 1).base, 32);
}

/* Without a guard, and where the coordinator measures the new model, giving up is what it was. */
static void
nobody_watches(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, JOB("alone", "\"goal\":1", ""), id);
	for (uint8_t i = 1; i <= 3; i++)
		give_up(c, i, ABORT_NOT_FINITE);
	usleep(50000);
	assert_int_equal(job_number(c, id, "rounds_committed"), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(back_and_back),
	    WITH(restarted),
	    WITH(what_is_held),
	    WITH(what_is_left),
	    WITH(a_file_is_gone),
	    WITH(the_loss_is_no_number),
	    WITH(nor_is_its_accuracy_one),
	    WITH(no_loss_on_devices),
	    WITH(no_accuracy_on_devices),
	    WITH(an_empty_evaluation),
	    WITH(nobody_watches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
