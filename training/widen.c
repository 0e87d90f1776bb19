#include "widen.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "half.h"
#include "modelfile.h"

#define RUN 16384 /* elements at a time */

struct source {
	struct file_map file;
	uint64_t data_at;
	struct tensor_table table;
};

static bool
is_other_float(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F16 || dtype == TENSOR_BF16 || dtype == TENSOR_F64;
}

/* What is not finite keeps its bits. */
static float
from_f16(uint16_t h)
{
	if ((h & 0x7c00) != 0x7c00)
		return codec_half_from_f16(h);
	return codec_half_float(
	    (uint32_t)(h & 0x8000) << 16 | 0x7f800000 | (uint32_t)(h & 0x3ff) << 13);
}

/* Element i of raw bytes. False if it is finite and too large. */
static bool
element(float *out, enum tensor_dtype dtype, const uint8_t *raw, size_t i)
{
	uint16_t half;
	double wide;

	if (dtype == TENSOR_F64) {
		memcpy(&wide, raw + i * sizeof(wide), sizeof(wide));
		*out = (float)wide;
		return isfinite(*out) || !isfinite(wide);
	}
	memcpy(&half, raw + i * sizeof(half), sizeof(half));
	*out = dtype == TENSOR_F16 ? from_f16(half) : codec_half_from_bf16(half);
	return true;
}

static enum err
write_wide(int fd, uint64_t at, const struct tensor *from, const uint8_t *raw, struct why *why)
{
	float run[RUN];
	size_t size = tensor_dtype_size(from->dtype), n = 0;

	for (uint64_t i = 0; i < from->elements; i += n) {
		n = from->elements - i < RUN ? (size_t)(from->elements - i) : RUN;
		for (size_t k = 0; k < n; k++)
			if (!element(&run[k], from->dtype, raw + i * size, k))
				return err_set(why, ERR_NUMERIC,
				    "tensor \"%s\" holds a number too large for F32", from->name);
		if (file_pwrite(fd, run, n * sizeof(*run), at + i * sizeof(*run)))
			return err_errno(why, "write a copy of the model");
	}
	return ERR_OK;
}

static enum err
write_data(
    int fd, uint64_t at, const struct tensor_table *to, const struct source *s, struct why *why)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < to->count && !e; i++) {
		const struct tensor *from = &s->table.items[i];
		const uint8_t *raw = s->file.data + s->data_at + from->begin;
		uint64_t place = at + to->items[i].begin;
		if (is_other_float(from->dtype))
			e = write_wide(fd, place, from, raw, why);
		else if (file_pwrite(fd, raw, (size_t)(from->end - from->begin), place))
			e = err_errno(why, "write a copy of the model");
	}
	return e;
}

/* The same tensors in the same order. */
static enum err
wide_table(struct tensor_table *out, const struct tensor_table *from, struct why *why)
{
	uint64_t at = 0;
	enum err e = tensor_table_copy(out, from);

	if (e)
		return err_set(why, e, "no memory for the tensor table");
	for (size_t i = 0; i < out->count; i++) {
		struct tensor *t = &out->items[i];
		if (is_other_float(t->dtype))
			t->dtype = TENSOR_F32;
		if (tensor_bytes(t) > TENSOR_BYTES_MAX - at)
			return err_set(why, ERR_LIMIT, "the model is too large in F32");
		t->begin = at;
		t->end = at += tensor_bytes(t);
	}
	out->bytes = at;
	return ERR_OK;
}

static enum err
write_copy(int *fd, const struct source *s, struct why *why)
{
	struct tensor_table table = {0};
	struct buf head;

	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	enum err e = wide_table(&table, &s->table, why);
	if (!e && (e = modelfile_header(&head, &table, NULL)))
		err_set(why, e, "the model's header: %s", err_name(e));
	if (!e)
		e = file_scratch(fd, why);
	if (!e && file_pwrite(*fd, head.data, head.len, 0))
		e = err_errno(why, "write a copy of the model");
	if (!e)
		e = write_data(*fd, head.len, &table, s, why);
	buf_deinit(&head);
	tensor_table_deinit(&table);
	return e;
}

static const char *
wrapper_of(const struct tensor_table *t)
{
	for (const char *const *p = tensor_wrappers(); *p; p++) {
		size_t i = 0;
		while (i < t->count && strncmp(t->items[i].name, *p, strlen(*p)) == 0)
			i++;
		if (i > 0 && i == t->count)
			return *p;
	}
	return NULL;
}

static struct widen_note
look(const struct tensor_table *table)
{
	struct widen_note note = {.wrapper = wrapper_of(table)};

	for (size_t i = 0; i < table->count; i++) {
		const struct tensor *t = &table->items[i];
		if (!is_other_float(t->dtype))
			continue;
		if (note.widened++ == 0) {
			memcpy(note.first, t->name, sizeof(note.first));
			note.was = t->dtype;
		}
	}
	return note;
}

static enum err
read_source(struct source *s, const char *path, struct why *why)
{
	struct why detail = {""};

	*s = (struct source){.data_at = 0};
	enum err e = file_map(&s->file, path, UINT64_MAX, false, why);
	if (e)
		return e;
	if (s->file.len < MODELFILE_PREFIX)
		return err_set(why, ERR_INVALID, "%s is too short for a model", path);
	e = modelfile_data_at(s->file.data, s->file.len, &s->data_at, &detail);
	if (!e)
		e = modelfile_parse(
		    &s->table, NULL, s->file.data, (size_t)s->data_at, s->file.len, &detail);
	return e ? err_set(why, e, "%.100s: %.140s", path, detail.text) : ERR_OK;
}

enum err
widen_open(int *fd, struct widen_note *note, const char *path, struct why *why)
{
	struct source s;

	*fd = -1;
	enum err e = read_source(&s, path, why);
	if (!e) {
		*note = look(&s.table);
		if (note->widened > 0)
			e = write_copy(fd, &s, why);
		else if ((*fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
			e = err_errno(why, "open %s", path);
	}
	if (e && *fd >= 0)
		close(*fd);
	tensor_table_deinit(&s.table);
	file_unmap(&s.file);
	return e;
}
