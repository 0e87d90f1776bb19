#include "idx.h"

#include <stdlib.h>
#include <string.h>

#include "num.h"
#include "unpack.h"

#define TYPE_U8 8
#define DIMS_MAX 4

struct header {
	unsigned dims;
	uint32_t size[DIMS_MAX];
	size_t count; /* size[0] */
	size_t features; /* product of the others */
};

static enum err
read_sizes(struct unpack *io, struct header *h, struct why *why)
{
	for (unsigned i = 0; i < h->dims; i++) {
		uint8_t b[4];
		enum err e = unpack_take(io, b, sizeof(b), why);
		if (e)
			return e;
		h->size[i] =
		    (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
	}
	return ERR_OK;
}

/* The sizes are believed only as far as the file can hold that much, before anything is allocated. */
static enum err
check_sizes(struct unpack *io, struct header *h, struct why *why)
{
	uint64_t bytes = h->size[0];

	for (unsigned i = 0; i < h->dims; i++)
		if (h->size[i] == 0)
			return err_set(why, ERR_INVALID, "the IDX file holds no values");
	if (h->size[0] > DATASET_EXAMPLES_MAX)
		return err_set(why, ERR_LIMIT, "the IDX file claims %u examples, more than %u",
		    h->size[0], DATASET_EXAMPLES_MAX);
	for (unsigned i = 1; i < h->dims; i++) {
		if (bytes > DATASET_BYTES_MAX / h->size[i])
			return err_set(why, ERR_LIMIT, "the IDX file claims too many values");
		bytes *= h->size[i];
	}
	if (bytes > unpack_most(io))
		return err_set(
		    why, ERR_INVALID, "the IDX file claims more values than it can hold");
	/* Where size_t has 32 bits it is the smaller limit. */
	if (bytes / h->size[0] > SIZE_MAX)
		return err_set(why, ERR_LIMIT, "the IDX file's examples are too large");
	h->count = h->size[0];
	h->features = (size_t)(bytes / h->size[0]);
	return ERR_OK;
}

static enum err
read_header(struct unpack *io, struct header *h, struct why *why)
{
	uint8_t magic[4];
	enum err e = unpack_take(io, magic, sizeof(magic), why);

	if (e)
		return e;
	if (magic[0] != 0 || magic[1] != 0)
		return err_set(why, ERR_INVALID, "this is not an IDX file");
	if (magic[2] != TYPE_U8)
		return err_set(why, ERR_UNSUPPORTED,
		    "the IDX file has type 0x%02x; only unsigned bytes are read", magic[2]);
	if (magic[3] < 1 || magic[3] > DIMS_MAX)
		return err_set(why, ERR_UNSUPPORTED, "the IDX file has %u dimensions", magic[3]);
	h->dims = magic[3];
	e = read_sizes(io, h, why);
	return e ? e : check_sizes(io, h, why);
}

static enum err
read_labels(struct unpack *io, int32_t **labels, size_t *count, struct why *why)
{
	struct header h = {0};
	enum err e = read_header(io, &h, why);

	if (e)
		return e;
	if (h.dims != 1)
		return err_set(
		    why, ERR_INVALID, "IDX labels have 1 dimension, this file has %u", h.dims);
	int32_t *out = malloc(h.count * sizeof(*out));
	if (!out)
		return err_set(why, ERR_NOMEM, "no memory for %zu labels", h.count);
	/* The bytes are read into the front of the room and widened from the back. */
	e = unpack_take(io, out, h.count, why);
	if (!e)
		e = unpack_end(io, why);
	if (e) {
		free(out);
		return e;
	}
	for (size_t i = h.count; i-- > 0;)
		out[i] = ((const uint8_t *)out)[i];
	*labels = out;
	*count = h.count;
	return ERR_OK;
}

enum err
idx_labels(int32_t **labels, size_t *count, const void *file, size_t len, struct why *why)
{
	struct unpack *io;
	enum err e = unpack_open(&io, file, len, why);

	if (e)
		return e;
	e = read_labels(io, labels, count, why);
	unpack_close(io);
	return e;
}

static void
set_shape(struct dataset *d, const struct header *h)
{
	d->dims = h->dims == 2 ? 1 : 3;
	d->shape[0] = h->dims == 3 ? 1 : h->size[1];
	d->shape[1] = h->dims == 2 ? 1 : h->size[h->dims - 2];
	d->shape[2] = h->dims == 2 ? 1 : h->size[h->dims - 1];
	d->features = h->features;
}

/* Reads the examples of `keep`, the last of which is below the count, and skips over the others. */
static enum err
read_kept(struct unpack *io, uint8_t *out, const struct header *h, const uint32_t *keep,
    size_t keep_count, struct why *why)
{
	uint64_t next = 0;

	for (size_t i = 0; i < keep_count; i++) {
		enum err e = unpack_take(io, NULL, (keep[i] - next) * h->features, why);
		if (!e)
			e = unpack_take(io, out + i * h->features, h->features, why);
		if (e)
			return e;
		next = (uint64_t)keep[i] + 1;
	}
	return unpack_take(io, NULL, (h->count - next) * h->features, why);
}

static enum err
read_images(
    struct unpack *io, struct dataset *d, const uint32_t *keep, size_t keep_count, struct why *why)
{
	struct header h = {0};
	size_t size;
	enum err e = read_header(io, &h, why);

	if (e)
		return e;
	if (h.dims < 2)
		return err_set(
		    why, ERR_INVALID, "IDX examples have 2 to 4 dimensions, this file has 1");
	if (keep && keep_count > 0 && keep[keep_count - 1] >= h.count)
		return err_set(why, ERR_INVALID, "the IDX file has only %zu examples", h.count);
	set_shape(d, &h);
	d->count = keep ? keep_count : h.count;
	if (num_mul(d->count, h.features, &size))
		d->bytes = malloc(size > 0 ? size : 1);
	if (!d->bytes)
		return err_set(why, ERR_NOMEM, "no memory for %zu examples", d->count);
	if (keep)
		e = read_kept(io, d->bytes, &h, keep, keep_count, why);
	else
		e = unpack_take(io, d->bytes, (uint64_t)h.count * h.features, why);
	return e ? e : unpack_end(io, why);
}

enum err
idx_images(struct dataset *out, const void *file, size_t len, const uint32_t *keep,
    size_t keep_count, struct why *why)
{
	struct dataset d = {0};
	struct unpack *io;
	enum err e = unpack_check_keep(keep, keep_count, why);

	if (e)
		return e;
	e = unpack_open(&io, file, len, why);
	if (e)
		return e;
	e = read_images(io, &d, keep, keep_count, why);
	unpack_close(io);
	if (e)
		dataset_deinit(&d);
	else
		*out = d;
	return e;
}
