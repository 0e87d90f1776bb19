#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "idx.h"

/* The classes of all examples, and which of them are kept. */
struct choice {
	int32_t *labels;
	size_t count;
	uint32_t *keep; /* NULL: all */
	size_t kept;
};

static void
choice_deinit(struct choice *c)
{
	free(c->labels);
	free(c->keep);
}

/* Puts the path before a reason that does not name it. */
static enum err
at(const char *path, enum err e, struct why *why)
{
	if (!e || !why)
		return e;
	const struct why inner = *why;
	return err_set(why, e, "%.120s: %.120s", path, inner.text);
}

static bool
is_part(const struct source *from)
{
	return from->shard && from->shard->count > 1;
}

static enum err
choose(struct choice *c, const struct source *from, struct why *why)
{
	if (!is_part(from))
		return ERR_OK;
	return shard_pick(&c->keep, &c->kept, from->shard, from->csv.regression ? NULL : c->labels,
	    c->count, why);
}

/* Gives the images their labels, which are the choice's no longer. */
static enum err
attach(struct dataset *d, struct choice *c, struct why *why)
{
	size_t n = c->keep ? c->kept : c->count;

	if (d->count != n)
		return err_set(why, ERR_INVALID, "%zu labels for %zu images", n, d->count);
	d->labels = c->labels;
	c->labels = NULL;
	for (size_t i = 0; i < n; i++) {
		d->labels[i] = d->labels[c->keep ? c->keep[i] : i];
		if ((size_t)d->labels[i] >= d->classes)
			d->classes = (size_t)d->labels[i] + 1;
	}
	return ERR_OK;
}

static enum err
load_labels(struct choice *c, const struct source *from, struct why *why)
{
	struct file_map file = {0};
	enum err e = file_map(&file, from->labels, DATASET_BYTES_MAX, false, why);

	if (e)
		return e;
	e = idx_labels(&c->labels, &c->count, file.data, file.len, why);
	file_unmap(&file);
	return at(from->labels, e ? e : choose(c, from, why), why);
}

static enum err
load_idx(struct dataset *out, struct choice *c, const struct source *from, struct why *why)
{
	struct file_map file = {0};
	enum err e = load_labels(c, from, why);

	if (!e)
		e = file_map(&file, from->images, DATASET_BYTES_MAX, false, why);
	if (e)
		return e;
	e = idx_images(out, file.data, file.len, c->keep, c->kept, why);
	file_unmap(&file);
	return at(from->images, e ? e : attach(out, c, why), why);
}

/* One number or three, whose product is that of the features. */
static enum err
take_shape(struct dataset *d, const char *text, struct why *why)
{
	uint32_t shape[3] = {1, 1, 1};
	size_t left = d->features;
	char end;

	int n = sscanf(text, "%u ,%u ,%u %c", &shape[0], &shape[1], &shape[2], &end);
	if (n != 1 && n != 3)
		return err_set(why, ERR_INVALID, "shape is one number, or channels, height, width");
	for (int i = 0; i < 3; i++)
		left = shape[i] && left % shape[i] == 0 ? left / shape[i] : 0;
	if (left != 1)
		return err_set(why, ERR_INVALID,
		    "shape %.40s is not that of the %zu features of a line", text, d->features);
	memcpy(d->shape, shape, sizeof(shape));
	d->dims = (unsigned)n;
	return ERR_OK;
}

static enum err
load_csv(struct dataset *out, struct choice *c, const struct source *from, struct why *why)
{
	struct file_map file = {0};
	enum err e = file_map(&file, from->path, DATASET_BYTES_MAX, false, why);

	if (e)
		return e;
	if (is_part(from)) {
		e = csv_labels(&c->labels, &c->count, file.data, file.len, &from->csv, why);
		if (!e)
			e = choose(c, from, why);
	}
	if (!e)
		e = csv_read(out, file.data, file.len, &from->csv, c->keep, c->kept, why);
	if (!e && from->shape && *from->shape)
		e = take_shape(out, from->shape, why);
	file_unmap(&file);
	return at(from->path, e, why);
}

enum err
source_load(struct dataset *out, const struct source *from, struct why *why)
{
	struct choice c = {0};

	*out = (struct dataset){0};
	enum err e = from->images ? load_idx(out, &c, from, why) : load_csv(out, &c, from, why);
	choice_deinit(&c);
	if (e)
		dataset_deinit(out);
	return e;
}
