#include "evalsets.h"

#include <pthread.h>
#include <stdlib.h>

#include "config.h"
#include "log.h"
#include "shared.h"

struct evalsets {
	struct shared *config;
	pthread_mutex_t lock;
	struct evalsets_use *newest;
};

enum err
evalsets_new(struct evalsets **out, struct shared *config)
{
	struct evalsets *s = calloc(1, sizeof(*s));

	if (!s)
		return ERR_NOMEM;
	s->config = config;
	pthread_mutex_init(&s->lock, NULL);
	*out = s;
	return ERR_OK;
}

static void
drop(struct evalsets_use *u, struct shared *config)
{
	evalset_free(u->set);
	shared_give(config, u->config);
	free(u);
}

/* Makes the sets of a configuration; takes config over. NULL: no memory, and config was given back. */
static struct evalsets_use *
make(struct evalsets *s, struct shared *shared, const struct config *config)
{
	struct evalsets_use *u = calloc(1, sizeof(*u));

	if (u)
		*u = (struct evalsets_use){.owner = s, .config = config, .users = 1};
	if (u && !evalset_new(&u->set, config))
		return u;
	free(u);
	shared_give(shared, config);
	return NULL;
}

/* Lock held, as below. */
static void
give_locked(struct evalsets_use *u, struct shared *config)
{
	if (u && --u->users == 0)
		drop(u, config);
}

/* Has a file of the sets changed? Then the next user gets sets that are read anew. */
static bool
is_stale(const struct evalsets_use *u)
{
	const char *name = "";

	if (!evalset_stale(u->set, &name))
		return false;
	log_event(LOG_LEVEL_WARN, "data.changed", LOG_S("data", name),
	    LOG_S("why", "its file was written to, replaced, or cannot be read: it is read again"));
	return true;
}

static enum err
take_locked(struct evalsets *s, struct evalsets_use **out)
{
	const struct config *config = shared_take(s->config);

	if (s->newest && s->newest->config == config && !is_stale(s->newest)) {
		shared_give(s->config, config);
	} else {
		struct evalsets_use *fresh = make(s, s->config, config);
		if (!fresh)
			return ERR_NOMEM;
		give_locked(s->newest, s->config);
		s->newest = fresh;
	}
	s->newest->users++;
	*out = s->newest;
	return ERR_OK;
}

enum err
evalsets_take(struct evalsets *s, struct shared *config, struct evalsets_use **out)
{
	if (!s) {
		*out = make(NULL, config, shared_take(config));
		return *out ? ERR_OK : ERR_NOMEM;
	}
	pthread_mutex_lock(&s->lock);
	enum err e = take_locked(s, out);
	pthread_mutex_unlock(&s->lock);
	return e;
}

void
evalsets_give(struct evalsets_use *u, struct shared *config)
{
	struct evalsets *s = u ? u->owner : NULL;

	if (!s) {
		give_locked(u, config);
		return;
	}
	pthread_mutex_lock(&s->lock);
	give_locked(u, config);
	pthread_mutex_unlock(&s->lock);
}

void
evalsets_free(struct evalsets *s)
{
	if (!s)
		return;
	give_locked(s->newest, s->config);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
