#include "delta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "hex.h"
#include "merkle.h"
#include "sign.h"
#include "train.h"

static enum err
encode_payload(struct delta *out, const struct codec *codec, const struct codec_params *params,
    const float *values, struct why *why)
{
	uint64_t most = codec->payload_bytes(params->elements);

	out->payload = most > 0 && most < SIZE_MAX ? malloc((size_t)most) : NULL;
	if (!out->payload)
		return err_set(why, ERR_NOMEM, "no memory for the delta");
	out->payload_len = most;
	enum err e = codec->encode(out->payload, &out->payload_len, values, params);
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
norm_of(
    const struct delta *d, const struct codec *codec, const struct codec_params *params, float *out)
{
	struct codec_params p = *params;
	double sum = 0;
	uint8_t carry[64] = {0};

	p.payload = d->payload_len;
	p.table = malloc((size_t)codec_table_bytes(codec, p.elements) + 1);
	enum err e = p.table ? codec->check(&p, 0, d->payload, (size_t)d->payload_len, &sum, carry)
			     : ERR_NOMEM;
	free(p.table);
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
delta_make(struct delta *out, const struct delta_facts *facts, const float *values,
    uint64_t elements, const struct key *key, struct why *why)
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
	m.codec_seed = train_seed(t->seed, t->round, facts->device);
	const struct codec_params params = {.elements = elements,
	    .block = codec->block,
	    .seed = m.codec_seed,
	    .entries = recipe_upload_entries(&t->recipe.upload, elements)};
	enum err e = encode_payload(out, codec, &params, values, why);
	if (!e)
		e = hash_payload(out, m.root, why);
	m.payload_bytes = out->payload_len;
	if (!e && (e = norm_of(out, codec, &params, &m.norm)))
		err_set(why, e, "the delta's norm: %s", err_name(e));
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
	free(d->payload);
	d->leaves = d->payload = NULL;
}
