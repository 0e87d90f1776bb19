#include "spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "file.h"
#include "hash.h"
#include "hex.h"

#define SUFFIX_PART ".part"
#define SUFFIX_DELTA ".delta"
#define PATH_ROOM 1100

struct spool_slot {
	struct spool_slot *next;
	uint8_t task[16], device[32], job[16];
	uint64_t round;
	uint64_t bytes; /* counted against the quota */
	uint64_t idle_since_ms;
	struct spool_part *live; /* NULL between two transfers */
};

struct spool {
	char dir[1024];
	uint64_t quota;
	bool memory, sealed;
	struct delta_key key;
	atomic_uint_least64_t used;
	atomic_bool dirty; /* names changed since the last directory sync */
	pthread_mutex_t
	    lock; /* guards slots, the names of parts, and which part is live; then a part's own lock */
	struct spool_slot *slots;
};

static void
path_of(const struct spool *s, const uint8_t task[16], const char *suffix, char out[PATH_ROOM])
{
	char hex[33];

	hex_encode(hex, task, 16);
	snprintf(out, PATH_ROOM, "%s/%s%s", s->dir, hex, suffix);
}

const struct delta_key *
spool_key(const struct spool *s)
{
	return s->sealed ? &s->key : NULL;
}

enum err
spool_open(struct spool **out, const struct spool_options *options, struct why *why)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(why, ERR_NOMEM, "no memory");
	s->quota = options->quota;
	s->memory = options->memory;
	s->sealed = options->secret != NULL;
	if (s->sealed)
		delta_file_key(&s->key, options->secret);
	pthread_mutex_init(&s->lock, NULL);
	enum err e = ERR_OK;
	if (snprintf(s->dir, sizeof(s->dir), "%s", options->dir) >= (int)sizeof(s->dir))
		e = err_set(why, ERR_LIMIT, "path too long: %s", options->dir);
	if (e == ERR_OK)
		e = file_mkdirs(options->dir, 0700, why);
	if (e) {
		spool_close(s);
		return e;
	}
	*out = s;
	return ERR_OK;
}

void
spool_close(struct spool *s)
{
	if (!s)
		return;
	while (s->slots) {
		struct spool_slot *slot = s->slots;
		s->slots = slot->next;
		free(slot);
	}
	pthread_mutex_destroy(&s->lock);
	hash_wipe(&s->key, sizeof(s->key));
	free(s);
}

bool
spool_in_memory(const struct spool *s)
{
	return s->memory;
}

/* --- slots; all of it with the lock held */

static struct spool_slot *
find_slot(struct spool *s, const uint8_t task[16])
{
	struct spool_slot *slot = s->slots;

	while (slot && memcmp(slot->task, task, 16) != 0)
		slot = slot->next;
	return slot;
}

/* Forgets a slot; its file has gone or has another name. */
static void
free_slot(struct spool *s, struct spool_slot *slot)
{
	struct spool_slot **at = &s->slots;

	while (*at != slot)
		at = &(*at)->next;
	*at = slot->next;
	free(slot);
}

static void
remove_slot(struct spool *s, struct spool_slot *slot)
{
	char path[PATH_ROOM];

	path_of(s, slot->task, SUFFIX_PART, path);
	/* A transfer that was ended may hold the file open for long yet: its room must be free now. What cannot be removed goes at
	 * the next start. */
	(void)!truncate(path, 0);
	(void)!unlink(path);
	atomic_fetch_sub(&s->used, slot->bytes);
	free_slot(s, slot);
}

static struct spool_slot *
add_slot(struct spool *s, const struct manifest *m, uint64_t bytes)
{
	struct spool_slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return NULL;
	memcpy(slot->task, m->task, sizeof(slot->task));
	memcpy(slot->device, m->device, sizeof(slot->device));
	memcpy(slot->job, m->job, sizeof(slot->job));
	slot->round = m->round;
	slot->bytes = bytes;
	slot->idle_since_ms = clock_ms();
	slot->next = s->slots;
	s->slots = slot;
	return slot;
}

/* Ends the slot's live transfer. False if it is complete: then it cannot be ended. */
static bool
end_live(struct spool_slot *slot)
{
	struct spool_part *live = slot->live;

	if (!live)
		return true;
	if (live->complete)
		return false;
	pthread_mutex_lock(&live->lock);
	live->superseded = true;
	live->slot = NULL;
	pthread_mutex_unlock(&live->lock);
	slot->live = NULL;
	return true;
}

