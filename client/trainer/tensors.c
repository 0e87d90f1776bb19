#include "tensors.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "modelfile.h"
#include "widen.h"

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

enum err
tensors_open(struct tensors *out, const char *path, struct why *why)
{
	struct tensors t = {.data = NULL};
	struct why detail = {""};
	uint64_t at = 0;
	enum err e = open_wide(&t.file, path, why);

	if (e)
		return e;
	e = modelfile_data_at(t.file.data, t.file.len, &at, &detail);
	if (!e)
		e = modelfile_parse(&t.table, NULL, t.file.data, (size_t)at, t.file.len, &detail);
	if (e) {
		tensors_close(&t);
		return err_set(why, e, "%.100s: %.140s", path, detail.text);
	}
	t.data = t.file.data + at;
	*out = t;
	return ERR_OK;
}

void
tensors_close(struct tensors *t)
{
	file_unmap(&t->file);
	tensor_table_deinit(&t->table);
	memset(t, 0, sizeof(*t));
}
