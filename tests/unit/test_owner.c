/* What one owner may have and do: [limits] owner_*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator_fixture.h"
#include "engine_inside.h"
#include "evalset.h"

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
	const struct engine_job *j = engine_find(c->s.engine, id);
	c->config.owner_document_bytes = 2 * engine_owner_bytes(j) - 1;
	denied(c, SECOND, "owner_document_bytes");
	c->config.owner_document_bytes = 0;
	c->config.owner_model_bytes = 2 * j->model_bytes - 1;
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
	double work = engine_find(c->s.engine, id)->work->evaluation;
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
	double work = engine_find(c->s.engine, id)->work->cost.work;
	assert_true(work > ELEMENTS);
	c->config.owner_fold_work = (uint64_t)(work * 1.5);
	coordinator_stop(c);
	coordinator_start(c);
	denied(c, JOB("another", "\"goal\":1", ""), "owner_fold_work");
	/* Others' are others'. */
	assert_int_equal(submit_as(c, JOB("another", "\"goal\":1", ""), 2, true, id), ERR_OK);
}

/* All at once if it likes, then one each share of the hour. */
static void
in_an_hour(void **state)
{
	struct coordinator *c = *state;

	c->config.owner_changes_per_hour = 3;
	for (int i = 0; i < 3; i++)
		assert_int_equal(engine_owner_spend(c->s.engine, device_id(1)), 0);
	uint32_t wait = engine_owner_spend(c->s.engine, device_id(1));
	assert_in_range(wait, 1100, 1200);
	assert_int_equal(engine_owner_spend(c->s.engine, device_id(2)), 0);
	c->config.owner_changes_per_hour = 0;
	assert_int_equal(engine_owner_spend(c->s.engine, device_id(1)), 0);
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
	    WITH(in_an_hour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