static void
make_live(struct spool_slot *slot, struct spool_part *part)
{
	pthread_mutex_init(&part->lock, NULL);
	part->begun = true;
	part->slot = slot;
	slot->live = part;
}

static bool
reserve(struct spool *s, uint64_t bytes)
{
	uint64_t used = atomic_load(&s->used);

	do {
		if (s->quota > 0 && (used > s->quota || bytes > s->quota - used))
			return false;
	} while (!atomic_compare_exchange_weak(&s->used, &used, used + bytes));
	return true;
}

static enum err
in_commit(struct why *why)
{
	return err_set(why, ERR_AGAIN, "another transfer of this task is being made durable");
}

/* --- transfers */

static enum err
create_part(struct spool *s, const uint8_t manifest[MANIFEST_LEN], const struct manifest *m,
    struct spool_part *part, struct why *why)
{
	char path[PATH_ROOM];

	path_of(s, m->task, SUFFIX_PART, path);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(why, "create %s", path);
	enum err e = delta_file_create(&part->file, fd, manifest, spool_key(s), why);
	if (e) {
		delta_file_close(&part->file);
		(void)!unlink(path);
	}
	return e;
}

static enum err
begin_locked(struct spool *s, const uint8_t manifest[MANIFEST_LEN], const struct manifest *m,
    struct spool_part *part, struct why *why)
{
	uint64_t bytes = spoolfile_bytes(m->payload_bytes);
	struct spool_slot *slot = find_slot(s, m->task);

	if (slot && !end_live(slot))
		return in_commit(why);
	/* The older transfer may still hold the file open: a new one begins under the name. */
	if (slot)
		remove_slot(s, slot);
	if (!reserve(s, bytes))
		return err_set(why, ERR_NOSPACE, "the spool's quota is used up");
	slot = add_slot(s, m, bytes);
	enum err e =
	    slot ? create_part(s, manifest, m, part, why) : err_set(why, ERR_NOMEM, "no memory");
	if (e == ERR_OK) {
		make_live(slot, part);
		return ERR_OK;
	}
	atomic_fetch_sub(&s->used, bytes);
	if (slot)
		free_slot(s, slot);
	return e;
}

enum err
spool_begin(
    struct spool *s, const uint8_t manifest[MANIFEST_LEN], struct spool_part *part, struct why *why)
{
	struct manifest m;

	*part = (struct spool_part){.file.fd = -1};
	enum err e = manifest_decode(&m, manifest, MANIFEST_LEN, why);
	if (e)
		return e;
	pthread_mutex_lock(&s->lock);
	e = begin_locked(s, manifest, &m, part, why);
	pthread_mutex_unlock(&s->lock);
	return e;
}

static enum err
resume_locked(struct spool *s, const uint8_t task[16], const uint8_t device[32],
    struct spool_part *part, struct why *why)
{
	struct spool_slot *slot = find_slot(s, task);
	char path[PATH_ROOM];

	if (!slot || memcmp(slot->device, device, 32) != 0)
		return err_set(why, ERR_NOTFOUND, "nothing of this task is here");
	if (!end_live(slot))
		return in_commit(why);
	path_of(s, task, SUFFIX_PART, path);
	enum err e = delta_file_open(&part->file, path, O_RDWR, spool_key(s), why);
	if (e == ERR_OK) {
		make_live(slot, part);
		return ERR_OK;
	}
	if (e == ERR_NOTFOUND || e == ERR_CORRUPT) {
		remove_slot(s, slot);
		e = ERR_NOTFOUND;
	}
	return e;
}

enum err
spool_resume(struct spool *s, const uint8_t task[16], const uint8_t device[32],
    struct spool_part *part, struct why *why)
{
	*part = (struct spool_part){.file.fd = -1};
	pthread_mutex_lock(&s->lock);
	enum err e = resume_locked(s, task, device, part, why);
	pthread_mutex_unlock(&s->lock);
	return e;
}

enum err
spool_write(struct spool *s, struct spool_part *part, const void *data, size_t len, uint64_t at)
{
	(void)s;
	pthread_mutex_lock(&part->lock);
	enum err e = part->superseded ? ERR_AGAIN : delta_file_write(&part->file, data, len, at);
	pthread_mutex_unlock(&part->lock);
	return e;
}

enum err
spool_cut(struct spool *s, struct spool_part *part, uint64_t at)
{
	enum err e = ERR_OK;

	(void)s;
	pthread_mutex_lock(&part->lock);
	if (part->superseded)
		e = ERR_AGAIN;
	else if (ftruncate(part->file.fd, (off_t)(SPOOLFILE_HEAD + at)) != 0)
		e = err_errno(NULL, "truncate");
	pthread_mutex_unlock(&part->lock);
	return e;
}

