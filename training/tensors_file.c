#include "tensors_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "modelfile.h"

#define BLOCK ((size_t)1 << 20)
#define PIECE ((size_t)64 << 10)

enum err
tensors_file_init(struct tensors_file *f, size_t most)
{
	*f = (struct tensors_file){.table = {.items = calloc(most + 1, sizeof(struct tensor))},
	    .parts = calloc(most + 1, sizeof(*f->parts))};
	if (f->table.items && f->parts)
		return ERR_OK;
	tensors_file_deinit(f);
	return ERR_NOMEM;
}

void
tensors_file_deinit(struct tensors_file *f)
{
	free(f->table.items);
	free(f->parts);
	*f = (struct tensors_file){.parts = NULL};
}

static struct tensors_file_part *
add(struct tensors_file *f, const struct tensor *like)
{
	struct tensor *t = &f->table.items[f->table.count];

	*t = *like;
	t->role = TENSOR_FROZEN;
	t->in_delta = false;
	t->elements = 1;
	for (unsigned i = 0; i < t->dims; i++)
		t->elements *= t->shape[i];
	t->begin = f->table.bytes;
	t->end = t->begin + t->elements * tensor_dtype_size(t->dtype);
	f->table.bytes = t->end;
	return &f->parts[f->table.count++];
}

void
tensors_file_add(struct tensors_file *f, const struct tensor *like, const void *data)
{
	add(f, like)->data = data;
}

void
tensors_file_add_rows(
    struct tensors_file *f, const struct tensor *like, const struct tensors_file_rows *rows)
{
	add(f, like)->rows = *rows;
}

void
tensors_file_add_bytes(struct tensors_file *f, const struct tensors_file_bytes *bytes)
{
	add(f, bytes->tensor)->bytes = *bytes;
}

static enum err
make_head(const struct tensors_file *f, struct buf *head, struct why *why)
{
	const struct modelfile_meta meta = {.job = ""};

	buf_init(head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	enum err e = modelfile_header(head, &f->table, &meta);
	if (e)
		buf_deinit(head);
	return e ? err_set(why, e, "tensors for a trainer cannot be described") : ERR_OK;
}

/* Where the bytes go, piece after piece. */
struct sink {
	struct hash *hash; /* NULL: */
	int fd;
	const char *path;
	uint64_t at;
	struct why *why;
};

static enum err
take(struct sink *s, const void *data, size_t len)
{
	if (s->hash)
		hash_update(s->hash, data, len);
	else if (file_pwrite(s->fd, data, len, s->at))
		return err_errno(s->why, "write %s", s->path);
	s->at += len;
	return ERR_OK;
}

/* Through a block of as many rows as fit, at least one. */
static enum err
take_rows(struct sink *s, const struct tensor *t, const struct tensors_file_rows *rows)
{
	uint64_t count = t->shape[0];
	size_t row = (size_t)((t->end - t->begin) / count), held = 0;
	size_t room = row > BLOCK ? row : BLOCK;
	char *block = malloc(room);
	enum err e = block ? ERR_OK : err_set(s->why, ERR_NOMEM, "no memory for rows");

	for (uint64_t i = 0; !e && i < count; i++) {
		rows->copy(rows->context, (uint32_t)i, block + held);
		held += row;
		if (held + row > room || i + 1 == count) {
			e = take(s, block, held);
			held = 0;
		}
	}
	free(block);
	return e;
}

static enum err
take_bytes(struct sink *s, const struct tensors_file_bytes *bytes, uint64_t len)
{
	char *block = malloc(PIECE);
	enum err e = block ? ERR_OK : err_set(s->why, ERR_NOMEM, "no memory for a piece");

	for (uint64_t at = 0; !e && at < len; at += PIECE) {
		size_t n = len - at < PIECE ? (size_t)(len - at) : PIECE;
		e = bytes->read(bytes->context, bytes->tensor, at, n, block);
		if (e)
			err_set(s->why, e, "tensor \"%.100s\" cannot be read: %s",
			    bytes->tensor->name, err_name(e));
		else
			e = take(s, block, n);
	}
	free(block);
	return e;
}

static enum err
take_part(struct sink *s, const struct tensors_file *f, size_t i)
{
	const struct tensors_file_part *p = &f->parts[i];
	const struct tensor *t = &f->table.items[i];

	if (p->data)
		return take(s, p->data, (size_t)(t->end - t->begin));
	return p->rows.copy ? take_rows(s, t, &p->rows)
			    : take_bytes(s, &p->bytes, t->end - t->begin);
}

static enum err
take_all(struct sink *s, const struct tensors_file *f, const struct buf *head)
{
	enum err e = take(s, head->data, head->len);

	for (size_t i = 0; !e && i < f->table.count; i++)
		e = take_part(s, f, i);
	return e;
}

enum err
tensors_file_bytes(const struct tensors_file *f, uint64_t *out, struct why *why)
{
	struct buf head;
	enum err e = make_head(f, &head, why);

	if (e)
		return e;
	*out = head.len + f->table.bytes;
	buf_deinit(&head);
	return ERR_OK;
}

enum err
tensors_file_hash(const struct tensors_file *f, char hex[65], struct why *why)
{
	uint8_t sum[HASH_LEN];
	struct buf head;
	enum err e = make_head(f, &head, why);

	if (e)
		return e;
	struct sink sink = {.hash = hash_new(), .why = why};
	if (sink.hash) {
		hash_start(sink.hash);
		e = take_all(&sink, f, &head);
		hash_finish(sink.hash, sum);
		hex_encode(hex, sum, sizeof(sum));
	} else {
		e = err_set(why, ERR_NOMEM, "no memory for a hash");
	}
	hash_free(sink.hash);
	buf_deinit(&head);
	return e;
}

enum err
tensors_file_put(const struct tensors_file *f, int fd, const char *path, struct why *why)
{
	struct buf head;
	enum err e = make_head(f, &head, why);

	if (e)
		return e;
	e = take_all(&(struct sink){.fd = fd, .path = path, .why = why}, f, &head);
	buf_deinit(&head);
	return e;
}

enum err
tensors_file_write(const struct tensors_file *f, const char *path, struct why *why)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno(why, "create %s", path);
	enum err e = tensors_file_put(f, fd, path, why);
	close(fd);
	return e;
}
