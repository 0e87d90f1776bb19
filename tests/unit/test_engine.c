/* stages: gcc clang openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

#include "codec.h"
#include "engine_fixture.h"
#include "hash.h"

static void
a_task(void **state)
{
	struct coordinator *c = *state;
	struct task t, again;
	uint8_t id[16];
	char hex[65];

	expect(c, 1, "no-job");
	submit(c, plain, id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(t.kind, TASK_TRAIN);
	hex_encode(hex, id, 16);
	assert_string_equal(t.job, hex);
	hex_encode(hex, round_row(c, id, 1).base, 32);
	assert_string_equal(t.model, hex);
	assert_int_equal(t.round, 1);
	assert_int_equal(t.seed, 3);
	assert_true(t.model_bytes > ELEMENTS * sizeof(float));
	assert_true(t.deadline_s > 500 && t.deadline_s <= 600);
	/* The same again, also after a restart; another's is another. */
	assert_string_equal(ask(c, 1, &again), "");
	assert_string_equal(again.task, t.task);
	assert_int_equal(job_number(c, id, "invited"), 1);
	coordinator_stop(c);
	coordinator_start(c);
	assert_string_equal(ask(c, 1, &again), "");
	assert_string_equal(again.task, t.task);
	assert_string_equal(ask(c, 2, &again), "");
	assert_string_not_equal(again.task, t.task);
}

static void
what_an_offer_lacks(void **state)
{
	struct coordinator *c = *state;
	struct offer whole = c->offer;
	uint8_t id[16];

	submit(c, plain, id);
	strcpy(c->offer.data[0].name, "other");
	expect(c, 1, "no-data");
	c->offer = whole;
	c->offer.data[0].examples = 9;
	expect(c, 1, "no-data");
	c->offer = whole;
	c->offer.trainer_count = 0;
	expect(c, 1, "no-trainer");
	c->offer = whole;
	strcpy(c->offer.codecs[0], "f16");
	expect(c, 1, "no-codec");
	c->offer = whole;
	strcpy(c->offer.layers[0], "conv2d");
	expect(c, 1, "old-agent");
	c->offer = whole;
	c->offer.protocol = 0;
	expect(c, 1, "old-agent");
	c->offer = whole;
	c->offer.protocol = 2;
	expect(c, 1, "");
}

static const struct lacking {
	const char *feature, *trainer, *local, *upload;
} lacks[] = {{"accumulate", "builtin", "\"accumulate\":2", "\"f32\""},
    {"budget", "builtin", "\"epochs\":1,\"seconds\":5", "\"f32\""},
    {"clip", "builtin", "\"clip_norm\":1", "\"f32\""},
    {"feedback", "builtin", "\"epochs\":1", "[\"f16\",\"f32\"],\"feedback\":true"},
    {"feedback", "own", "\"epochs\":1", "\"f32\",\"feedback\":true"},
    {"feedback", "builtin", "\"epochs\":1", "\"sparse\""},
    {"optimizers", "builtin", "\"optimizer\":{\"name\":\"adam\",\"rate\":0.1}", "\"f32\""},
    {"optimizers", "builtin", "\"optimizer\":{\"rate\":0.1,\"momentum\":0.9,\"nesterov\":true}",
	"\"f32\""},
    {"prox", "builtin", "\"prox\":0.1", "\"f32\""},
    {"micro-batch", "builtin", "\"optimizer\":{\"rate\":0.1}},\"parallel\":{\"micro_batch\":2",
	"\"f32\""},
    {"groups", "builtin",
	"\"batch\":4,\"optimizer\":{\"rate\":0.1}},\"parallel\":{\"micro_batch\":2,"
	"\"groups\":2",
	"\"f32\""},
    {"recompute", "builtin", "\"recompute\":\"blocks\"", "\"f32\""},
    {"", "builtin", "\"recompute\":\"none\"", "\"f32\""},
    {"random-counter", "builtin", "\"random\":\"counter\"", "\"f32\""},
    {"", "builtin", "\"random\":\"stream\"", "\"f32\""},
    {"schedules", "builtin", "\"schedule\":{\"type\":\"linear\",\"period\":9}", "\"f32\""},
    {"variates", "builtin", "\"control_variates\":{\"devices\":9}", "\"f32\""},
    {"", "builtin", "\"seconds\":5", "\"f32\""},
    {"", "builtin", "\"epochs\":1", "[\"f32\",\"sparse\"]"},
    {"", "own", "\"prox\":0.1,\"clip_norm\":1,\"accumulate\":2", "\"f32\""}};

