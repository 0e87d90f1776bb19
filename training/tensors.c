#include "tensors.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "modelfile.h"
#include "widen.h"

static enum err
open_plain(struct file_map *out, const char *path, struct why *why)
{
	return file_map(out, path, SIZE_MAX / 4, false, why);
}

static enum err
open_wide(struct file_map *out, const char *path, struct why *why)
{
	struct widen_note note;
	char copy[32];
	int fd;
	enum err e = widen_open(&fd, &note, path, why);

	if (e)
		return e;
	/* A copy has no other name. */
	snprintf(copy, sizeof(copy), "/proc/self/fd/%d", fd);
	e = file_map(out, copy, SIZE_MAX / 4, false, why);
	close(fd);
	return e;
}

static enum err
read_head(struct tensors *t, const char *path, struct why *why)
{
	struct why detail = {""};
	uint64_t at = 0;

	if (t->file.len < MODELFILE_PREFIX)
		return err_set(why, ERR_INVALID, "%s is too short for a model", path);
	enum err e = modelfile_data_at(t->file.data, t->file.len, &at, &detail);
	if (!e)
		e = modelfile_parse(
		    &t->table, NULL, t->file.data, (size_t)at, t->file.len, &detail);
	t->data = t->file.data + at;
	return e ? err_set(why, e, "%.100s: %.140s", path, detail.text) : ERR_OK;
}

static enum err
open_with(struct tensors *out, enum err (*map)(struct file_map *, const char *, struct why *),
    const char *path, struct why *why)
{
	*out = (struct tensors){.data = NULL};
	enum err e = map(&out->file, path, why);
	if (!e)
		e = read_head(out, path, why);
	if (e)
		tensors_close(out);
	return e;
}

enum err
tensors_open(struct tensors *out, const char *path, struct why *why)
{
	return open_with(out, open_wide, path, why);
}

enum err
tensors_open_plain(struct tensors *out, const char *path, struct why *why)
{
	return open_with(out, open_plain, path, why);
}

void
tensors_close(struct tensors *t)
{
	file_unmap(&t->file);
	tensor_table_deinit(&t->table);
	memset(t, 0, sizeof(*t));
}
