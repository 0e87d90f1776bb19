#include "orphan.h"

#include <stdlib.h>
#include <string.h>

#include "hex.h"
#include "log.h"
#include "row.h"
#include "spool_inside.h"
#include "store.h"

void
spool_orphan_note(struct spool *s, const struct manifest *m)
{
	struct orphan *o = calloc(1, sizeof(*o));

	if (!o)
		return;
	memcpy(o->task, m->task, sizeof(o->task));
	memcpy(o->job, m->job, sizeof(o->job));
	memcpy(o->device, m->device, sizeof(o->device));
	o->round = m->round;
	pthread_mutex_lock(&s->lock);
	o->next = s->orphans;
	s->orphans = o;
	pthread_mutex_unlock(&s->lock);
}

/* Removes an orphan that has no row. True: it is settled. On the store thread, so that no delta is accepted meanwhile. */
static bool
settle(struct spool *s, struct store_db *db, const struct orphan *o)
{
	struct store_accept row = {.report = NULL};
	char task[33];

	enum err e = store_accept_get(db, o->job, o->round, o->device, &row);
	bool owned = !e && memcmp(row.task, o->task, sizeof(row.task)) == 0;
	free(row.report);
	if (e && e != ERR_NOTFOUND)
		return false;
	if (owned)
		return true;
	spool_remove(s, o->task);
	hex_encode(task, o->task, sizeof(o->task));
	log_event(LOG_LEVEL_INFO, "delta.released", LOG_S("task", task));
	return true;
}

static enum err
release(struct store_db *db, void *arg, struct why *why)
{
	struct spool *s = arg;
	struct orphan *left = NULL;

	(void)why;
	pthread_mutex_lock(&s->lock);
	struct orphan *all = s->orphans;
	s->orphans = NULL;
	pthread_mutex_unlock(&s->lock);
	while (all) {
		struct orphan *o = all;
		all = o->next;
		if (settle(s, db, o)) {
			free(o);
			continue;
		}
		o->next = left;
		left = o;
	}
	pthread_mutex_lock(&s->lock);
	while (left) {
		struct orphan *o = left;
		left = o->next;
		o->next = s->orphans;
		s->orphans = o;
	}
	pthread_mutex_unlock(&s->lock);
	return ERR_OK;
}

void
spool_orphan_release(struct spool *s, struct store *store)
{
	pthread_mutex_lock(&s->lock);
	bool any = s->orphans != NULL;
	pthread_mutex_unlock(&s->lock);
	if (any)
		(void)!store_submit(store, release, NULL, s);
}