/* Who does not know a key of the recipe would pass over it: such a device gets no task, as long as its agent is who acts on it. */
static void
what_an_old_agent_lacks(void **state)
{
	struct coordinator *c = *state;
	struct offer whole = c->offer;
	struct task t;

	for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
		const char *optimizer =
		    strstr(lacks[i].local, "optimizer") ? "" : ",\"optimizer\":{\"rate\":0.1}";
		char text[1024];
		uint8_t id[16];
		snprintf(text, sizeof(text),
		    "{\"name\":\"r%zu\",\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}],"
		    "\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],"
		    "\"classes\":2},"
		    "\"trainer\":\"%s\",\"local\":{%s%s},\"upload\":{\"codec\":%s},\"round\":{"
		    "\"goal\":1}}",
		    i, lacks[i].trainer, lacks[i].local, optimizer, lacks[i].upload);
		submit(c, text, id);
		strcpy(c->offer.trainers[0], lacks[i].trainer);
		strcpy(c->offer.codecs[0],
		    strcmp(lacks[i].upload, "\"sparse\"") == 0 ? "sparse" : "f32");
		c->offer.feature_count = 0;
		/* All but the one. */
		for (size_t f = 0; *lacks[i].feature && f < whole.feature_count; f++)
			if (strcmp(whole.features[f], lacks[i].feature) != 0)
				strcpy(
				    c->offer.features[c->offer.feature_count++], whole.features[f]);
		if (*lacks[i].feature) {
			expect(c, 1, "old-agent");
			strcpy(c->offer.features[c->offer.feature_count++], lacks[i].feature);
		}
		assert_string_equal(ask(c, 1, &t), "");
		assert_int_equal(
		    engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	}
}

/* The first codec of the job that the device has; what comes may be in any of them, and no longer than it needs. */
static void
a_choice_of_codecs(void **state)
{
	struct coordinator *c = *state;
	struct offer whole = c->offer;
	struct engine_claim claim;
	struct task t;
	uint8_t id[16];

	submit(c,
	    JOB("list", "\"goal\":2,\"quorum\":2",
		",\"upload\":{\"codec\":[\"sparse\",\"int8\"],\"share\":0.2}"),
	    id);
	expect(c, 1, "no-codec");
	strcpy(c->offer.codecs[0], "int8");
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(t.codec, "int8");
	strcpy(c->offer.codecs[c->offer.codec_count++], "sparse");
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(t.codec, "sparse");
	c->offer = whole;
	struct manifest m = manifest_for(&t, 1);
	as_wrong(c, &t, &m, PROBLEM_UNKNOWN_CODEC);
	m.codec = CODEC_INT8;
	m.block = 64;
	m.payload_bytes = codec_find(CODEC_INT8)->payload_bytes(ELEMENTS);
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	m.codec = CODEC_SPARSE;
	as_wrong(c, &t, &m, PROBLEM_BAD_MANIFEST);
	m.block = codec_find(CODEC_SPARSE)->block;
	uint64_t entries = (ELEMENTS + 4) / 5;
	m.payload_bytes = 4 + 3 * entries;
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	assert_int_equal(claim.entries, entries);
	m.payload_bytes++;
	as_wrong(c, &t, &m, PROBLEM_WRONG_LENGTH);
}

