#include "after_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "program_state.h"
#include "wild.h"

struct after {
	const char *name;
	int fd; /* -1: it is not open */
	struct stat stat;
	struct tensor_table table;
	uint64_t data_at;
};

static enum err
read_head(struct after *a, uint64_t size, struct why *why)
{
	uint8_t prefix[MODELFILE_PREFIX];

	if (file_pread(a->fd, prefix, sizeof(prefix), 0))
		return err_set(why, ERR_INVALID, "it is too short");
	enum err e = modelfile_data_at(prefix, size, &a->data_at, why);
	if (e)
		return e;
	char *head = malloc((size_t)a->data_at);
	if (!head)
		return err_set(why, ERR_NOMEM, "no memory for a model's head");
	e = file_pread(a->fd, head, (size_t)a->data_at, 0);
	if (!e)
		e = modelfile_parse(&a->table, NULL, head, (size_t)a->data_at, size, why);
	free(head);
	return e;
}

static enum err
open_file(struct after *a, int directory, struct why *why)
{
	struct why inner = {""};
	enum err e = wild_open(&a->fd, directory, a->name, INT64_MAX, why);

	if (e == ERR_NOTFOUND)
		return err_set(why, e, "the trainer left no %s", a->name);
	if (!e && fstat(a->fd, &a->stat) != 0)
		e = err_errno(why, "stat %s", a->name);
	if (e)
		return e;
	e = read_head(a, (uint64_t)a->stat.st_size, &inner);
	return e ? err_set(why, e, "%s: %.200s", a->name, *inner.text ? inner.text : err_name(e))
		 : ERR_OK;
}

/* Finds the only file that has the tensor of this name. */
static enum err
find(struct after *files, size_t count, const char *name, struct after **out,
    const struct tensor **tensor, struct why *why)
{
	*out = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct tensor *have = tensor_table_find(&files[i].table, name);
		if (have && *out)
			return err_set(why, ERR_INVALID, "both %s and %s have a tensor \"%.100s\"",
			    (*out)->name, files[i].name, name);
		if (have) {
			*out = &files[i];
			*tensor = have;
		}
	}
	if (*out)
		return ERR_OK;
	return err_set(why, ERR_INVALID, "%s has no tensor \"%.100s\"",
	    count == 1 ? files[0].name : "what the trainer left", name);
}

/* Reads a tensor into the weights or, if these are not in memory, notes the tensor's place. */
static enum err
take_tensor(
    struct work *w, const struct tensor *want, struct after *files, size_t count, struct why *why)
{
	const struct tensor *have = NULL;
	struct after *from;
	enum err e = find(files, count, want->name, &from, &have, why);

	if (e)
		return e;
	if (have->dtype != want->dtype || have->dims != want->dims ||
	    memcmp(have->shape, want->shape, want->dims * sizeof(want->shape[0])) != 0)
		return err_set(why, ERR_INVALID,
		    "%s: \"%.100s\" has another type or shape than in the base", from->name,
		    want->name);
	uint64_t at = from->data_at + have->begin;
	if (w->files)
		w->files->after[want - w->table.items] = (struct work_place){from->fd, at};
	else if (file_pread(
		     from->fd, w->weights + want->begin, (size_t)(want->end - want->begin), at))
		return err_set(why, ERR_IO, "%s cannot be read", from->name);
	return ERR_OK;
}

static enum err
make_room(struct work_files *f, const struct work *w, size_t count, struct why *why)
{
	f->after = calloc(w->table.count + 1, sizeof(*f->after));
	f->left = calloc(count + 1, sizeof(*f->left));
	if (!f->after || !f->left)
		return err_set(why, ERR_NOMEM, "no memory for places of tensors");
	for (size_t i = 0; i < w->table.count; i++)
		f->after[i].fd = -1;
	return ERR_OK;
}

/* Passes the open files to f: they stay open until the task is over, even if their names are gone. */
static void
hold(struct work_files *f, struct after *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (files[i].fd < 0)
			continue;
		f->left[f->left_count++] = (struct work_left){files[i].fd, files[i].stat};
		files[i].fd = -1;
	}
}

enum err
after_file_take(struct work *w, int directory, const struct report_file *report, struct why *why)
{
	size_t count = report->after_count;
	struct after *files = calloc(count + 1, sizeof(*files));
	enum err e = files ? ERR_OK : err_set(why, ERR_NOMEM, "no memory for files of tensors");

	for (size_t i = 0; files && i < count; i++)
		files[i] = (struct after){.name = report->after[i], .fd = -1};
	if (!e && w->files)
		e = make_room(w->files, w, count, why);
	for (size_t i = 0; !e && i < count; i++)
		e = open_file(&files[i], directory, why);
	for (size_t i = 0; !e && i < w->table.count; i++)
		if (w->table.items[i].in_delta || w->table.items[i].role == TENSOR_LOCAL)
			e = take_tensor(w, &w->table.items[i], files, count, why);
	if (!e && w->files)
		hold(w->files, files, count);
	for (size_t i = 0; files && i < count; i++) {
		tensor_table_deinit(&files[i].table);
		if (files[i].fd >= 0)
			close(files[i].fd);
	}
	free(files);
	return e;
}

/* --- what it wants kept */

static enum err
read_file(const void *context, void *out, size_t len, uint64_t at)
{
	return file_pread(*(const int *)context, out, len, at);
}

enum err
after_file_keep(
    const struct work *w, int directory, const char *home, uint64_t max_bytes, struct why *why)
{
	struct why inner = {""};
	struct stat st;
	int fd;
	enum err e = wild_open(&fd, directory, AFTER_FILE_KEEP, INT64_MAX, &inner);

	if (e == ERR_NOTFOUND)
		return ERR_OK;
	if (!e && fstat(fd, &st) != 0)
		e = err_errno(&inner, "stat");
	if (!e) {
		const struct program_state_source source = {read_file, &fd, (uint64_t)st.st_size};
		e = program_state_keep(w, home, max_bytes, &source, &inner);
	}
	if (fd >= 0)
		close(fd);
	return e ? err_set(why, e, AFTER_FILE_KEEP ": %.200s", inner.text) : ERR_OK;
}
