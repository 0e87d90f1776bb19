#include "walks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

struct walks {
	pthread_mutex_t lock;
	uint8_t (*who)[32]; /* sorted */
	size_t count, room;
};

enum err
walks_new(struct walks **out)
{
	struct walks *w = calloc(1, sizeof(*w));

	if (!w)
		return ERR_NOMEM;
	pthread_mutex_init(&w->lock, NULL);
	*out = w;
	return ERR_OK;
}

void
walks_free(struct walks *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w->who);
	free(w);
}

/* Lock held. */
static bool
add(struct walks *w, const uint8_t who[32])
{
	size_t at = bytes_place(w->who, w->count, sizeof(*w->who), who, sizeof(*w->who));

	if (at < w->count && memcmp(w->who[at], who, sizeof(*w->who)) == 0)
		return false;
	uint8_t(*all)[32] = bytes_grow(w->who, w->count, &w->room, sizeof(*all));
	if (!all)
		return false;
	w->who = all;
	memmove(all + at + 1, all + at, (w->count++ - at) * sizeof(*all));
	memcpy(all[at], who, sizeof(*all));
	return true;
}

bool
walks_enter(struct walks *w, const uint8_t who[32])
{
	if (!w)
		return true;
	pthread_mutex_lock(&w->lock);
	bool added = add(w, who);
	pthread_mutex_unlock(&w->lock);
	return added;
}

void
walks_leave(struct walks *w, const uint8_t who[32])
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	size_t at = bytes_place(w->who, w->count, sizeof(*w->who), who, sizeof(*w->who));
	if (at < w->count && memcmp(w->who[at], who, sizeof(*w->who)) == 0)
		memmove(w->who + at, w->who + at + 1, (--w->count - at) * sizeof(*w->who));
	pthread_mutex_unlock(&w->lock);
}
