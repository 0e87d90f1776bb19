/* stages: gcc clang openssl address thread */
/* What one owner may have and do: [limits] owner_*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "audit_rows.h"
#include "coordinator_fixture.h"
#include "data_source.h"
#include "evalset.h"
#include "jobs_inside.h"
#include "record.h"

#define FIRST JOB("first", "\"goal\":1", "")
#define SECOND JOB("second", "\"goal\":1", "")

static enum err
submit_as(struct coordinator *c, const char *text, uint8_t owner, bool bounded, uint8_t id[16])
{
	struct engine_document d = {.text = text, .len = strlen(text), .bounded = bounded};
	bool created;

	memset(d.owner, owner, sizeof(d.owner));
	c->why.text[0] = '\0';
	return engine_submit(c->s.engine, &d, id, &created, &c->why);
}

static void
denied(struct coordinator *c, const char *text, const char *limit)
{
	uint8_t id[16];

	assert_int_equal(submit_as(c, text, 1, true, id), ERR_DENIED);
	if (!strstr(c->why.text, limit))
		fail_msg("\"%s\" is not in \"%s\"", limit, c->why.text);
	assert_null(job_json(c, id));
}

/* Others are not bound by it, nor is who is not bounded; what ends makes room. */
static void
jobs(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16], other[16];

	c->config.owner_jobs = 1;
	assert_int_equal(submit_as(c, FIRST, 1, true, id), ERR_OK);
	denied(c, SECOND, "owner_jobs");
	assert_int_equal(submit_as(c, SECOND, 2, true, other), ERR_OK);
	assert_int_equal(submit_as(c, JOB("third", "\"goal\":1", ""), 1, false, other), ERR_OK);
	assert_int_equal(engine_command(c->s.engine, other, JOB_STOPPED, NULL, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	denied(c, JOB("fourth", "\"goal\":1", ""), "owner_jobs");
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_int_equal(submit_as(c, JOB("fourth", "\"goal\":1", ""), 1, true, id), ERR_OK);
}

static void
priority(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	denied(c, JOB("high", "\"goal\":1", ",\"priority\":1"), "owner_priority");
	assert_int_equal(
	    submit_as(c, JOB("low", "\"goal\":1", ",\"priority\":-1"), 1, true, id), ERR_OK);
	c->config.owner_priority = 1;
	assert_int_equal(
	    submit_as(c, JOB("high", "\"goal\":1", ",\"priority\":1"), 1, true, id), ERR_OK);
}

/* A job counts with what it takes in memory, and a model with its file, also when it is pinned and no job's any more. */
static void
bytes(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	assert_int_equal(submit_as(c, FIRST, 1, true, id), ERR_OK);
	const struct job *j = jobs_find(c->s.engine, id);
	c->config.owner_document_bytes = 2 * job_memory(j) - 1;
	denied(c, SECOND, "owner_document_bytes");
	c->config.owner_document_bytes = 0;
	c->config.owner_model_bytes = 2 * j->facts.model_bytes - 1;
	denied(c, SECOND, "owner_model_bytes");
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	denied(c, SECOND, "owner_model_bytes");
	c->config.owner_model_bytes++;
	assert_int_equal(submit_as(c, SECOND, 1, true, id), ERR_OK);
}

struct pinning {
	const uint8_t *model;
	uint8_t owner[32], other[32];
	uint64_t had, has;
};

static enum err
pin_for_other(struct store_db *db, void *arg, struct why *why)
{
	struct pinning *p = arg;

	(void)why;
	enum err e = store_model_owned(db, p->owner, &p->had);
	if (!e)
		e = store_model_pin(db, p->model, p->other);
	return e ? e : store_model_owned(db, p->owner, &p->has);
}

/* Whoever begins with a model of another one's job does not get it. */
static void
a_model_stays(void **state)
{
	struct coordinator *c = *state;
	struct store_model row;
	uint8_t id[16];

	assert_int_equal(submit_as(c, FIRST, 1, true, id), ERR_OK);
	const struct store_round first = round_row(c, id, 1);
	struct pinning p = {.model = first.base};
	memset(p.owner, 1, sizeof(p.owner));
	memset(p.other, 2, sizeof(p.other));
	assert_int_equal(store_write(c->s.store, pin_for_other, &p, &c->why), ERR_OK);
	assert_true(p.had > 0);
	assert_int_equal(p.has, p.had);
	assert_int_equal(store_model_find(c->s.store, first.base, &row), ERR_OK);
	assert_memory_equal(row.owner, p.owner, sizeof(row.owner));
}

#define EVALUATED(name) \
	"{\"name\":\"" name "\",\"model\":{\"layers\":[{\"type\":\"flatten\"},{\"type\":" \
	"\"linear\",\"out\":10}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\"," \
	"\"shape\":[1,28,28],\"classes\":10},\"local\":{\"optimizer\":{\"rate\":1}}," \
	"\"round\":{\"goal\":1},\"evaluate\":{\"by\":\"coordinator\",\"data\":\"digits\"}}"

static void
evaluation(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	strcpy(c->config.data[0].name, "digits");
	c->config.data[0].source.format = DATA_GLYPHS;
	c->config.data[0].hands = 1;
	c->config.data[0].count = 10;
	c->config.data_count = 1;
	c->config.owner_evaluation = 1;
	denied(c, EVALUATED("e"), "owner_evaluation");
	c->config.owner_evaluation = 0;
	assert_int_equal(submit_as(c, EVALUATED("e"), 1, true, id), ERR_OK);
	double work = jobs_find(c->s.engine, id)->work->evaluation;
	assert_true(work >= TRAIN_MEASURE_BATCH * 7840);
	c->config.owner_evaluation = (uint64_t)work * 2 - 1;
	coordinator_stop(c);
	coordinator_start(c);
	denied(c, EVALUATED("f"), "owner_evaluation");
	assert_int_equal(submit_as(c, FIRST, 1, true, id), ERR_OK);
}

/* What one round of each of its jobs takes the coordinator, together. */
static void
folds(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	c->config.owner_fold_work = 1;
	denied(c, FIRST, "owner_fold_work");
	c->config.owner_fold_work = 0;
	assert_int_equal(submit_as(c, FIRST, 1, true, id), ERR_OK);
	double work = jobs_find(c->s.engine, id)->work->cost.work;
	assert_true(work > ELEMENTS);
	c->config.owner_fold_work = (uint64_t)(work * 1.5);
	coordinator_stop(c);
	coordinator_start(c);
	denied(c, JOB("another", "\"goal\":1", ""), "owner_fold_work");
	/* Others' are others'. */
	assert_int_equal(submit_as(c, JOB("another", "\"goal\":1", ""), 2, true, id), ERR_OK);
}

/* --- all at once */

#define CROWD 20

struct one {
	struct coordinator *c;
	pthread_barrier_t *start;
	unsigned number;
	enum err e;
	void (*act)(struct one *o);
};

static void *
run_one(void *arg)
{
	struct one *o = arg;

	pthread_barrier_wait(o->start);
	o->act(o);
	return NULL;
}

/* How many of twenty that begin together get through; the others are ERR_DENIED. */
static unsigned
crowd(struct coordinator *c, void (*act)(struct one *o))
{
	pthread_t threads[CROWD];
	struct one ones[CROWD];
	pthread_barrier_t start;
	unsigned through = 0;

	assert_int_equal(pthread_barrier_init(&start, NULL, CROWD), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		ones[i] = (struct one){c, &start, i, ERR_OK, act};
		assert_int_equal(pthread_create(&threads[i], NULL, run_one, &ones[i]), 0);
	}
	for (unsigned i = 0; i < CROWD; i++) {
		pthread_join(threads[i], NULL);
		through += ones[i].e == ERR_OK;
		assert_true(ones[i].e == ERR_OK || ones[i].e == ERR_DENIED);
	}
	pthread_barrier_destroy(&start);
	return through;
}

static void
submit_one(struct one *o)
{
	char text[1024];
	struct engine_document d = {.text = text, .bounded = true};
	struct why why = {""};
	uint8_t id[16];
	bool created;

	d.len = (size_t)snprintf(text, sizeof(text), JOB("job-%u", "\"goal\":1", ""), o->number);
	memset(d.owner, 1, sizeof(d.owner));
	o->e = engine_submit(o->c->s.engine, &d, id, &created, &why);
}

static void
submit_the_same(struct one *o)
{
	o->number = 0;
	submit_one(o);
}

static unsigned
count_jobs(struct coordinator *c)
{
	struct engine_report r;

	jobs_report(c->s.engine, &r);
	return (unsigned)r.jobs[JOB_RUNNING];
}

static void
jobs_at_once(void **state)
{
	struct coordinator *c = *state;

	c->config.owner_jobs = 7;
	assert_int_equal(crowd(c, submit_one), 7);
	assert_int_equal(count_jobs(c), 7);
	assert_null(c->s.engine->reserved);
	denied(c, FIRST, "owner_jobs");
}

/* One job, whoever of them made it, and room for one is enough. */
static void
the_same_at_once(void **state)
{
	struct coordinator *c = *state;

	c->config.owner_jobs = 1;
	assert_int_equal(crowd(c, submit_the_same), CROWD);
	assert_int_equal(count_jobs(c), 1);
}

/* Each first model has so many bytes. */
static void
models_at_once(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	assert_int_equal(submit_as(c, FIRST, 2, true, id), ERR_OK);
	uint64_t one = jobs_find(c->s.engine, id)->facts.model_bytes;
	/* Their files say the job's id, which has the same length for all. */
	c->config.owner_model_bytes = 6 * one + one / 2;
	assert_int_equal(crowd(c, submit_one), 6);
	assert_null(c->s.engine->reserved);
}

#define UPLOAD 1000

static enum err
put_upload(struct store_db *db, void *arg, struct why *why)
{
	const struct one *o = arg;
	struct store_model m = {.bytes = UPLOAD};

	(void)why;
	memset(m.id, 100 + (int)o->number, sizeof(m.id));
	memset(m.owner, 1, sizeof(m.owner));
	return store_model_put(db, &m);
}

/* As an upload does it. */
static void
upload_one(struct one *o)
{
	struct engine_reservation r = {.held = false};
	struct engine *g = o->c->s.engine;
	struct why why = {""};
	uint8_t owner[32];

	memset(owner, 1, sizeof(owner));
	o->e = engine_owner_models(g, owner, UPLOAD, &r, &why);
	if (!o->e) {
		engine_owner_settle(g, &r);
		o->e = store_write(o->c->s.store, put_upload, o, &why);
	}
	engine_owner_release(g, &r);
}

static void
uploads_at_once(void **state)
{
	struct coordinator *c = *state;

	c->config.owner_model_bytes = 9 * UPLOAD + 1;
	assert_int_equal(crowd(c, upload_one), 9);
	assert_null(c->s.engine->reserved);
}

/* An upload that is given up makes room again; one that is under way counts, for its owner alone. */
static void
an_upload_is_reserved(void **state)
{
	struct engine_reservation first = {.held = false}, second = first, third = first;
	struct coordinator *c = *state;
	struct engine *g = c->s.engine;
	const uint8_t *me = device_id(1);

	c->config.owner_model_bytes = UPLOAD;
	assert_int_equal(engine_owner_models(g, me, UPLOAD, &first, &c->why), ERR_OK);
	assert_int_equal(engine_owner_models(g, me, 1, &second, &c->why), ERR_DENIED);
	assert_non_null(strstr(c->why.text, "owner_model_bytes"));
	engine_owner_release(g, &second);
	assert_int_equal(engine_owner_models(g, device_id(2), UPLOAD, &third, &c->why), ERR_OK);
	engine_owner_release(g, &first);
	assert_int_equal(engine_owner_models(g, me, UPLOAD, &second, &c->why), ERR_OK);
	engine_owner_release(g, &second);
	/* What is there already for something else does not pass by whoever came since. */
	assert_int_equal(engine_owner_models(g, me, 0, &first, &c->why), ERR_OK);
	assert_int_equal(engine_owner_models(g, me, UPLOAD, &second, &c->why), ERR_OK);
	assert_int_equal(engine_owner_models(g, me, UPLOAD, &first, &c->why), ERR_DENIED);
	engine_owner_release(g, &first);
	engine_owner_release(g, &second);
	engine_owner_release(g, &third);
	assert_null(g->reserved);
}

/* What is refused, and what was only tried, holds nothing. */
static void
nothing_is_left(void **state)
{
	struct coordinator *c = *state;
	struct engine_trial *trial = calloc(1, sizeof(*trial));
	struct engine_document d = {.text = FIRST, .len = strlen(FIRST), .bounded = true};

	assert_non_null(trial);
	c->config.owner_jobs = 1;
	for (int i = 0; i < 3; i++)
		assert_int_equal(engine_try(c->s.engine, &d, trial, &c->why), ERR_OK);
	/* Nor does it count while it is tried. */
	struct engine_reservation asking = {.asks = true};
	assert_int_equal(engine_owner_models(c->s.engine, d.owner, 1, &asking, &c->why), ERR_OK);
	assert_null(c->s.engine->reserved);
	engine_owner_release(c->s.engine, &asking);
	free(trial);
	assert_null(c->s.engine->reserved);
	c->config.owner_model_bytes = 1;
	denied(c, FIRST, "owner_model_bytes");
	assert_null(c->s.engine->reserved);
	c->config.owner_model_bytes = 0;
	assert_int_equal(crowd(c, submit_the_same), CROWD);
}

/* --- in an hour and in a day */

static enum err
spend(struct coordinator *c, uint8_t owner, uint64_t text, unsigned entries, uint32_t *wait)
{
	struct engine_spending s = {.text = text, .entries = entries};

	memset(s.owner, owner, sizeof(s.owner));
	enum err e = engine_owner_spend(c->s.engine, &s, &c->why);
	*wait = s.wait_s;
	return e;
}

/* All at once if it likes, then one each share of the hour. */
static void
in_an_hour(void **state)
{
	struct coordinator *c = *state;
	uint32_t wait;

	c->config.owner_changes_per_hour = 3;
	for (int i = 0; i < 3; i++)
		assert_int_equal(spend(c, 1, 0, 1, &wait), ERR_OK);
	assert_int_equal(spend(c, 1, 0, 1, &wait), ERR_AGAIN);
	assert_in_range(wait, 1100, 1200);
	assert_int_equal(spend(c, 2, 0, 1, &wait), ERR_OK);
	c->config.owner_changes_per_hour = 0;
	assert_int_equal(spend(c, 1, 0, 1, &wait), ERR_OK);
}

/* A text counts twice, for so it is kept; what is refused costs nothing of either kind. */
static void
in_a_day(void **state)
{
	struct coordinator *c = *state;
	uint32_t wait;

	c->config.owner_bytes_per_day = 10000;
	c->config.owner_changes_per_hour = 3;
	assert_int_equal(spend(c, 1, 2000, 1, &wait), ERR_OK);
	assert_int_equal(spend(c, 1, 2000, 2, &wait), ERR_AGAIN);
	assert_non_null(strstr(c->why.text, "owner_bytes_per_day"));
	assert_in_range(wait, 23 * 3600, 25 * 3600 + 1);
	assert_int_equal(spend(c, 1, 0, 4, &wait), ERR_OK);
	assert_int_equal(spend(c, 2, 2000, 2, &wait), ERR_OK);
	assert_int_equal(spend(c, 1, 0, 0, &wait), ERR_OK);
}

static enum err
set_share(
    struct coordinator *c, const uint8_t id[16], const char *text, struct engine_spending *spending)
{
	struct override_set change;
	const struct engine_terms_change t = {
	    .change = &change, .bounded = true, .spending = spending};

	assert_int_equal(override_parse(&change, text, strlen(text), &c->why), ERR_OK);
	return engine_set(c->s.engine, id, &t, &c->why);
}

static enum err
count_entries(struct store_db *db, void *arg, struct why *why)
{
	uint8_t link[RECORD_LEN];
	struct record r;

	enum err e = store_audit_last(db, link);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	if (!e)
		e = record_decode(&r, link, sizeof(link), why);
	if (!e)
		*(uint64_t *)arg = r.seq;
	return e;
}

static uint64_t
entries(struct coordinator *c)
{
	uint64_t count = 0;

	assert_int_equal(store_read(c->s.store, count_entries, &count, &c->why), ERR_OK);
	return count;
}

/* What is so already writes nothing and costs nothing; pause and stop are never refused. */
static void
repeats_are_free(void **state)
{
	struct coordinator *c = *state;
	struct engine *g = c->s.engine;
	struct engine_spending s = {.entries = 1};
	uint8_t id[16];

	memset(s.owner, 1, sizeof(s.owner));
	c->config.owner_changes_per_hour = 2;
	c->config.owner_share = 10;
	assert_int_equal(submit_as(c, FIRST, 1, true, id), ERR_OK);
	assert_int_equal(set_share(c, id, "{\"share\":3}", &s), ERR_OK);
	uint64_t before = entries(c);
	for (int i = 0; i < 10; i++)
		assert_int_equal(set_share(c, id, "{\"share\":3}", &s), ERR_OK);
	assert_int_equal(engine_command_of(g, id, JOB_RUNNING, NULL, &s, &c->why), ERR_OK);
	assert_int_equal(entries(c), before);
	assert_int_equal(engine_command_of(g, id, JOB_PAUSED, NULL, &s, &c->why), ERR_OK);
	assert_int_equal(engine_command_of(g, id, JOB_PAUSED, NULL, &s, &c->why), ERR_OK);
	assert_int_equal(entries(c), before + 1);
	assert_int_equal(engine_command_of(g, id, JOB_RUNNING, NULL, &s, &c->why), ERR_OK);
	/* That were two. */
	assert_int_equal(set_share(c, id, "{\"share\":4}", &s), ERR_AGAIN);
	assert_true(s.wait_s > 0);
	assert_int_equal(engine_command_of(g, id, JOB_PAUSED, NULL, &s, &c->why), ERR_OK);
	assert_int_equal(engine_command_of(g, id, JOB_RUNNING, NULL, &s, &c->why), ERR_AGAIN);
	assert_int_equal(entries(c), before + 3);
	assert_int_equal(engine_command_of(g, id, JOB_STOPPED, NULL, &s, &c->why), ERR_OK);
	assert_int_equal(entries(c), before + 4);
}

/* What went into the database is known after a restart, what came to nothing is not. */
static void
a_day_survives_a_restart(void **state)
{
	struct coordinator *c = *state;
	struct engine_spending s = {.entries = 1}, lost = s;
	uint8_t id[16];

	memset(s.owner, 1, sizeof(s.owner));
	memset(lost.owner, 2, sizeof(lost.owner));
	c->config.owner_bytes_per_day = 1200;
	c->config.owner_share = 10;
	assert_int_equal(submit_as(c, FIRST, 1, true, id), ERR_OK);
	assert_int_equal(set_share(c, id, "{\"share\":3}", &s), ERR_OK);
	assert_int_equal(engine_owner_spend(c->s.engine, &lost, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	assert_int_equal(set_share(c, id, "{\"share\":4}", &s), ERR_AGAIN);
	assert_int_equal(engine_owner_spend(c->s.engine, &lost, &c->why), ERR_OK);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(jobs),
	    WITH(priority),
	    WITH(bytes),
	    WITH(a_model_stays),
	    WITH(evaluation),
	    WITH(folds),
	    WITH(jobs_at_once),
	    WITH(the_same_at_once),
	    WITH(models_at_once),
	    WITH(uploads_at_once),
	    WITH(an_upload_is_reserved),
	    WITH(nothing_is_left),
	    WITH(in_an_hour),
	    WITH(in_a_day),
	    WITH(repeats_are_free),
	    WITH(a_day_survives_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
