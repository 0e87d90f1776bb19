#include "patch.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "model_head.h"
#include "modelfile.h"

#define BLOCK (64u << 10)

/* --- reading */

static enum err
check_payload(const struct patch *p, size_t i, uint8_t *block, struct why *why)
{
	const struct difference *d = &p->steps[i];
	uint8_t found[HASH_LEN];
	struct hash *h = hash_new();
	enum err e = ERR_OK;

	if (!h)
		return err_set(why, ERR_NOMEM, "no memory to check a difference");
	hash_start(h);
	for (uint64_t at = 0; at < d->payload_bytes && !e; at += BLOCK) {
		uint64_t left = d->payload_bytes - at;
		size_t n = left < BLOCK ? (size_t)left : BLOCK;
		e = file_pread(p->fd, block, n, p->at[i] + at);
		hash_update(h, block, n);
	}
	hash_finish(h, found);
	hash_free(h);
	return !e && memcmp(found, d->payload_hash, sizeof(found)) == 0
	    ? ERR_OK
	    : err_set(why, ERR_CORRUPT, "a difference does not match its hash");
}

/* One head, whose payload must end within the file. */
static enum err
read_step(struct patch *p, uint64_t at, uint64_t bytes, const uint8_t *from, struct why *why)
{
	struct difference *d = &p->steps[p->count];
	uint8_t head[DIFFERENCE_HEAD], tag[HASH_LEN];

	if (p->count == PATCH_STEPS_MAX || bytes - at < sizeof(head) ||
	    file_pread(p->fd, head, sizeof(head), at))
		return err_set(why, ERR_CORRUPT, "no whole number of differences");
	enum err e = difference_decode(d, head, sizeof(head), why);
	if (e)
		return e == ERR_UNSUPPORTED ? e : ERR_CORRUPT;
	hash_sha256(tag, head, DIFFERENCE_TAGGED);
	if (memcmp(tag, d->tag, sizeof(tag)) != 0)
		return err_set(why, ERR_CORRUPT, "a difference's head does not match its hash");
	if (memcmp(d->from, from, sizeof(d->from)) != 0 || d->elements != p->steps[0].elements)
		return err_set(why, ERR_CORRUPT, "a difference is of another model");
	if (d->payload_bytes > bytes - at - sizeof(head))
		return err_set(why, ERR_CORRUPT, "a difference is cut off");
	p->at[p->count++] = at + sizeof(head);
	return ERR_OK;
}

enum err
patch_open(struct patch *p, int fd, uint64_t bytes, const uint8_t *from, const uint8_t *to,
    struct why *why)
{
	uint8_t *block = malloc(BLOCK);
	const uint8_t *id = from;
	uint64_t at = 0;
	enum err e = block ? ERR_OK : err_set(why, ERR_NOMEM, "no memory");

	p->fd = fd;
	p->count = 0;
	while (!e && (p->count == 0 || at < bytes)) {
		e = read_step(p, at, bytes, id, why);
		if (!e)
			e = check_payload(p, p->count - 1, block, why);
		if (!e) {
			id = p->steps[p->count - 1].to;
			at = p->at[p->count - 1] + p->steps[p->count - 1].payload_bytes;
		}
	}
	free(block);
	if (!e && memcmp(id, to, 32) != 0)
		e = err_set(why, ERR_CORRUPT, "the differences lead to another model");
	return e;
}

/* --- writing */

struct apply {
	const struct patch *p;
	int base, out;
	struct tensor_table table;
	uint64_t from, to; /* where the data sections begin */
	float weights[DIFFERENCE_TILE], step[DIFFERENCE_TILE];
	uint8_t bytes[DIFFERENCE_TILE_BYTES];
};

static enum err
write_head(struct apply *a, struct why *why)
{
	const struct difference *last = &a->p->steps[a->p->count - 1];
	struct modelfile_meta meta = {.round = last->round};
	struct buf head;

	hex_encode(meta.job, last->job, sizeof(last->job));
	hex_encode(meta.base, last->from, sizeof(last->from));
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	enum err e = modelfile_header(&head, &a->table, &meta);
	if (!e)
		e = file_pwrite(a->out, head.data, head.len, 0);
	a->to = head.len;
	buf_deinit(&head);
	return e ? err_set(why, e, "writing a model's head: %s", err_name(e)) : ERR_OK;
}

/* What is no part of the delta vector stays as it is. */
static enum err
copy_rest(struct apply *a)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < a->table.count; i++) {
		const struct tensor *t = &a->table.items[i];
		for (uint64_t at = t->begin; !t->in_delta && at < t->end && !e;) {
			uint64_t left = t->end - at;
			size_t n = left < sizeof(a->bytes) ? (size_t)left : sizeof(a->bytes);
			e = file_pread(a->base, a->bytes, n, a->from + at);
			if (!e)
				e = file_pwrite(a->out, a->bytes, n, a->to + at);
			at += n;
		}
	}
	return e;
}

static enum err
move_tile(struct apply *a, uint64_t number)
{
	struct difference_tile t = difference_tile(&a->p->steps[0], number);
	struct tensor_piece piece;
	enum err e = ERR_OK;

	for (size_t i = 0; !e && tensor_table_piece(&a->table, &i, t.first, t.count, &piece);)
		e = file_pread(a->base, a->weights + (piece.first - t.first),
		    piece.count * sizeof(float), a->from + piece.at);
	for (size_t i = 0; i < a->p->count && !e; i++) {
		const struct difference *d = &a->p->steps[i];
		t = difference_tile(d, number);
		e = file_pread(a->p->fd, a->bytes, t.len, a->p->at[i] + t.at);
		if (!e)
			e = difference_tile_decode(d, &t, a->bytes, a->step);
		if (!e)
			difference_add(a->weights, a->step, t.count);
	}
	for (size_t i = 0; !e && tensor_table_piece(&a->table, &i, t.first, t.count, &piece);)
		e = file_pwrite(a->out, a->weights + (piece.first - t.first),
		    piece.count * sizeof(float), a->to + piece.at);
	return e;
}

enum err
patch_apply(
    const struct patch *p, const struct patch_files *files, uint64_t *bytes, struct why *why)
{
	struct apply *a = calloc(1, sizeof(*a));
	struct model_head head = {.data_at = 0};

	if (!a)
		return err_set(why, ERR_NOMEM, "no memory to apply a difference");
	a->p = p;
	a->base = files->base;
	a->out = files->out;
	enum err e = model_head_read(&head, files->base, files->rules, files->rule_count, why);
	a->table = head.table;
	a->from = head.data_at;
	if (!e && a->table.elements != p->steps[0].elements)
		e = err_set(why, ERR_CORRUPT, "the difference is of another model");
	if (!e)
		e = write_head(a, why);
	if (!e) {
		e = copy_rest(a);
		for (uint64_t n = 0; n * DIFFERENCE_TILE < a->table.elements && !e; n++)
			e = move_tile(a, n);
		if (e)
			err_set(why, e, "applying a difference: %s", err_name(e));
	}
	*bytes = a->to + a->table.bytes;
	tensor_table_deinit(&a->table);
	free(a);
	return e;
}
