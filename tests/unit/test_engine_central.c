/* stages: gcc clang openssl address thread */
/* Jobs that a program of a named device measures: who trains, who is asked to measure, and which report counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "audit_rows.h"
#include "engine_fixture.h"
#include "worker.h"

/* The clocks are the machine's, but that a thread may have one that jumps ahead behind some looks at it. */
static _Thread_local unsigned looks; /* until it jumps; 0: it does not */
static _Thread_local uint64_t ahead_ms;

static double
clock_of(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint64_t
clock_ms(void)
{
	const uint64_t now = (uint64_t)(clock_of(CLOCK_MONOTONIC) * 1000) + ahead_ms;

	if (looks > 0 && --looks == 0)
		ahead_ms += (uint64_t)2 * 3600 * 1000;
	return now;
}

double
clock_seconds(void)
{
	return clock_of(CLOCK_MONOTONIC) + (double)ahead_ms / 1000;
}

double
clock_wall(void)
{
	return clock_of(CLOCK_REALTIME);
}

int64_t
clock_unix(void)
{
	return (int64_t)clock_wall();
}

/* A job's text with these layers and this data, both of ELEMENTS numbers. */
#define CENTRAL(layers, data) \
	"{\"name\":\"central\",\"seed\":3,\"model\":{\"layers\":[" layers \
	"],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\"," data "}," \
	"\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}}," \
	"\"evaluate\":{\"by\":\"program\",\"devices\":[\"device-3\",\"device-4\"]," \
	"\"deadline_s\":3600},\"round\":{\"goal\":2},\"stop\":{\"rounds\":2}}"
static const char job[] =
    CENTRAL("{\"type\":\"linear\",\"name\":\"fc\",\"out\":2}", "\"shape\":[4],\"classes\":2");
/* Its classes are the words, and the document has no number of them. */
static const char words[] =
    CENTRAL("{\"type\":\"embedding\",\"name\":\"e\",\"vocabulary\":2,\"out\":2},"
	    "{\"type\":\"linear\",\"name\":\"fc\",\"out\":2}",
	"\"window\":3");

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

/* The model of round 1 waits. */
static void
await_task(struct coordinator *c, struct task *t)
{
	const uint64_t until = clock_ms() + 120000;

	while (*ask_to_measure(c, 3, t)) {
		if (clock_ms() > until)
			fail_msg("nothing is to be measured");
		rounds_tick(c->s.engine);
		usleep(2000);
	}
}

/* Two devices have reported to this job. */
static void
fold_of(struct coordinator *c, const char *text, uint8_t id[16], struct task *t)
{
	submit(c, text, id);
	for (uint8_t tag = 1; tag <= 2; tag++) {
		assert_string_equal(ask(c, tag, t), "");
		assert_int_equal(t->kind, TASK_TRAIN);
		assert_null(deliver(c, t, tag, 1, 100));
	}
	await_task(c, t);
}

static void
fold_one(struct coordinator *c, uint8_t id[16], struct task *t)
{
	fold_of(c, job, id, t);
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
	return tasks_claim(c->s.engine, m, device_id(tag), t->task, out, &c->why);
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
	assert_int_equal(tasks_take(c->s.engine, &first), ERR_OK);
	assert_string_equal(ask_to_measure(c, 4, &other), "");
	m = measured(&other, 4);
	assert_int_equal(claim(c, &m, &other, 4, &second), PROBLEM_NONE);
	assert_int_equal(tasks_take(c->s.engine, &second), ERR_AGAIN);
	tasks_settle(c->s.engine, &first, false, 0);
	assert_int_equal(tasks_take(c->s.engine, &second), ERR_OK);
	tasks_settle(c->s.engine, &second, true, 0);
	assert_int_equal(tasks_take(c->s.engine, &first), ERR_STATE);
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
	assert_int_equal(tasks_abort(c->s.engine, device_id(1), t.task,
			     abort_reason_parse("trainer-failed"), NULL),
	    ERR_NOTFOUND);
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(3), t.task, abort_reason_parse("stopped"), NULL),
	    ERR_OK);
	assert_string_equal(ask_to_measure(c, 3, &t), "");
	assert_int_equal(tasks_abort(c->s.engine, device_id(3), t.task,
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
	await_task(c, &again);
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

/* --- what the report says */

/* The figures of a round of which this was reported before a start. */
static struct store_metric
figures_of(struct coordinator *c, const char *document, char *text)
{
	struct task t;
	uint8_t id[16];

	fold_of(c, document, id, &t);
	report(c, &t, 3, text);
	coordinator_stop(c);
	coordinator_start(c);
	await_rounds(c, id, 1);
	return round_row(c, id, 1).evaluate;
}

/* As a device or the coordinator that finds nothing to measure: no figure, and certainly not accuracy 0. */
static void
nothing_counted(void **state)
{
	static char text[] =
	    "{\"evaluate\":{\"examples\":5,\"loss_count\":0,\"labels\":0,\"right\":0}}";
	struct coordinator *c = *state;

	assert_false(figures_of(c, job, text).known);
	lock_take(&c->s.engine->lock);
	assert_string_equal(
	    c->s.engine->jobs->work->unmeasured, "nothing counted in the evaluator's set");
	lock_release(&c->s.engine->lock);
}

/* Labels that weigh nothing in the loss have an accuracy all the same. */
static void
labels_counted(void **state)
{
	static char text[] = "{\"evaluate\":{\"examples\":5,\"accuracy\":0.25,\"loss_count\":0,"
			     "\"labels\":4,\"right\":1}}";
	const struct store_metric m = figures_of(*state, job, text);

	assert_true(m.known && isnan(m.loss) && m.accuracy == 0.25);
}

/* A model that gives no numbers is right in nothing, also where the document has no number of classes. */
static void
no_numbers(void **state)
{
	static char text[] = "{\"evaluate\":{\"examples\":5}}";
	struct coordinator *c = *state;

	strcpy(c->offer.layers[c->offer.layer_count++], "embedding");
	c->offer.data[0].tokens = 1000;
	const struct store_metric m = figures_of(c, words, text);
	assert_true(m.known && isnan(m.loss) && m.accuracy == 0);
}

/* --- rounds that are folded again */

static void
move(struct coordinator *c, const char *from, const char *to)
{
	char old[192];

	strcpy(old, coordinator_path(c, from));
	assert_int_equal(rename(old, coordinator_path(c, to)), 0);
}

/* Between claim and take the round is set aside: that is no end. What comes second is told so, also before the round's commit. Nobody folds
 * meanwhile. */
static void
ended_meanwhile(struct coordinator *c, const struct manifest *m, const struct task *t)
{
	const struct engine_fold f = {
	    .job = jobs_find(c->s.engine, m->job), .row.round = 1, .evaluate_deadline_s = 3600};
	struct engine_claim first, second;

	tasks_central_begin(c->s.engine, &f, m->base, 1);
	assert_int_equal(claim(c, m, t, 3, &first), PROBLEM_NONE);
	second = first;
	tasks_central_end(c->s.engine, &f);
	assert_int_equal(tasks_take(c->s.engine, &first), ERR_AGAIN);
	tasks_central_begin(c->s.engine, &f, m->base, 1);
	assert_int_equal(tasks_take(c->s.engine, &first), ERR_OK);
	tasks_settle(c->s.engine, &first, true, 0);
	tasks_central_end(c->s.engine, &f);
	assert_int_equal(claim(c, m, t, 3, &first), PROBLEM_ROUND_CLOSED);
	assert_int_equal(tasks_take(c->s.engine, &second), ERR_STATE);
	tasks_central_begin(c->s.engine, &f, m->base, 1);
	tasks_central_end(c->s.engine, &f);
	assert_int_equal(claim(c, m, t, 3, &first), PROBLEM_UNAVAILABLE);
}

/* After a start the round is not folded; what was measured before of its model, which is not there, is waited for. */
static void
is_waited_for(struct coordinator *c, const struct task *t)
{
	struct engine_claim out;
	struct manifest m = measured(t, 3);

	await_state(c, m.job, "paused");
	assert_int_equal(claim(c, &m, t, 3, &out), PROBLEM_UNAVAILABLE);
	/* Not what is of no task of the device's. */
	m.round++;
	assert_int_not_equal(claim(c, &m, t, 3, &out), PROBLEM_NONE);
}

/* And taken once it is folded. */
static void
is_taken_again(struct coordinator *c, const struct task *t)
{
	const uint64_t until = clock_ms() + 120000;
	const struct manifest m = measured(t, 3);
	struct engine_claim out;

	for (struct task again; *ask_to_measure(c, 4, &again);) {
		if (clock_ms() > until)
			fail_msg("nothing is to be measured again");
		rounds_look_after(c->s.engine);
		rounds_tick(c->s.engine);
		usleep(2000);
	}
	assert_int_equal(claim(c, &m, t, 3, &out), PROBLEM_NONE);
}

/* The round waits for a file. */
static void
without(struct coordinator *c, const struct task *t, const char *file)
{
	coordinator_stop(c);
	move(c, file, "away");
	coordinator_start(c);
	is_waited_for(c, t);
	move(c, "away", file);
	assert_int_equal(worker_pool_new(&c->s.pool, 1), ERR_OK);
	is_taken_again(c, t);
	worker_pool_free(c->s.pool);
	c->s.pool = NULL;
}

/* Or for a person. */
static void
paused(struct coordinator *c, const struct task *t)
{
	const struct manifest m = measured(t, 3);

	assert_int_equal(engine_command(c->s.engine, m.job, JOB_PAUSED, NULL, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	is_waited_for(c, t);
	ended_meanwhile(c, &m, t);
	assert_int_equal(engine_command(c->s.engine, m.job, JOB_RUNNING, NULL, &c->why), ERR_OK);
	assert_int_equal(worker_pool_new(&c->s.pool, 1), ERR_OK);
	is_taken_again(c, t);
	worker_pool_free(c->s.pool);
	c->s.pool = NULL;
}

static void
what_is_folded_again_is_waited_for(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim first;
	char file[80], hex[65];
	struct task t;
	uint8_t id[16], delta[16];

	fold_one(c, id, &t);
	hex_encode(hex, jobs_find(c->s.engine, id)->facts.row.base, 32);
	snprintf(file, sizeof(file), "models/%s", hex);
	without(c, &t, file);
	const struct job *j = jobs_find(c->s.engine, id);
	invites_task_id(c->s.engine, j, 1, device_id(1), delta);
	hex_encode(hex, delta, 16);
	snprintf(file, sizeof(file), "spool/%s.delta", hex);
	without(c, &t, file);
	paused(c, &t);
	/* Of a job that is over nobody waits for one. */
	struct manifest m = measured(&t, 3);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_int_not_equal(claim(c, &m, &t, 3, &first), PROBLEM_UNAVAILABLE);
}

/* A report of a model that the round does not come to any more, since it was claimed or taken, ends no wait for that of the new one. */
static void
another_model_meanwhile(void **state)
{
	static const uint8_t other[32] = {7};
	struct coordinator *c = *state;
	struct engine_claim first, second;
	struct task t;
	uint8_t id[16];

	fold_one(c, id, &t);
	struct manifest m = measured(&t, 3);
	const struct engine_fold f = {
	    .job = jobs_find(c->s.engine, id), .row.round = 1, .evaluate_deadline_s = 3600};
	assert_int_equal(claim(c, &m, &t, 3, &first), PROBLEM_NONE);
	assert_int_equal(claim(c, &m, &t, 3, &second), PROBLEM_NONE);
	assert_int_equal(tasks_take(c->s.engine, &second), ERR_OK);
	tasks_central_begin(c->s.engine, &f, other, 1);
	assert_int_equal(tasks_take(c->s.engine, &first), ERR_STATE);
	tasks_settle(c->s.engine, &second, true, 0);
	assert_int_equal(tasks_central_look(c->s.engine, &f), CENTRAL_WAITS);
	/* One of the new model is on its way: what came of the old one does not end that. */
	memcpy(m.base, other, 32);
	assert_int_equal(claim(c, &m, &t, 3, &first), PROBLEM_NONE);
	assert_int_equal(tasks_take(c->s.engine, &first), ERR_OK);
	tasks_settle(c->s.engine, &second, false, 0);
	assert_int_equal(tasks_take(c->s.engine, &first), ERR_AGAIN);
	tasks_settle(c->s.engine, &first, true, 0);
	await_rounds(c, id, 1);
}

/* Wherever the deadline falls while a task is made. */
static void
the_deadline_meanwhile(void **state)
{
	struct coordinator *c = *state;
	unsigned tasks = 0;
	struct task t;
	uint8_t id[16];

	fold_one(c, id, &t);
	for (unsigned n = 1; n <= 20; n++) {
		looks = n;
		if (!*ask_to_measure(c, 3, &t)) {
			tasks++;
			assert_true(t.deadline_s > 0 && t.deadline_s <= 3600);
		}
		ahead_ms = looks = 0;
	}
	assert_true(tasks > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(evaluators_train_nothing),
	    WITH(the_first_report_counts),
	    WITH(who_gives_up_is_not_asked_again),
	    WITH(what_was_reported_before_a_start_counts),
	    WITH(nothing_counted),
	    WITH(labels_counted),
	    WITH(no_numbers),
	    WITH(what_is_folded_again_is_waited_for),
	    WITH(another_model_meanwhile),
	    WITH(the_deadline_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
