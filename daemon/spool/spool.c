#include "spool_inside.h"

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
#include "report.h"
#include "verified.h"

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
	s->stop = options->stop;
	s->memory = options->memory;
	s->sealed = options->secret != NULL;
	if (s->sealed)
		delta_file_key(&s->key, options->secret);
	pthread_mutex_init(&s->lock, NULL);
	enum err e = spool_verified_new(&s->verified);
	if (e) {
		spool_close(s);
		return err_set(why, e, "no memory");
	}
	if (snprintf(s->dir, sizeof(s->dir), "%s", options->dir) >= (int)sizeof(s->dir) ||
	    snprintf(s->lost, sizeof(s->lost), "%s", options->lost) >= (int)sizeof(s->lost))
		e = err_set(why, ERR_LIMIT, "path too long: %s", options->dir);
	if (!e)
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
	while (s->condemned) {
		struct condemned *c = s->condemned;
		s->condemned = c->next;
		free(c);
	}
	while (s->orphans) {
		struct orphan *o = s->orphans;
		s->orphans = o->next;
		free(o);
	}
	spool_verified_free(s->verified);
	pthread_mutex_destroy(&s->lock);
	hash_wipe(&s->key, sizeof(s->key));
	free(s);
}

bool
spool_in_memory(const struct spool *s)
{
	return s->memory;
}

const char *
spool_dir(const struct spool *s)
{
	return s->dir;
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

/* Frees a slot whose file was removed or renamed. */
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
	spool_verified_sign(slot, live->file.fd);
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
	slot = spool_slot_add(s, m, bytes);
	enum err e = ERR_NOMEM;
	if (slot) {
		e = create_part(s, manifest, m, part, why);
		if (!e) {
			make_live(slot, part);
			return ERR_OK;
		}
		free_slot(s, slot);
	}
	atomic_fetch_sub(&s->used, bytes);
	return e == ERR_NOMEM ? err_set(why, e, "no memory") : e;
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
	if (!e) {
		part->file.stop = s->stop;
		memcpy(part->began, slot->began, sizeof(part->began));
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

void
spool_began(struct spool *s, struct spool_part *part, const char *request)
{
	snprintf(part->began, sizeof(part->began), "%s", request);
	pthread_mutex_lock(&s->lock);
	if (part->slot)
		memcpy(part->slot->began, part->began, sizeof(part->slot->began));
	pthread_mutex_unlock(&s->lock);
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
		if (part->by_mark)
			spool_verified_forget(s->verified, part->slot->task);
		else
			spool_verified_note(s->verified, part->slot->task, part->file.fd);
		free_slot(s, part->slot);
		part->slot = NULL;
		part->accepted = true;
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
		spool_verified_sign(part->slot, part->file.fd);
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
spool_condemn(struct spool *s, const uint8_t task[16], const char *reason)
{
	struct condemned *c = calloc(1, sizeof(*c));

	if (!c)
		return ERR_NOMEM;
	memcpy(c->task, task, sizeof(c->task));
	err_set(&c->why, ERR_CORRUPT, "%s", reason);
	pthread_mutex_lock(&s->lock);
	c->next = s->condemned;
	s->condemned = c;
	pthread_mutex_unlock(&s->lock);
	return ERR_OK;
}

static bool
is_condemned(struct spool *s, const uint8_t task[16], struct why *why)
{
	char hex[33];

	pthread_mutex_lock(&s->lock);
	struct condemned *c = s->condemned;
	while (c && memcmp(c->task, task, sizeof(c->task)) != 0)
		c = c->next;
	hex_encode(hex, task, 16);
	if (c)
		err_set(why, ERR_CORRUPT, "delta %s: %.180s", hex, c->why.text);
	pthread_mutex_unlock(&s->lock);
	return c != NULL;
}

bool
spool_pardon(struct spool *s, const uint8_t task[16])
{
	bool was = false;

	pthread_mutex_lock(&s->lock);
	for (struct condemned **at = &s->condemned; *at;) {
		struct condemned *c = *at;
		if (memcmp(c->task, task, sizeof(c->task)) != 0) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		free(c);
		was = true;
	}
	pthread_mutex_unlock(&s->lock);
	return was;
}

enum err
spool_read(struct spool *s, const uint8_t task[16], const uint8_t *manifest,
    struct delta_file *file, struct why *why)
{
	char path[PATH_ROOM];

	*file = (struct delta_file){.fd = -1};
	if (is_condemned(s, task, why))
		return ERR_CORRUPT;
	path_of(s, task, SUFFIX_DELTA, path);
	enum err e = delta_file_open(file, path, O_RDONLY, spool_key(s), why);
	if (e)
		return e;
	file->stop = s->stop;
	e = check_accepted(file, path, manifest, why);
	if (e)
		delta_file_close(file);
	return e;
}

enum err
spool_verify(
    struct spool *s, const uint8_t task[16], const struct delta_file *file, struct why *why)
{
	if (spool_verified_holds(s->verified, task, file->fd))
		return ERR_OK;
	enum err e = delta_file_verify(file, why);
	if (!e)
		spool_verified_note(s->verified, task, file->fd);
	return e;
}

void
spool_remove(struct spool *s, const uint8_t task[16])
{
	char path[PATH_ROOM];
	struct stat st;

	(void)spool_pardon(s, task);
	spool_verified_forget(s->verified, task);
	path_of(s, task, SUFFIX_DELTA, path);
	if (stat(path, &st) == 0 && unlink(path) == 0)
		atomic_fetch_sub(&s->used, (uint64_t)st.st_size);
}

enum err
spool_size(struct spool *s, const uint8_t task[16], uint64_t *bytes, struct why *why)
{
	char path[PATH_ROOM];
	struct stat st;

	path_of(s, task, SUFFIX_DELTA, path);
	if (stat(path, &st) != 0)
		return err_errno(why, "stat %s", path);
	*bytes = (uint64_t)st.st_size;
	return ERR_OK;
}

enum err
spool_move(struct spool *s, const uint8_t task[16], const char *to, struct why *why)
{
	char path[PATH_ROOM];
	struct stat st;

	path_of(s, task, SUFFIX_DELTA, path);
	if (stat(path, &st) != 0 || rename(path, to) != 0)
		return err_errno(why, "move %s to %s", path, to);
	spool_verified_forget(s->verified, task);
	atomic_fetch_sub(&s->used, (uint64_t)st.st_size);
	return ERR_OK;
}

uint64_t
spool_used(struct spool *s)
{
	return atomic_load(&s->used);
}

void
spool_report(struct spool *s, struct spool_report *out)
{
	*out = (struct spool_report){.used_bytes = spool_used(s), .quota_bytes = s->quota};
}

bool
spool_full(struct spool *s, uint64_t payload_bytes)
{
	uint64_t used = atomic_load(&s->used), bytes = spoolfile_bytes(payload_bytes);

	return s->quota > 0 && (bytes > s->quota || used > s->quota - bytes);
}
