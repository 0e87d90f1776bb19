#include "verified.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"

#define BUCKETS 256 /* task ids are MACs: their first byte spreads them evenly */
#define LASTS_MS 3600000

struct known {
	struct known *next;
	uint8_t task[16];
	uint64_t checked_ms;
	struct stat st;
};

struct spool_verified {
	pthread_mutex_t lock;
	struct known *buckets[BUCKETS];
};

enum err
spool_verified_new(struct spool_verified **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return ERR_NOMEM;
	pthread_mutex_init(&(*out)->lock, NULL);
	return ERR_OK;
}

void
spool_verified_free(struct spool_verified *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (t->buckets[i]) {
			struct known *k = t->buckets[i];
			t->buckets[i] = k->next;
			free(k);
		}
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Where the pointer to the entry is, or would be. */
static struct known **
find(struct spool_verified *t, const uint8_t task[16])
{
	struct known **at = &t->buckets[task[0]];

	while (*at && memcmp((*at)->task, task, 16) != 0)
		at = &(*at)->next;
	return at;
}

void
spool_verified_note(struct spool_verified *t, const uint8_t task[16], int fd)
{
	struct known *k = calloc(1, sizeof(*k));

	if (!k || fstat(fd, &k->st) != 0) {
		free(k);
		spool_verified_forget(t, task);
		return;
	}
	memcpy(k->task, task, sizeof(k->task));
	k->checked_ms = clock_ms();
	pthread_mutex_lock(&t->lock);
	struct known **at = find(t, task), *old = *at;
	k->next = old ? old->next : NULL;
	*at = k;
	pthread_mutex_unlock(&t->lock);
	free(old);
}

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool
spool_verified_holds(struct spool_verified *t, const uint8_t task[16], int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	pthread_mutex_lock(&t->lock);
	const struct known *k = *find(t, task);
	bool holds = k && clock_ms() - k->checked_ms < LASTS_MS && k->st.st_dev == st.st_dev &&
	    k->st.st_ino == st.st_ino && k->st.st_size == st.st_size &&
	    same_time(&k->st.st_mtim, &st.st_mtim) && same_time(&k->st.st_ctim, &st.st_ctim);
	pthread_mutex_unlock(&t->lock);
	return holds;
}

void
spool_verified_forget(struct spool_verified *t, const uint8_t task[16])
{
	pthread_mutex_lock(&t->lock);
	struct known **at = find(t, task), *old = *at;
	if (old)
		*at = old->next;
	pthread_mutex_unlock(&t->lock);
	free(old);
}
