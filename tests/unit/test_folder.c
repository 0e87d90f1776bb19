/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdatomic.h>

#include "coordinator_fixture.h"
#include "difference.h"

#define TWO "\"goal\":2,\"quorum\":2"
static const char plain[] = JOB("plain", TWO, "");
static const char momentum[] = JOB("momentum", TWO,
    ",\"aggregate\":{\"server_optimizer\":{\"name\":\"sgd\",\"rate\":0.5,\"momentum\":0.5}}");
static const char exploding[] =
    JOB("exploding", TWO, ",\"aggregate\":{\"server_optimizer\":{\"name\":\"sgd\",\"rate\":2}}");
static const char stepwise[] = JOB("stepwise", TWO, ",\"download\":{\"codec\":\"int8\"}");
static const char filed[] = JOB("filed", TWO,
    ",\"download\":{\"codec\":\"int8\"},\"aggregate\":{\"server_optimizer\":{\"name\":\"sgd\","
    "\"momentum\":0.5}}");
static const char limited[] = JOB("limited", TWO, ",\"stop\":{\"rounds\":2}");
static const char hasty[] = JOB("hasty", TWO ",\"deadline_s\":0.2", "");

/* Files of a folder whose names end so. */
static unsigned
files(struct coordinator *c, const char *folder, const char *suffix)
{
	char path[sizeof(c->path)];
	struct dirent *ent;

	snprintf(path, sizeof(path), "%s/%s", c->dir, folder);
	DIR *d = opendir(path);
	unsigned n = 0;

	assert_non_null(d);
	while ((ent = readdir(d))) {
		size_t len = strlen(ent->d_name), end = strlen(suffix);
		n += ent->d_name[0] != '.' && len >= end &&
		    strcmp(ent->d_name + len - end, suffix) == 0;
	}
	closedir(d);
	return n;
}

/* The spool of a round is removed after the round is visible: wait for that, too. */
static void
await_empty_spool(struct coordinator *c)
{
	for (int i = 0; i < 5000 && (files(c, "spool", "") > 0 || spool_used(c->s.spool) > 0); i++)
		usleep(2000);
	assert_int_equal(files(c, "spool", ""), 0);
	assert_int_equal(spool_used(c->s.spool), 0);
}

/* A second coordinator beside the test's own. */
static struct coordinator *
second(void)
{
	void *c = NULL;

	coordinator_setup(&c);
	return c;
}

/* One round of two reports by the devices a and b. */
static void
one_round(struct coordinator *c, uint8_t a, float va, uint8_t b, float vb)
{
	struct task ta, tb;

	assert_string_equal(ask(c, a, &ta), "");
	assert_string_equal(ask(c, b, &tb), "");
	assert_null(deliver(c, &ta, a, va, 300));
	assert_null(deliver(c, &tb, b, vb, 100));
}

static void
the_weighted_mean(void **state)
{
	struct coordinator *c = *state;
	float before[ELEMENTS], after[ELEMENTS];
	uint8_t job[16];

	submit(c, plain, job);
	one_round(c, 1, 1.0f, 2, 5.0f);
	await_rounds(c, job, 1);
	struct store_round r = round_row(c, job, 1);
	assert_int_equal(r.state, OUTCOME_COMMITTED);
	assert_int_equal(r.reports, 2);
	assert_int_equal(r.examples, 400);
	assert_int_equal(r.invited, 2);
	assert_true(fabs(r.loss - 0.5) < 1e-9);
	/* (300 x 1 + 100 x 5) / 400 = 2 for every element */
	assert_true(fabs(r.norm - 2 * sqrt(ELEMENTS)) < 1e-6);
	read_weights(c, r.base, before);
	read_weights(c, r.model, after);
	for (int i = 0; i < ELEMENTS; i++)
		assert_true(after[i] == before[i] + 2.0f);
	struct store_round next = round_row(c, job, 2);
	assert_int_equal(next.state, OUTCOME_OPEN);
	assert_memory_equal(next.base, r.model, 32);
	await_empty_spool(c);
}

