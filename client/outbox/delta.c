#include "delta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "file.h"
#include "hex.h"
#include "manifest.h"
#include "merkle.h"
#include "messages.h"
#include "sign.h"
#include "task_kind.h"
#include "training.h"

struct place {
	int fd;
	uint64_t at;
	struct why *why;
};

static enum err
put(int fd, const void *data, size_t len, uint64_t at, struct why *why)
{
	enum err e = file_pwrite(fd, data, len, at);

	return e ? err_errno(why, "write the delta") : ERR_OK;
}

static enum err
get(int fd, void *data, size_t len, uint64_t at, struct why *why)
{
	enum err e = file_pread(fd, data, len, at);

	if (e == ERR_CORRUPT)
		return err_set(why, e, "the delta's file was cut short");
	return e ? err_errno(why, "read the delta") : ERR_OK;
}

static enum err
write_place(void *context, const void *data, size_t len, uint64_t at)
{
	const struct place *p = context;

	return put(p->fd, data, len, p->at + at, p->why);
}

static enum err
encode_vector(struct delta *out, const struct codec *codec, const struct codec_params *params,
    const struct codec_elements *values, struct why *why)
{
	struct place place = {out->fd, out->payload_at + out->payload_len, why};
	const struct codec_sink sink = {write_place, &place};
	uint64_t len = 0;
	enum err e = codec_write(codec, params, values, &sink, &len);

	out->payload_len += len;
	return e;
}

/* Behind room for the leaves of the longest. */
static enum err
encode_payload(
    struct delta *out, const struct vectors *v, const struct delta_input *in, struct why *why)
{
	const struct codec_params params = vectors_params(v, 1);
	uint64_t most = vectors_bytes(v);

	if (most == 0 || most >= INT64_MAX / 2)
		return err_set(why, ERR_LIMIT, "a delta of so many elements is too long");
	out->payload_at = in->at + manifest_chunks(most) * HASH_LEN;
	if (why)
		why->text[0] = '\0';
	enum err e = encode_vector(out, v->codec, &v->params, in->values, why);
	if (!e && in->second)
		e = encode_vector(out, v->codec, &params, in->second, why);
	if (!e && out->payload_len > most)
		e = ERR_INVALID;
	if (!e || (why && why->text[0]))
		return e;
	if (e == ERR_NUMERIC)
		return err_set(why, e, "the delta has a value that is not finite");
	if (e == ERR_INVALID)
		return err_set(why, e, "the values changed while they were read");
	return err_set(why, e, "codec %s failed: %s", v->codec->name, err_name(e));
}

/* Chunk after chunk: its hash, what the coordinator will decode of it, and its place right behind the leaves. */
static enum err
seal_chunks(struct delta *out, const struct vectors *v, uint64_t at, double *squares,
    uint8_t *chunk, struct why *why)
{
	uint8_t carry[64] = {0};
	enum err e = ERR_OK;

	for (uint64_t i = 0; !e && i * MANIFEST_CHUNK < out->payload_len; i++) {
		uint64_t from = i * MANIFEST_CHUNK, left = out->payload_len - from;
		size_t len = left < MANIFEST_CHUNK ? (size_t)left : MANIFEST_CHUNK;
		e = get(out->fd, chunk, len, out->payload_at + from, why);
		if (e)
			return e;
		merkle_leaf(out->leaves + i * HASH_LEN, chunk, len);
		e = vectors_check(v, from, chunk, len, squares, carry);
		if (e)
			return err_set(why, e, "the delta's norm: %s", err_name(e));
		if (at < out->payload_at)
			e = put(out->fd, chunk, len, at + from, why);
	}
	out->payload_at = at;
	return e;
}

/* The norm is of what the coordinator will decode, computed the way it does. */
static enum err
seal_payload(struct delta *out, const struct vectors *of, const struct delta_input *in,
    struct manifest *m, struct why *why)
{
	uint64_t n = manifest_chunks(out->payload_len);
	struct vectors v = *of;
	double squares = 0;

	out->leaves_len = (size_t)n * HASH_LEN;
	out->leaves = malloc(out->leaves_len);
	uint8_t *chunk = malloc(MANIFEST_CHUNK);
	v.params.payload = v.second ? out->payload_len / 2 : out->payload_len;
	v.params.table = malloc((size_t)codec_table_bytes(v.codec, v.params.elements) + 1);
	enum err e = ERR_OK;
	if (!out->leaves || !chunk || !v.params.table)
		e = err_set(why, ERR_NOMEM, "no memory for the delta");
	if (!e)
		e = seal_chunks(out, &v, in->at + out->leaves_len, &squares, chunk, why);
	if (!e)
		merkle_root(m->root, out->leaves, (size_t)n);
	free(chunk);
	free(v.params.table);
	m->payload_bytes = out->payload_len;
	m->norm = (float)sqrt(squares);
	if (!e && !isfinite(m->norm))
		e = err_set(why, ERR_NUMERIC, "the delta's norm is not finite");
	return e;
}

static bool
take_ids(struct manifest *m, const struct task *t)
{
	return hex_decode(m->job, sizeof(m->job), t->job, strlen(t->job)) &&
	    hex_decode(m->task, sizeof(m->task), t->task, strlen(t->task)) &&
	    hex_decode(m->base, sizeof(m->base), t->model, strlen(t->model));
}

