#include "local_world.h"

#include <pthread.h>
#include <stdlib.h>

#include "link_local.h"
#include "member_loop.h"

struct member_thread {
	struct local_world *world;
	unsigned rank;
	bool runs;
	pthread_t thread;
};

struct local_world {
	struct link_local *links;
	unsigned ranks;
	struct world leader;
	struct member_thread *members; /* by rank; the first is not used */
};

static enum err
open_end(struct link **out, void *context, struct why *why)
{
	const struct member_thread *t = context;

	(void)why;
	*out = link_local_end(t->world->links, t->rank);
	return ERR_OK;
}

static void *
run(void *arg)
{
	struct member_thread *t = arg;
	const struct courier_world world = {open_end, t};
	struct courier *c = NULL;

	if (courier_new(&c, &world, NULL))
		link_local_abort(t->world->links);
	else
		(void)!member_loop_run(c);
	courier_free(c);
	return NULL;
}

static enum err
start(struct local_world *w)
{
	for (unsigned r = 0; r < w->ranks; r++)
		w->members[r] = (struct member_thread){.world = w, .rank = r};
	for (unsigned r = 1; r < w->ranks; r++) {
		if (pthread_create(&w->members[r].thread, NULL, run, &w->members[r]))
			return ERR_NOMEM;
		w->members[r].runs = true;
	}
	return ERR_OK;
}

enum err
local_world_new(struct local_world **out, unsigned ranks, struct why *why)
{
	struct local_world *w = calloc(1, sizeof(*w));
	enum err e = w ? link_local_new(&w->links, ranks) : ERR_NOMEM;

	if (e) {
		free(w);
		return err_set(why, e, "no memory for ranks");
	}
	w->ranks = ranks;
	w->members = calloc(ranks, sizeof(*w->members));
	e = w->members ? start(w) : ERR_NOMEM;
	const struct courier_world world = {open_end, w->members};
	if (!e)
		e = courier_new(&w->leader.courier, &world, why);
	if (e) {
		local_world_free(w);
		return err_set(why, e, "no memory for ranks");
	}
	*out = w;
	return ERR_OK;
}

struct world *
local_world_leader(struct local_world *w)
{
	return &w->leader;
}

void
local_world_free(struct local_world *w)
{
	if (!w)
		return;
	if (w->leader.courier)
		world_end(&w->leader);
	else
		link_local_abort(w->links);
	courier_free(w->leader.courier);
	for (unsigned r = 1; w->members && r < w->ranks; r++)
		if (w->members[r].runs)
			pthread_join(w->members[r].thread, NULL);
	link_local_free(w->links);
	free(w->members);
	free(w);
}