/* Whoever comes first, whatever is run meanwhile: the same model, to the bit. */
static void
arrival_does_not_matter(void **state)
{
	struct coordinator *c = *state, *d = second();
	uint8_t job[16], same[16];

	submit(c, plain, job);
	submit(d, plain, same);
	assert_memory_equal(job, same, 16);
	struct task t[4];
	for (uint8_t i = 0; i < 2; i++) {
		assert_string_equal(ask(c, i + 1, &t[i]), "");
		assert_string_equal(ask(d, 2 - i, &t[2 + i]), "");
	}
	for (uint8_t i = 0; i < 2; i++) {
		assert_null(deliver(c, &t[i], i + 1, 0.1f * (float)(i + 1), i + 7));
		assert_null(deliver(d, &t[2 + i], 2 - i, 0.1f * (float)(2 - i), 1 - i + 7));
	}
	await_rounds(c, job, 1);
	await_rounds(d, job, 1);
	assert_memory_equal(round_row(c, job, 1).model, round_row(d, job, 1).model, 32);
	coordinator_teardown(&(void *){d});
}

/* Half a round, a restart, the other half. */
static void
a_restart_in_the_middle(void **state)
{
	struct coordinator *c = *state, *d = second();
	struct task a, b, again;
	uint8_t job[16];

	submit(d, plain, job);
	one_round(d, 1, 0.3f, 2, 0.7f);
	await_rounds(d, job, 1);
	submit(c, plain, job);
	assert_string_equal(ask(c, 1, &a), "");
	assert_string_equal(ask(c, 2, &b), "");
	assert_null(deliver(c, &a, 1, 0.3f, 300));
	coordinator_stop(c);
	coordinator_start(c);
	assert_int_equal(job_number(c, job, "reports"), 1);
	assert_int_equal(spool_used(c->s.spool), SPOOL_BYTES);
	assert_string_equal(ask(c, 1, &again), "reported");
	assert_string_equal(deliver(c, &a, 1, 0.3f, 300), "used-task");
	/* The other one kept its task and does not ask for it again. */
	assert_null(deliver(c, &b, 2, 0.7f, 100));
	assert_int_equal(round_row(c, job, 1).goal, 2);
	await_rounds(c, job, 1);
	assert_memory_equal(round_row(c, job, 1).model, round_row(d, job, 1).model, 32);
	coordinator_teardown(&(void *){d});
}

/* A complete round whose folding was not begun is folded after the restart. */
static void
a_restart_before_the_fold(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16];

	submit(c, plain, job);
	struct task a, b;
	assert_string_equal(ask(c, 1, &a), "");
	assert_string_equal(ask(c, 2, &b), "");
	assert_null(deliver(c, &a, 1, 1, 100));
	rounds_stop(c->s.engine);
	assert_null(deliver(c, &b, 2, 1, 100));
	assert_int_equal(job_number(c, job, "rounds_committed"), 0);
	coordinator_stop(c);
	coordinator_start(c);
	await_rounds(c, job, 1);
	assert_int_equal(round_row(c, job, 1).reports, 2);
	await_empty_spool(c);
}

static void
server_momentum(void **state)
{
	struct coordinator *c = *state;
	static const uint8_t none[32];
	float w[3][ELEMENTS];
	uint8_t job[16];

	submit(c, momentum, job);
	one_round(c, 1, 1, 2, 1);
	await_rounds(c, job, 1);
	await_empty_spool(c);
	assert_int_equal(files(c, "models", ".state"), 1);
	/* The state survives a restart, too. */
	coordinator_stop(c);
	coordinator_start(c);
	one_round(c, 1, 1, 2, 1);
	await_rounds(c, job, 2);
	await_empty_spool(c);
	struct store_round r1 = round_row(c, job, 1), r2 = round_row(c, job, 2);
	assert_memory_not_equal(r1.optimizer_state, none, 32);
	assert_memory_not_equal(r1.optimizer_state, r2.optimizer_state, 32);
	read_weights(c, r1.base, w[0]);
	read_weights(c, r1.model, w[1]);
	read_weights(c, r2.model, w[2]);
	for (int i = 0; i < ELEMENTS; i++) {
		/* velocity 1, then 0.5 x 1 + 1; rate 0.5 */
		assert_float_equal(w[1][i] - w[0][i], 0.5f, 1e-6f);
		assert_float_equal(w[2][i] - w[1][i], 0.75f, 1e-6f);
	}
}

/* Finite deltas, but the step leads out of the numbers: the model stays, the third time pauses the job, also with a restart in
 * between. After that the count begins anew. */
