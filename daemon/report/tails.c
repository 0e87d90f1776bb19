#include "tails.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void
tails_init(struct tails *t)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->lock, NULL);
}

static void
drop(struct tails_item *i)
{
	free(i->tail.text);
	*i = (struct tails_item){.serial = 0};
}

void
tails_deinit(struct tails *t)
{
	for (size_t i = 0; i < TAILS_MAX; i++)
		drop(&t->items[i]);
	pthread_mutex_destroy(&t->lock);
}

static bool
is_of(const struct tails_item *i, const uint8_t job[16])
{
	return i->serial > 0 && memcmp(i->tail.job, job, sizeof(i->tail.job)) == 0;
}

/* The item that a new message replaces: the device's earlier one in this job, else the job's oldest if it has TAILS_OF_JOB, else a free
 * one or the oldest of all. */
static struct tails_item *
place(struct tails *t, const struct tail *tail)
{
	struct tails_item *oldest = &t->items[0], *of_job = NULL;
	size_t count = 0;

	for (struct tails_item *i = t->items; i < t->items + TAILS_MAX; i++) {
		if (i->serial < oldest->serial)
			oldest = i;
		if (!is_of(i, tail->job))
			continue;
		if (memcmp(i->tail.device, tail->device, sizeof(tail->device)) == 0)
			return i;
		count++;
		if (!of_job || i->serial < of_job->serial)
			of_job = i;
	}
	return count < TAILS_OF_JOB ? oldest : of_job;
}

void
tails_note(struct tails *t, const struct tail *tail)
{
	char *text = tail->text && *tail->text ? strdup(tail->text) : NULL;

	pthread_mutex_lock(&t->lock);
	struct tails_item *i = place(t, tail);
	drop(i);
	*i = (struct tails_item){.tail = *tail, .serial = ++t->serial};
	i->tail.text = text;
	pthread_mutex_unlock(&t->lock);
}

static int
by_age(const void *a, const void *b)
{
	uint64_t x = ((const struct tails_item *)a)->serial;
	uint64_t y = ((const struct tails_item *)b)->serial;

	return x < y ? 1 : x > y ? -1 : 0;
}

size_t
tails_of(struct tails *t, const uint8_t job[16], struct tail out[TAILS_OF_JOB])
{
	struct tails_item found[TAILS_OF_JOB];
	size_t count = 0;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < TAILS_MAX && count < TAILS_OF_JOB; i++) {
		if (!is_of(&t->items[i], job))
			continue;
		found[count] = t->items[i];
		if (found[count].tail.text)
			found[count].tail.text = strdup(found[count].tail.text);
		count++;
	}
	pthread_mutex_unlock(&t->lock);
	qsort(found, count, sizeof(found[0]), by_age);
	for (size_t i = 0; i < count; i++)
		out[i] = found[i].tail;
	return count;
}

void
tails_forget_job(struct tails *t, const uint8_t job[16])
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < TAILS_MAX; i++)
		if (is_of(&t->items[i], job))
			drop(&t->items[i]);
	pthread_mutex_unlock(&t->lock);
}

void
tails_forget_device(struct tails *t, const uint8_t device[32])
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < TAILS_MAX; i++)
		if (memcmp(t->items[i].tail.device, device, sizeof(t->items[i].tail.device)) == 0)
			drop(&t->items[i]);
	pthread_mutex_unlock(&t->lock);
}
