#ifndef COORDINATOR_FIXTURE_H
#define COORDINATOR_FIXTURE_H
/* A coordinator without network for tests: store, models, spool, registry, engine and folder in a fresh directory. Devices
 * are tags 1..9; their deltas carry no signature, which is checked before the engine sees them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive.h"
#include "clock.h"
#include "config.h"
#include "drive.h"
#include "engine.h"
#include "file.h"
#include "folder.h"
#include "hash.h"
#include "hex.h"
#include "job_list.h"
#include "log.h"
#include "merkle.h"
#include "models.h"
#include "orphan.h"
#include "registry.h"
#include "services.h"
#include "shared.h"
#include "spent.h"
#include "spool.h"
#include "store.h"
#include "tasks.h"
#include "view.h"
#include "views.h"

#define DEVICES 9
#define ELEMENTS 10 /* of the job below: linear, 4 inputs, 2 outputs */

/* A job's text from what follows "name" to the end. */
#define JOB(name, round, more) \
	"{\"name\":\"" name \
	"\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4]," \
	"\"classes\":2," \
	"\"min_examples\":10,\"validation\":0.1},\"local\":{\"epochs\":1,\"batch\":10," \
	"\"optimizer\":{\"name\":" \
	"\"sgd\"," \
	"\"rate\":0.1}},\"evaluate\":{\"by\":\"devices\"},\"round\":{" round "}" more "}"

struct coordinator {
	char dir[64], path[192];
	struct config config;
	struct services s;
	struct why why;
	struct offer offer;
	bool second; /* deltas carry a second vector, with twice the value */
	char *report; /* what comes with deltas, or NULL */
};

static inline const uint8_t *
device_id(uint8_t tag)
{
	static uint8_t ids[DEVICES + 1][32];

	memset(ids[tag], tag, 32);
	return ids[tag];
}

static inline enum err
coordinator_put_devices(struct store_db *db, void *arg, struct why *why)
{
	enum err e = ERR_OK;

	(void)arg;
	(void)why;
	for (uint8_t tag = 1; tag <= DEVICES && e == ERR_OK; tag++) {
		struct store_device d = {.role = "device", .state = DEVICE_ACTIVE, .labels = "{}"};
		memcpy(d.id, device_id(tag), 32);
		memset(d.spki, tag, sizeof(d.spki));
		snprintf(d.name, sizeof(d.name), "device-%u", tag);
		e = store_device_put(db, &d);
	}
	return e;
}

static inline const char *
coordinator_path(struct coordinator *c, const char *name)
{
	snprintf(c->path, sizeof(c->path), "%s/%s", c->dir, name);
	return c->path;
}

/* What spool to keep after a restart is setup.c's business; here all of it. */
static inline enum spool_fate
coordinator_keep(void *ctx, const uint8_t task[16], bool part, const struct manifest *m)
{
	(void)ctx;
	(void)m;
	(void)part;
	(void)task;
	return SPOOL_STAYS;
}

/* Brings up what stop() left on disk. */
static inline void
coordinator_start(struct coordinator *c)
{
	static const uint8_t task_key[32] = {42};
	struct services *s = &c->s;

	assert_int_equal(key_generate(&s->sign_key, &c->why), ERR_OK);
	enum err made = store_create(coordinator_path(c, "db"), NULL, NULL, &c->why);
	assert_true(!made || made == ERR_EXISTS);
	assert_int_equal(store_open(&s->store, coordinator_path(c, "db"), &c->why), ERR_OK);
	assert_int_equal(models_open(&s->models, coordinator_path(c, "models"), &c->why), ERR_OK);
	const struct spool_options spool = {
	    .dir = coordinator_path(c, "spool"), .lost = c->dir, .quota = c->config.spool_quota};
	assert_int_equal(spool_open(&s->spool, &spool, &c->why), ERR_OK);
	assert_int_equal(spool_recover(s->spool, coordinator_keep, NULL, &c->why), ERR_OK);
	assert_int_equal(
	    archive_open(&s->archive, coordinator_path(c, "kept"), s->spool, &c->why), ERR_OK);
	store_before_commit(s->store, spool_sync_names, s->spool);
	assert_int_equal(store_write(s->store, coordinator_put_devices, NULL, &c->why), ERR_OK);
	assert_int_equal(registry_new(&s->registry, s->store, &c->why), ERR_OK);
	assert_int_equal(spent_new(&s->spent), ERR_OK);
	assert_int_equal(spent_load(s->spent, s->store, &c->why), ERR_OK);
	enum err e = jobs_new(&s->engine, s, task_key, &c->why);
	if (e)
		fail_msg("%s: %s", err_name(e), c->why.text);
	assert_int_equal(folder_new(&s->folder, s, &c->why), ERR_OK);
	rounds_start(s->engine, folder_submit, s->folder);
}