enum err
spool_sync(struct spool *s, struct spool_part *part, struct why *why)
{
	pthread_mutex_lock(&s->lock);
	part->complete = !part->superseded;
	pthread_mutex_unlock(&s->lock);
	if (!part->complete)
		return err_set(why, ERR_AGAIN, "a newer transfer of this task has begun");
	if (s->memory || fdatasync(part->file.fd) == 0)
		return ERR_OK;
	return err_errno(why, "sync a delta");
}

enum err
spool_accept(struct spool *s, struct spool_part *part, struct why *why)
{
	char from[PATH_ROOM], to[PATH_ROOM];
	struct stat st;
	enum err e = ERR_OK;

	pthread_mutex_lock(&s->lock);
	path_of(s, part->slot->task, SUFFIX_PART, from);
	path_of(s, part->slot->task, SUFFIX_DELTA, to);
	/* Left by a commit that failed; no accepted row owns it, for this one's row came first. */
	bool left = stat(to, &st) == 0;
	if (rename(from, to) != 0) {
		e = err_errno(why, "rename %s", from);
	} else {
		if (left)
			atomic_fetch_sub(&s->used, (uint64_t)st.st_size);
		atomic_store(&s->dirty, true);
		FAULT("spool.renamed");
		free_slot(s, part->slot);
		part->slot = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	return e;
}

static void
end_part(struct spool *s, struct spool_part *part, bool stays)
{
	if (!part->begun)
		return;
	pthread_mutex_lock(&s->lock);
	if (part->slot && stays) {
		part->slot->live = NULL;
		part->slot->idle_since_ms = clock_ms();
	} else if (part->slot) {
		remove_slot(s, part->slot);
	}
	part->slot = NULL;
	part->begun = false;
	pthread_mutex_unlock(&s->lock);
	delta_file_close(&part->file);
	pthread_mutex_destroy(&part->lock);
}

void
spool_drop(struct spool *s, struct spool_part *part)
{
	end_part(s, part, false);
}

void
spool_leave(struct spool *s, struct spool_part *part)
{
	end_part(s, part, true);
}

void
spool_forget(struct spool *s, const uint8_t job[16], uint64_t round)
{
	pthread_mutex_lock(&s->lock);
	for (struct spool_slot *slot = s->slots, *next; slot; slot = next) {
		next = slot->next;
		if (!slot->live && slot->round <= round && memcmp(slot->job, job, 16) == 0)
			remove_slot(s, slot);
	}
	pthread_mutex_unlock(&s->lock);
}

void
spool_expire(struct spool *s, uint64_t idle_ms)
{
	pthread_mutex_lock(&s->lock);
	uint64_t now = clock_ms();
	for (struct spool_slot *slot = s->slots, *next; slot; slot = next) {
		next = slot->next;
		if (!slot->live && now - slot->idle_since_ms >= idle_ms)
			remove_slot(s, slot);
	}
	pthread_mutex_unlock(&s->lock);
}

enum err
spool_sync_names(void *spool, struct why *why)
{
	struct spool *s = spool;

	if (!atomic_exchange(&s->dirty, false) || s->memory)
		return ERR_OK;
	FAULT("spool.names");
	enum err e = file_sync_dir(s->dir, why);
	if (e)
		atomic_store(&s->dirty, true);
	return e;
}

/* --- accepted deltas */

static enum err
check_accepted(
    const struct delta_file *f, const char *path, const uint8_t *manifest, struct why *why)
{
	struct stat st;

	if (fstat(f->fd, &st) != 0)
		return err_errno(why, "stat %s", path);
	if ((uint64_t)st.st_size != SPOOLFILE_HEAD + f->body_bytes)
		return err_set(why, ERR_CORRUPT, "%s has %llu bytes, not %llu", path,
		    (unsigned long long)st.st_size,
		    (unsigned long long)(SPOOLFILE_HEAD + f->body_bytes));
	if (manifest && memcmp(manifest, f->manifest, MANIFEST_SIGNED) != 0)
		return err_set(why, ERR_CORRUPT, "%s is another delta than its row says", path);
	return ERR_OK;
}

enum err
spool_read(struct spool *s, const uint8_t task[16], const uint8_t *manifest,
    struct delta_file *file, struct why *why)
{
	char path[PATH_ROOM];

	path_of(s, task, SUFFIX_DELTA, path);
	enum err e = delta_file_open(file, path, O_RDONLY, spool_key(s), why);
	if (e)
		return e;
	e = check_accepted(file, path, manifest, why);
	if (e)
		delta_file_close(file);
	return e;
}

void
spool_remove(struct spool *s, const uint8_t task[16])
{
	char path[PATH_ROOM];
	struct stat st;

	path_of(s, task, SUFFIX_DELTA, path);
	if (stat(path, &st) == 0 && unlink(path) == 0)
		atomic_fetch_sub(&s->used, (uint64_t)st.st_size);
}

enum err
spool_move(struct spool *s, const uint8_t task[16], const char *to, struct why *why)
{
	char path[PATH_ROOM];
	struct stat st;

	path_of(s, task, SUFFIX_DELTA, path);
	if (stat(path, &st) != 0 || rename(path, to) != 0)
		return err_errno(why, "move %s to %s", path, to);
	atomic_fetch_sub(&s->used, (uint64_t)st.st_size);
	return ERR_OK;
}

/* --- after a restart */

/* Is this a name of ours? Another program's files are left alone: the folder may be shared. */
static bool
our_name(const char *name, uint8_t task[16], bool *part)
{
	size_t len = strlen(name), suffix = sizeof(SUFFIX_PART) - 1;

	/* An older version numbered its parts. */
	*part =
	    len >= 32 + suffix && name[32] == '.' && strcmp(name + len - suffix, SUFFIX_PART) == 0;
	bool delta = len == 32 + sizeof(SUFFIX_DELTA) - 1 && strcmp(name + 32, SUFFIX_DELTA) == 0;
	return (*part || delta) && hex_decode(task, 16, name, 32);
}

struct recovery {
	struct spool *s;
	spool_keep *keep;
	void *ctx;
	bool remove; /* the second pass */
};

static enum err
recover_file(
    const struct recovery *r, const uint8_t task[16], bool part, const char *path, struct why *why)
{
	struct delta_file f;
	struct manifest m;
	struct stat st;

	enum err e = delta_file_open(&f, path, O_RDONLY, spool_key(r->s), why);
	bool whole = e == ERR_OK && fstat(f.fd, &st) == 0 &&
	    manifest_decode(&m, f.manifest, MANIFEST_LEN, NULL) == ERR_OK;
	delta_file_close(&f);
	bool wanted = part ? (whole && memcmp(m.task, task, 16) == 0 && r->keep(r->ctx, task, &m))
			   : r->keep(r->ctx, task, NULL);
	/* A part whose key is missing may be wanted, too: who knows only its name cannot say. */
	if (e == ERR_DENIED && (wanted || part))
		return e;
	if (!r->remove)
		return ERR_OK;
	if (!wanted)
		return unlink(path) == 0 ? ERR_OK : err_errno(why, "remove %s", path);
	if (!part) {
		atomic_fetch_add(&r->s->used, stat(path, &st) == 0 ? (uint64_t)st.st_size : 0);
		return ERR_OK;
	}
	uint64_t bytes = spoolfile_bytes(m.payload_bytes);
	atomic_fetch_add(&r->s->used, bytes);
	return add_slot(r->s, &m, bytes) ? ERR_OK : err_set(why, ERR_NOMEM, "no memory");
}

static enum err
recover_pass(const struct recovery *r, struct why *why)
{
	DIR *d = opendir(r->s->dir);
	struct dirent *ent;
	enum err e = ERR_OK;

	if (!d)
		return err_errno(why, "open %s", r->s->dir);
	while (e == ERR_OK && (ent = readdir(d))) {
		char path[PATH_ROOM + 256];
		uint8_t task[16];
		struct stat st;
		bool part;
		if (!our_name(ent->d_name, task, &part) ||
		    fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		snprintf(path, sizeof(path), "%s/%s", r->s->dir, ent->d_name);
		e = recover_file(r, task, part, path, why);
	}
	closedir(d);
	return e;
}

enum err
spool_recover(struct spool *s, spool_keep *keep, void *ctx, struct why *why)
{
	struct recovery r = {.s = s, .keep = keep, .ctx = ctx};

	enum err e = recover_pass(&r, why);
	r.remove = true;
	return e ? e : recover_pass(&r, why);
}

uint64_t
spool_used(struct spool *s)
{
	return atomic_load(&s->used);
}

bool
spool_full(struct spool *s, uint64_t payload_bytes)
{
	uint64_t used = atomic_load(&s->used), bytes = spoolfile_bytes(payload_bytes);

	return s->quota > 0 && (bytes > s->quota || used > s->quota - bytes);
}
