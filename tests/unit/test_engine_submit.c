/* stages: gcc clang openssl address thread */
/* Documents that become jobs or are refused, commands, and the list of what there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "engine_fixture.h"
#include "hash.h"

static void
the_same_document_again(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16], again[16], digest[32];
	bool created = true;

	submit(c, plain, id);
	hash_sha256(digest, plain, strlen(plain));
	assert_memory_equal(id, digest, 16);
	assert_int_equal(engine_submit(c->s.engine,
			     &(struct engine_document){.text = plain, .len = strlen(plain)}, again,
			     &created, &c->why),
	    ERR_OK);
	assert_false(created);
	assert_memory_equal(id, again, 16);
	/* One byte makes another job, from the same seed the same model. */
	static const char other[] =
	    " " JOB("plain", "\"goal\":2,\"quorum\":2,\"over_select\":1.5", "");
	submit(c, other, again);
	assert_memory_not_equal(id, again, 16);
	float a[ELEMENTS], b[ELEMENTS];
	read_weights(c, round_row(c, id, 1).base, a);
	read_weights(c, round_row(c, again, 1).base, b);
	assert_memory_equal(a, b, sizeof(a));
}

static enum err
no_jobs(void *ctx, const struct store_job *j)
{
	(void)ctx;
	(void)j;
	return ERR_EXISTS;
}

static enum err
read_jobs(struct store_db *db, void *arg, struct why *why)
{
	(void)arg;
	(void)why;
	return store_job_each(db, no_jobs, NULL);
}

/* What is refused leaves nothing behind. */
static void
refused_documents(void **state)
{
	struct coordinator *c = *state;
	static const char *const texts[] = {"", "{}", "[]", "{\"name\":\"x\"",
	    JOB("x", "\"goal\":0", ""), JOB("x", "\"goal\":1", ",\"colour\":\"blue\""),
	    JOB("x", "\"goal\":1", ",\"tensors\":{\"*\":\"frozen\"}"),
	    JOB("x", "\"goal\":1", ",\"aggregate\":{\"rule\":{\"name\":\"majority\"}}"),
	    JOB("x", "\"goal\":1", ",\"aggregate\":{\"server_optimizer\":{\"name\":\"magic\"}}"),
	    JOB("x", "\"goal\":1", ",\"upload\":{\"codec\":\"morse\"}"),
	    JOB("x", "\"goal\":1", ",\"tensors\":{\"fc.weight\":\"frozen\",\"fc9.*\":\"frozen\"}"),
	    JOB("x", "\"goal\":5", ",\"aggregate\":{\"rule\":{\"name\":\"trimmed_mean\"}}"),
	    JOB("x", "\"goal\":5",
		",\"aggregate\":{\"rule\":{\"name\":\"median\",\"nearest\":true}}"),
	    "{\"name\":\"x\",\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":"
	    "\"mse\"},"
	    "\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},\"local\":{\"optimizer\":{"
	    "\"rate\":0.1}}"
	    ",\"round\":{\"goal\":1}}"};
	uint8_t id[16];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		bool created = true;
		c->why.text[0] = '\0';
		enum err e = engine_submit(c->s.engine,
		    &(struct engine_document){.text = texts[i], .len = strlen(texts[i])}, id,
		    &created, &c->why);
		if ((e != ERR_INVALID && e != ERR_UNSUPPORTED) || created || !c->why.text[0])
			fail_msg("%s: %s %s", texts[i], err_name(e), c->why.text);
	}
	assert_int_equal(store_read(c->s.store, read_jobs, NULL, &c->why), ERR_OK);
	/* And the engine is fine. */
	submit(c, plain, id);
}

static void
an_initial_model_that_is_not_there(void **state)
{
	struct coordinator *c = *state;
	char text[1024];
	uint8_t id[16];
	bool created;

	int n = snprintf(text, sizeof(text),
	    "{\"name\":\"x\",\"model\":{\"init\":\"%064d\"},\"trainer\":\"own\",\"data\":{\"name\":"
	    "\"d\"},"
	    "\"round\":{\"goal\":1}}",
	    1);
	enum err e = engine_submit(c->s.engine,
	    &(struct engine_document){.text = text, .len = (size_t)n}, id, &created, &c->why);
	if (e != ERR_INVALID || !strstr(c->why.text, "init"))
		fail_msg("%s: %s", err_name(e), c->why.text);
}

/* A job that starts from this model, with a layer of so many outputs; the model has two. */
static enum err
submit_from(struct coordinator *c, const uint8_t model[32], unsigned outputs)
{
	char text[1024], hex[65];
	uint8_t id[16];
	bool created;

	hex_encode(hex, model, 32);
	int n = snprintf(text, sizeof(text),
	    "{\"name\":\"from\",\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\","
	    "\"out\":%u}],"
	    "\"loss\":\"cross_entropy\",\"init\":\"%s\"},\"data\":{\"name\":\"d\",\"shape\":[4],"
	    "\"classes\":%u,\"validation\":0.1},\"local\":{\"epochs\":1,\"batch\":10,"
	    "\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},\"evaluate\":{\"by\":\"devices\"},"
	    "\"round\":{\"goal\":1}}",
	    outputs, hex, outputs);
	return engine_submit(c->s.engine, &(struct engine_document){.text = text, .len = (size_t)n},
	    id, &created, &c->why);
}

