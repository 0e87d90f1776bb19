#include "delta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hex.h"
#include "merkle.h"
#include "sign.h"
#include "training.h"
#include "vectors.h"

static enum err
encode_payload(struct delta *out, const struct vectors *v, const float *values, const float *second,
    struct why *why)
{
	const struct codec *codec = v->codec;
	const struct codec_params params = vectors_params(v, 1);
	uint64_t most = vectors_bytes(v), more = most / 2;

	out->payload = most > 0 && most < SIZE_MAX ? malloc((size_t)most) : NULL;
	if (!out->payload)
		return err_set(why, ERR_NOMEM, "no memory for the delta");
	out->payload_len = most;
	enum err e = codec->encode(out->payload, &out->payload_len, values, &v->params);
	if (!e && second) {
		e = codec->encode(out->payload + more, &more, second, &params);
		out->payload_len += more;
	}
	if (e)
		return err_set(why, e,
		    e == ERR_NUMERIC ? "the delta has a value that is not finite"
				     : "codec %s failed",
		    codec->name);
	return ERR_OK;
}

static enum err
hash_payload(struct delta *out, uint8_t root[HASH_LEN], struct why *why)
{
	uint64_t n = manifest_chunks(out->payload_len);

	out->leaves_len = (size_t)n * HASH_LEN;
	out->leaves = malloc(out->leaves_len);
	if (!out->leaves)
		return err_set(why, ERR_NOMEM, "no memory for the hashes");
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = i * MANIFEST_CHUNK, left = out->payload_len - at;
		merkle_leaf(out->leaves + i * HASH_LEN, out->payload + at,
		    left < MANIFEST_CHUNK ? (size_t)left : MANIFEST_CHUNK);
	}
	merkle_root(root, out->leaves, (size_t)n);
	return ERR_OK;
}

/* Norm of what the coordinator will decode, computed the way it does. */
static enum err
norm_of(const struct delta *d, const struct vectors *of, float *out)
{
	struct vectors v = *of;
	double sum = 0;
	uint8_t carry[64] = {0};

	v.params.payload = v.second ? d->payload_len / 2 : d->payload_len;
	v.params.table = malloc((size_t)codec_table_bytes(v.codec, v.params.elements) + 1);
	enum err e = v.params.table
	    ? vectors_check(&v, 0, d->payload, (size_t)d->payload_len, &sum, carry)
	    : ERR_NOMEM;
	free(v.params.table);
	*out = (float)sqrt(sum);
	return !e && !isfinite(*out) ? ERR_NUMERIC : e;
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

enum err
delta_make(struct delta *out, const struct delta_facts *facts, const float *values,
    const float *second, uint64_t elements, const struct key *key, struct why *why)
{
	const struct task *t = facts->task;
	const struct codec *codec = codec_find_name(t->recipe.codec);
	struct manifest m = {0};

	memset(out, 0, sizeof(*out));
	if (!codec)
		return err_set(why, ERR_UNSUPPORTED, "unknown codec \"%.40s\"", t->recipe.codec);
	if (!take_ids(&m, t))
		return err_set(why, ERR_INVALID, "the task's ids are not hex");
	take_facts(&m, facts);
	m.codec = codec->id;
	m.block = codec->block;
	m.elements = elements;
	m.codec_seed = training_seed(t->seed, t->round, facts->device);
	m.flags |= second ? MANIFEST_SECOND : 0;
	struct vectors v = vectors_of(&m);
	v.params.entries = recipe_upload_entries(&t->recipe.upload, elements);
	if (second && !codec->fixed_size)
		return err_set(why, ERR_UNSUPPORTED, "codec %s takes one vector", codec->name);
	enum err e = encode_payload(out, &v, values, second, why);
	if (!e)
		e = hash_payload(out, m.root, why);
	m.payload_bytes = out->payload_len;
	if (!e && (e = norm_of(out, &v, &m.norm)))
		err_set(why, e, "the delta's norm: %s", err_name(e));
	if (!e)
		e = sign_manifest(out, &m, key, why);
	if (e)
		delta_deinit(out);
	return e;
}

enum err
delta_second(const struct delta *d, float *out)
{
	struct codec_memory memory = {d->payload, d->payload_len};
	const struct codec_source source = {codec_memory_read, &memory};
	struct manifest m;

	if (manifest_decode(&m, d->manifest, MANIFEST_LEN, NULL) || !(m.flags & MANIFEST_SECOND))
		return ERR_INVALID;
	const struct vectors v = vectors_of(&m);
	return vectors_read(&v, 1, &source, 0, (size_t)m.elements, out);
}

void
delta_deinit(struct delta *d)
{
	free(d->leaves);
	free(d->payload);
	d->leaves = d->payload = NULL;
}
