#include "task_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cage.h"
#include "examples_file.h"
#include "file.h"
#include "identity.h"
#include "task_file.h"

#define COPY_BLOCK (256u << 10)

/* A copy, never a link: a trainer that writes to its base must not spoil the cache. */
static enum err
copy_file(const char *from, const char *to, struct why *why)
{
	char *block = malloc(COPY_BLOCK);
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	enum err e = in < 0 || out < 0 ? err_errno(why, "copy %s to %s", from, to) : ERR_OK;
	uint64_t at = 0;

	if (!e && !block)
		e = err_set(why, ERR_NOMEM, "no memory");
	while (!e) {
		ssize_t n = read(in, block, COPY_BLOCK);
		if (n == 0)
			break;
		e = n < 0 ? ERR_IO : file_pwrite(out, block, (size_t)n, at);
		if (e)
			err_errno(why, "copy %s to %s", from, to);
		at += n > 0 ? (uint64_t)n : 0;
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	free(block);
	return e;
}

/* The program runs in that directory, where a relative name would mean something else. */
static enum err
make_absolute(char dir[PATH_MAX], struct why *why)
{
	char *full = realpath(dir, NULL);

	if (!full || strlen(full) >= PATH_MAX) {
		free(full);
		return err_errno(why, "resolve %s", dir);
	}
	strcpy(dir, full);
	free(full);
	return ERR_OK;
}

static enum err
fill(const struct task_directory *d, const struct task_directory_options *from, struct why *why)
{
	char examples[PATH_MAX], path[PATH_MAX];
	const struct task_file task = {.work = from->work,
	    .data = from->data,
	    .device = from->device,
	    .threads = from->settings->threads,
	    .examples = examples};
	enum err e = identity_path(examples, d->path, "examples.safetensors", why);

	if (!e)
		e = examples_file_write(examples, from->train, from->validation, why);
	if (!e)
		e = identity_path(path, d->path, "base.safetensors", why);
	if (!e)
		e = copy_file(from->work->path, path, why);
	if (!e)
		e = identity_path(path, d->path, "task.json", why);
	return e ? e : task_file_write(path, &task, why);
}

enum err
task_directory_make(
    struct task_directory *out, const struct task_directory_options *from, struct why *why)
{
	int n = snprintf(
	    out->path, sizeof(out->path), "%s/work/%.32s", from->home, from->work->task.task);

	if (n < 0 || (size_t)n >= sizeof(out->path))
		return err_set(why, ERR_LIMIT, "path too long");
	enum err e = file_remove_dir(out->path, why);
	if (!e)
		e = cage_prepare(from->home, from->trainer->name, why);
	if (!e)
		e = file_mkdirs(out->path, 0700, why);
	if (!e)
		e = make_absolute(out->path, why);
	return e ? e : fill(out, from, why);
}

void
task_directory_remove(struct task_directory *d)
{
	(void)!file_remove_dir(d->path, NULL);
}

void
task_directory_clean(const char *home)
{
	char work[PATH_MAX];

	if (identity_path(work, home, "work", NULL) == ERR_OK)
		(void)!file_remove_dir(work, NULL);
}
