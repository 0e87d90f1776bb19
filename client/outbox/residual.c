#include "residual.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "fault.h"
#include "file.h"
#include "hash.h"
#include "hex.h"

#define HEAD 64
#define ID 16
#define HEX (2 * ID)
#define SUM ".sum"
#define CHANGE ".change"
#define DAY 86400.0
#define DAYS_KEPT 30
#define FILE_MAX ((size_t)(SIZE_MAX / 2 < UINT64_C(1) << 36 ? SIZE_MAX / 2 : UINT64_C(1) << 36))

/* One file, whole in memory. */
struct vector {
	uint8_t *data;
	size_t len;
	uint64_t elements;
	uint8_t job[ID], task[ID];
};

static void
path_of(const struct residual *r, const char *id, const char *suffix, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%.32s%s", r->dir, id, suffix);
}

static float *
floats(const struct vector *v)
{
	return (float *)(void *)(v->data + HEAD);
}

/* --- a file */

static enum err
load(struct vector *v, const char *path, struct why *why)
{
	char magic[4], *data = NULL;
	uint8_t hash[HASH_LEN];

	*v = (struct vector){.data = NULL};
	enum err e = file_read(path, FILE_MAX, &data, &v->len, why);
	if (e)
		return e;
	v->data = (uint8_t *)data;
	struct bytes_reader b = bytes_reader(v->data, v->len);
	bytes_get(&b, magic, sizeof(magic));
	bool right = bytes_get_u32(&b) == 0 && memcmp(magic, "RVE1", sizeof(magic)) == 0;
	v->elements = bytes_get_u64(&b);
	bytes_get(&b, v->job, ID);
	bytes_get(&b, v->task, ID);
	right = right && !b.bad && v->elements <= v->len / sizeof(float) &&
	    v->len == HEAD + v->elements * sizeof(float) + HASH_LEN;
	if (right) {
		hash_sha256(hash, v->data, v->len - HASH_LEN);
		right = memcmp(hash, v->data + v->len - HASH_LEN, HASH_LEN) == 0;
	}
	if (right)
		return ERR_OK;
	free(v->data);
	v->data = NULL;
	return err_set(why, ERR_CORRUPT, "%s is damaged", path);
}

static enum err
make(struct vector *v, uint64_t elements)
{
	*v = (struct vector){.elements = elements};
	if (elements > (SIZE_MAX - HEAD - HASH_LEN) / sizeof(float))
		return ERR_LIMIT;
	v->len = HEAD + (size_t)elements * sizeof(float) + HASH_LEN;
	v->data = calloc(1, v->len);
	return v->data ? ERR_OK : ERR_NOMEM;
}

static enum err
save(struct vector *v, const char *path, struct why *why)
{
	struct bytes_writer b = bytes_writer(v->data, HEAD);

	bytes_put(&b, "RVE1", 4);
	bytes_put_u32(&b, 0);
	bytes_put_u64(&b, v->elements);
	bytes_put(&b, v->job, ID);
	bytes_put(&b, v->task, ID);
	bytes_put_zeros(&b, b.left);
	hash_sha256(v->data + v->len - HASH_LEN, v->data, v->len - HASH_LEN);
	return file_write(path, v->data, v->len, 0600, why);
}

/* --- the directory */

static bool
has_name(const char *name, const char *suffix)
{
	return strspn(name, "0123456789abcdef") == HEX && strcmp(name + HEX, suffix) == 0;
}

/* Bytes of all files but one; *oldest: of the other jobs' sums the one without a change for longest, and for a day. */
static uint64_t
bytes_held(const struct residual *r, const char *but, const char *job, char oldest[PATH_MAX])
{
	DIR *d = opendir(r->dir);
	time_t before = time(NULL) - (time_t)DAY;
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
	struct vector change, sum = {.data = NULL};
	char path[PATH_MAX], job[HEX + 1];

	path_of(r, task, CHANGE, path);
	if (load(&change, path, NULL))
		return true; /* of no use either way */
	hex_encode(job, change.job, ID);
	path_of(r, job, SUM, path);
	bool added = load(&sum, path, NULL) == ERR_OK && memcmp(sum.task, change.task, ID) == 0;
	free(sum.data);
	free(change.data);
	return added;
}

