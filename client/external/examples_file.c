#include "examples_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache.h"
#include "dataset.h"
#include "tensor.h"
#include "tensors_file.h"

#define TENSORS 4
#define FOLDER "examples"

static struct tensor
describe(const char *name, enum tensor_dtype dtype, const struct dataset *d)
{
	struct tensor t = {.dtype = dtype, .dims = 1, .shape = {d->count}};

	snprintf(t.name, sizeof(t.name), "%s", name);
	return t;
}

static void
copy_example(const void *set, uint32_t row, void *out)
{
	dataset_copy(set, row, out);
}

static void
copy_next(const void *set, uint32_t row, void *out)
{
	dataset_next(set, row, out);
}

/* One row for each example, of the examples' shape. */
static void
add_rows(struct tensors_file *f, struct tensor t, const struct dataset *d,
    void (*copy)(const void *, uint32_t, void *))
{
	for (unsigned i = 0; i < d->dims; i++)
		t.shape[t.dims++] = d->shape[i];
	if (d->bytes || d->floats)
		tensors_file_add(f, &t, d->bytes ? (const void *)d->bytes : d->floats);
	else
		tensors_file_add_rows(
		    f, &t, &(struct tensors_file_rows){.copy = copy, .context = d});
}

static void
add_y(struct tensors_file *f, const struct dataset *d, const char *name)
{
	struct tensor t = describe(name, d->targets ? TENSOR_F32 : TENSOR_I32, d);

	if (d->dims > 0 && dataset_form(d) == DATASET_TOKENS) {
		add_rows(f, t, d, copy_next);
	} else if (d->labels) {
		tensors_file_add(f, &t, d->labels);
	} else if (d->targets) {
		t.shape[t.dims++] = d->target_width;
		tensors_file_add(f, &t, d->targets);
	}
}

static void
add_set(struct tensors_file *f, const struct dataset *d, const char *x, const char *y)
{
	static const enum tensor_dtype types[] = {[DATASET_PIXELS] = TENSOR_U8,
	    [DATASET_NUMBERS] = TENSOR_F32,
	    [DATASET_TOKENS] = TENSOR_I32};

	if (d->count == 0)
		return;
	add_rows(f, describe(x, types[dataset_form(d)], d), d, copy_example);
	add_y(f, d, y);
}

static enum err
write_kept(char path[PATH_MAX], const struct cache *cache, const struct tensors_file *f,
    const char *id, struct why *why)
{
	int fd;
	enum err e = cache_part(cache, id, &fd, why);

	if (e)
		return e;
	if (ftruncate(fd, 0) != 0 || fchmod(fd, 0600) != 0)
		e = err_errno(why, "prepare %s", FOLDER);
	if (!e)
		e = tensors_file_put(f, fd, FOLDER, why);
	if (!e)
		e = cache_commit(cache, id, fd, path, why);
	/* Nobody shall change it by mistake: it is for all tasks to come. */
	if (!e && fchmod(fd, 0400) != 0)
		e = err_errno(why, "protect %s", path);
	close(fd);
	return e;
}

static enum err
find_kept(char path[PATH_MAX], const struct examples_file *from, const struct tensors_file *f,
    const char *id, uint64_t bytes, struct why *why)
{
	struct cache cache;
	enum err e = cache_init(&cache, from->home, FOLDER, from->settings->examples_bytes, why);

	if (e || cache_find(&cache, id, bytes, path) == ERR_OK)
		return e;
	e = cache_make_room(&cache, id, bytes, why);
	return e ? e : write_kept(path, &cache, f, id, why);
}

static enum err
find(char path[PATH_MAX], const struct examples_file *from, const struct tensors_file *f,
    const char *spare, struct why *why)
{
	char own[EXAMPLES_FILE_ID] = "", *id = from->id ? from->id : own;
	uint64_t bytes = 0;
	enum err e = tensors_file_bytes(f, &bytes, why);

	if (e)
		return e;
	if (from->once || bytes > from->settings->examples_bytes) {
		snprintf(path, PATH_MAX, "%s", spare);
		return tensors_file_write(f, spare, why);
	}
	if (!*id)
		e = tensors_file_hash(f, id, why);
	return e ? e : find_kept(path, from, f, id, bytes, why);
}

enum err
examples_file_find(
    char path[PATH_MAX], const struct examples_file *f, const char *spare, struct why *why)
{
	struct tensors_file file;
	enum err e = tensors_file_init(&file, TENSORS);

	if (e)
		return err_set(why, e, "no memory for examples");
	add_set(&file, f->train, "x", "y");
	add_set(&file, f->validation, "validation_x", "validation_y");
	e = find(path, f, &file, spare, why);
	tensors_file_deinit(&file);
	return e;
}