static void
not_finite_three_times(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16];
	struct task t;

	submit(c, exploding, job);
	struct store_round first = round_row(c, job, 1);
	for (uint64_t n = 1; n <= 3; n++) {
		assert_true(job_is(c, job, "running"));
		one_round(c, 1, 3e38f, 2, 3e38f);
		await_rounds(c, job, n);
		struct store_round r = round_row(c, job, n);
		assert_int_equal(r.state, OUTCOME_FAILED);
		assert_memory_equal(r.model, first.base, 32);
		assert_memory_equal(r.base, first.base, 32);
		coordinator_stop(c);
		coordinator_start(c);
	}
	await_state(c, job, "paused");
	assert_string_equal(ask(c, 1, &t), "paused");
	assert_int_equal(round_row(c, job, 4).state, OUTCOME_OPEN);
	await_empty_spool(c);
	assert_int_equal(engine_command(c->s.engine, job, JOB_RUNNING, NULL, &c->why), ERR_OK);
	one_round(c, 1, 1, 2, 1);
	await_rounds(c, job, 4);
	assert_int_equal(round_row(c, job, 4).state, OUTCOME_COMMITTED);
	assert_true(job_is(c, job, "running"));
}

static void
the_last_round(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16];
	struct task t;

	submit(c, limited, job);
	one_round(c, 1, 1, 2, 1);
	await_rounds(c, job, 1);
	one_round(c, 3, 1, 2, 1);
	await_rounds(c, job, 2);
	await_state(c, job, "done");
	assert_string_equal(ask(c, 1, &t), "no-job");
	await_empty_spool(c);
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(job_is(c, job, "done"));
	assert_int_equal(job_number(c, job, "rounds_committed"), 2);
}

/* The committed model is its base plus the decoded difference, to the bit, and the next task names the way. */
static void
check_step(struct coordinator *c, const struct store_round *r)
{
	float w[ELEMENTS], step[ELEMENTS], after[ELEMENTS];
	struct models_map *map = NULL;
	struct difference d;

	read_weights(c, r->base, w);
	read_weights(c, r->model, after);
	assert_int_equal(
	    models_difference_get(c->s.models, r->model, r->base, &map, &c->why), ERR_OK);
	assert_int_equal(difference_decode(&d, map->data, map->bytes, NULL), ERR_OK);
	assert_int_equal(d.round, r->round);
	struct difference_tile t = difference_tile(&d, 0);
	assert_int_equal(difference_tile_decode(&d, &t, map->data + DIFFERENCE_HEAD, step), ERR_OK);
	difference_add(w, step, ELEMENTS);
	assert_memory_equal(w, after, sizeof(w));
	models_map_release(map);
}

/* --- a commit that fails */

struct full_disk {
	struct coordinator *c;
	unsigned files; /* that lie in models/ before the round ends */
	atomic_uint refused;
};

/* Room for reports, but none for the row of a round whose files are written. */
static enum err
refuse_round(void *ctx, struct why *why)
{
	struct full_disk *d = ctx;

	if (files(d->c, "models", "") <= d->files)
		return spool_sync_names(d->c->s.spool, why);
	atomic_fetch_add(&d->refused, 1);
	return err_set(why, ERR_NOSPACE, "full");
}

/* Model, difference and state of a round whose row did not come go; folded again, it is the same as ever. */
static void
no_file_without_a_row(void **state)
{
	struct coordinator *c = *state;
	struct full_disk d = {.c = c};
	uint8_t job[16];

	strcpy(c->offer.codecs[c->offer.codec_count++], "int8");
	submit(c, filed, job);
	d.files = files(c, "models", "");
	store_before_commit(c->s.store, refuse_round, &d);
	one_round(c, 1, 0.3f, 2, 0.7f);
	for (int i = 0; i < 5000 && atomic_load(&d.refused) == 0; i++)
		usleep(2000);
	assert_int_not_equal(atomic_load(&d.refused), 0);
	for (int i = 0; i < 5000 && files(c, "models", "") > d.files; i++)
		usleep(2000);
	assert_int_equal(files(c, "models", ""), d.files);
	assert_int_equal(job_number(c, job, "rounds_committed"), 0);
	store_before_commit(c->s.store, spool_sync_names, c->s.spool);
	await_rounds(c, job, 1);
	assert_int_equal(files(c, "models", ""), d.files + 3);
	struct store_round r = round_row(c, job, 1);
	check_step(c, &r);
}

/* Too few by the deadline: the round opens again, and the first opening's late delta is as good as any. */
static void
opened_again(void **state)
{
	struct coordinator *c = *state;
	struct task a, b, again;
	uint8_t job[16];

	submit(c, hasty, job);
	assert_string_equal(ask(c, 1, &a), "");
	assert_string_equal(ask(c, 2, &b), "");
	assert_null(deliver(c, &a, 1, 1, 100));
	while (job_number(c, job, "reopened") == 0) {
		rounds_tick(c->s.engine);
		usleep(2000);
	}
	assert_int_equal(job_number(c, job, "invited"), 1);
	/* Asking again gives the same task. */
	assert_string_equal(ask(c, 2, &again), "");
	assert_string_equal(again.task, b.task);
	assert_string_equal(again.model, b.model);
	assert_null(deliver(c, &b, 2, 1, 100));
	await_rounds(c, job, 1);
	assert_true(round_row(c, job, 1).reopened >= 1);
	assert_int_equal(round_row(c, job, 1).reports, 2);
}