/* As setup_free does it. */
static inline void
coordinator_stop(struct coordinator *c)
{
	struct services *s = &c->s;

	rounds_stop(s->engine);
	folder_free(s->folder);
	store_close(s->store);
	jobs_free(s->engine);
	spent_free(s->spent);
	registry_free(s->registry);
	archive_close(s->archive);
	spool_close(s->spool);
	models_close(s->models);
	key_free(s->sign_key);
	*s = (struct services){.config = s->config, .fixed = &c->config};
}

static inline struct coordinator *
coordinator_at(const char *dir)
{
	struct coordinator *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	snprintf(c->dir, sizeof(c->dir), "%s", dir);
	config_defaults(&c->config);
	c->s.fixed = &c->config;
	assert_int_equal(shared_new(&c->s.config, &c->config, NULL), ERR_OK);
	c->offer = (struct offer){.agent = "1.0",
	    .protocol = MESSAGES_PROTOCOL,
	    .data = {{.name = "d", .examples = 100}},
	    .data_count = 1,
	    .trainers = {"builtin"},
	    .trainer_count = 1,
	    .codecs = {"f32"},
	    .codec_count = 1,
	    .layers = {"linear"},
	    .layer_count = 1};
	for (const char *const *f = recipe_feature_names(); *f; f++)
		strcpy(c->offer.features[c->offer.feature_count++], *f);
	log_set_level(LOG_LEVEL_ERROR);
	coordinator_start(c);
	return c;
}

static inline int
coordinator_setup(void **state)
{
	char dir[] = "/tmp/test_coordinator.XXXXXX";

	assert_non_null(mkdtemp(dir));
	*state = coordinator_at(dir);
	return 0;
}

static inline int
coordinator_teardown(void **state)
{
	static const char *const dirs[] = {"models", "spool", "kept", ""};
	struct coordinator *c = *state;

	coordinator_stop(c);
	shared_free(c->s.config);
	for (int i = 0; i < 4; i++) {
		coordinator_path(c, dirs[i]);
		assert_int_equal(file_empty_dir(c->path, &c->why), ERR_OK);
		assert_int_equal(rmdir(c->path), 0);
	}
	free(c);
	return 0;
}

/* --- what people and devices do */

static inline void
submit(struct coordinator *c, const char *text, uint8_t id[16])
{
	bool created = false;
	enum err e = engine_submit(c->s.engine,
	    &(struct engine_document){.text = text, .len = strlen(text)}, id, &created, &c->why);

	if (e)
		fail_msg("%s: %s", err_name(e), c->why.text);
	assert_true(created);
}

/* Asks for work: "" if the answer is a task, else the reason to wait. */
static inline const char *
ask(struct coordinator *c, uint8_t tag, struct task *task)
{
	tasks_ask(c->s.engine, device_id(tag), &c->offer, task);
	recipe_deinit(&task->recipe);
	return task->wait ? task->reason : "";
}

/* The manifest of a complete delta for this task. */
static inline struct manifest
manifest_for(const struct task *t, uint8_t tag)
{
	struct manifest m = {.round = t->round,
	    .examples = 100,
	    .steps = 10,
	    .elements = ELEMENTS,
	    .payload_bytes = ELEMENTS * sizeof(float),
	    .normaliser = 10,
	    .loss = 0.5f,
	    .accuracy = NAN,
	    .norm = 1};

	assert_true(hex_decode(m.job, 16, t->job, 32));
	assert_true(hex_decode(m.task, 16, t->task, 32));
	assert_true(hex_decode(m.base, 32, t->model, 64));
	memcpy(m.device, device_id(tag), 32);
	return m;
}

/* The bytes of a spool file for a delta of the job. */
#define SPOOL_BYTES (SPOOLFILE_HEAD + HASH_LEN + ELEMENTS * sizeof(float))

struct delivery {
	struct coordinator *c;
	struct engine_claim claim;
	struct store_accept row;
	struct spool_part part;
	bool taken;
};

/* As api/deltas.c: take, row, file, all inside one transaction. */
static inline enum err
coordinator_accept(struct store_db *db, void *arg, struct why *why)
{
	struct delivery *d = arg;

	d->taken = tasks_take(d->c->s.engine, &d->claim) == ERR_OK;
	if (!d->taken)
		return err_set(why, ERR_STATE, "closed");
	d->row.folded = d->claim.folded;
	enum err e = store_accept_insert(db, &d->row);
	return e ? e : spool_accept(d->c->s.spool, &d->part, why);
}

