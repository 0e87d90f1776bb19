#include "inputs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fold_round.h"
#include "hex.h"
#include "job.h"
#include "late.h"
#include "merkle.h"

/* Maps a file of exactly len bytes. */
static enum err
map_payload(struct file_map *out, const char *path, uint64_t len, struct why *why)
{
	enum err e = file_map(out, path, UINT64_MAX, false, why);

	if (e == ERR_INVALID || (!e && out->len != len))
		return err_set(
		    why, ERR_CORRUPT, "%s is not %llu bytes long", path, (unsigned long long)len);
	return e;
}

static enum err
check_payload(
    const struct cmd_verify_input *in, const struct manifest *m, const char *path, struct why *why)
{
	uint64_t chunks = manifest_chunks(m->payload_bytes);
	uint8_t *leaves = malloc((size_t)chunks * HASH_LEN), root[HASH_LEN] = {0};
	struct vectors v = in->vectors;
	uint8_t carry[64] = {0};
	double squares = 0;

	v.params.table = malloc((size_t)codec_table_bytes(v.codec, m->elements) + 1);
	enum err e = leaves && v.params.table ? ERR_OK : ERR_NOMEM;
	for (uint64_t i = 0; i < chunks && !e; i++) {
		size_t at = (size_t)i * MANIFEST_CHUNK, left = in->payload.len - at;
		size_t len = left < MANIFEST_CHUNK ? left : MANIFEST_CHUNK;
		merkle_leaf(leaves + i * HASH_LEN, in->payload.data + at, len);
		e = vectors_check(&v, at, in->payload.data + at, len, &squares, carry);
	}
	if (!e)
		merkle_root(root, leaves, (size_t)chunks);
	free(leaves);
	free(v.params.table);
	if (e == ERR_NOMEM)
		return e;
	return !e && memcmp(root, m->root, sizeof(root)) == 0
	    ? ERR_OK
	    : err_set(why, ERR_CORRUPT, "%s is not the delta that was signed", path);
}

static enum err
open_input(struct cmd_verify_input *in, const char *dir, const struct record_detail *d,
    uint64_t elements, bool second, struct why *why)
{
	char path[PATH_MAX], task[33];
	struct manifest m;

	enum err e = manifest_decode(&m, d->data, d->len, why);
	if (e)
		return ERR_CORRUPT;
	in->vectors = vectors_of(&m);
	if (!in->vectors.codec)
		return err_set(why, ERR_UNSUPPORTED, "codec %u is not in this build", m.codec);
	if (m.elements != elements || in->vectors.second != second ||
	    m.payload_bytes > vectors_bytes(&in->vectors))
		return err_set(why, ERR_CORRUPT, "a delta does not fit the model");
	hex_encode(task, m.task, sizeof(m.task));
	int n = snprintf(path, sizeof(path), "%s/deltas/%s.delta", dir, task);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(why, ERR_LIMIT, "the path %.60s... is too long", dir);
	memcpy(in->device, m.device, sizeof(in->device));
	in->round = m.round;
	in->weight = (double)m.examples;
	in->normaliser = (double)m.normaliser;
	e = map_payload(&in->payload, path, m.payload_bytes, why);
	if (e == ERR_NOTFOUND)
		return err_set(why, e, "delta %s is not here", task);
	return e ? e : check_payload(in, &m, path, why);
}

static enum err
read_vector(void *inputs, unsigned vector, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct cmd_verify_inputs *all = inputs;
	const struct cmd_verify_input *in = &all->items[all->chosen[delta]];
	struct codec_memory memory = {in->payload.data, in->payload.len};
	const struct codec_source source = {codec_memory_read, &memory};

	return vectors_read(&in->vectors, vector, &source, first, count, out);
}

enum err
cmd_verify_inputs_open(struct cmd_verify_inputs *in, const char *dir,
    const struct cmd_verify_round *r, uint64_t elements, bool second, struct why *why)
{
	enum err e = ERR_OK;

	*in = (struct cmd_verify_inputs){.items = NULL};
	if (r->count != r->reports)
		return err_set(why, ERR_NOTFOUND, "%llu of its manifests are erased",
		    (unsigned long long)(r->reports - r->count));
	in->items = calloc(r->count + 1, sizeof(*in->items));
	in->chosen = calloc(r->count + 1, sizeof(*in->chosen));
	if (!in->items || !in->chosen)
		e = ERR_NOMEM;
	for (; !e && in->count < r->count; in->count++)
		e = open_input(
		    &in->items[in->count], dir, &r->manifests[in->count], elements, second, why);
	if (e)
		cmd_verify_inputs_close(in);
	return e;
}

void
cmd_verify_inputs_choose(struct cmd_verify_inputs *in, const uint8_t *without)
{
	in->chosen_count = 0;
	for (size_t i = 0; i < in->count; i++)
		if (!without || memcmp(in->items[i].device, without, 32) != 0)
			in->chosen[in->chosen_count++] = i;
}

enum err
cmd_verify_inputs_give(struct cmd_verify_inputs *in, struct fold_round *r)
{
	enum err e = ERR_OK;

	r->read = read_vector;
	r->context = in;
	for (size_t i = 0; i < in->chosen_count && !e; i++) {
		const struct cmd_verify_input *item = &in->items[in->chosen[i]];
		double weight = item->weight, scale;
		late_apply(&r->job->aggregate.staleness, r->number - item->round, &weight, &scale);
		e = fold_round_add(r, weight, item->normaliser, scale);
	}
	return e;
}

void
cmd_verify_inputs_close(struct cmd_verify_inputs *in)
{
	for (size_t i = 0; in->items && i < in->count; i++)
		file_unmap(&in->items[i].payload);
	free(in->items);
	free(in->chosen);
	*in = (struct cmd_verify_inputs){.items = NULL};
}
