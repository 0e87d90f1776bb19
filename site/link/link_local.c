#include "link_local.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct end {
	struct link link; /* first */
	struct link_local *local;
	void (*wake)(void *context);
	void *context;
	/* Posted and not complete, in order: what others send to this rank, and what it waits for. */
	struct link_message *sent[LINK_RANKS_MAX], *wanted[LINK_RANKS_MAX];
};

struct link_local {
	pthread_mutex_t lock;
	unsigned ranks;
	bool aborted;
	struct end *ends;
};

/* The first with that tag, taken off the list. */
static struct link_message *
take(struct link_message **list, uint32_t tag)
{
	while (*list && (*list)->tag != tag)
		list = &(*list)->next;
	struct link_message *m = *list;
	if (m)
		*list = m->next;
	return m;
}

static void
append(struct link_message **list, struct link_message *m)
{
	while (*list)
		list = &(*list)->next;
	m->next = NULL;
	*list = m;
}

static void
wake(const struct end *e)
{
	if (e->wake)
		e->wake(e->context);
}

static enum err
deliver(const struct link_message *from, struct link_message *to)
{
	if (from->room > to->room)
		return ERR_LIMIT;
	memcpy(to->head, from->head, LINK_HEAD);
	if (from->room > 0)
		memcpy(to->body, from->body, from->room);
	to->got = from->room;
	return ERR_OK;
}

static enum err
post(struct link *l, struct link_message *m)
{
	struct end *own = (struct end *)l;
	struct link_local *w = own->local;
	struct end *other = &w->ends[m->peer];
	enum err e = ERR_OK;

	m->complete = false;
	pthread_mutex_lock(&w->lock);
	/* What others have posted may be gone. */
	if (w->aborted) {
		pthread_mutex_unlock(&w->lock);
		return ERR_CLOSED;
	}
	struct end *to = m->sends ? other : own;
	unsigned from = m->sends ? l->rank : m->peer;
	struct link_message *match = take(m->sends ? &to->wanted[from] : &to->sent[from], m->tag);
	if (!match)
		append(m->sends ? &to->sent[from] : &to->wanted[from], m);
	else
		e = m->sends ? deliver(m, match) : deliver(match, m);
	if (!e && match)
		match->complete = m->complete = true;
	if (match)
		wake(other);
	pthread_mutex_unlock(&w->lock);
	return e;
}

static enum err
test(struct link *l, struct link_message *m)
{
	struct link_local *w = ((struct end *)l)->local;

	pthread_mutex_lock(&w->lock);
	enum err e = m->complete ? ERR_OK : w->aborted ? ERR_CLOSED : ERR_AGAIN;
	pthread_mutex_unlock(&w->lock);
	return e;
}

static void
listen_to(struct link *l, void (*fn)(void *context), void *context)
{
	struct end *own = (struct end *)l;

	pthread_mutex_lock(&own->local->lock);
	own->wake = fn;
	own->context = context;
	pthread_mutex_unlock(&own->local->lock);
}

static void
leave(struct link *l)
{
	listen_to(l, NULL, NULL);
}

void
link_local_abort(struct link_local *w)
{
	pthread_mutex_lock(&w->lock);
	w->aborted = true;
	for (unsigned r = 0; r < w->ranks; r++)
		wake(&w->ends[r]);
	pthread_mutex_unlock(&w->lock);
}

static void
end_world(struct link *l)
{
	link_local_abort(((struct end *)l)->local);
}

enum err
link_local_new(struct link_local **out, unsigned ranks)
{
	static const struct link_calls calls = {
	    .post = post, .test = test, .listen = listen_to, .close = leave, .abort = end_world};
	struct link_local *w = calloc(1, sizeof(*w));

	if (!w)
		return ERR_NOMEM;
	w->ranks = ranks;
	w->ends = calloc(ranks, sizeof(*w->ends));
	if (!w->ends) {
		free(w);
		return ERR_NOMEM;
	}
	pthread_mutex_init(&w->lock, NULL);
	for (unsigned r = 0; r < ranks; r++)
		w->ends[r] = (struct end){
		    .link = {.calls = &calls, .rank = r, .ranks = ranks, .threads = true},
		    .local = w};
	*out = w;
	return ERR_OK;
}

void
link_local_free(struct link_local *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w->ends);
	free(w);
}

struct link *
link_local_end(struct link_local *w, unsigned rank)
{
	return &w->ends[rank].link;
}
