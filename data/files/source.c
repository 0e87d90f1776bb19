#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "idx.h"
#include "npy.h"
#include "packed.h"
#include "shard.h"
#include "text.h"

/* What is known of all examples, and which of them are kept. */
struct choice {
	const struct shard *shard; /* NULL: all */
	int32_t *labels; /* or */
	float *targets;
	size_t target_width;
	int32_t *groups;
	size_t count;
	uint32_t *keep; /* NULL: all */
	size_t kept;
};

static void
choice_deinit(struct choice *c)
{
	free(c->labels);
	free(c->targets);
	free(c->groups);
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
is_part(const struct choice *c)
{
	return c->shard && c->shard->count > 1;
}

static bool
needs(const struct choice *c, enum shard_needs what)
{
	return is_part(c) && shard_needs(c->shard->partition) == what;
}

static enum err
choose(struct choice *c, struct why *why)
{
	if (!is_part(c))
		return ERR_OK;
	const int32_t *of = needs(c, SHARD_NEEDS_GROUPS) ? c->groups : c->labels;
	return shard_pick(&c->keep, &c->kept, c->shard, of, c->count, why);
}

static enum err
map(struct file_map *file, const char *path, struct why *why)
{
	return file_map(file, path, DATASET_BYTES_MAX, false, why);
}

/* Gives the examples their labels or targets, which are the choice's no longer. */
static enum err
attach(struct dataset *d, struct choice *c, struct why *why)
{
	size_t n = c->keep ? c->kept : c->count;

	if (d->count != n)
		return err_set(why, ERR_INVALID, "%zu labels for %zu images", n, d->count);
	d->labels = c->labels;
	d->targets = c->targets;
	d->target_width = c->targets ? c->target_width : 0;
	c->labels = NULL;
	c->targets = NULL;
	for (size_t i = 0; i < n; i++) {
		size_t from = c->keep ? c->keep[i] : i;
		if (d->targets)
			memmove(d->targets + i * d->target_width,
			    d->targets + from * d->target_width, d->target_width * sizeof(float));
		else
			d->labels[i] = d->labels[from];
		if (d->labels && (size_t)d->labels[i] >= d->classes)
			d->classes = (size_t)d->labels[i] + 1;
	}
	/* What is left over goes back: a shard may be one of thousands. */
	if (d->labels && c->keep && n > 0) {
		void *less = realloc(d->labels, n * sizeof(*d->labels));
		d->labels = less ? less : d->labels;
	}
	return ERR_OK;
}

/* --- two files of arrays: IDX and NPY */

struct arrays {
	enum err (*head)(struct array *out, struct unpack *io, struct why *why);
	const char *x, *y;
	bool regression;
};

static enum err
read_y(struct choice *c, const struct arrays *from, const struct file_map *file, struct why *why)
{
	struct unpack *io;
	struct array a;
	enum err e = unpack_open(&io, file->data, file->len, why);

	if (e)
		return e;
	e = from->head(&a, io, why);
	if (!e && from->regression)
		e = array_targets(&c->targets, &a, io, why);
	else if (!e)
		e = array_labels(&c->labels, &a, io, why);
	if (!e) {
		c->count = a.count;
		c->target_width = from->regression ? a.features : 0;
	}
	unpack_close(io);
	return e;
}

static enum err
load_y(struct choice *c, const struct arrays *from, struct why *why)
{
	struct file_map file = {0};
	enum err e = map(&file, from->y, why);

	if (e)
		return e;
	e = read_y(c, from, &file, why);
	file_unmap(&file);
	return at(from->y, e ? e : choose(c, why), why);
}

static bool
stays_mapped(const struct array *a, const struct file_map *file)
{
	bool gzip = file->len >= 2 && memcmp(file->data, "\x1f\x8b", 2) == 0;

	return !gzip &&
	    (uint64_t)a->count * a->features * dataset_type_size(a->type) > SOURCE_COPY_MAX;
}

static enum err
read_x(struct dataset *out, const struct choice *c, const struct arrays *from,
    struct file_map *file, struct why *why)
{
	struct unpack *io;
	struct array a;
	enum err e = unpack_open(&io, file->data, file->len, why);

	if (e)
		return e;
	e = from->head(&a, io, why);
	if (!e && a.dims < 2)
		e = err_set(why, ERR_INVALID, "examples have 2 to 4 dimensions, this file has 1");
	if (!e && stays_mapped(&a, file))
		e = array_rows(out, &a, file, c->keep, c->kept, why);
	else if (!e)
		e = array_examples(out, &a, io, c->keep, c->kept, why);
	unpack_close(io);
	return e;
}

static enum err
load_arrays(struct dataset *out, struct choice *c, const struct arrays *from, struct why *why)
{
	struct file_map file = {0};
	enum err e = load_y(c, from, why);

	if (!e)
		e = map(&file, from->x, why);
	if (e)
		return e;
	e = read_x(out, c, from, &file, why);
	file_unmap(&file);
	return at(from->x, e ? e : attach(out, c, why), why);
}

static enum err
load_idx(struct dataset *out, struct choice *c, const struct data_source *from, struct why *why)
{
	return load_arrays(
	    out, c, &(struct arrays){idx_head, from->images, from->labels, from->regression}, why);
}

static enum err
load_npy(struct dataset *out, struct choice *c, const struct data_source *from, struct why *why)
{
	return load_arrays(
	    out, c, &(struct arrays){npy_head, from->x, from->y, from->regression}, why);
}

/* --- tables */

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

/* The form for csv_read and csv_stream that the keys of [data NAME] and the shard ask for. */
static struct csv_form
csv_form_of(const struct data_source *from, const struct shard *shard)
{
	return (struct csv_form){.label = *from->label ? from->label : NULL,
	    .columns = from->columns,
	    .group = shard ? shard->column : NULL,
	    .classes = from->classes,
	    .separator = from->separator,
	    .header = from->header,
	    .missing = from->missing,
	    .regression = from->regression};
}

static enum err
choose_lines(
    struct choice *c, const struct csv_form *how, const struct file_map *file, struct why *why)
{
	enum err e = ERR_OK;

	if (!is_part(c))
		return ERR_OK;
	if (needs(c, SHARD_NEEDS_GROUPS))
		e = csv_groups(&c->groups, &c->count, file->data, file->len, how, why);
	else
		e = csv_labels(&c->labels, &c->count, file->data, file->len, how, why);
	if (how->regression) {
		free(c->labels);
		c->labels = NULL;
	}
	return e ? e : choose(c, why);
}

static enum err
load_csv(struct dataset *out, struct choice *c, const struct data_source *from, struct why *why)
{
	const struct csv_form how = csv_form_of(from, c->shard);
	struct file_map file = {0};
	enum err e = map(&file, from->path, why);

	if (e)
		return e;
	e = choose_lines(c, &how, &file, why);
	if (!e)
		e = csv_read(out, file.data, file.len, &how, c->keep, c->kept, why);
	if (!e && *from->shape)
		e = take_shape(out, from->shape, why);
	file_unmap(&file);
	return at(from->path, e, why);
}

/* --- packed sets */

static enum err
choose_packed(
    struct choice *c, const struct packed *p, const struct file_map *file, struct why *why)
{
	enum err e = p->classes ? packed_labels(&c->labels, p, file->data, why)
				: packed_targets(&c->targets, p, file->data, why);

	c->count = p->array.count;
	c->target_width = p->target_width;
	if (!e && needs(c, SHARD_NEEDS_GROUPS))
		e = packed_groups(&c->groups, p, file->data, why);
	return e ? e : choose(c, why);
}

static enum err
copy_names(struct dataset *d, const struct packed *p, const struct file_map *file, struct why *why)
{
	if (p->names_bytes == 0)
		return ERR_OK;
	d->names = strndup((const char *)file->data + packed_names_at(p), (size_t)p->names_bytes);
	return d->names ? ERR_OK : err_set(why, ERR_NOMEM, "no memory for the class names");
}

static enum err
read_packed(struct dataset *out, const struct choice *c, const struct packed *p,
    struct file_map *file, struct why *why)
{
	struct unpack *io;

	if (stays_mapped(&p->array, file))
		return array_rows(out, &p->array, file, c->keep, c->kept, why);
	/* Labels and names follow the values: the reader gets no more than these. */
	enum err e = unpack_open(&io, file->data, (size_t)packed_labels_at(p), why);
	if (e)
		return e;
	e = unpack_take(io, NULL, PACKED_HEAD, why);
	if (!e)
		e = array_examples(out, &p->array, io, c->keep, c->kept, why);
	unpack_close(io);
	return e;
}

static enum err
load_mapped(struct dataset *out, struct choice *c, struct file_map *file, struct why *why)
{
	struct packed p;
	struct dataset names = {0};
	enum err e = packed_decode(&p, file->data, file->len, why);

	if (!e)
		e = choose_packed(c, &p, file, why);
	if (!e)
		e = copy_names(&names, &p, file, why);
	if (!e)
		e = read_packed(out, c, &p, file, why);
	if (!e)
		e = attach(out, c, why);
	if (!e) {
		out->names = names.names;
		out->classes = p.classes;
	} else {
		dataset_deinit(&names);
	}
	return e;
}

static enum err
load_packed(struct dataset *out, struct choice *c, const struct data_source *from, struct why *why)
{
	struct file_map file = {0};
	enum err e = map(&file, from->path, why);

	if (e)
		return e;
	e = load_mapped(out, c, &file, why);
	file_unmap(&file);
	return at(from->path, e, why);
}

/* --- text */

static enum err
load_vocabulary(struct numbering *out, const char *path, struct why *why)
{
	struct file_map file = {0};
	enum err e = map(&file, path, why);

	if (e)
		return e;
	e = text_vocabulary(out, file.data, file.len, why);
	file_unmap(&file);
	return at(path, e, why);
}

static enum err
load_text(struct dataset *out, struct choice *c, const struct data_source *from, struct why *why)
{
	struct file_map file = {0};
	struct numbering words = {0};
	bool bytes = !*from->vocabulary;
	enum err e = bytes ? ERR_OK : load_vocabulary(&words, from->vocabulary, why);

	if (!e)
		e = map(&file, from->path, why);
	if (!e)
		e = at(from->path,
		    text_load(out, &file, bytes ? NULL : &words, c->shard, from->window, why), why);
	numbering_deinit(&words);
	return e;
}

enum err
source_load(
    struct dataset *out, const struct data_source *from, const struct shard *shard, struct why *why)
{
	static enum err (*const loads[DATA_FORMATS])(struct dataset *, struct choice *,
	    const struct data_source *, struct why *) = {[DATA_IDX] = load_idx,
	    [DATA_CSV] = load_csv,
	    [DATA_NPY] = load_npy,
	    [DATA_TEXT] = load_text,
	    [DATA_PACKED] = load_packed};
	struct choice c = {.shard = shard};

	*out = (struct dataset){0};
	if (!loads[from->format])
		return err_set(why, ERR_UNSUPPORTED, "format %s is no file to read",
		    data_source_formats[from->format]);
	enum err e = loads[from->format](out, &c, from, why);
	choice_deinit(&c);
	if (e)
		dataset_deinit(out);
	return e;
}
