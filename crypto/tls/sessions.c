#include "sessions.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

struct entry {
	uint8_t id[SESSIONS_ID_MAX];
	size_t id_len;
	uint8_t *blob; /* NULL: the entry is free */
	size_t len;
	int64_t made;
};

struct sessions {
	pthread_mutex_t lock;
	size_t sets;
	struct entry *entries; /* sets x SESSIONS_WAYS */
};

struct sessions *
sessions_new(unsigned entries)
{
	struct sessions *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->sets = (entries + (size_t)SESSIONS_WAYS - 1) / SESSIONS_WAYS;
	if (s->sets == 0)
		s->sets = 1;
	s->entries = calloc(s->sets, SESSIONS_WAYS * sizeof(*s->entries));
	if (!s->entries || pthread_mutex_init(&s->lock, NULL) != 0) {
		free(s->entries);
		free(s);
		return NULL;
	}
	return s;
}

static void
clear(struct entry *e)
{
	if (e->blob) {
		hash_wipe(e->blob, e->len);
		free(e->blob);
	}
	*e = (struct entry){.blob = NULL};
}

void
sessions_forget(struct sessions *s)
{
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->sets * SESSIONS_WAYS; i++)
		clear(&s->entries[i]);
	pthread_mutex_unlock(&s->lock);
}

void
sessions_free(struct sessions *s)
{
	if (!s)
		return;
	sessions_forget(s);
	pthread_mutex_destroy(&s->lock);
	free(s->entries);
	free(s);
}

/* The set an id belongs to. We chose the id at random when the session was made, so its bytes are the hash;
 * a client that sends made-up ids only looks into sets, it never fills one. */
static struct entry *
set_of(struct sessions *s, const uint8_t *id, size_t id_len)
{
	uint64_t h = 0;

	memcpy(&h, id, id_len < sizeof(h) ? id_len : sizeof(h));
	return s->entries + h % s->sets * SESSIONS_WAYS;
}

static struct entry *
find(struct entry *set, const uint8_t *id, size_t id_len)
{
	for (size_t i = 0; i < SESSIONS_WAYS; i++)
		if (set[i].blob && set[i].id_len == id_len && memcmp(set[i].id, id, id_len) == 0)
			return &set[i];
	return NULL;
}

/* A free entry, or else the oldest. */
static struct entry *
victim(struct entry *set)
{
	struct entry *oldest = set;

	for (size_t i = 0; i < SESSIONS_WAYS; i++) {
		if (!set[i].blob)
			return &set[i];
		if (set[i].made < oldest->made)
			oldest = &set[i];
	}
	return oldest;
}

enum err
sessions_put(
    struct sessions *s, const uint8_t *id, size_t id_len, const void *blob, size_t len, int64_t now)
{
	if (id_len == 0 || id_len > SESSIONS_ID_MAX || len == 0 || len > SESSIONS_BLOB_MAX)
		return ERR_LIMIT;
	uint8_t *copy = malloc(len);
	if (!copy)
		return ERR_NOMEM;
	memcpy(copy, blob, len);
	pthread_mutex_lock(&s->lock);
	struct entry *set = set_of(s, id, id_len);
	struct entry *e = find(set, id, id_len);
	if (!e)
		e = victim(set);
	clear(e);
	memcpy(e->id, id, id_len);
	e->id_len = id_len;
	e->blob = copy;
	e->len = len;
	e->made = now;
	pthread_mutex_unlock(&s->lock);
	return ERR_OK;
}

enum err
sessions_get(
    struct sessions *s, const uint8_t *id, size_t id_len, void *blob, size_t *len, int64_t now)
{
	enum err result = ERR_NOTFOUND;

	if (id_len == 0 || id_len > SESSIONS_ID_MAX)
		return ERR_NOTFOUND;
	pthread_mutex_lock(&s->lock);
	struct entry *e = find(set_of(s, id, id_len), id, id_len);
	if (e && now - e->made >= SESSIONS_LIFETIME) {
		clear(e);
	} else if (e && e->len <= *len) {
		memcpy(blob, e->blob, e->len);
		*len = e->len;
		result = ERR_OK;
	}
	pthread_mutex_unlock(&s->lock);
	return result;
}
