#include "residual.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "codec_elements.h"
#include "disuse.h"
#include "fault.h"
#include "file.h"
#include "hex.h"
#include "outbox.h"

#define ID 16
#define HEX (2 * ID)
#define SUM ".sum"
#define CHANGE ".change"
#define DAY 86400.0
#define DAYS_KEPT 30

static void
path_of(const struct residual *r, const char *id, const char *suffix, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%.32s%s", r->dir, id, suffix);
}

/* --- the directory */

static bool
has_name(const char *name, const char *suffix)
{
	return strspn(name, "0123456789abcdef") == HEX && strcmp(name + HEX, suffix) == 0;
}

/* Now by the clock, or, if that has jumped ahead since the start, by the time that has passed: what is in use must not look unused. */
static double
moment(const struct residual *r)
{
	return fmin(clock_wall(), r->began + (clock_seconds() - r->began_steady));
}

/* Bytes of all files but one; *oldest: of the other jobs' sums the one without a change for longest, and for a day. */
static uint64_t
bytes_held(const struct residual *r, const char *but, const char *job, char oldest[PATH_MAX])
{
	DIR *d = opendir(r->dir);
	time_t before = (time_t)(moment(r) - DAY);
	struct dirent *ent;
	struct stat st;
	uint64_t total = 0;

	oldest[0] = '\0';
	while (d && (ent = readdir(d))) {
		if (strcmp(ent->d_name, but) == 0 ||
		    fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		total += (uint64_t)st.st_size;
		if (has_name(ent->d_name, SUM) && strncmp(ent->d_name, job, HEX) != 0 &&
		    st.st_mtime < before) {
			before = st.st_mtime;
			path_of(r, ent->d_name, SUM, oldest);
		}
	}
	if (d)
		closedir(d);
	return total;
}

/* Room for `need` bytes, and as many more where the job has no sum yet that they could be added to. */
static enum err
make_room(
    const struct residual *r, const char *job, const char *but, uint64_t need, struct why *why)
{
	char path[PATH_MAX];

	path_of(r, job, SUM, path);
	if (access(path, F_OK) != 0)
		need *= 2;
	for (;;) {
		uint64_t held = bytes_held(r, but, job, path);
		if (need <= r->max_bytes && held <= r->max_bytes - need)
			return ERR_OK;
		if (!path[0] || unlink(path) != 0)
			return err_set(why, ERR_NOSPACE, "residual_bytes is used up");
	}
}

/* A task's change was added if the sum says so: whatever the sum counts last is in it. */
static bool
is_added(const struct residual *r, const char *task)
{
	struct kept change, sum;
	char path[PATH_MAX], job[HEX + 1];

	path_of(r, task, CHANGE, path);
	if (kept_open(&change, DEVICEFILE_RESIDUAL, path, NULL))
		return true; /* of no use either way */
	hex_encode(job, change.file.job, ID);
	path_of(r, job, SUM, path);
	bool added = kept_open(&sum, DEVICEFILE_RESIDUAL, path, NULL) == ERR_OK &&
	    memcmp(sum.file.task, change.file.task, ID) == 0;
	kept_close(&sum);
	kept_close(&change);
	return added;
}

enum err
residual_init(struct residual *r, const char *home, uint64_t max_bytes, const struct outbox *o,
    struct why *why)
{
	struct dirent *ent;
	struct stat st;
	int n = snprintf(r->dir, sizeof(r->dir), "%s/residual", home);

	if (n < 0 || (size_t)n >= sizeof(r->dir))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", home);
	r->max_bytes = max_bytes;
	r->began = clock_wall();
	r->began_steady = clock_seconds();
	DIR *d = opendir(r->dir);
	while (d && (ent = readdir(d))) {
		bool change = has_name(ent->d_name, CHANGE), sum = has_name(ent->d_name, SUM);
		if (fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if ((change && (!outbox_has(o, ent->d_name) || is_added(r, ent->d_name))) ||
		    (sum && !disuse_is_within(&st, DAYS_KEPT) &&
			disuse_is_over(dirfd(d), ent->d_name, DAYS_KEPT)) ||
		    (!change && !sum))
			unlinkat(dirfd(d), ent->d_name, 0);
	}
	if (d)
		closedir(d);
	return ERR_OK;
}

/* --- the way of a delta */

enum err
residual_open(
    const struct residual *r, const char *job, uint64_t elements, struct kept *out, struct why *why)
{
	char path[PATH_MAX];

	path_of(r, job, SUM, path);
	enum err e = kept_open(out, DEVICEFILE_RESIDUAL, path, why);
	if (!e && out->file.count != elements) {
		e = err_set(why, ERR_CORRUPT, "%s is of another model", path);
		kept_close(out);
	}
	if (e == ERR_CORRUPT)
		unlink(path);
	return e;
}

enum err
residual_keep(const struct residual *r, const char *job, const char *task,
    const struct codec_elements *change, uint64_t elements, struct why *why)
{
	struct devicefile file = {.kind = DEVICEFILE_RESIDUAL, .count = elements};
	char path[PATH_MAX], name[HEX + sizeof(CHANGE)];
	uint64_t bytes = devicefile_bytes(file.kind, elements);

	if (!hex_decode(file.job, ID, job, HEX) || !hex_decode(file.task, ID, task, HEX))
		return err_set(why, ERR_INVALID, "ids are not hex");
	if (bytes == 0)
		return err_set(why, ERR_LIMIT, "a residual of so many elements is too long");
	enum err e = file_mkdirs(r->dir, 0700, why);
	if (e)
		return e;
	snprintf(name, sizeof(name), "%.32s%s", task, CHANGE);
	path_of(r, task, CHANGE, path);
	e = make_room(r, job, name, bytes, why);
	if (!e)
		e = kept_write(&file, change, path, why);
	FAULT("residual.kept");
	return e;
}

/* What the sum counts last may still lie there as a change: from the next one on nobody could tell that it was added. */
static enum err
settle(const struct residual *r, const struct kept *sum, struct why *why)
{
	char last[HEX + 1], path[PATH_MAX];

	hex_encode(last, sum->file.task, ID);
	path_of(r, last, CHANGE, path);
	if (access(path, F_OK) != 0)
		return ERR_OK;
	return unlink(path) == 0 ? file_sync_dir(r->dir, why) : err_errno(why, "remove %s", path);
}

static enum err
add_change(const struct residual *r, const struct kept *change, struct why *why)
{
	char job[HEX + 1], path[PATH_MAX];
	struct kept sum;

	hex_encode(job, change->file.job, ID);
	path_of(r, job, SUM, path);
	enum err e = kept_open(&sum, DEVICEFILE_RESIDUAL, path, why);
	if (!e && memcmp(sum.file.task, change->file.task, ID) == 0) {
		kept_close(&sum);
		return ERR_OK;
	}
	if (!e)
		e = settle(r, &sum, why);
	/* Without one, or with one that is of no use, the residual begins with this change. */
	if (e == ERR_NOTFOUND || e == ERR_CORRUPT || (!e && sum.file.count != change->file.count)) {
		kept_close(&sum);
		e = ERR_OK;
	}
	struct codec_elements_pair both = {.b = kept_values(change)};
	if (sum.fd >= 0)
		both.a = kept_values(&sum);
	const struct codec_elements values = codec_elements_of(&both);
	if (!e)
		e = kept_write(&change->file, &values, path, why);
	kept_close(&sum);
	return e;
}

enum err
residual_accept(const struct residual *r, const char *task, struct why *why)
{
	char path[PATH_MAX];
	struct kept change;

	path_of(r, task, CHANGE, path);
	enum err e = kept_open(&change, DEVICEFILE_RESIDUAL, path, why);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	if (!e)
		e = add_change(r, &change, why);
	kept_close(&change);
	FAULT("residual.added");
	/* A damaged one can't be added ever. */
	if (!e || e == ERR_CORRUPT)
		residual_refuse(r, task);
	return e == ERR_CORRUPT ? ERR_OK : e;
}

enum err
residual_forget(const struct residual *r, const char *job, struct why *why)
{
	char path[PATH_MAX];

	path_of(r, job, SUM, path);
	if (access(path, F_OK) != 0)
		return ERR_NOTFOUND;
	return unlink(path) == 0 ? file_sync_dir(r->dir, why) : err_errno(why, "remove %s", path);
}

void
residual_refuse(const struct residual *r, const char *task)
{
	char path[PATH_MAX];

	path_of(r, task, CHANGE, path);
	unlink(path);
	FAULT("residual.gone");
}
