#include "scaffold.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec_elements.h"
#include "disuse.h"
#include "err.h"
#include "fault.h"
#include "file.h"
#include "kept.h"
#include "training.h"
#include "variate.h"

#define JOB_HEX 32
#define DAYS_KEPT 90
#define TILE 4096 /* elements worked on at a time */

/* --- the directory */

/* Was neither of the job's files written or put in its place since? What counts may lie in either. */
static bool
is_old(int dir, const char *name)
{
	static const char *const suffixes[] = {".own", ".next"};
	char path[JOB_HEX + 8];
	struct stat st;

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%.32s%s", name, suffixes[i]);
		if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    disuse_is_within(&st, DAYS_KEPT))
			return false;
	}
	return true;
}

static bool
is_variate(const char *name)
{
	return strspn(name, "0123456789abcdef") == JOB_HEX &&
	    (strcmp(name + JOB_HEX, ".own") == 0 || strcmp(name + JOB_HEX, ".next") == 0);
}

/* What is to be done with a file at a start. */
enum fate { KEEP, DROP, AGE };

static enum fate
fate_of(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return KEEP;
	return !is_variate(name) ? DROP : is_old(dir, name) ? AGE : KEEP;
}

enum err
scaffold_init(const char *home, struct why *why)
{
	char path[PATH_MAX];
	struct dirent **list = NULL;
	int len = snprintf(path, sizeof(path), "%s/variates", home);

	if (len < 0 || (size_t)len >= sizeof(path))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", home);
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = dir < 0 ? 0 : scandir(path, &list, NULL, NULL);
	enum fate *fates = n > 0 ? calloc((size_t)n, sizeof(*fates)) : NULL;
	/* All of them before the first is touched: the two of a job stay or go together. */
	for (int i = 0; fates && i < n; i++)
		fates[i] = fate_of(dir, list[i]->d_name);
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		if (fates &&
		    (fates[i] == DROP || (fates[i] == AGE && disuse_is_over(dir, name, DAYS_KEPT))))
			unlinkat(dir, name, 0);
		free(list[i]);
	}
	free(fates);
	free(list);
	if (dir >= 0)
		close(dir);
	return ERR_OK;
}

enum err
scaffold_path(
    char out[PATH_MAX], const struct work *w, const char *home, const char *suffix, struct why *why)
{
	int n = snprintf(out, PATH_MAX, "%s/variates/%.32s%s", home, w->task.job, suffix);

	return n > 0 && n < PATH_MAX ? ERR_OK : err_set(why, ERR_LIMIT, "path too long");
}

/* --- the own variate's files */

/* Opens the file as w->own if it is of this round. */
static bool
open_own(struct work *w, const char *home, const char *suffix, uint64_t round)
{
	char path[PATH_MAX];
	struct kept k;

	if (scaffold_path(path, w, home, suffix, NULL) ||
	    kept_open(&k, DEVICEFILE_VARIATE, path, NULL))
		return false;
	if (k.file.round != round || k.file.count != w->table.elements) {
		kept_close(&k);
		return false;
	}
	w->own = (struct work_vector){
	    .in_file = true, .fd = k.fd, .at = devicefile_head(DEVICEFILE_VARIATE)};
	return true;
}

/* The new file has its place for good before it is used. */
static enum err
promote(const struct work *w, const char *home, struct why *why)
{
	char next[PATH_MAX], own[PATH_MAX];
	enum err e = scaffold_path(next, w, home, ".next", why);

	if (!e)
		e = scaffold_path(own, w, home, ".own", why);
	if (e)
		return e;
	int fd = open(next, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_errno(why, "open %s", next);
	e = file_commit(fd, next, own, why);
	close(fd);
	FAULT("client.promoted");
	return e;
}

static enum err
find_own(struct work *w, const char *home, struct why *why)
{
	uint64_t counted = w->task.counted;

	if (counted == 0)
		return ERR_OK;
	if (open_own(w, home, ".next", counted))
		return promote(w, home, why);
	return open_own(w, home, ".own", counted)
	    ? ERR_OK
	    : err_set(why, ERR_STATE,
		  "the control variate that counts since round %llu is not in this home",
		  (unsigned long long)counted);
}

static bool
is_zero(const float *x, size_t n)
{
	size_t i = 0;

	while (i < n && !(x[i] > 0) && !(x[i] < 0))
		i++;
	return i == n;
}

enum err
scaffold_load(struct work *w, const char *home, struct why *why)
{
	char dir[PATH_MAX];

	int len = snprintf(dir, sizeof(dir), "%s/variates", home);
	if (len < 0 || (size_t)len >= sizeof(dir))
		return err_set(why, ERR_LIMIT, "path too long");
	enum err e = file_mkdirs(dir, 0700, why);
	return e ? e : find_own(w, home, why);
}

enum err
scaffold_shift(const struct work *w, uint64_t first, size_t count, float *out)
{
	const struct codec_elements_pair both = {
	    work_vector_values(&w->server), work_vector_values(&w->own), true};
	const struct codec_elements values = codec_elements_of(&both);

	return values.read(values.context, first, count, out);
}

enum err
scaffold_correct(struct work *w, struct why *why)
{
	size_t n = (size_t)w->table.elements;

	if (w->streams)
		return ERR_OK;
	w->shift = malloc(n * sizeof(float));
	if (!w->shift)
		return err_set(why, ERR_NOMEM, "no memory for a variate");
	enum err e = scaffold_shift(w, 0, n, w->shift);
	/* A step without one is made another way, and the first round is to be that of plain averaging. */
	if (e || is_zero(w->shift, n)) {
		free(w->shift);
		w->shift = NULL;
	}
	return e ? err_set(why, e, "a control variate cannot be read") : ERR_OK;
}

/* --- after the training */

struct scaffold_change
scaffold_change_of(
    const struct work *w, const struct codec_elements *delta, unsigned long long steps)
{
	const struct task *t = &w->task;
	double rate = (double)(float)training_rate(&t->recipe.local, t->round);

	return (struct scaffold_change){w, delta, (double)steps * rate};
}

static enum err
read_change(void *context, uint64_t first, size_t count, float *out)
{
	const struct scaffold_change *c = context;
	const struct codec_elements from = work_vector_values(&c->work->server);
	float server[TILE];
	enum err e = c->delta->read(c->delta->context, first, count, out);

	while (!e && count > 0) {
		size_t n = count < TILE ? count : TILE;
		e = from.read(from.context, first, n, server);
		/* With a rate of 0 nothing was learned. */
		if (c->rates > 0)
			variate_change(out, server, out, c->rates, n);
		else
			memset(out, 0, n * sizeof(*out));
		first += n;
		out += n;
		count -= n;
	}
	return e;
}

struct codec_elements
scaffold_change_values(const struct scaffold_change *c)
{
	return (struct codec_elements){read_change, (void *)(uintptr_t)c};
}

enum err
scaffold_keep(
    const struct work *w, const char *home, const struct codec_elements *change, struct why *why)
{
	const struct devicefile file = {
	    .kind = DEVICEFILE_VARIATE, .count = w->table.elements, .round = w->task.round};
	const struct codec_elements_pair next = {work_vector_values(&w->own), *change, false};
	const struct codec_elements values = codec_elements_of(&next);
	char path[PATH_MAX];
	enum err e = scaffold_path(path, w, home, ".next", why);

	if (!e)
		e = kept_write(&file, &values, path, why);
	FAULT("client.variate");
	return e;
}
