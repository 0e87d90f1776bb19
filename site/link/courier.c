#include "courier.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NAP_LEAST_NS 100000L
#define NAP_MOST_NS 1000000L

struct courier {
	struct link *link;
	struct courier_world world;
	pthread_t thread;
	pthread_mutex_t lock;
	int news; /* an eventfd for the thread */
	pthread_cond_t done; /* for those who wait for parcels */
	void (*failing)(void *context); /* courier_watch */
	void *watcher;
	bool calling; /* it is called */
	struct parcel *posted, **posted_end; /* not yet taken by the thread */
	bool ready, stops, breaks;
	enum err failed;
	struct why why;
	/* The thread's. */
	struct parcel *sends[LINK_RANKS_MAX]; /* to a peer, in their order */
	unsigned on_the_way[LINK_RANKS_MAX]; /* messages */
	struct parcel *receives;
};

/* The head of a message: the parcel's, and how much there is. */
struct wire_head {
	uint32_t world;
	struct parcel_head parcel;
	uint64_t at, bytes; /* of the parcel */
};
_Static_assert(sizeof(struct wire_head) <= LINK_HEAD, "a head is too long");

static uint32_t
tag_of(const struct parcel_head *h)
{
	return h->kind | h->edge % 64 << 4 | h->batch % 4096 << 10;
}

static size_t
messages_of(size_t bytes)
{
	return bytes > 0 ? (bytes + LINK_BODY_MAX - 1) / LINK_BODY_MAX : 1;
}

static enum err
post_message(struct courier *c, struct parcel *p)
{
	struct link_message *m = &p->messages[p->begun % COURIER_WINDOW];
	size_t at = p->begun++ * LINK_BODY_MAX, left = p->bytes - at;
	const struct wire_head h = {c->link->world, p->head, at, p->bytes};

	*m = (struct link_message){.peer = p->peer,
	    .tag = tag_of(&p->head),
	    .sends = p->sends,
	    .body = p->data ? (char *)p->data + at : NULL,
	    .room = left < LINK_BODY_MAX ? left : LINK_BODY_MAX};
	memcpy(m->head, &h, sizeof(h));
	return c->link->calls->post(c->link, m);
}

/* Of a received message: does it belong to the parcel? The first one tells how many there are. */
static enum err
take_message(const struct courier *c, struct parcel *p, const struct link_message *m)
{
	const struct parcel_head *want = &p->head, *got;
	struct wire_head h;

	memcpy(&h, m->head, sizeof(h));
	got = &h.parcel;
	if (h.world != c->link->world || got->kind != want->kind || got->edge != want->edge ||
	    got->step != want->step || got->batch != want->batch || h.at != p->got ||
	    h.bytes > p->bytes || m->got > h.bytes - h.at ||
	    (p->count > 0 && p->count != messages_of(h.bytes)))
		return ERR_CORRUPT;
	p->head = *got;
	p->count = messages_of(h.bytes);
	p->got += m->got;
	return p->ended + 1 < p->count || p->got == h.bytes ? ERR_OK : ERR_CORRUPT;
}

/* *busy: something happened. */
static enum err
complete_messages(struct courier *c, struct parcel *p, bool *busy)
{
	while (p->ended < p->begun) {
		struct link_message *m = &p->messages[p->ended % COURIER_WINDOW];
		enum err e = c->link->calls->test(c->link, m);
		if (e)
			return e == ERR_AGAIN ? ERR_OK : e;
		*busy = true;
		if (p->sends)
			c->on_the_way[p->peer]--;
		else
			e = take_message(c, p, m);
		if (e)
			return e;
		p->ended++;
	}
	return ERR_OK;
}

static bool
is_over(const struct parcel *p)
{
	return p->count > 0 && p->ended == p->count;
}

static void
finish(struct courier *c, struct parcel *p)
{
	void (*arrived)(void *, struct parcel *) = p->arrived;
	void *context = p->context;

	pthread_mutex_lock(&c->lock);
	p->posted = false;
	pthread_cond_broadcast(&c->done);
	pthread_mutex_unlock(&c->lock);
	if (arrived)
		arrived(context, p);
}