/* Kept are the initial model, the last three and every tenth. */
static void
old_models_go(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16];

	submit(c, plain, job);
	for (uint64_t n = 1; n <= 5; n++) {
		one_round(c, 1, 1, 2, 1);
		await_rounds(c, job, n);
		await_empty_spool(c);
	}
	for (int i = 0; i < 5000 && files(c, "models", "") > 4; i++)
		usleep(2000);
	assert_int_equal(files(c, "models", ""), 4);
	float w[ELEMENTS];
	read_weights(c, round_row(c, job, 1).base, w);
	read_weights(c, round_row(c, job, 3).model, w);
}

static void
differences(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t job[16];

	submit(c, stepwise, job);
	strcpy(c->offer.codecs[c->offer.codec_count++], "int8");
	c->offer.held_count = 1;
	for (uint64_t n = 1; n <= 5; n++) {
		one_round(c, 1, 0.3f, 2, 0.7f);
		await_rounds(c, job, n);
		await_empty_spool(c);
		struct store_round r = round_row(c, job, n);
		check_step(c, &r);
		hex_encode(c->offer.held_models[0], r.base, 32);
		if (n == 3) {
			coordinator_stop(c);
			coordinator_start(c);
		}
		assert_string_equal(ask(c, 1, &t), "");
		assert_string_equal(t.from, c->offer.held_models[0]);
		assert_int_equal(t.from_bytes, DIFFERENCE_HEAD + ELEMENTS + 4);
	}
	/* They go with their models. */
	for (int i = 0; i < 5000 && files(c, "models", ".diff") > 3; i++)
		usleep(2000);
	assert_int_equal(files(c, "models", ".diff"), 3);
}

/* Retention counts rounds; a failed round's base is older than its number says, and must stay. */
static void
the_base_of_failed_rounds_stays(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16];
	float w[ELEMENTS];

	submit(c, exploding, job);
	one_round(c, 1, 1, 2, 1);
	await_rounds(c, job, 1);
	for (uint64_t n = 2; n <= 4; n++) {
		one_round(c, 1, 3e38f, 2, 3e38f);
		await_rounds(c, job, n);
	}
	await_state(c, job, "paused");
	await_empty_spool(c);
	coordinator_stop(c);
	coordinator_start(c);
	read_weights(c, round_row(c, job, 5).base, w);
	assert_int_equal(engine_command(c->s.engine, job, JOB_RUNNING, NULL, &c->why), ERR_OK);
	one_round(c, 1, 1, 2, 1);
	await_rounds(c, job, 5);
	assert_int_equal(round_row(c, job, 5).state, OUTCOME_COMMITTED);
}