enum err
residual_init(struct residual *r, const char *home, uint64_t max_bytes, const struct outbox *o,
    struct why *why)
{
	time_t before = time(NULL) - (time_t)(DAYS_KEPT * DAY);
	struct dirent *ent;
	struct stat st;
	int n = snprintf(r->dir, sizeof(r->dir), "%s/residual", home);

	if (n < 0 || (size_t)n >= sizeof(r->dir))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", home);
	r->max_bytes = max_bytes;
	DIR *d = opendir(r->dir);
	while (d && (ent = readdir(d))) {
		bool change = has_name(ent->d_name, CHANGE), sum = has_name(ent->d_name, SUM);
		if (fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if ((change && (!outbox_has(o, ent->d_name) || is_added(r, ent->d_name))) ||
		    (sum && st.st_mtime < before) || (!change && !sum))
			unlinkat(dirfd(d), ent->d_name, 0);
	}
	if (d)
		closedir(d);
	return ERR_OK;
}

/* --- a delta's course */

enum err
residual_add(
    const struct residual *r, const char *job, float *values, uint64_t elements, struct why *why)
{
	char path[PATH_MAX];
	struct vector sum;

	path_of(r, job, SUM, path);
	enum err e = load(&sum, path, why);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	if (!e && sum.elements != elements)
		e = err_set(why, ERR_CORRUPT, "%s is of another model", path);
	for (uint64_t i = 0; !e && i < elements; i++)
		values[i] += floats(&sum)[i];
	if (e == ERR_CORRUPT)
		unlink(path);
	free(sum.data);
	return e;
}

enum err
residual_keep(const struct residual *r, const char *job, const char *task, const float *change,
    uint64_t elements, struct why *why)
{
	char path[PATH_MAX], name[HEX + sizeof(CHANGE)];
	struct vector v;

	enum err e = file_mkdirs(r->dir, 0700, why);
	if (e)
		return e;
	e = make(&v, elements);
	if (e)
		return err_set(why, e, "no memory for the residual");
	snprintf(name, sizeof(name), "%.32s%s", task, CHANGE);
	path_of(r, task, CHANGE, path);
	if (!hex_decode(v.job, ID, job, HEX) || !hex_decode(v.task, ID, task, HEX))
		e = err_set(why, ERR_INVALID, "ids are not hex");
	if (!e)
		e = make_room(r, job, name, v.len, why);
	if (!e) {
		memcpy(floats(&v), change, (size_t)elements * sizeof(float));
		e = save(&v, path, why);
	}
	free(v.data);
	FAULT("residual.kept");
	return e;
}

/* What the sum counts last may still lie there as a change: from the next one on nobody could tell that it was added. */
static enum err
settle(const struct residual *r, const struct vector *sum, struct why *why)
{
	char last[HEX + 1], path[PATH_MAX];

	hex_encode(last, sum->task, ID);
	path_of(r, last, CHANGE, path);
	if (access(path, F_OK) != 0)
		return ERR_OK;
	return unlink(path) == 0 ? file_sync_dir(r->dir, why) : err_errno(why, "remove %s", path);
}

static enum err
add_change(const struct residual *r, const struct vector *change, struct why *why)
{
	char job[HEX + 1], path[PATH_MAX];
	struct vector sum;

	hex_encode(job, change->job, ID);
	path_of(r, job, SUM, path);
	enum err e = load(&sum, path, why);
	if (!e && memcmp(sum.task, change->task, ID) == 0) {
		free(sum.data);
		return ERR_OK;
	}
	if (!e)
		e = settle(r, &sum, why);
	/* Without one, or with one that is of no use, the residual begins with this change. */
	if (e == ERR_NOTFOUND || e == ERR_CORRUPT || (!e && sum.elements != change->elements)) {
		free(sum.data);
		e = make(&sum, change->elements);
		memcpy(sum.job, change->job, ID);
	}
	for (uint64_t i = 0; !e && i < sum.elements; i++)
		floats(&sum)[i] += floats(change)[i];
	memcpy(sum.task, change->task, ID);
	if (!e)
		e = save(&sum, path, why);
	free(sum.data);
	return e;
}

enum err
residual_accept(const struct residual *r, const char *task, struct why *why)
{
	char path[PATH_MAX];
	struct vector change;

	path_of(r, task, CHANGE, path);
	enum err e = load(&change, path, why);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	if (!e)
		e = add_change(r, &change, why);
	free(change.data);
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
