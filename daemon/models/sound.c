/* The result of the last hash of each file, so that a file is hashed again only when something has written to it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "clock.h"
#include "hash.h"
#include "models_inside.h"

#define DOUBT_MS 300000

struct judged {
	uint8_t id[32];
	char suffix[8];
	enum models_verdict verdict;
	struct stamp stamp;
	uint64_t doubted_ms; /* when models_doubt last had the file hashed; 0: never */
};

/* The entry of a file, or NULL. Lock held. */
static struct judged *
find(const struct models *m, const uint8_t id[32], const char *suffix)
{
	for (size_t i = 0; i < m->judged_count; i++)
		if (memcmp(m->judged[i].id, id, 32) == 0 &&
		    strcmp(m->judged[i].suffix, suffix) == 0)
			return &m->judged[i];
	return NULL;
}

/* The entry of a file, made if there is none. NULL without memory: then the file is only hashed again. Lock held. */
static struct judged *
find_or_make(struct models *m, const uint8_t id[32], const char *suffix)
{
	struct judged *j = find(m, id, suffix);

	if (j)
		return j;
	struct judged *grown =
	    bytes_grow(m->judged, m->judged_count, &m->judged_room, sizeof(*grown));
	if (!grown)
		return NULL;
	m->judged = grown;
	j = &m->judged[m->judged_count++];
	*j = (struct judged){.verdict = MODELS_UNKNOWN};
	memcpy(j->id, id, 32);
	strncpy(j->suffix, suffix, sizeof(j->suffix) - 1);
	return j;
}

enum models_verdict
models_judged(struct models *m, const uint8_t id[32], const char *suffix, const struct stamp *now)
{
	pthread_mutex_lock(&m->lock);
	const struct judged *j = find(m, id, suffix);
	enum models_verdict verdict = j && stamp_same(&j->stamp, now) ? j->verdict : MODELS_UNKNOWN;
	pthread_mutex_unlock(&m->lock);
	return verdict;
}

void
models_found(struct models *m, const uint8_t id[32], const char *suffix, const struct stamp *seen,
    bool sound)
{
	pthread_mutex_lock(&m->lock);
	struct judged *j = find_or_make(m, id, suffix);
	if (j) {
		j->verdict = sound ? MODELS_SOUND : MODELS_DAMAGED;
		j->stamp = *seen;
	}
	pthread_mutex_unlock(&m->lock);
}

void
models_wrote(struct models *m, const uint8_t id[32], const char *suffix)
{
	struct stamp now;
	char path[PATH_MAX];

	models_path(m, id, suffix, path);
	if (stamp_of(path, &now, NULL) == ERR_OK)
		models_found(m, id, suffix, &now, true);
}

void
models_forget(struct models *m, const uint8_t id[32], const char *suffix)
{
	pthread_mutex_lock(&m->lock);
	struct judged *j = find(m, id, suffix);
	if (j)
		*j = m->judged[--m->judged_count];
	pthread_mutex_unlock(&m->lock);
}

void
models_sound_free(struct models *m)
{
	free(m->judged);
}

/* Hashes a file. The stamp from before is noted, so that a write during the hashing is found at the next look. */
static enum err
hash_now(struct models *m, const char *path, const uint8_t id[32], const char *suffix,
    const struct stamp *before, struct why *why)
{
	uint8_t hash[HASH_LEN];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return err_errno(why, "open %s", path);
	enum err e = hash_file_until(fd, hash, m->stop);
	close(fd);
	if (e)
		return err_set(why, e, "read %s: %s", path, err_name(e));
	bool sound = memcmp(hash, id, HASH_LEN) == 0;
	models_found(m, id, suffix, before, sound);
	return sound ? ERR_OK : err_set(why, ERR_CORRUPT, "%s does not match its name", path);
}

enum err
models_check(struct models *m, const uint8_t id[32], const char *suffix, struct why *why)
{
	struct stamp now;
	char path[PATH_MAX];

	models_path(m, id, suffix, path);
	enum err e = stamp_of(path, &now, why);
	if (e)
		return e;
	switch (models_judged(m, id, suffix, &now)) {
	case MODELS_SOUND:
		/* What may not be opened is of no use, and its stamp tells that only of the last change. */
		return access(path, R_OK) == 0 ? ERR_OK : err_errno(why, "%s", path);
	case MODELS_DAMAGED:
		return err_set(why, ERR_CORRUPT, "%s does not match its name", path);
	default:
		return hash_now(m, path, id, suffix, &now, why);
	}
}

/* Was the model not hashed because of a doubt within DOUBT_MS? Then the present doubt has it hashed. */
static bool
is_due(struct models *m, const uint8_t id[32])
{
	pthread_mutex_lock(&m->lock);
	/* Not before the lock: another thread's look may be later then. */
	const uint64_t now = clock_ms() + 1;
	struct judged *j = find_or_make(m, id, "");
	bool due = j && (j->doubted_ms == 0 || now - j->doubted_ms >= DOUBT_MS);
	if (due)
		j->doubted_ms = now;
	pthread_mutex_unlock(&m->lock);
	return due;
}

/* The last verdict stays until the hash is done: else each request for the model meanwhile would hash it, too. */
enum err
models_doubt(struct models *m, const uint8_t id[32], struct why *why)
{
	struct stamp now;
	char path[PATH_MAX];

	if (!is_due(m, id))
		return ERR_OK;
	models_path(m, id, "", path);
	enum err e = stamp_of(path, &now, why);
	return e ? e : hash_now(m, path, id, "", &now, why);
}
