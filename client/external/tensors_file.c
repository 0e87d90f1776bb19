#include "tensors_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "file.h"
#include "hash.h"
#include "hex.h"
#include "modelfile.h"

enum err
tensors_file_init(struct tensors_file *f, size_t most)
{
	*f = (struct tensors_file){.table = {.items = calloc(most + 1, sizeof(struct tensor))},
	    .data = calloc(most + 1, sizeof(*f->data))};
	if (f->table.items && f->data)
		return ERR_OK;
	tensors_file_deinit(f);
	return ERR_NOMEM;
}

void
tensors_file_deinit(struct tensors_file *f)
{
	free(f->table.items);
	free(f->data);
	*f = (struct tensors_file){.data = NULL};
}

void
tensors_file_add(struct tensors_file *f, const struct tensor *like, const void *data)
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
	f->data[f->table.count++] = data;
	f->table.bytes = t->end;
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

static size_t
length(const struct tensors_file *f, size_t i)
{
	return (size_t)(f->table.items[i].end - f->table.items[i].begin);
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
	struct hash *h = hash_new();
	if (h) {
		hash_start(h);
		hash_update(h, head.data, head.len);
		for (size_t i = 0; i < f->table.count; i++)
			hash_update(h, f->data[i], length(f, i));
		hash_finish(h, sum);
		hex_encode(hex, sum, sizeof(sum));
	} else {
		e = err_set(why, ERR_NOMEM, "no memory for a hash");
	}
	hash_free(h);
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
	uint64_t at = head.len;
	e = file_pwrite(fd, head.data, head.len, 0);
	for (size_t i = 0; !e && i < f->table.count; i++) {
		e = file_pwrite(fd, f->data[i], length(f, i), at);
		at += length(f, i);
	}
	buf_deinit(&head);
	return e ? err_errno(why, "write %s", path) : ERR_OK;
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