static enum err
progress_sends(struct courier *c, unsigned peer, bool *busy)
{
	enum err e = ERR_OK;

	for (struct parcel **at = &c->sends[peer]; *at && !e;) {
		struct parcel *p = *at;
		e = complete_messages(c, p, busy);
		while (!e && p->begun < p->count && c->on_the_way[peer] < COURIER_WINDOW) {
			c->on_the_way[peer]++;
			*busy = true;
			e = post_message(c, p);
		}
		if (e || p->begun < p->count)
			break;
		if (!is_over(p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		finish(c, p);
	}
	return e;
}

static enum err
progress_receives(struct courier *c, bool *busy)
{
	enum err e = ERR_OK;

	for (struct parcel **at = &c->receives; *at && !e;) {
		struct parcel *p = *at;
		e = complete_messages(c, p, busy);
		while (!e && p->begun < (p->count > 0 ? p->count : 1) &&
		    p->begun - p->ended < COURIER_WINDOW) {
			*busy = true;
			e = post_message(c, p);
		}
		if (!is_over(p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		finish(c, p);
	}
	return e;
}

static enum err
progress(struct courier *c, bool *busy)
{
	enum err e = progress_receives(c, busy);

	for (unsigned peer = 0; !e && peer < c->link->ranks; peer++)
		e = progress_sends(c, peer, busy);
	return e;
}

static void
append(struct parcel **list, struct parcel *p)
{
	while (*list)
		list = &(*list)->next;
	*list = p;
}

/* What was posted since becomes the thread's. *breaks: the world is to end. */
static bool
take_posted(struct courier *c, bool *breaks)
{
	pthread_mutex_lock(&c->lock);
	struct parcel *p = c->posted, *next;
	c->posted = NULL;
	c->posted_end = &c->posted;
	*breaks = c->breaks;
	pthread_mutex_unlock(&c->lock);
	bool any = p;
	for (; p; p = next) {
		next = p->next;
		p->next = NULL;
		append(p->sends ? &c->sends[p->peer] : &c->receives, p);
	}
	return any;
}

static bool
has_sends(const struct courier *c)
{
	for (unsigned peer = 0; peer < c->link->ranks; peer++)
		if (c->sends[peer])
			return true;
	return false;
}

static void
tell(const struct courier *c)
{
	const uint64_t one = 1;

	/* A counter that is full has news. */
	(void)!write(c->news, &one, sizeof(one));
}

/* Until there is news, or for a while. False: the courier is to stop. */
static bool
nap(struct courier *c, long ns)
{
	const struct timespec t = {0, ns};
	struct pollfd p = {.fd = c->news, .events = POLLIN};
	uint64_t count;

	pthread_mutex_lock(&c->lock);
	bool goes_on = !c->stops || (!c->failed && (c->posted || has_sends(c)));
	pthread_mutex_unlock(&c->lock);
	if (goes_on && ppoll(&p, 1, &t, NULL) > 0)
		(void)!read(c->news, &count, sizeof(count));
	return goes_on;
}

/* Those who wait may free their parcels at once: before they hear of it, nobody looks at any parcel any more, here or at another rank. */
static void
fail(struct courier *c, enum err e)
{
	c->link->calls->abort(c->link);
	memset(c->sends, 0, sizeof(c->sends));
	c->receives = NULL;
	pthread_mutex_lock(&c->lock);
	c->failed = e;
	c->posted = NULL;
	c->posted_end = &c->posted;
	void (*fn)(void *) = c->failing;
	void *context = c->watcher;
	c->calling = fn;
	pthread_cond_broadcast(&c->done);
	pthread_mutex_unlock(&c->lock);
	if (!fn)
		return;
	fn(context);
	pthread_mutex_lock(&c->lock);
	c->calling = false;
	pthread_cond_broadcast(&c->done);
	pthread_mutex_unlock(&c->lock);
}

static void
run(struct courier *c)
{
	long ns = NAP_LEAST_NS;
	bool busy = true, breaks;

	while (busy || nap(c, ns)) {
		ns = busy ? NAP_LEAST_NS : ns < NAP_MOST_NS ? ns * 2 : ns;
		busy = take_posted(c, &breaks);
		enum err e = c->failed ? ERR_OK : breaks ? ERR_CLOSED : progress(c, &busy);
		if (!e)
			continue;
		fail(c, e);
		busy = false;
	}
	c->link->calls->close(c->link);
}

static void
on_wake(void *context)
{
	tell(context);
}

static void *
thread(void *arg)
{
	struct courier *c = arg;
	enum err e = c->world.open(&c->link, c->world.context, &c->why);

	if (!e)
		c->link->calls->listen(c->link, on_wake, c);
	pthread_mutex_lock(&c->lock);
	c->failed = e;
	c->ready = true;
	pthread_cond_broadcast(&c->done);
	pthread_mutex_unlock(&c->lock);
	if (!e)
		run(c);
	return NULL;
}

static void
release(struct courier *c)
{
	if (c->news >= 0)
		close(c->news);
	pthread_cond_destroy(&c->done);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

enum err
courier_new(struct courier **out, const struct courier_world *world, struct why *why)
{
	struct courier *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(why, ERR_NOMEM, "no memory for a courier");
	c->world = *world;
	c->posted_end = &c->posted;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->done, NULL);
	c->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->news < 0 || pthread_create(&c->thread, NULL, thread, c)) {
		release(c);
		return err_set(why, ERR_NOMEM, "no thread for a courier");
	}
	pthread_mutex_lock(&c->lock);
	while (!c->ready)
		pthread_cond_wait(&c->done, &c->lock);
	enum err e = c->failed;
	pthread_mutex_unlock(&c->lock);
	if (e) {
		pthread_join(c->thread, NULL);
		if (why)
			*why = c->why;
		release(c);
		return e;
	}
	*out = c;
	return ERR_OK;
}

void
courier_free(struct courier *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stops = true;
	pthread_mutex_unlock(&c->lock);
	tell(c);
	pthread_join(c->thread, NULL);
	release(c);
}

unsigned
courier_rank(const struct courier *c)
{
	return c->link->rank;
}

unsigned
courier_ranks(const struct courier *c)
{
	return c->link->ranks;
}

bool
courier_threads(const struct courier *c)
{
	return c->link->threads;
}

void
courier_post(struct courier *c, struct parcel *p)
{
	p->posted = true;
	p->got = p->begun = p->ended = 0;
	p->count = p->sends ? messages_of(p->bytes) : 0;
	p->next = NULL;
	pthread_mutex_lock(&c->lock);
	if (!c->failed) {
		*c->posted_end = p;
		c->posted_end = &p->next;
	}
	pthread_mutex_unlock(&c->lock);
	tell(c);
}

enum err
courier_wait(struct courier *c, struct parcel *p)
{
	pthread_mutex_lock(&c->lock);
	while (p->posted && !c->failed)
		pthread_cond_wait(&c->done, &c->lock);
	enum err e = p->posted ? c->failed : ERR_OK;
	pthread_mutex_unlock(&c->lock);
	return e;
}

void
courier_watch(struct courier *c, void (*fn)(void *context), void *context)
{
	pthread_mutex_lock(&c->lock);
	while (c->calling)
		pthread_cond_wait(&c->done, &c->lock);
	c->failing = fn;
	c->watcher = context;
	bool failed = c->failed;
	pthread_mutex_unlock(&c->lock);
	if (failed && fn)
		fn(context);
}

void
courier_abort(struct courier *c)
{
	pthread_mutex_lock(&c->lock);
	c->breaks = true;
	tell(c);
	while (!c->failed)
		pthread_cond_wait(&c->done, &c->lock);
	pthread_mutex_unlock(&c->lock);
}