/* A job may start from a model of another one, which goes on and forgets its old models. */
static void
an_init_model_stays(void **state)
{
	struct coordinator *c = *state;
	uint8_t a[16], b[16];
	char hex[65], text[1024];

	submit(c, plain, a);
	one_round(c, 1, 1, 2, 1);
	await_rounds(c, a, 1);
	hex_encode(hex, round_row(c, a, 1).model, 32);
	const char *loss = strstr(plain, "\"loss\"");
	int before = (int)(loss - plain);
	snprintf(text, sizeof(text), "%.*s\"init\":\"%s\",%s", before, plain, hex, loss);
	submit(c, text, b);
	assert_int_equal(engine_command(c->s.engine, b, JOB_PAUSED, NULL, &c->why), ERR_OK);
	for (uint64_t n = 2; n <= 6; n++) {
		one_round(c, 1, 1, 2, 1);
		await_rounds(c, a, n);
		await_empty_spool(c);
	}
	assert_int_equal(engine_command(c->s.engine, a, JOB_STOPPED, NULL, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	assert_int_equal(engine_command(c->s.engine, b, JOB_RUNNING, NULL, &c->why), ERR_OK);
	one_round(c, 1, 1, 2, 1);
	await_rounds(c, b, 1);
	assert_int_equal(round_row(c, b, 1).state, OUTCOME_COMMITTED);
}

/* One round of job `on` while job `off` is paused. */
static void
round_of(struct coordinator *c, const uint8_t on[16], const uint8_t off[16], uint64_t n)
{
	assert_int_equal(engine_command(c->s.engine, off, JOB_PAUSED, NULL, &c->why), ERR_OK);
	assert_int_equal(engine_command(c->s.engine, on, JOB_RUNNING, NULL, &c->why), ERR_OK);
	one_round(c, 1, 1, 2, 2);
	await_rounds(c, on, n);
	await_empty_spool(c);
	assert_int_equal(round_row(c, on, n).state, OUTCOME_COMMITTED);
}

/* Equal optimizer states are one file: the job that goes on first must leave it to the other. */
static void
a_shared_state_stays(void **state)
{
	struct coordinator *c = *state;
	uint8_t a[16], b[16];
	static const char twin[] = JOB("twin", TWO,
	    ",\"aggregate\":{\"server_optimizer\":{\"name\":\"sgd\",\"rate\":0.5,"
	    "\"momentum\":0.5}}");

	submit(c, momentum, a);
	submit(c, twin, b);
	round_of(c, a, b, 1);
	round_of(c, b, a, 1);
	assert_memory_equal(
	    round_row(c, a, 1).optimizer_state, round_row(c, b, 1).optimizer_state, 32);
	round_of(c, a, b, 2);
	round_of(c, b, a, 2);
	for (int i = 0; i < 5000 && files(c, "models", ".state") > 1; i++)
		usleep(2000);
	assert_int_equal(files(c, "models", ".state"), 1);
}

/* Nobody needs the state of a job that was stopped, but another job whose state is equal: the next round takes it away. */
static void
a_stopped_jobs_state_goes(void **state)
{
	struct coordinator *c = *state;
	uint8_t a[16], b[16], d[16];
	static const char twin[] = JOB("twin", TWO,
	    ",\"aggregate\":{\"server_optimizer\":{\"name\":\"sgd\",\"rate\":0.5,"
	    "\"momentum\":0.5}}");

	submit(c, momentum, a);
	submit(c, twin, b);
	submit(c, plain, d);
	assert_int_equal(engine_command(c->s.engine, d, JOB_PAUSED, NULL, &c->why), ERR_OK);
	round_of(c, a, b, 1);
	round_of(c, b, a, 1);
	assert_int_equal(files(c, "models", ".state"), 1);
	assert_int_equal(engine_command(c->s.engine, b, JOB_STOPPED, NULL, &c->why), ERR_OK);
	round_of(c, d, a, 1);
	assert_int_equal(engine_command(c->s.engine, d, JOB_PAUSED, NULL, &c->why), ERR_OK);
	assert_int_equal(files(c, "models", ".state"), 1);
	assert_int_equal(engine_command(c->s.engine, a, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_int_equal(engine_command(c->s.engine, d, JOB_RUNNING, NULL, &c->why), ERR_OK);
	one_round(c, 1, 1, 2, 2);
	await_rounds(c, d, 2);
	for (int i = 0; i < 5000 && files(c, "models", ".state") > 0; i++)
		usleep(2000);
	assert_int_equal(files(c, "models", ".state"), 0);
}

/* A job without its model waits; the others go on. */
static void
a_lost_model_stops_one_job(void **state)
{
	struct coordinator *c = *state;
	uint8_t a[16], b[16];

	submit(c, plain, a);
	submit(c, momentum, b);
	assert_int_equal(models_delete(c->s.models, round_row(c, a, 1).base), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(job_is(c, a, "paused"));
	assert_int_equal(engine_command(c->s.engine, a, JOB_RUNNING, NULL, &c->why), ERR_STATE);
	one_round(c, 1, 1, 2, 1);
	await_rounds(c, b, 1);
	assert_int_equal(engine_command(c->s.engine, a, JOB_STOPPED, NULL, &c->why), ERR_OK);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(the_weighted_mean),
	    WITH(arrival_does_not_matter),
	    WITH(a_restart_in_the_middle),
	    WITH(a_restart_before_the_fold),
	    WITH(server_momentum),
	    WITH(not_finite_three_times),
	    WITH(the_last_round),
	    WITH(no_file_without_a_row),
	    WITH(opened_again),
	    WITH(old_models_go),
	    WITH(the_base_of_failed_rounds_stays),
	    WITH(differences),
	    WITH(an_init_model_stays),
	    WITH(a_shared_state_stays),
	    WITH(a_stopped_jobs_state_goes),
	    WITH(a_lost_model_stops_one_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
