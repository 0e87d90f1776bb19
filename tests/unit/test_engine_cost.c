/* stages: gcc clang openssl address */
/* What a job may cost: bounds at its submission, which older jobs are not held to, and what is left of one that is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "buf.h"
#include "coordinator_fixture.h"
#include "hash.h"
#include "jobs_inside.h"
#include "store_inside.h"
#include "view.h"

static const char plain[] = JOB("plain", "\"goal\":1", "");
static const char again[] = JOB("again", "\"goal\":1", "");

/* As a restart makes a job of a row. */
static struct job *
load(struct coordinator *c, const char *text)
{
	struct job *j = NULL;
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, text, strlen(text));
	enum err e = jobs_read(&j, digest, text, strlen(text), &c->why);
	if (e)
		fail_msg("%s: %s", err_name(e), c->why.text);
	return j;
}

/* 200 layers with long names, and 64 long patterns for them. */
static void
long_patterns(void **state)
{
	struct coordinator *c = *state;
	const struct engine_uses u = jobs_uses(c->s.engine);
	struct buf b;
	uint8_t model[32];

	buf_init(&b, 1 << 20);
	assert_int_equal(buf_printf(&b, "{\"name\":\"slow\",\"model\":{\"layers\":["), ERR_OK);
	for (int i = 0; i < 200; i++)
		assert_int_equal(
		    buf_printf(&b, "%s{\"type\":\"linear\",\"name\":\"%.50s%03d\",\"out\":1}",
			i ? "," : "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i),
		    ERR_OK);
	assert_int_equal(buf_printf(&b, "],\"loss\":\"mse\"},\"tensors\":{"), ERR_OK);
	for (int i = 0; i < 64; i++)
		assert_int_equal(
		    buf_printf(&b, "%s\"*%.60s*%.60s%03d\":\"frozen\"", i ? "," : "",
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i),
		    ERR_OK);
	assert_int_equal(buf_printf(&b,
			     "},\"data\":{\"name\":\"d\",\"shape\":[1]},"
			     "\"local\":{\"optimizer\":{\"rate\":1}},\"round\":{\"goal\":1}}"),
	    ERR_OK);
	coordinator_refuses(c, b.data, "tensors: patterns of");
	/* One that was taken before there was a bound. */
	struct job *j = load(c, b.data);
	assert_int_equal(jobs_first_model(&u, j, model, &c->why), ERR_OK);
	assert_int_equal(jobs_take_table(&u, j, model, &c->why), ERR_OK);
	assert_int_equal(j->work->table.elements, 400);
	job_free(j);
	buf_deinit(&b);
}

static void
many_values(void **state)
{
	struct coordinator *c = *state;
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(
	    buf_printf(&b, "%.*s,\"params\":{\"a\":[0", (int)strlen(plain) - 1, plain), ERR_OK);
	for (int i = 0; i < JOB_VALUES_MAX; i++)
		assert_int_equal(buf_append(&b, ",0", 2), ERR_OK);
	assert_int_equal(buf_append(&b, "]}}", 3), ERR_OK);
	coordinator_refuses(c, b.data, "values");
	job_free(load(c, b.data));
	buf_deinit(&b);
}

/* The job's recipe is one text, which its tasks share and which survives its end for as long as one is being answered. */
static void
one_text(void **state)
{
	struct coordinator *c = *state;
	struct task first, second;
	struct buf b;
	uint8_t id[16];

	submit(c, plain, id);
	const struct job *j = jobs_find(c->s.engine, id);
	tasks_ask(c->s.engine, device_id(1), &c->offer, &first);
	tasks_ask(c->s.engine, device_id(1), &c->offer, &second);
	assert_non_null(first.recipe.text);
	assert_ptr_equal(first.recipe.text, j->work->spec.recipe.text);
	assert_ptr_equal(second.recipe.text, j->work->spec.recipe.text);
	assert_null(j->work->spec.recipe.data.classes);
	messages_task_deinit(&first);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_null(j->work);
	buf_init(&b, 1 << 20);
	assert_int_equal(messages_task_encode(&b, &second), ERR_OK);
	assert_non_null(strstr(b.data, "\"recipe\":{\"model\":{\"layers\":[{\"type\":\"linear\""));
	messages_task_deinit(&second);
	buf_deinit(&b);
}

static void
is_small(const struct job *j)
{
	assert_non_null(j);
	assert_int_equal(j->facts.state, JOB_STOPPED);
	assert_false(j->facts.aside);
	assert_null(j->work);
	assert_true(j->facts.model_bytes > ELEMENTS * sizeof(float));
}

/* Nothing is built of a job that is over: not even its model's header is read at a start. */
static void
ended(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16], other[16];
	char path[128];

	submit(c, plain, id);
	submit(c, again, other);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	is_small(jobs_find(c->s.engine, id));
	assert_string_equal(ask(c, 1, &t), "");
	snprintf(path, sizeof(path), "models/%s", t.model);
	assert_int_equal(engine_command(c->s.engine, other, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_int_equal(unlink(coordinator_path(c, path)), 0);
	coordinator_stop(c);
	coordinator_start(c);
	is_small(jobs_find(c->s.engine, id));
	is_small(jobs_find(c->s.engine, other));
}

static enum err
execute(struct store_db *db, void *sql, struct why *why)
{
	(void)why;
	return store_schema_execute(db, sql);
}

static void
write_sql(struct coordinator *c, const char *sql)
{
	assert_int_equal(store_write(c->s.store, execute, (void *)(uintptr_t)sql, &c->why), ERR_OK);
}

static void
print_view(struct buf *b, const struct job_view *v)
{
	struct json *json = views_job(v);

	buf_init(b, 1 << 16);
	assert_int_equal(json_print(b, json, false), ERR_OK);
	assert_int_equal(buf_append(b, "", 1), ERR_OK);
	json_free(json);
}

/* Is it shown as before? But for what only its rounds knew, and the moment of its end to the bit. */
static void
same_view(struct coordinator *c, const uint8_t id[16], const struct job_view *before)
{
	struct buf was, is;
	struct job_view v;

	assert_true(engine_job(c->s.engine, id, NULL, &v));
	assert_true(fabs(v.ended_at_seconds - before->ended_at_seconds) < 60);
	v.ended_at_seconds = before->ended_at_seconds;
	v.parameters = before->parameters;
	print_view(&was, before);
	print_view(&is, &v);
	assert_string_equal(was.data, is.data);
	buf_deinit(&was);
	buf_deinit(&is);
}

static void
restart_with(struct coordinator *c, const char *sql)
{
	write_sql(c, sql);
	coordinator_stop(c);
	coordinator_start(c);
}

/* A start reads a short row of it, which says all that is shown; without one, it makes it again. A device is told of the job, and
 * given its model, by what the document says. */
static void
unread(void **state)
{
	static const char guarded[] = JOB("guarded", "\"goal\":1",
	    ",\"select\":{\"devices\":[\"device-1\"]},\"priority\":-3,"
	    "\"guard\":{\"metric\":\"accuracy\",\"drop\":0.2,\"rounds\":2,\"window\":3,\"do\":"
	    "\"stop\"}");
	struct coordinator *c = *state;
	struct job_view v, before;
	struct task t;
	uint8_t id[16];

	c->report =
	    (char *)(uintptr_t) "{\"evaluate\":{\"examples\":10,\"loss\":1,\"accuracy\":0.5}}";
	submit(c, guarded, id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 1, 100));
	await_rounds(c, id, 1);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	/* Its last round leaves the folder a moment after it is committed. */
	while (jobs_find(c->s.engine, id)->work)
		usleep(1000);
	assert_true(engine_job(c->s.engine, id, NULL, &before));
	assert_int_equal(before.guard.best_round, 0);
	assert_true(before.guard.has_best && before.metric.known);
	for (int i = 0; i < 2; i++) {
		restart_with(c, i ? "DELETE FROM past_job" : "SELECT 1");
		is_small(jobs_find(c->s.engine, id));
		same_view(c, id, &before);
		/* Each time the document is read for it: whoever asks pays for that, also in vain. */
		uint64_t read = 0;
		assert_true(engine_job(c->s.engine, id, device_id(1), &v));
		assert_int_equal(v.read_bytes, strlen(guarded));
		assert_true(engine_may_read(c->s.engine, device_id(1), v.model, &read));
		assert_true(engine_may_work(c->s.engine, device_id(1), id, &read));
		assert_int_equal(read, 2 * strlen(guarded));
		assert_false(engine_job(c->s.engine, id, device_id(2), &v));
		assert_int_equal(v.read_bytes, strlen(guarded));
		assert_false(engine_may_read(c->s.engine, device_id(2), v.model, NULL));
		assert_false(engine_may_work(c->s.engine, device_id(2), id, NULL));
	}
	restart_with(c, "UPDATE job SET document = 'nobody reads this'");
	is_small(jobs_find(c->s.engine, id));
	assert_false(engine_job(c->s.engine, id, device_id(1), &v));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(long_patterns),
	    WITH(many_values),
	    WITH(one_text),
	    WITH(ended),
	    WITH(unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
