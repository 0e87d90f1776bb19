#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "hex.h"
#include "lost.h"
#include "spool_inside.h"
#include "stop.h"

struct spool_slot *
spool_slot_add(struct spool *s, const struct manifest *m, uint64_t bytes)
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

/* Is this the name of a part or a delta? Other programs' files are left alone: the folder may be shared. */
static bool
our_name(const char *name, uint8_t task[16], bool *part)
{
	size_t len = strlen(name), suffix = sizeof(SUFFIX_PART) - 1;

	*part = len == 32 + suffix && strcmp(name + 32, SUFFIX_PART) == 0;
	bool delta = len == 32 + sizeof(SUFFIX_DELTA) - 1 && strcmp(name + 32, SUFFIX_DELTA) == 0;
	return (*part || delta) && hex_decode(task, 16, name, 32);
}

/* Is this the name of a copy (reseal.h) that a crash left? Nothing refers to such a file. */
static bool
is_copy(const char *name)
{
	size_t len = strlen(name), suffix = sizeof(SUFFIX_COPY) - 1;
	uint8_t task[16];

	return len > 33 + suffix && name[32] == '.' &&
	    strcmp(name + len - suffix, SUFFIX_COPY) == 0 && hex_decode(task, 16, name, 32);
}

struct recovery {
	struct spool *s;
	spool_judge *judge;
	void *ctx;
	bool act; /* the second pass */
	uint64_t lost; /* files judged SPOOL_LOST in the first pass */
};

/* Judges a file. A part whose head names another task than its name is removed: no device could resume it. */
static enum spool_fate
judge(const struct recovery *r, const uint8_t task[16], bool part, const struct manifest *m)
{
	bool whole = m && memcmp(m->task, task, sizeof(m->task)) == 0;

	return part && !whole ? SPOOL_GOES : r->judge(r->ctx, task, part, m);
}

static enum err
count(const struct recovery *r, bool part, const char *path, const struct manifest *m,
    struct why *why)
{
	struct stat st;

	if (!part) {
		atomic_fetch_add(&r->s->used, stat(path, &st) == 0 ? (uint64_t)st.st_size : 0);
		return ERR_OK;
	}
	uint64_t bytes = spoolfile_bytes(m->payload_bytes);
	atomic_fetch_add(&r->s->used, bytes);
	return spool_slot_add(r->s, m, bytes) ? ERR_OK : err_set(why, ERR_NOMEM, "no memory");
}

static enum err
recover_file(
    struct recovery *r, const uint8_t task[16], bool part, const char *path, struct why *why)
{
	struct delta_file f;
	struct manifest m;

	enum err e = delta_file_open(&f, path, O_RDONLY, spool_key(r->s), why);
	bool whole = !e && manifest_decode(&m, f.manifest, MANIFEST_LEN, NULL) == ERR_OK;
	delta_file_close(&f);
	enum spool_fate fate = judge(r, task, part, whole ? &m : NULL);
	/* A part whose key is missing may be wanted, too: who knows only its name cannot say. */
	if (e == ERR_DENIED && (fate == SPOOL_STAYS || part))
		return e;
	if (!r->act) {
		r->lost += fate == SPOOL_LOST;
		return ERR_OK;
	}
	if (fate == SPOOL_STAYS)
		return count(r, part, path, &m, why);
	if (fate == SPOOL_LOST || (fate == SPOOL_LEFTOVER && r->lost > 0))
		return file_set_aside(path, r->s->lost, why);
	return unlink(path) == 0 ? ERR_OK : err_errno(why, "remove %s", path);
}

static enum err
recover_pass(struct recovery *r, struct why *why)
{
	DIR *d = opendir(r->s->dir);
	struct dirent *ent;
	enum err e = ERR_OK;

	if (!d)
		return err_errno(why, "open %s", r->s->dir);
	while (!e && (ent = readdir(d))) {
		char path[PATH_ROOM + 256];
		uint8_t task[16];
		struct stat st;
		bool part;
		if (r->act && is_copy(ent->d_name))
			(void)!unlinkat(dirfd(d), ent->d_name, 0);
		if (!our_name(ent->d_name, task, &part) ||
		    fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		snprintf(path, sizeof(path), "%s/%s", r->s->dir, ent->d_name);
		e = recover_file(r, task, part, path, why);
		if (!e && stop_asked(r->s->stop))
			e = err_set(why, ERR_CLOSED, "the coordinator stops");
	}
	closedir(d);
	return e;
}

enum err
spool_recover(struct spool *s, spool_judge *judge_fn, void *ctx, struct why *why)
{
	struct recovery r = {.s = s, .judge = judge_fn, .ctx = ctx};

	enum err e = recover_pass(&r, why);
	r.act = true;
	if (!e)
		e = recover_pass(&r, why);
	spool_lost_count(s);
	s->lost_found = r.lost;
	return e;
}
