#include "examples_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "file.h"
#include "modelfile.h"

#define TENSORS 4

struct part {
	const void *data;
	uint64_t bytes;
};

struct writing {
	struct tensor items[TENSORS];
	struct part parts[TENSORS];
	struct tensor_table table;
};

static void
add(struct writing *w, const char *name, enum tensor_dtype dtype, const struct dataset *d, bool x)
{
	struct tensor *t = &w->items[w->table.count];

	*t = (struct tensor){.dtype = dtype, .role = TENSOR_FROZEN, .dims = 1, .shape = {d->count}};
	snprintf(t->name, sizeof(t->name), "%s", name);
	if (x)
		for (unsigned i = 0; i < d->dims; i++)
			t->shape[t->dims++] = d->shape[i];
	else if (d->targets)
		t->shape[t->dims++] = d->target_width;
	t->elements = 1;
	for (unsigned i = 0; i < t->dims; i++)
		t->elements *= t->shape[i];
	t->begin = w->table.bytes;
	t->end = t->begin + t->elements * tensor_dtype_size(dtype);
	w->parts[w->table.count].bytes = t->end - t->begin;
	w->table.bytes = t->end;
	w->table.count++;
}

static void
add_set(struct writing *w, const struct dataset *d, const char *x, const char *y)
{
	if (d->count == 0)
		return;
	w->parts[w->table.count].data = d->bytes ? (const void *)d->bytes : d->floats;
	add(w, x, d->bytes ? TENSOR_U8 : TENSOR_F32, d, true);
	w->parts[w->table.count].data = d->labels ? (const void *)d->labels : d->targets;
	if (d->labels || d->targets)
		add(w, y, d->labels ? TENSOR_I32 : TENSOR_F32, d, false);
}

static enum err
write_all(int fd, const struct writing *w, const struct buf *head)
{
	uint64_t at = head->len;
	enum err e = file_pwrite(fd, head->data, head->len, 0);

	for (size_t i = 0; !e && i < w->table.count; i++) {
		e = file_pwrite(fd, w->parts[i].data, (size_t)w->parts[i].bytes, at);
		at += w->parts[i].bytes;
	}
	return e;
}

enum err
examples_file_write(const char *path, const struct dataset *train, const struct dataset *validation,
    struct why *why)
{
	struct writing w = {.table = {.items = w.items}};
	struct buf head;
	const struct modelfile_meta meta = {.job = ""};

	add_set(&w, train, "x", "y");
	add_set(&w, validation, "validation_x", "validation_y");
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	enum err e = modelfile_header(&head, &w.table, &meta);
	if (e) {
		buf_deinit(&head);
		return err_set(why, e, "the examples cannot be described");
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		e = err_errno(why, "create %s", path);
	} else {
		e = write_all(fd, &w, &head);
		if (e)
			err_errno(why, "write %s", path);
		close(fd);
	}
	buf_deinit(&head);
	return e;
}
