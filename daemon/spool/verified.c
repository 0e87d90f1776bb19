#include "verified.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "spool_inside.h"

#define BUCKETS 256 /* task ids are MACs: their first byte spreads them evenly */
#define LASTS_MS 3600000

struct known {
	struct known *next;
	uint8_t task[16];
	struct spool_proof proof;
};

struct spool_verified {
	pthread_mutex_t lock;
	struct known *buckets[BUCKETS];
};

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool
holds(const struct spool_proof *p, int fd)
{
	struct stat st;

	return clock_ms() - p->since_ms < LASTS_MS && fstat(fd, &st) == 0 &&
	    st.st_dev == p->st.st_dev && st.st_ino == p->st.st_ino && st.st_size == p->st.st_size &&
	    same_time(&st.st_mtim, &p->st.st_mtim) && same_time(&st.st_ctim, &p->st.st_ctim);
}

/* --- accepted files */

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

/* The pointer to the task's entry, or the place where that pointer would be. */
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

	if (!k || fstat(fd, &k->proof.st) != 0) {
		free(k);
		spool_verified_forget(t, task);
		return;
	}
	memcpy(k->task, task, sizeof(k->task));
	k->proof.since_ms = clock_ms();
	pthread_mutex_lock(&t->lock);
	struct known **at = find(t, task), *old = *at;
	k->next = old ? old->next : NULL;
	*at = k;
	pthread_mutex_unlock(&t->lock);
	free(old);
}

bool
spool_verified_holds(struct spool_verified *t, const uint8_t task[16], int fd)
{
	pthread_mutex_lock(&t->lock);
	const struct known *k = *find(t, task);
	bool ok = k && holds(&k->proof, fd);
	pthread_mutex_unlock(&t->lock);
	return ok;
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

/* --- parts */

void
spool_verified_sign(struct spool_slot *slot, int fd)
{
	if (slot->good.at > 0 && fstat(fd, &slot->proof.st) != 0)
		slot->good.at = 0;
}

bool
spool_verified_until(struct spool *s, struct spool_part *part, const struct delta_watermark *mark)
{
	pthread_mutex_lock(&s->lock);
	struct spool_slot *slot = part->slot;
	if (slot) {
		if (slot->good.at == 0)
			slot->proof.since_ms = clock_ms();
		slot->good = *mark;
		spool_verified_sign(slot, part->file.fd);
	}
	pthread_mutex_unlock(&s->lock);
	return slot != NULL;
}

struct delta_watermark
spool_verified_mark(struct spool *s, struct spool_part *part)
{
	struct delta_watermark mark = {.at = 0};

	pthread_mutex_lock(&s->lock);
	struct spool_slot *slot = part->slot;
	part->by_mark = slot && slot->good.at > 0 && holds(&slot->proof, part->file.fd);
	if (part->by_mark)
		mark = slot->good;
	else if (slot)
		slot->good = mark;
	pthread_mutex_unlock(&s->lock);
	return mark;
}