/* Its delta of the first job waits on the device: there is other work meanwhile, also of a job that comes later. */
static void
unsent_deltas(void **state)
{
	struct coordinator *c = *state;
	struct offer whole = c->offer;
	struct task first, second;
	uint8_t a[16], b[16];

	submit(c, plain, a);
	assert_string_equal(ask(c, 1, &first), "");
	memcpy(c->offer.unsent[0], first.task, 33);
	c->offer.unsent_count = 1;
	expect(c, 1, "unsent");
	submit(c, JOB("later", "\"goal\":2,\"quorum\":1,\"deadline_s\":600", ""), b);
	assert_string_equal(ask(c, 1, &second), "");
	assert_string_not_equal(second.task, first.task);
	assert_string_not_equal(second.job, first.job);
	/* It is nobody else's, and it may still be sent. */
	assert_string_equal(ask(c, 2, &second), "");
	assert_string_equal(second.job, first.job);
	assert_int_equal(job_number(c, a, "invited"), 2);
	c->offer = whole;
	assert_string_equal(ask(c, 1, &second), "");
	assert_string_equal(second.task, first.task);
}

/* Its owner's rules say no for a while: it is told so in its own word, job or no job, and goes on with the task that it gave back. */
static void
who_is_unready_gets_no_task(void **state)
{
	struct coordinator *c = *state;
	struct offer whole = c->offer;
	struct task t, again;
	uint8_t id[16];

	strcpy(c->offer.unready, "on-battery");
	expect(c, 1, "on-battery");
	submit(c, plain, id);
	expect(c, 1, "on-battery");
	strcpy(c->offer.unready, "lab-in-use");
	expect(c, 2, "lab-in-use");
	/* One that has a meaning of the coordinator's is none of an owner. */
	strcpy(c->offer.unready, "no-job");
	expect(c, 3, "no-job");
	assert_int_equal(job_number(c, id, "invited"), 0);
	c->offer = whole;
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(tasks_abort(c->s.engine, device_id(1), t.task,
			     abort_reason_parse("machine-busy"), NULL),
	    ERR_OK);
	assert_int_equal(job_number(c, id, "invited"), 0);
	assert_string_equal(ask(c, 1, &again), "");
	assert_string_equal(again.task, t.task);
	c->offer.protocol = 0;
	strcpy(c->offer.unready, "hours");
	expect(c, 4, "old-agent");
	c->offer = whole;
}

/* A program that was ended gives back its task and, started again, gets it again; its place may be another's by then. */
static void
who_was_stopped_may_ask_again(void **state)
{
	struct coordinator *c = *state;
	struct task t[4], again;
	uint8_t id[16];

	submit(c, plain, id);
	for (uint8_t i = 1; i <= 3; i++)
		assert_string_equal(ask(c, i, &t[i]), "");
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(1), t[1].task, abort_reason_parse("stopped"), NULL),
	    ERR_OK);
	assert_int_equal(job_number(c, id, "invited"), 2);
	assert_string_equal(ask(c, 1, &again), "");
	assert_string_equal(again.task, t[1].task);
	assert_int_equal(job_number(c, id, "invited"), 3);
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(1), t[1].task, abort_reason_parse("stopped"), NULL),
	    ERR_OK);
	expect(c, 4, "");
	expect(c, 1, "not-selected");
}

static void
places_and_aborts(void **state)
{
	struct coordinator *c = *state;
	struct task t[4];
	uint8_t id[16];

	submit(c, plain, id);
	for (uint8_t i = 1; i <= 3; i++)
		assert_string_equal(ask(c, i, &t[i]), "");
	expect(c, 4, "not-selected");
	/* Only one's own task, and once. */
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(1), t[2].task, abort_reason_parse("x"), NULL),
	    ERR_NOTFOUND);
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(4), t[1].task, abort_reason_parse("x"), NULL),
	    ERR_NOTFOUND);
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(1), "zz", abort_reason_parse("x"), NULL),
	    ERR_NOTFOUND);
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(1), t[1].task, abort_reason_parse("no-data"), NULL),
	    ERR_OK);
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(1), t[1].task, abort_reason_parse("no-data"), NULL),
	    ERR_NOTFOUND);
	expect(c, 1, "aborted");
	expect(c, 4, "");
	expect(c, 5, "not-selected");
	assert_null(deliver(c, &t[2], 2, 1, 100));
	expect(c, 2, "reported");
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(2), t[2].task, abort_reason_parse("x"), NULL),
	    ERR_NOTFOUND);
	/* Given up and delivered after all: the fourth place. */
	assert_int_equal(job_number(c, id, "invited"), 3);
	assert_null(deliver(c, &t[1], 1, 1, 100));
	await_rounds(c, id, 1);
	assert_int_equal(round_row(c, id, 1).invited, 4);
	assert_int_equal(round_row(c, id, 1).aborted, 1);
	/* Who is here no more keeps nobody from the round. */
	for (uint8_t i = 1; i <= 3; i++)
		assert_string_equal(ask(c, i, &t[i]), "");
	expect(c, 4, "not-selected");
	tasks_device_gone(c->s.engine, device_id(3), "revoked");
	expect(c, 4, "");
	expect(c, 5, "not-selected");
}

