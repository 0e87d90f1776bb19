#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>

#include "coordinator_fixture.h"
#include "engine_inside.h"
#include "hash.h"
#include "models.h"
#include "record.h"

static const char plain[] = JOB("plain", "\"goal\":2,\"quorum\":2,\"over_select\":1.5", "");
static const char limits[] =
    JOB("limits", "\"goal\":2", ",\"aggregate\":{\"max_examples\":500,\"max_norm\":3.5}");
static const char normalising[] =
    JOB("normalising", "\"goal\":2", ",\"aggregate\":{\"normalise\":true}");
static const char drawing[] =
    JOB("drawing", "\"goal\":2,\"pick\":\"sample\",\"sample_s\":0.05", "");

/* --- submitting */

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

/* --- asking */

/* Asks as tag with one thing changed in the offer. */
static void
expect(struct coordinator *c, uint8_t tag, const char *reason)
{
	struct task t;
	const char *got = ask(c, tag, &t);

	if (strcmp(got, reason) != 0)
		fail_msg("device %u: '%s', not '%s'", tag, got, reason);
	if (t.wait)
		assert_int_equal(t.wait_s, c->config.retry_after_s);
}

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
as_wrong(struct coordinator *c, const struct task *t, const struct manifest *m,
    enum problem_type problem)
{
	struct engine_claim claim;