/* A delta whose elements are all `value`, on its whole way. NULL, or the word that refuses it. */
static inline const char *
deliver(struct coordinator *c, const struct task *t, uint8_t tag, float value, uint64_t examples)
{
	struct delivery d = {.c = c};
	struct manifest m = manifest_for(t, tag);
	float values[2 * ELEMENTS];
	size_t bytes = (c->second ? 2u : 1u) * ELEMENTS * sizeof(float);

	m.examples = examples;
	m.flags = c->second ? MANIFEST_SECOND : 0;
	m.payload_bytes = bytes;
	for (int i = 0; i < 2 * ELEMENTS; i++)
		values[i] = i < ELEMENTS ? value : 2 * value;
	merkle_leaf(m.root, values, bytes);
	enum problem_type problem =
	    tasks_claim(c->s.engine, &m, device_id(tag), t->task, &d.claim, &c->why);
	if (problem)
		return problem_word(problem);
	memcpy(d.row.job, m.job, 16);
	d.row.round = m.round;
	memcpy(d.row.device, m.device, 32);
	memcpy(d.row.task, m.task, 16);
	manifest_encode(d.row.manifest, &m);
	struct receipt receipt = {.round = m.round, .incarnation = 1};
	memcpy(receipt.job, m.job, 16);
	hash_sha256(receipt.manifest_hash, d.row.manifest, MANIFEST_SIGNED);
	manifest_receipt_encode(d.row.receipt, &receipt);
	d.row.report = c->report;
	d.row.body_bytes = manifest_body_bytes(m.payload_bytes);
	assert_int_equal(spool_begin(c->s.spool, d.row.manifest, &d.part, &c->why), ERR_OK);
	assert_int_equal(spool_write(c->s.spool, &d.part, m.root, HASH_LEN, 0), ERR_OK);
	assert_int_equal(spool_write(c->s.spool, &d.part, values, bytes, HASH_LEN), ERR_OK);
	assert_int_equal(spool_sync(c->s.spool, &d.part, &c->why), ERR_OK);
	enum err e = store_write(c->s.store, coordinator_accept, &d, &c->why);
	if (d.taken)
		tasks_settle(c->s.engine, &d.claim, e == ERR_OK, d.row.body_bytes);
	if (e && d.part.accepted)
		spool_orphan_note(c->s.spool, &m);
	else if (e == ERR_OK)
		spool_orphan_release(c->s.spool, c->s.store);
	spool_drop(c->s.spool, &d.part);
	return e == ERR_OK ? NULL : e == ERR_STATE ? "round-closed" : err_name(e);
}

/* --- what can be seen */

/* As the API shows it; NULL: there is none. */
static inline struct json *
job_json(struct coordinator *c, const uint8_t job[16])
{
	struct job_view v;

	return engine_job(c->s.engine, job, NULL, &v) ? views_job(&v) : NULL;
}

/* A number of the job's view, "state" as a string. */
static inline uint64_t
job_number(struct coordinator *c, const uint8_t job[16], const char *key)
{
	struct json *v = job_json(c, job);
	const struct json *at = json_get(v, key);
	uint64_t n = 0;

	if (!json_u64(at ? at : json_get(json_get(v, "open"), key), &n))
		fail_msg("the job has no number %s", key);
	json_free(v);
	return n;
}

static inline bool
job_is(struct coordinator *c, const uint8_t job[16], const char *want)
{
	struct json *v = job_json(c, job);
	const char *state = json_string(json_get(v, "state"));
	bool is = state && strcmp(state, want) == 0;

	json_free(v);
	return is;
}

/* Lets timers and the folder work until the job has so many rounds behind it. */
static inline void
await_rounds(struct coordinator *c, const uint8_t job[16], uint64_t rounds)
{
	uint64_t until = clock_ms() + 120000;

	while (job_number(c, job, "rounds_committed") < rounds) {
		if (clock_ms() > until)
			fail_msg("round %u does not come", (unsigned)rounds);
		rounds_tick(c->s.engine);
		usleep(2000);
	}
}

static inline void
await_state(struct coordinator *c, const uint8_t job[16], const char *want)
{
	uint64_t until = clock_ms() + 120000;

	while (!job_is(c, job, want)) {
		if (clock_ms() > until)
			fail_msg("the job does not become %s", want);
		rounds_tick(c->s.engine);
		usleep(2000);
	}
}

struct round_query {
	const uint8_t *job;
	uint64_t round;
	struct store_round row;
};

static inline enum err
coordinator_read_round(struct store_db *db, void *arg, struct why *why)
{
	struct round_query *q = arg;

	(void)why;
	return store_round_get(db, q->job, q->round, &q->row);
}

static inline struct store_round
round_row(struct coordinator *c, const uint8_t job[16], uint64_t round)
{
	struct round_query q = {.job = job, .round = round};

	assert_int_equal(store_read(c->s.store, coordinator_read_round, &q, &c->why), ERR_OK);
	return q.row;
}

static inline void
read_weights(struct coordinator *c, const uint8_t model[32], float out[ELEMENTS])
{
	struct models_map *map = NULL;

	assert_int_equal(models_get(c->s.models, model, &map, &c->why), ERR_OK);
	assert_int_equal(map->bytes - map->data_at, ELEMENTS * sizeof(float));
	memcpy(out, map->data + map->data_at, ELEMENTS * sizeof(float));
	models_map_release(map);
}

static inline void
coordinator_refuses(struct coordinator *c, const char *text, const char *why)
{
	uint8_t id[16];
	bool created;

	assert_int_equal(
	    engine_submit(c->s.engine, &(struct engine_document){.text = text, .len = strlen(text)},
		id, &created, &c->why),
	    ERR_INVALID);
	if (!strstr(c->why.text, why))
		fail_msg("\"%s\" is not in \"%s\"", why, c->why.text);
}

#endif
