#include "program_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "disuse.h"
#include "fault.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "modelfile.h"
#include "outbox.h"

#define HEX 32
#define STATE ".state"
#define NEXT ".next"
#define DAYS_KEPT 30
#define BLOCK ((size_t)64 << 10)

_Static_assert(DEVICEFILE_NAME_MAX == RECIPE_NAME_MAX, "a trainer's name fits");

static enum err
path_of(char out[PATH_MAX], const char *home, const char *id, const char *suffix, struct why *why)
{
	int n = snprintf(out, PATH_MAX, "%s/kept/%.32s%s", home, id, suffix);

	return n > 0 && n < PATH_MAX ? ERR_OK : err_set(why, ERR_LIMIT, "path too long");
}

static bool
has_name(const char *name, const char *suffix)
{
	return strspn(name, "0123456789abcdef") == HEX && strcmp(name + HEX, suffix) == 0;
}

static DIR *
open_dir(const char *home)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/kept", home);

	return n > 0 && (size_t)n < sizeof(path) ? opendir(path) : NULL;
}

enum err
program_state_init(const char *home, const struct outbox *o, struct why *why)
{
	char path[PATH_MAX];
	enum err e = path_of(path, home, "", "", why);
	DIR *d = e ? NULL : open_dir(home);
	struct dirent *ent;
	struct stat st;

	while (d && (ent = readdir(d))) {
		bool next = has_name(ent->d_name, NEXT), state = has_name(ent->d_name, STATE);
		if (fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if ((next && !outbox_has(o, ent->d_name)) || (!next && !state) ||
		    (state && !disuse_is_within(&st, DAYS_KEPT) &&
			disuse_is_over(dirfd(d), ent->d_name, DAYS_KEPT)))
			unlinkat(dirfd(d), ent->d_name, 0);
	}
	if (d)
		closedir(d);
	return e;
}

/* --- to whom it belongs */

static void
hash_tensor(struct hash *hash, const struct tensor *t)
{
	uint8_t numbers[8 * (TENSOR_DIMS_MAX + 2)];
	struct bytes_writer w = bytes_writer(numbers, sizeof(numbers));

	bytes_put_u64(&w, (uint64_t)t->dtype);
	bytes_put_u64(&w, t->dims);
	for (unsigned i = 0; i < t->dims; i++)
		bytes_put_u64(&w, t->shape[i]);
	hash_update(hash, t->name, strlen(t->name) + 1);
	hash_update(hash, numbers, sizeof(numbers) - w.left);
}

/* All of the head but the count. */
static enum err
describe(struct devicefile *out, const struct work *w, struct why *why)
{
	const struct task *t = &w->task;
	struct hash *hash = hash_new();

	*out = (struct devicefile){.kind = DEVICEFILE_KEPT, .round = t->round};
	if (!hash)
		return err_set(why, ERR_NOMEM, "no memory for a hash");
	hash_start(hash);
	for (size_t i = 0; i < w->table.count; i++)
		hash_tensor(hash, &w->table.items[i]);
	hash_finish(hash, out->table);
	hash_free(hash);
	memcpy(out->trainer, t->recipe.trainer, strlen(t->recipe.trainer));
	if (!hex_decode(out->job, sizeof(out->job), t->job, strlen(t->job)) ||
	    !hex_decode(out->task, sizeof(out->task), t->task, strlen(t->task)) ||
	    !hex_decode(out->base, sizeof(out->base), t->model, strlen(t->model)))
		return err_set(why, ERR_INVALID, "ids are not hex");
	return ERR_OK;
}

static bool
is_same_owner(const struct devicefile *a, const struct devicefile *b)
{
	return memcmp(a->job, b->job, sizeof(a->job)) == 0 &&
	    memcmp(a->table, b->table, sizeof(a->table)) == 0 &&
	    strcmp(a->trainer, b->trainer) == 0;
}

/* Whoever uses it shows that the job goes on: the file's time begins anew, and it has no mark (disuse.h). */
static void
note_use(const struct kept *k)
{
	(void)!fchmod(k->fd, 0600);
	(void)!futimens(k->fd, NULL);
}

enum err
program_state_open(struct kept *out, const struct work *w, const char *home, struct why *why)
{
	struct devicefile want;
	char path[PATH_MAX];

	out->fd = -1;
	enum err e = path_of(path, home, w->task.job, STATE, why);
	if (!e)
		e = describe(&want, w, why);
	if (!e)
		e = kept_open(out, DEVICEFILE_KEPT, path, why);
	if (!e && !is_same_owner(&out->file, &want)) {
		e = err_set(why, ERR_CORRUPT, "%s is of another trainer or model", path);
		kept_close(out);
	}
	if (e == ERR_CORRUPT)
		unlink(path);
	if (!e)
		note_use(out);
	return e;
}

enum err
program_state_copy(const struct kept *k, int fd, struct why *why)
{
	uint8_t *block = malloc(BLOCK);
	enum err e = block ? ERR_OK : err_set(why, ERR_NOMEM, "no memory for a block");

	for (uint64_t at = 0; !e && at < k->file.count; at += BLOCK) {
		uint64_t left = k->file.count - at;
		size_t n = left < BLOCK ? (size_t)left : BLOCK;
		e = kept_read(k, block, n, at);
		if (!e)
			e = file_pwrite(fd, block, n, at);
		if (e)
			err_errno(why, "copy what was kept");
	}
	free(block);
	return e;
}

/* --- room */

/* Only its head: whether the hash is right is seen by who reads the body. */
static enum err
read_head(int dir, const char *name, struct devicefile *out)
{
	uint8_t head[DEVICEFILE_HEAD_MAX] = {0};
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;
	enum err e = fd >= 0 && fstat(fd, &st) == 0 ? ERR_OK : err_errno(NULL, "open");

	if (!e) {
		size_t len =
		    (uint64_t)st.st_size < sizeof(head) ? (size_t)st.st_size : sizeof(head);
		e = file_pread(fd, head, len, 0);
	}
	if (!e)
		e = devicefile_decode(out, head, (uint64_t)st.st_size, NULL);
	if (!e && out->kind != DEVICEFILE_KEPT)
		e = ERR_CORRUPT;
	if (fd >= 0)
		close(fd);
	return e;
}

struct held {
	uint64_t bytes; /* of all files but the task's own */
	uint64_t serial; /* the largest of the job's */
	bool has_state; /* of the job */
};

static struct held
look(const struct work *w, const char *home)
{
	struct held held = {.bytes = 0};
	DIR *d = open_dir(home);
	struct devicefile file;
	struct dirent *ent;
	uint8_t job[16];
	struct stat st;

	bool known = hex_decode(job, sizeof(job), w->task.job, strlen(w->task.job));
	while (d && (ent = readdir(d))) {
		bool own =
		    has_name(ent->d_name, NEXT) && strncmp(ent->d_name, w->task.task, HEX) == 0;
		if (own || fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		held.bytes += (uint64_t)st.st_size;
		if (!known || read_head(dirfd(d), ent->d_name, &file) ||
		    memcmp(file.job, job, sizeof(job)) != 0)
			continue;
		held.has_state |= has_name(ent->d_name, STATE);
		held.serial = file.serial > held.serial ? file.serial : held.serial;
	}
	if (d)
		closedir(d);
	return held;
}

static uint64_t
room_beside(const struct held *held, uint64_t max_bytes)
{
	const uint64_t around = devicefile_bytes(DEVICEFILE_KEPT, 0);
	uint64_t left = held->bytes < max_bytes ? max_bytes - held->bytes : 0;

	if (!held->has_state)
		left /= 2;
	return left > around ? left - around : 0;
}

uint64_t
program_state_room(const struct work *w, const char *home, uint64_t max_bytes)
{
	const struct held held = look(w, home);

	return room_beside(&held, max_bytes);
}

/* --- a task's */

/* As it lies in the file that was written: what it was made of may have changed since. */
static enum err
check_format(int fd, uint64_t bytes, struct why *why)
{
	const uint64_t at = devicefile_head(DEVICEFILE_KEPT);
	struct tensor_table table = {.count = 0};
	uint8_t prefix[MODELFILE_PREFIX];
	uint64_t data_at = 0;

	if (bytes < sizeof(prefix) || file_pread(fd, prefix, sizeof(prefix), at))
		return err_set(why, ERR_INVALID, "it is too short");
	enum err e = modelfile_data_at(prefix, bytes, &data_at, why);
	if (e)
		return e;
	char *head = malloc((size_t)data_at);
	if (!head)
		return err_set(why, ERR_NOMEM, "no memory for its header");
	e = file_pread(fd, head, (size_t)data_at, at);
	if (!e)
		e = modelfile_parse(&table, NULL, head, (size_t)data_at, bytes, why);
	tensor_table_deinit(&table);
	free(head);
	return e;
}

static enum err
copy(struct kept_new *to, const struct program_state_source *from, struct why *why)
{
	uint8_t *block = malloc(BLOCK);
	enum err e = block ? ERR_OK : err_set(why, ERR_NOMEM, "no memory for a block");

	for (uint64_t at = 0; !e && at < from->bytes; at += BLOCK) {
		size_t n = from->bytes - at < BLOCK ? (size_t)(from->bytes - at) : BLOCK;
		e = from->read(from->context, block, n, at);
		if (e)
			err_set(why, e, "what is to be kept cannot be read");
		else
			e = kept_new_add(to, block, n, why);
	}
	free(block);
	return e;
}

static enum err
write_next(const struct devicefile *file, const char *path,
    const struct program_state_source *source, struct why *why)
{
	struct why inner = {""};
	struct kept_new k;
	enum err e = kept_new(&k, file, path, why);

	if (!e)
		e = copy(&k, source, why);
	if (!e && (e = check_format(k.fd, file->count, &inner)))
		e = err_set(why, e == ERR_NOMEM || e == ERR_IO ? e : ERR_INVALID,
		    "what is to be kept is no safetensors file: %.180s",
		    *inner.text ? inner.text : err_name(e));
	if (!e)
		e = kept_new_finish(&k, why);
	kept_new_deinit(&k);
	return e;
}

enum err
program_state_keep(const struct work *w, const char *home, uint64_t max_bytes,
    const struct program_state_source *source, struct why *why)
{
	const struct held held = look(w, home);
	const uint64_t room = room_beside(&held, max_bytes);
	char path[PATH_MAX], dir[PATH_MAX];
	struct devicefile file;

	if (w->task.kind != TASK_TRAIN)
		return err_set(why, ERR_STATE, "a task that evaluates keeps nothing");
	if (source->bytes > room)
		return err_set(why, ERR_LIMIT,
		    "a state of %llu bytes, and there is room for %llu: kept_bytes is %llu, %s",
		    (unsigned long long)source->bytes, (unsigned long long)room,
		    (unsigned long long)max_bytes,
		    held.has_state ? "of which others take a part"
				   : "and the next state needs as much beside it");
	enum err e = path_of(path, home, w->task.task, NEXT, why);
	if (!e)
		e = describe(&file, w, why);
	if (e)
		return e;
	file.count = source->bytes;
	file.serial = held.serial + 1;
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
	e = file_mkdirs(dir, 0700, why);
	if (!e)
		e = write_next(&file, path, source, why);
	FAULT("state.kept");
	return e;
}

/* Is what is in force for its job younger? A file that is not whole is not. */
static bool
is_overtaken(const char *state, const struct devicefile *next)
{
	struct devicefile file;

	return read_head(AT_FDCWD, state, &file) == ERR_OK && file.serial > next->serial;
}

enum err
program_state_accept(const char *home, const char *task, struct why *why)
{
	char next[PATH_MAX], state[PATH_MAX], job[HEX + 1];
	struct devicefile file;
	enum err e = path_of(next, home, task, NEXT, why);

	if (e)
		return e;
	e = read_head(AT_FDCWD, next, &file);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	if (e == ERR_CORRUPT) {
		/* It can't be in force ever. */
		program_state_refuse(home, task);
		return ERR_OK;
	}
	if (e)
		return err_set(why, e, "%s cannot be read", next);
	hex_encode(job, file.job, sizeof(file.job));
	e = path_of(state, home, job, STATE, why);
	if (e)
		return e;
	if (is_overtaken(state, &file)) {
		program_state_refuse(home, task);
		return ERR_OK;
	}
	/* The file was synced when it was kept. */
	e = file_rename(next, state, why);
	FAULT("state.accepted");
	return e;
}

void
program_state_refuse(const char *home, const char *task)
{
	char path[PATH_MAX];

	if (path_of(path, home, task, NEXT, NULL) == ERR_OK)
		unlink(path);
	FAULT("state.gone");
}