/* Whose a model is decides whether retention may remove it: nobody changes that by a document that is refused. */
static void
a_refused_job_pins_no_model(void **state)
{
	static const uint8_t nobody[16];
	struct coordinator *c = *state;
	struct store_model row;
	uint8_t id[16];

	submit(c, JOB("mine", "\"goal\":1", ""), id);
	struct store_round first = round_row(c, id, 1);
	assert_int_equal(submit_from(c, first.base, 3), ERR_INVALID);
	assert_non_null(strstr(c->why.text, "model.init: tensor"));
	assert_int_equal(store_model_find(c->s.store, first.base, &row), ERR_OK);
	assert_memory_equal(row.job, id, sizeof(row.job));
	if (submit_from(c, first.base, 2))
		fail_msg("%s", c->why.text);
	assert_int_equal(store_model_find(c->s.store, first.base, &row), ERR_OK);
	assert_memory_equal(row.job, nobody, sizeof(row.job));
}

static void
commands(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16], none[16] = {1};

	submit(c, plain, id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(
	    engine_command(c->s.engine, none, JOB_PAUSED, NULL, &c->why), ERR_NOTFOUND);
	assert_int_equal(engine_command(c->s.engine, id, JOB_PAUSED, NULL, &c->why), ERR_OK);
	assert_int_equal(engine_command(c->s.engine, id, JOB_PAUSED, NULL, &c->why), ERR_OK);
	expect(c, 1, "paused");
	assert_null(deliver(c, &t, 1, 1, 100));
	/* Durable: a restart finds it paused, with the delta. */
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(job_is(c, id, "paused"));
	assert_int_equal(job_number(c, id, "reports"), 1);
	expect(c, 2, "paused");
	assert_int_equal(engine_command(c->s.engine, id, JOB_RUNNING, NULL, &c->why), ERR_OK);
	assert_string_equal(ask(c, 2, &t), "");
	assert_int_equal(spool_used(c->s.spool), SPOOL_BYTES);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_int_equal(spool_used(c->s.spool), 0);
	expect(c, 2, "no-job");
	assert_string_equal(deliver(c, &t, 2, 1, 100), "stale-round");
	assert_int_equal(engine_command(c->s.engine, id, JOB_RUNNING, NULL, &c->why), ERR_STATE);
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(job_is(c, id, "stopped"));
	expect(c, 2, "no-job");
}

/* A round whose record could not be written is refused, and one that just fits is not. */
static void
large_record(void **state)
{
	static const char fits[] = JOB("fits", "\"goal\":200000", ""),
			  large[] = JOB("large", "\"goal\":200001", "");
	struct coordinator *c = *state;
	uint8_t id[16];
	bool created;

	assert_int_equal(JOB_GOAL_MAX, 200000);
	submit(c, fits, id);
	assert_int_equal(engine_submit(c->s.engine,
			     &(struct engine_document){.text = large, .len = strlen(large)}, id,
			     &created, &c->why),
	    ERR_INVALID);
	assert_non_null(strstr(c->why.text, "round.goal"));
	assert_non_null(strstr(c->why.text, "200000"));
}

/* What looks for a job between its row and whatever comes next, all in one group of the store. */
struct look {
	struct coordinator *c;
	uint8_t id[16];
	bool has_row, done, missing;
};

static enum err
look_for_row(struct store_db *db, void *arg, struct why *why)
{
	struct look *l = arg;
	struct store_job row;

	(void)why;
	l->has_row = store_job_get(db, l->id, &row) == ERR_OK;
	if (l->has_row)
		free(row.document);
	return ERR_OK;
}

static void
look_in_list(void *arg, enum err e, const struct why *why)
{
	struct look *l = arg;
	struct job_view v;

	(void)e, (void)why;
	l->missing = l->has_row && !engine_job(l->c->s.engine, l->id, NULL, &v);
	l->done = true;
}

static enum err
take_time(struct store_db *db, void *arg, struct why *why)
{
	(void)db, (void)arg, (void)why;
	usleep(500000);
	return ERR_OK;
}

static void *
submit_plain(void *arg)
{
	struct coordinator *c = arg;
	uint8_t id[16];

	submit(c, plain, id);
	return NULL;
}

/* A command that comes right behind a submission finds the job: else the store would say stopped, and the engine go on. */
static void
the_list_follows_the_rows(void **state)
{
	struct coordinator *c = *state;
	struct look looks[100] = {{.c = NULL}};
	uint8_t digest[HASH_LEN];
	struct why why = {""};
	pthread_t thread;

	hash_sha256(digest, plain, strlen(plain));
	assert_int_equal(store_submit(c->s.store, take_time, NULL, NULL), ERR_OK);
	assert_int_equal(pthread_create(&thread, NULL, submit_plain, c), 0);
	for (size_t i = 0; i < 100; i++) {
		looks[i].c = c;
		memcpy(looks[i].id, digest, 16);
		assert_int_equal(
		    store_submit(c->s.store, look_for_row, look_in_list, &looks[i]), ERR_OK);
		usleep(4000);
	}
	pthread_join(thread, NULL);
	assert_int_equal(store_write(c->s.store, look_for_row, &looks[0], &why), ERR_OK);
	for (size_t i = 0; i < 100; i++) {
		assert_true(looks[i].done);
		assert_false(looks[i].missing);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(the_same_document_again),
	    WITH(refused_documents),
	    WITH(an_initial_model_that_is_not_there),
	    WITH(a_refused_job_pins_no_model),
	    WITH(commands),
	    WITH(large_record),
	    WITH(the_list_follows_the_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