static void
priorities(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t low[16], high[16], peer[16];
	char hex[33];

	submit(c, JOB("low", "\"goal\":1", ",\"priority\":-1"), low);
	submit(c, JOB("high", "\"goal\":1", ",\"priority\":5"), high);
	submit(c, JOB("peer", "\"goal\":1", ",\"priority\":5"), peer);
	const uint8_t *const order[] = {high, peer, low};
	for (uint8_t i = 0; i < 3; i++) {
		assert_string_equal(ask(c, i + 1, &t), "");
		hex_encode(hex, order[i], 16);
		assert_string_equal(t.job, hex);
	}
	expect(c, 4, "not-selected");
}

static unsigned
models_there(struct coordinator *c)
{
	DIR *d = opendir(coordinator_path(c, "models"));
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static enum err
model_row(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_model_put(db, arg);
}

/* As an upload of the model that the job would begin with leaves it. */
static void
put_first_model(struct coordinator *c, const char *document)
{
	const struct engine_uses u = jobs_uses(c->s.engine);
	struct job *j = NULL;
	struct store_model row = {.bytes = 1};
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, document, strlen(document));
	assert_int_equal(jobs_read(&j, digest, document, strlen(document), &c->why), ERR_OK);
	assert_int_equal(jobs_first_model(&u, j, row.id, &c->why), ERR_OK);
	job_free(j);
	assert_int_equal(store_write(c->s.store, model_row, &row, &c->why), ERR_OK);
}

static void
full_spool(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];
	struct spool_part other[2];

	coordinator_stop(c);
	c->config.spool_quota = 3 * SPOOL_BYTES;
	coordinator_start(c);
	submit(c, plain, id);
	/* Somebody else's transfers. */
	assert_string_equal(ask(c, 1, &t), "");
	for (uint8_t i = 0; i < 2; i++) {
		struct manifest m = manifest_for(&t, 1);
		uint8_t raw[MANIFEST_LEN];
		m.task[0] ^= (uint8_t)(i + 1);
		manifest_encode(raw, &m);
		assert_int_equal(spool_begin(c->s.spool, raw, &other[i], &c->why), ERR_OK);
	}
	assert_null(deliver(c, &t, 1, 1, 100));
	expect(c, 2, "spool-full");
	for (int i = 0; i < 2; i++)
		spool_drop(c->s.spool, &other[i]);
	/* A job whose round can never be in the spool whole. */
	coordinator_stop(c);
	c->config.spool_quota = SPOOL_BYTES;
	coordinator_start(c);
	bool created;
	static const char large[] = JOB("large", "\"goal\":2", "");
	unsigned models = models_there(c);
	assert_int_equal(engine_submit(c->s.engine,
			     &(struct engine_document){.text = large, .len = strlen(large)}, id,
			     &created, &c->why),
	    ERR_INVALID);
	assert_non_null(strstr(c->why.text, "round.goal"));
	assert_int_equal(models_there(c), models);
	/* The same bytes, when somebody has uploaded them. */
	put_first_model(c, large);
	assert_int_equal(engine_submit(c->s.engine,
			     &(struct engine_document){.text = large, .len = strlen(large)}, id,
			     &created, &c->why),
	    ERR_INVALID);
	assert_int_equal(models_there(c), models + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(a_task),
	    WITH(what_an_offer_lacks),
	    WITH(what_an_old_agent_lacks),
	    WITH(a_choice_of_codecs),
	    WITH(unsent_deltas),
	    WITH(places_and_aborts),
	    WITH(who_is_unready_gets_no_task),
	    WITH(who_was_stopped_may_ask_again),
	    WITH(priorities),
	    WITH(full_spool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