	c->why.text[0] = '\0';
	enum problem_type got =
	    engine_claim(c->s.engine, m, device_id(1), t->task, &claim, &c->why);
	if (got != problem || !c->why.text[0])
		fail_msg(
		    "%s instead of %s: %s", problem_word(got), problem_word(problem), c->why.text);
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

static const struct {
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
	    engine_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	m.codec = CODEC_SPARSE;
	as_wrong(c, &t, &m, PROBLEM_BAD_MANIFEST);
	m.block = codec_find(CODEC_SPARSE)->block;
	uint64_t entries = (ELEMENTS + 4) / 5;
	m.payload_bytes = 4 + 3 * entries;
	assert_int_equal(
	    engine_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	assert_int_equal(claim.entries, entries);
	m.payload_bytes++;
	as_wrong(c, &t, &m, PROBLEM_WRONG_LENGTH);
}

/* A job that scales deltas by their work must know it. */
static void
no_normaliser(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim claim;
	struct task t;
	uint8_t id[16];

	submit(c, normalising, id);
	assert_string_equal(ask(c, 1, &t), "");
	struct manifest m = manifest_for(&t, 1);
	m.normaliser = 0;
	as_wrong(c, &t, &m, PROBLEM_NO_NORMALISER);
	m.normaliser = 7;
	m.optimizer = MANIFEST_ADAM;
	as_wrong(c, &t, &m, PROBLEM_NO_NORMALISER);
	m.optimizer = MANIFEST_ADAMW;
	as_wrong(c, &t, &m, PROBLEM_NO_NORMALISER);
	m.optimizer = MANIFEST_EXTERNAL;
	assert_int_equal(
	    engine_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	m.optimizer = MANIFEST_SGD;
	assert_int_equal(
	    engine_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
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
	assert_int_equal(engine_abort(c->s.engine, device_id(1), t.task,
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
	    engine_abort(c->s.engine, device_id(1), t[1].task, abort_reason_parse("stopped"), NULL),
	    ERR_OK);
	assert_int_equal(job_number(c, id, "invited"), 2);
	assert_string_equal(ask(c, 1, &again), "");
	assert_string_equal(again.task, t[1].task);
	assert_int_equal(job_number(c, id, "invited"), 3);
	assert_int_equal(
	    engine_abort(c->s.engine, device_id(1), t[1].task, abort_reason_parse("stopped"), NULL),
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
	    engine_abort(c->s.engine, device_id(1), t[2].task, abort_reason_parse("x"), NULL),
	    ERR_NOTFOUND);
	assert_int_equal(
	    engine_abort(c->s.engine, device_id(4), t[1].task, abort_reason_parse("x"), NULL),
	    ERR_NOTFOUND);
	assert_int_equal(
	    engine_abort(c->s.engine, device_id(1), "zz", abort_reason_parse("x"), NULL),
	    ERR_NOTFOUND);
	assert_int_equal(
	    engine_abort(c->s.engine, device_id(1), t[1].task, abort_reason_parse("no-data"), NULL),
	    ERR_OK);
	assert_int_equal(
	    engine_abort(c->s.engine, device_id(1), t[1].task, abort_reason_parse("no-data"), NULL),
	    ERR_NOTFOUND);
	expect(c, 1, "aborted");
	expect(c, 4, "");
	expect(c, 5, "not-selected");
	assert_null(deliver(c, &t[2], 2, 1, 100));
	expect(c, 2, "reported");
	assert_int_equal(
	    engine_abort(c->s.engine, device_id(2), t[2].task, abort_reason_parse("x"), NULL),
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
	engine_device_gone(c->s.engine, device_id(3), "revoked");
	expect(c, 4, "");
	expect(c, 5, "not-selected");
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
	struct engine_job *j = NULL;
	struct store_model row = {.bytes = 1};
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, document, strlen(document));
	assert_int_equal(engine_job_new(&j, digest, document, strlen(document), &c->why), ERR_OK);
	assert_int_equal(engine_first_model(&c->s, j, row.id, &c->why), ERR_OK);
	engine_job_free(j);
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

/* --- who may */

static void
change_state(struct coordinator *c, uint8_t tag, enum device_state state)
{
	struct registry_view v;

	assert_int_equal(registry_get(c->s.registry, device_id(tag), &v), ERR_OK);
	v.row.state = state;
	assert_int_equal(registry_put(c->s.registry, &v.row), ERR_OK);
}

/* Revoked between the check of the head and the commit. */
static void
revoked_meanwhile(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, plain, id);
	assert_string_equal(ask(c, 1, &t), "");
	change_state(c, 1, DEVICE_REVOKED);
	assert_string_equal(deliver(c, &t, 1, 1, 100), "round-closed");
	assert_int_equal(job_number(c, id, "reports"), 0);
	change_state(c, 1, DEVICE_ACTIVE);
	assert_null(deliver(c, &t, 1, 1, 100));
}

static unsigned
jobs_of(struct engine *g, const uint8_t *device)
{
	struct engine_slice slice = {.device = device};
	unsigned n = 0;

	while (engine_jobs(g, &slice))
		n += (unsigned)slice.count;
	return n;
}

static void
selected_devices(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c,
	    JOB("two", "\"goal\":1,\"over_select\":9", ",\"select\":{\"devices\":[\"device-2\"]}"),
	    id);
	expect(c, 1, "ineligible");
	expect(c, 2, "");
	assert_true(engine_may_read(c->s.engine, device_id(2), round_row(c, id, 1).base));
	assert_false(engine_may_read(c->s.engine, device_id(1), round_row(c, id, 1).base));
	assert_false(engine_may_read(c->s.engine, device_id(2), device_id(2)));
	struct job_view v;
	assert_false(engine_job(c->s.engine, id, device_id(1), &v));
	assert_true(engine_job(c->s.engine, id, device_id(2), &v));
	assert_int_equal(jobs_of(c->s.engine, device_id(1)), 0);
	assert_int_equal(jobs_of(c->s.engine, NULL), 1);
}

/* A device's place is the first 8 bytes of SHA-256(job || device) as a share of all. */
static void
a_share_of_the_fleet(void **state)
{
	struct coordinator *c = *state;
	unsigned in = 0;
	uint8_t id[16];

	submit(c, JOB("half", "\"goal\":9", ",\"select\":{\"percent\":[0,50]}"), id);
	for (uint8_t tag = 1; tag <= DEVICES; tag++) {
		uint8_t text[48], digest[32];
		memcpy(text, id, 16);
		memcpy(text + 16, device_id(tag), 32);
		hash_sha256(digest, text, sizeof(text));
		expect(c, tag, digest[0] < 0x80 ? "" : "ineligible");
		in += digest[0] < 0x80;
	}
	/* The case is no case if all are on one side. */
	assert_in_range(in, 1, DEVICES - 1);
}

/* --- the draw */

static void
ticket(uint64_t seed, uint64_t round, uint8_t tag, uint8_t out[32])
{
	uint8_t text[48] = {(uint8_t)seed, 0, 0, 0, 0, 0, 0, 0, (uint8_t)round};

	memcpy(text + 16, device_id(tag), 32);
	hash_sha256(out, text, sizeof(text));
}

static void
drawn_by_hash(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16], mine[32], other[32];

	submit(c, drawing, id);
	for (uint8_t tag = DEVICES; tag >= 1; tag--)
		expect(c, tag, "not-selected");
	for (int i = 0; i < 5000 && job_number(c, id, "invited") == 0; i++) {
		engine_tick(c->s.engine);
		usleep(2000);
	}
	assert_int_equal(job_number(c, id, "invited"), 2);
	for (uint8_t tag = 1; tag <= DEVICES; tag++) {
		unsigned smaller = 0;
		ticket(3, 1, tag, mine);
		for (uint8_t o = 1; o <= DEVICES; o++) {
			ticket(3, 1, o, other);
			smaller += memcmp(other, mine, 32) < 0;
		}
		expect(c, tag, smaller < 2 ? "" : "not-selected");
	}
}

/* Who asked and is here no more is not drawn. */
static void
drawn_without_the_gone(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, drawing, id);
	expect(c, 1, "not-selected");
	expect(c, 2, "not-selected");
	engine_device_gone(c->s.engine, device_id(1), "revoked");
	for (int i = 0; i < 5000 && job_number(c, id, "invited") == 0; i++) {
		engine_tick(c->s.engine);
		usleep(2000);
	}
	assert_int_equal(job_number(c, id, "invited"), 1);
}

/* --- what a manifest is held to */

static void
wrong_manifests(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim claim;
	struct task t, t2;
	uint8_t id[16];

	submit(c, limits, id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(ask(c, 2, &t2), "");
	const struct manifest good = manifest_for(&t, 1);
	struct manifest m;
#define WRONG(change, word) (m = good, change, as_wrong(c, &t, &m, word))
	WRONG(memcpy(m.device, device_id(2), 32), PROBLEM_WRONG_DEVICE);
	WRONG(m.job[0] ^= 1, PROBLEM_UNKNOWN_JOB);
	WRONG(m.round = 0, PROBLEM_STALE_ROUND);
	WRONG(m.round = 2, PROBLEM_STALE_ROUND);
	WRONG(m.task[15] ^= 1, PROBLEM_WRONG_TASK);
	WRONG(hex_decode(m.task, 16, t2.task, 32), PROBLEM_WRONG_TASK);
	WRONG(m.base[0] ^= 1, PROBLEM_WRONG_BASE);
	WRONG(m.flags = MANIFEST_MASKED, PROBLEM_UNSUPPORTED);
	WRONG(m.flags = MANIFEST_SECOND, PROBLEM_UNSUPPORTED);
	WRONG(m.flags = 1u << MANIFEST_KIND_SHIFT, PROBLEM_WRONG_KIND);
	WRONG(m.flags = 2u << MANIFEST_KIND_SHIFT, PROBLEM_UNSUPPORTED);
	WRONG(m.slice = 1, PROBLEM_UNSUPPORTED);
	WRONG(m.codec = 1, PROBLEM_UNKNOWN_CODEC);
	WRONG(m.codec = 999, PROBLEM_UNKNOWN_CODEC);
	WRONG(m.elements++, PROBLEM_BAD_MANIFEST);
	WRONG(m.elements = UINT64_MAX, PROBLEM_BAD_MANIFEST);
	WRONG(m.block = 64, PROBLEM_BAD_MANIFEST);
	WRONG(m.payload_bytes--, PROBLEM_WRONG_LENGTH);
	WRONG(m.payload_bytes++, PROBLEM_WRONG_LENGTH);
	WRONG(m.payload_bytes = UINT64_MAX, PROBLEM_WRONG_LENGTH);
	WRONG(m.examples = 0, PROBLEM_NO_EXAMPLES);
	WRONG(m.examples = 501, PROBLEM_TOO_MANY_EXAMPLES);
	/* The right manifest at another task's address. */
	as_wrong(c, &t2, &good, PROBLEM_WRONG_TASK);
	assert_int_equal(job_number(c, id, "reports"), 0);
	assert_int_equal(
	    engine_claim(c->s.engine, &good, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	assert_memory_equal(claim.device, device_id(1), 32);
	assert_int_equal(claim.payload_bytes, ELEMENTS * sizeof(float));
	assert_true(claim.max_norm == 3.5);
	m = good;
	m.examples = 500;
	assert_int_equal(
	    engine_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
}

static void
wrong_reports(void **state)
{
	struct coordinator *c = *state;
	struct report r = {.has_evaluate = true, .eval_examples = 500, .eval_accuracy = 1};
	struct engine_claim claim;
	struct task t;
	uint8_t id[16];

	submit(c, limits, id);
	assert_string_equal(ask(c, 1, &t), "");
	const struct manifest m = manifest_for(&t, 1);
	assert_int_equal(
	    engine_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	assert_int_equal(engine_claim_report(&claim, &r, &c->why), PROBLEM_NONE);
	r.eval_loss = -1e-9;
	assert_int_equal(engine_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
	r.eval_loss = NAN;
	assert_int_equal(engine_claim_report(&claim, &r, &c->why), PROBLEM_NONE);
	r.eval_examples = 501;
	assert_int_equal(engine_claim_report(&claim, &r, &c->why), PROBLEM_BAD_REPORT);
}

static void
used_and_too_late(void **state)
{
	struct coordinator *c = *state;
	struct task t[4];
	uint8_t id[16];

	submit(c, plain, id);
	for (uint8_t i = 1; i <= 3; i++)
		assert_string_equal(ask(c, i, &t[i]), "");
	assert_null(deliver(c, &t[1], 1, 1, 100));
	struct manifest m = manifest_for(&t[1], 1);
	as_wrong(c, &t[1], &m, PROBLEM_USED_TASK);
	/* The round stays closed while nothing is folded any more. */
	engine_stop(c->s.engine);
	assert_null(deliver(c, &t[2], 2, 1, 100));
	assert_string_equal(deliver(c, &t[3], 3, 1, 100), "round-closed");
	assert_int_equal(job_number(c, id, "reports"), 2);
	expect(c, 4, "restarting");
}

/* Two uploads of one task reach the store together: one is accepted, the other undone, and the count is right. */
static void
twice_at_once(void **state)
{
	struct coordinator *c = *state;
	struct engine_claim a, b;
	struct task t;
	uint8_t id[16];

	submit(c, plain, id);
	assert_string_equal(ask(c, 1, &t), "");
	struct manifest m = manifest_for(&t, 1);
	assert_int_equal(
	    engine_claim(c->s.engine, &m, device_id(1), t.task, &a, &c->why), PROBLEM_NONE);
	assert_int_equal(
	    engine_claim(c->s.engine, &m, device_id(1), t.task, &b, &c->why), PROBLEM_NONE);
	assert_int_equal(engine_take(c->s.engine, &a), ERR_OK);
	assert_int_equal(engine_take(c->s.engine, &b), ERR_OK);
	engine_settle(c->s.engine, &a, true, 72);
	engine_settle(c->s.engine, &b, false, 72);
	assert_int_equal(job_number(c, id, "reports"), 1);
	assert_int_equal(job_number(c, id, "invited"), 1);
	assert_int_equal(job_number(c, id, "bytes_up"), 72);
	assert_int_equal(engine_take(c->s.engine, &b), ERR_STATE);
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

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(the_same_document_again),
	    WITH(refused_documents),
	    WITH(an_initial_model_that_is_not_there),
	    WITH(a_refused_job_pins_no_model),
	    WITH(a_task),
	    WITH(what_an_offer_lacks),
	    WITH(what_an_old_agent_lacks),
	    WITH(a_choice_of_codecs),
	    WITH(unsent_deltas),
	    WITH(places_and_aborts),
	    WITH(who_is_unready_gets_no_task),
	    WITH(who_was_stopped_may_ask_again),
	    WITH(commands),
	    WITH(priorities),
	    WITH(full_spool),
	    WITH(large_record),
	    WITH(revoked_meanwhile),
	    WITH(selected_devices),
	    WITH(a_share_of_the_fleet),
	    WITH(drawn_by_hash),
	    WITH(drawn_without_the_gone),
	    WITH(wrong_manifests),
	    WITH(wrong_reports),
	    WITH(no_normaliser),
	    WITH(used_and_too_late),
	    WITH(twice_at_once),
	    WITH(the_list_follows_the_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
