#include "shared.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct counted {
	void *value;
	unsigned users; /* while it is the newest, the struct itself is one */
	struct counted *older;
};

struct shared {
	pthread_mutex_t lock; /* of the list and its counts */
	struct counted *newest;
	struct counted *spare;
	void (*end)(void *value);
};

enum err
shared_new(struct shared **out, void *value, void (*end)(void *value))
{
	struct shared *s = calloc(1, sizeof(*s));

	if (!s || shared_reserve(s)) {
		free(s);
		if (end)
			end(value);
		return ERR_NOMEM;
	}
	pthread_mutex_init(&s->lock, NULL);
	s->end = end;
	shared_replace(s, value);
	*out = s;
	return ERR_OK;
}

void
shared_free(struct shared *s)
{
	if (!s)
		return;
	shared_give(s, s->newest->value);
	assert(!s->newest);
	pthread_mutex_destroy(&s->lock);
	free(s->spare);
	free(s);
}

enum err
shared_reserve(struct shared *s)
{
	if (!s->spare)
		s->spare = calloc(1, sizeof(*s->spare));
	return s->spare ? ERR_OK : ERR_NOMEM;
}

void
shared_replace(struct shared *s, void *value)
{
	struct counted *fresh = s->spare;

	assert(fresh);
	s->spare = NULL;
	pthread_mutex_lock(&s->lock);
	struct counted *last = s->newest;
	*fresh = (struct counted){value, 1, last};
	s->newest = fresh;
	pthread_mutex_unlock(&s->lock);
	if (last)
		shared_give(s, last->value);
}

const void *
shared_take(struct shared *s)
{
	pthread_mutex_lock(&s->lock);
	struct counted *c = s->newest;
	c->users++;
	pthread_mutex_unlock(&s->lock);
	return c->value;
}

void
shared_give(struct shared *s, const void *value)
{
	if (!value)
		return;
	pthread_mutex_lock(&s->lock);
	struct counted **at = &s->newest;
	while ((*at)->value != value)
		at = &(*at)->older;
	struct counted *c = *at;
	bool over = --c->users == 0;
	if (over)
		*at = c->older;
	pthread_mutex_unlock(&s->lock);
	if (!over)
		return;
	if (s->end)
		s->end(c->value);
	free(c);
}
