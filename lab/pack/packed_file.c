#include "packed_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "file.h"
#include "hash.h"

#define BLOCK ((size_t)1 << 20)

enum err
packed_file_open(struct packed_file *f, const char *to, struct why *why)
{
	*f = (struct packed_file){.to = to, .fd = -1, .at = PACKED_HEAD, .block = malloc(BLOCK)};
	if (!f->block)
		return err_set(why, ERR_NOMEM, "no memory to write a file");
	int n = snprintf(f->path, sizeof(f->path), "%s.part", to);
	if (n < 0 || (size_t)n >= sizeof(f->path)) {
		f->path[0] = '\0';
		return err_set(why, ERR_LIMIT, "%.100s: the path is too long", to);
	}
	f->fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (f->fd < 0) {
		err_errno(why, "create %.200s", f->path);
		f->path[0] = '\0';
		return ERR_IO;
	}
	return ERR_OK;
}

void
packed_file_close(struct packed_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->path[0])
		unlink(f->path);
	free(f->block);
	*f = (struct packed_file){.fd = -1};
}

static enum err
flush(struct packed_file *f, struct why *why)
{
	if (file_pwrite(f->fd, f->block, f->held, f->at))
		return err_errno(why, "write %.200s", f->path);
	f->at += f->held;
	f->held = 0;
	return ERR_OK;
}

enum err
packed_file_put(struct packed_file *f, const void *data, size_t len, struct why *why)
{
	const uint8_t *from = data;

	while (len > 0) {
		size_t now = len < BLOCK - f->held ? len : BLOCK - f->held;
		memcpy(f->block + f->held, from, now);
		f->held += now;
		from += now;
		len -= now;
		enum err e = f->held == BLOCK ? flush(f, why) : ERR_OK;
		if (e)
			return e;
	}
	return ERR_OK;
}

/* Little-endian numbers of 32 bits. */
static enum err
put_words(struct packed_file *f, const void *words, size_t n, struct why *why)
{
	const uint32_t *from = words;

	for (size_t i = 0; i < n; i++) {
		uint8_t b[4];
		struct bytes_writer w = bytes_writer(b, sizeof(b));
		bytes_put_u32(&w, from[i]);
		enum err e = packed_file_put(f, b, sizeof(b), why);
		if (e)
			return e;
	}
	return ERR_OK;
}

enum err
packed_file_hash(uint8_t out[32], const uint8_t *file, size_t len)
{
	struct hash *h = hash_new();

	if (!h)
		return ERR_NOMEM;
	hash_start(h);
	hash_update(h, file, PACKED_HASH_AT);
	hash_update(h, file + PACKED_HEAD, len - PACKED_HEAD);
	hash_finish(h, out);
	hash_free(h);
	return ERR_OK;
}

static enum err
put_hash(struct packed_file *f, uint8_t hash[32], struct why *why)
{
	struct file_map map = {0};
	enum err e = file_map(&map, f->path, UINT64_MAX, false, why);

	if (e)
		return e;
	e = packed_file_hash(hash, map.data, map.len);
	file_unmap(&map);
	if (e)
		return err_set(why, e, "no memory for a hash");
	return file_pwrite(f->fd, hash, 32, PACKED_HASH_AT)
	    ? err_errno(why, "write %.200s", f->path)
	    : ERR_OK;
}

enum err
packed_file_finish(struct packed_file *f, const struct packed *p, const struct packed_end *end,
    uint8_t hash[32], struct why *why)
{
	uint8_t head[PACKED_HASH_AT];
	size_t n = p->array.count * (p->target_width ? p->target_width : 1);
	enum err e = p->names_bytes > 0
	    ? packed_names_check(end->names, (size_t)p->names_bytes, p->classes, why)
	    : ERR_OK;

	if (!e)
		e = end->labels ? put_words(f, end->labels, n, why)
				: put_words(f, end->targets, n, why);
	if (!e && end->groups)
		e = put_words(f, end->groups, p->array.count, why);
	if (!e && p->names_bytes > 0)
		e = packed_file_put(f, end->names, (size_t)p->names_bytes, why);
	if (!e)
		e = flush(f, why);
	packed_encode(head, p);
	if (!e && file_pwrite(f->fd, head, sizeof(head), 0))
		e = err_errno(why, "write %.200s", f->path);
	if (!e)
		e = put_hash(f, hash, why);
	if (!e)
		e = file_commit(f->fd, f->path, f->to, why);
	if (!e)
		f->path[0] = '\0';
	return e;
}
