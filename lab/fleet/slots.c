#include "slots.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "companion.h"
#include "companions.h"
#include "file.h"
#include "spawner_pool.h"

struct fleet_slots {
	pthread_mutex_t lock;
	pthread_cond_t given;
	char scratch[PATH_MAX];
	unsigned count;
	struct fleet_slot *items;
	struct spawner_pool *pools;
	struct companion_place *places;
	bool *busy;
};

/* --- with programs */

static enum err
equip(struct fleet_slots *s, const struct settings *settings, unsigned i, struct why *why)
{
	struct fleet_slot *slot = &s->items[i];
	int n = snprintf(slot->home, sizeof(slot->home), "%s/device%u", s->scratch, i + 1);

	if (n < 0 || (size_t)n >= sizeof(slot->home))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", s->scratch);
	enum err e = file_mkdirs(slot->home, 0700, why);
	if (!e)
		e = spawner_pool_init(&s->pools[i], NULL, why);
	if (e)
		return e;
	slot->pool = &s->pools[i];
	e = spawner_pool_spawner(slot->pool, &slot->spawner, why);
	if (e) {
		spawner_pool_deinit(slot->pool);
		return e;
	}
	s->places[i] =
	    (struct companion_place){.settings = settings, .home = slot->home, .pool = slot->pool};
	companions_init(&slot->companions, &s->places[i]);
	slot->programs = true;
	return ERR_OK;
}

static void
unequip(struct fleet_slot *slot)
{
	companions_deinit(&slot->companions);
	spawner_deinit(&slot->spawner);
	spawner_pool_deinit(slot->pool);
}

/* --- all of them */

static struct fleet_slots *
allocate(unsigned count)
{
	struct fleet_slots *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->given, NULL);
	s->count = count;
	s->items = calloc(count, sizeof(*s->items));
	s->pools = calloc(count, sizeof(*s->pools));
	s->places = calloc(count, sizeof(*s->places));
	s->busy = calloc(count, sizeof(*s->busy));
	if (s->items && s->pools && s->places && s->busy)
		return s;
	fleet_slots_free(s);
	return NULL;
}

enum err
fleet_slots_new(struct fleet_slots **out, const struct settings *settings, unsigned count,
    bool programs, struct why *why)
{
	struct fleet_slots *s = allocate(count);
	enum err e = s ? ERR_OK : ERR_NOMEM;

	if (!e && programs)
		e = file_scratch_dir(s->scratch, "rivulet-simulate", why);
	for (unsigned i = 0; !e && programs && i < count; i++)
		e = equip(s, settings, i, why);
	if (e) {
		fleet_slots_free(s);
		return e;
	}
	*out = s;
	return ERR_OK;
}

void
fleet_slots_free(struct fleet_slots *s)
{
	if (!s)
		return;
	for (unsigned i = 0; s->items && i < s->count; i++)
		if (s->items[i].programs)
			unequip(&s->items[i]);
	if (s->scratch[0])
		(void)!file_remove_dir(s->scratch, NULL);
	pthread_cond_destroy(&s->given);
	pthread_mutex_destroy(&s->lock);
	free(s->items);
	free(s->pools);
	free(s->places);
	free(s->busy);
	free(s);
}

static unsigned
free_one(const struct fleet_slots *s)
{
	unsigned i = 0;

	while (i < s->count && s->busy[i])
		i++;
	return i;
}

struct fleet_slot *
fleet_slots_take(struct fleet_slots *s)
{
	unsigned i;

	pthread_mutex_lock(&s->lock);
	while ((i = free_one(s)) == s->count)
		pthread_cond_wait(&s->given, &s->lock);
	s->busy[i] = true;
	pthread_mutex_unlock(&s->lock);
	return &s->items[i];
}

void
fleet_slots_give(struct fleet_slots *s, struct fleet_slot *slot)
{
	pthread_mutex_lock(&s->lock);
	s->busy[slot - s->items] = false;
	pthread_cond_signal(&s->given);
	pthread_mutex_unlock(&s->lock);
}

const char *
fleet_slots_scratch(const struct fleet_slots *s)
{
	return s->scratch;
}