static void
take_facts(struct manifest *m, const struct delta_facts *f)
{
	memcpy(m->device, f->device, sizeof(m->device));
	m->round = f->task->round;
	m->examples = f->examples;
	m->steps = f->steps;
	m->optimizer = f->optimizer;
	m->flags = (f->partial ? MANIFEST_PARTIAL : 0) | (f->report ? MANIFEST_REPORT : 0);
	m->normaliser = (float)f->normaliser;
	m->made_at_ms = f->made_at_ms;
	m->loss = (float)f->loss;
	m->accuracy = (float)f->accuracy;
	if (f->report)
		hash_sha256(m->report_hash, f->report, f->report_len);
}

static enum err
sign_manifest(struct delta *out, const struct manifest *m, const struct key *key, struct why *why)
{
	uint8_t digest[HASH_LEN];
	struct manifest again;

	manifest_encode(out->manifest, m);
	hash_sha256(digest, out->manifest, MANIFEST_SIGNED);
	if (sign_hash(key, digest, out->manifest + MANIFEST_SIGNED))
		return err_set(why, ERR_IO, "signing failed");
	/* A trainer's figures may be such as no coordinator takes: better to say it here. */
	return manifest_decode(&again, out->manifest, MANIFEST_LEN, why);
}

enum err
delta_evaluation(
    struct delta *out, const struct delta_facts *facts, const struct key *key, struct why *why)
{
	struct manifest m = {.round = facts->task->round,
	    .examples = facts->examples,
	    .flags = MANIFEST_REPORT | (uint32_t)TASK_EVALUATE << MANIFEST_KIND_SHIFT,
	    .made_at_ms = facts->made_at_ms};

	memset(out, 0, sizeof(*out));
	if (!facts->report)
		return err_set(why, ERR_INVALID, "an evaluation without a report");
	if (!take_ids(&m, facts->task))
		return err_set(why, ERR_INVALID, "the task's ids are not hex");
	memcpy(m.device, facts->device, sizeof(m.device));
	hash_sha256(m.report_hash, facts->report, facts->report_len);
	return sign_manifest(out, &m, key, why);
}

uint64_t
delta_least(const struct task *task, uint64_t elements, bool second)
{
	const struct codec *codec = codec_find_name(task->recipe.codec);

	if (!codec || !codec->fixed_size)
		return 0;
	return manifest_body_bytes(vectors_times(codec->payload_bytes(elements), second));
}

enum err
delta_make(struct delta *out, const struct delta_facts *facts, const struct delta_input *in,
    const struct key *key, struct why *why)
{
	const struct task *t = facts->task;
	const struct codec *codec = codec_find_name(t->recipe.codec);
	struct manifest m = {0};

	*out = (struct delta){.fd = in->fd};
	if (!codec)
		return err_set(why, ERR_UNSUPPORTED, "unknown codec \"%.40s\"", t->recipe.codec);
	if (!take_ids(&m, t))
		return err_set(why, ERR_INVALID, "the task's ids are not hex");
	take_facts(&m, facts);
	m.codec = codec->id;
	m.block = codec->block;
	m.elements = in->elements;
	m.codec_seed = training_seed(t->seed, t->round, facts->device);
	m.flags |= in->second ? MANIFEST_SECOND : 0;
	struct vectors v = vectors_of(&m);
	v.params.entries = recipe_upload_entries(&t->recipe.upload, in->elements);
	if (in->second && !codec->fixed_size)
		return err_set(why, ERR_UNSUPPORTED, "codec %s takes one vector", codec->name);
	enum err e = encode_payload(out, &v, in, why);
	if (!e)
		e = seal_payload(out, &v, in, &m, why);
	if (!e)
		e = sign_manifest(out, &m, key, why);
	if (e)
		delta_deinit(out);
	return e;
}

void
delta_deinit(struct delta *d)
{
	free(d->leaves);
	d->leaves = NULL;
}

/* --- as it will be decoded */

enum err
delta_decoded(struct delta_decoded *out, const struct delta *d, unsigned which)
{
	struct manifest m;

	if (manifest_decode(&m, d->manifest, MANIFEST_LEN, NULL) ||
	    (which > 0 && !(m.flags & MANIFEST_SECOND)))
		return ERR_INVALID;
	*out = (struct delta_decoded){d, vectors_of(&m), which};
	return ERR_OK;
}

static enum err
read_payload(void *context, void *out, size_t len, uint64_t at)
{
	const struct delta *d = context;

	if (at > d->payload_len || len > d->payload_len - at)
		return ERR_CORRUPT;
	return file_pread(d->fd, out, len, d->payload_at + at);
}

static enum err
read_decoded(void *context, uint64_t first, size_t count, float *out)
{
	const struct delta_decoded *d = context;
	const struct codec_source source = {read_payload, (void *)(uintptr_t)d->delta};

	return vectors_read(&d->vectors, d->which, &source, first, count, out);
}

struct codec_elements
delta_decoded_values(const struct delta_decoded *d)
{
	return (struct codec_elements){read_decoded, (void *)(uintptr_t)d};
}
