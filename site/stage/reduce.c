#include "reduce.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tensor.h"

#define PIECE (LINK_BODY_MAX / sizeof(float)) /* elements */
#define ROOMS 4 /* pieces of a peer that may wait to be added */

/* Elements [first, first + count) of the net, within one span of elements that steps move. */
struct piece {
	size_t first, count;
	unsigned owner;
	size_t at; /* of the owner's: elements before it */
	struct parcel parcel; /* to the owner, then its sum from there */
};

/* A piece that a peer sent to this owner. */
struct room {
	float *values;
	struct parcel parcel;
	bool there;
};

struct peer {
	struct room rooms[ROOMS];
	struct parcel *sums; /* to it: of each own piece */
};

struct reduce {
	struct courier *courier;
	struct net *net;
	struct layout layout;
	unsigned replica, stage;
	struct piece *pieces; /* from the last element to the first */
	size_t count;
	size_t *own; /* of them: this replica's, own_count */
	size_t own_count;
	float *sums; /* of the own pieces */
	struct peer *peers; /* by replica */
	/* The step. */
	uint64_t number;
	uint32_t runs, waves; /* of all replicas */
	uint32_t handed; /* own runs */
	float *vector; /* the last of them */
	size_t next; /* of the pieces: the first that is not sent */
	bool *complete; /* tensors of the own run, */
	size_t incomplete; /* and how many of the first ones need not be */
	/* Below: also the courier's thread, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t over; /* the sums of a wave */
	uint32_t wave;
	size_t adding; /* of the own pieces: the one that is added */
	unsigned turn; /* the replica whose part comes next */
	const float *gradient; /* of the own run; NULL: not yet, or there is none */
	size_t ready; /* elements from here on are complete */
	bool gone; /* the courier has failed */
};

/* Replicas that have a run in the wave. */
static unsigned
runs_of(const struct reduce *r, uint32_t wave)
{
	uint32_t left = r->runs - wave * r->layout.replicas;

	return left < r->layout.replicas ? left : r->layout.replicas;
}

static unsigned
rank_of(const struct reduce *r, unsigned replica)
{
	return layout_rank(&r->layout, replica, r->stage);
}

/* --- pieces */

/* Calls fn for each piece from the last element to the first. Tensors that lie side by side are one span. */
struct division {
	size_t moving; /* elements in all */
	unsigned replicas;
	void (*fn)(void *context, size_t first, size_t count, unsigned owner);
	void *context;
	size_t passed;
	size_t end, first; /* of the span so far */
};

static void
divide_span(struct division *d)
{
	while (d->end > d->first && d->moving > 0) {
		unsigned owner = (unsigned)(d->passed * d->replicas / d->moving);
		/* Where the owner's share ends. */
		size_t limit =
		    ((owner + 1) * d->moving + d->replicas - 1) / d->replicas - d->passed;
		size_t n = d->end - d->first;
		n = n < PIECE ? n : PIECE;
		n = n < limit ? n : limit;
		d->end -= n;
		d->passed += n;
		d->fn(d->context, d->end, n, owner);
	}
}

static void
divide(const struct net *net, unsigned replicas,
    void (*fn)(void *context, size_t first, size_t count, unsigned owner), void *context)
{
	const struct tensor_table *t = net_tensors(net);
	struct division d = {.replicas = replicas, .fn = fn, .context = context};

	for (size_t i = 0; i < t->count; i++)
		d.moving += net_moves(net, i) ? (size_t)t->items[i].elements : 0;
	for (size_t i = t->count; i-- > 0;) {
		size_t first = (size_t)(t->items[i].begin / sizeof(float));
		if (!net_moves(net, i))
			continue;
		if (first + t->items[i].elements != d.first) {
			divide_span(&d);
			d.end = first + (size_t)t->items[i].elements;
		}
		d.first = first;
	}
	divide_span(&d);
}

/* Counts, or fills. */
struct filling {
	struct reduce *r; /* pieces NULL: only counts */
	unsigned replica;
	size_t count, own, own_elements;
	size_t at[LINK_RANKS_MAX]; /* elements of each owner so far */
};

static void
add_piece(void *context, size_t first, size_t count, unsigned owner)
{
	struct filling *f = context;

	if (f->r && f->r->pieces) {
		f->r->pieces[f->count] = (struct piece){
		    .first = first, .count = count, .owner = owner, .at = f->at[owner]};
		if (owner == f->replica)
			f->r->own[f->own] = f->count;
	}
	f->at[owner] += count;
	f->own += owner == f->replica;
	f->own_elements += owner == f->replica ? count : 0;
	f->count++;
}

uint64_t
reduce_bytes(const struct net *net, unsigned replicas, unsigned replica)
{
	struct filling f = {.replica = replica};

	divide(net, replicas, add_piece, &f);
	return f.count * sizeof(struct piece) + f.own * sizeof(size_t) +
	    f.own_elements * sizeof(float) + replicas * sizeof(struct peer) +
	    (replicas - 1) * (ROOMS * LINK_BODY_MAX + f.own * sizeof(struct parcel));
}

static enum err
make_peers(struct reduce *r)
{
	for (unsigned q = 0; q < r->layout.replicas; q++) {
		struct peer *p = &r->peers[q];
		if (q == r->replica)
			continue;
		p->sums = calloc(r->own_count + 1, sizeof(*p->sums));
		if (!p->sums)
			return ERR_NOMEM;
		for (size_t i = 0; i < ROOMS; i++)
			if (!(p->rooms[i].values = malloc(LINK_BODY_MAX)))
				return ERR_NOMEM;
	}
	return ERR_OK;
}

static enum err
make(struct reduce *r)
{
	struct filling f = {.replica = r->replica};

	divide(r->net, r->layout.replicas, add_piece, &f);
	r->count = f.count;
	r->own_count = f.own;
	r->pieces = calloc(f.count + 1, sizeof(*r->pieces));
	r->own = calloc(f.own + 1, sizeof(*r->own));
	r->sums = malloc((f.own_elements + 1) * sizeof(*r->sums));
	r->peers = calloc(r->layout.replicas, sizeof(*r->peers));
	r->complete = calloc(net_tensors(r->net)->count + 1, sizeof(*r->complete));
	if (!r->pieces || !r->own || !r->sums || !r->peers || !r->complete)
		return ERR_NOMEM;
	f = (struct filling){.r = r, .replica = r->replica};
	divide(r->net, r->layout.replicas, add_piece, &f);
	return make_peers(r);
}

static void
on_failure(void *context)
{
	struct reduce *r = context;

	pthread_mutex_lock(&r->lock);
	r->gone = true;
	pthread_cond_broadcast(&r->over);
	pthread_mutex_unlock(&r->lock);
}

enum err
reduce_new(struct reduce **out, struct courier *c, struct net *net, const struct layout *layout,
    unsigned replica, unsigned stage)
{
	struct reduce *r = calloc(1, sizeof(*r));

	if (!r)
		return ERR_NOMEM;
	r->courier = c;
	r->net = net;
	r->layout = *layout;
	r->replica = replica;
	r->stage = stage;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->over, NULL);
	courier_watch(c, on_failure, r);
	enum err e = make(r);
	if (e)
		reduce_free(r);
	else
		*out = r;
	return e;
}

void
reduce_free(struct reduce *r)
{
	if (!r)
		return;
	courier_watch(r->courier, NULL, NULL);
	for (unsigned q = 0; r->peers && q < r->layout.replicas; q++) {
		free(r->peers[q].sums);
		for (size_t i = 0; i < ROOMS; i++)
			free(r->peers[q].rooms[i].values);
	}
	free(r->peers);
	free(r->sums);
	free(r->own);
	free(r->complete);
	free(r->pieces);
	pthread_cond_destroy(&r->over);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* --- the owner's side, under the lock */

static void await_piece(struct reduce *r, unsigned replica, size_t own);

static struct parcel_head
head_of(const struct reduce *r, enum parcel_kind kind, uint32_t wave, size_t piece)
{
	return (struct parcel_head){
	    .kind = kind, .edge = wave, .step = r->number, .batch = (uint32_t)piece};
}

static void
add(float *restrict to, const float *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

/* A replica's part of the own piece that is added; NULL: it is not there yet. */
static const float *
part_of(struct reduce *r, const struct piece *p, unsigned replica)
{
	if (replica == r->replica)
		return r->gradient && r->ready <= p->first ? r->gradient + p->first : NULL;
	const struct room *room = &r->peers[replica].rooms[r->adding % ROOMS];
	return room->there ? room->values : NULL;
}

static bool
is_added(const struct reduce *r)
{
	return r->adding == r->own_count;
}

/* Adds what is there, in the order of runs. */
static void
add_up(struct reduce *r)
{
	while (!is_added(r)) {
		const struct piece *p = &r->pieces[r->own[r->adding]];
		const float *part = part_of(r, p, r->turn);
		if (!part)
			return;
		if (r->wave == 0 && r->turn == 0)
			memcpy(r->sums + p->at, part, p->count * sizeof(float));
		else
			add(r->sums + p->at, part, p->count);
		if (r->turn != r->replica)
			await_piece(r, r->turn, r->adding + ROOMS);
		if (++r->turn < runs_of(r, r->wave))
			continue;
		r->turn = 0;
		r->adding++;
	}
	pthread_cond_broadcast(&r->over);
}

static void
on_piece(void *context, struct parcel *p)
{
	struct reduce *r = context;
	struct room *room = (struct room *)(void *)((char *)p - offsetof(struct room, parcel));

	pthread_mutex_lock(&r->lock);
	room->there = true;
	add_up(r);
	pthread_mutex_unlock(&r->lock);
}

/* In the room of that own piece, which is free. */
static void
await_piece(struct reduce *r, unsigned replica, size_t own)
{
	struct room *room = &r->peers[replica].rooms[own % ROOMS];

	room->there = false;
	if (own >= r->own_count)
		return;
	room->parcel = (struct parcel){.peer = rank_of(r, replica),
	    .head = head_of(r, PARCEL_RUN, r->wave, r->own[own]),
	    .data = room->values,
	    .bytes = r->pieces[r->own[own]].count * sizeof(float),
	    .arrived = on_piece,
	    .context = r};
	courier_post(r->courier, &room->parcel);
}

static void
begin_wave(struct reduce *r)
{
	r->adding = 0;
	r->turn = 0;
	r->gradient = NULL;
	r->ready = SIZE_MAX;
	r->next = 0;
	r->incomplete = net_tensors(r->net)->count;
	memset(r->complete, 0, net_tensors(r->net)->count * sizeof(*r->complete));
	for (unsigned q = 0; r->wave < r->waves && q < runs_of(r, r->wave); q++)
		for (size_t i = 0; q != r->replica && i < ROOMS; i++)
			await_piece(r, q, i);
}

void
reduce_begin(struct reduce *r, uint64_t number, uint32_t pieces)
{
	pthread_mutex_lock(&r->lock);
	r->number = number;
	r->runs = (pieces + r->layout.run - 1) / r->layout.run;
	r->waves = (r->runs + r->layout.replicas - 1) / r->layout.replicas;
	r->wave = 0;
	r->handed = 0;
	r->vector = NULL;
	begin_wave(r);
	pthread_mutex_unlock(&r->lock);
}

/* --- the sender's side */

/* Sends what is complete, under the lock. */
static void
send_complete(struct reduce *r)
{
	for (; r->next < r->count && r->pieces[r->next].first >= r->ready; r->next++) {
		struct piece *p = &r->pieces[r->next];
		if (p->owner == r->replica)
			continue;
		p->parcel = (struct parcel){.peer = rank_of(r, p->owner),
		    .sends = true,
		    .head = head_of(r, PARCEL_RUN, r->wave, r->next),
		    .data = (void *)(uintptr_t)(r->gradient + p->first),
		    .bytes = p->count * sizeof(float)};
		courier_post(r->courier, &p->parcel);
	}
	add_up(r);
}

/* Blocks until this wave's sums are made, and what this replica sent is received. */
static enum err
end_wave(struct reduce *r)
{
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < r->count; i++)
		if (r->pieces[i].owner != r->replica)
			e = courier_wait(r->courier, &r->pieces[i].parcel);
	pthread_mutex_lock(&r->lock);
	while (!e && !is_added(r) && !r->gone)
		pthread_cond_wait(&r->over, &r->lock);
	if (!e && !is_added(r))
		e = ERR_CLOSED;
	r->wave++;
	begin_wave(r);
	pthread_mutex_unlock(&r->lock);
	return e;
}

enum err
reduce_await(struct reduce *r)
{
	enum err e = ERR_OK;

	while (!e && r->wave < r->handed)
		e = end_wave(r);
	return e;
}

void
reduce_complete(void *reduce, size_t first, const float *gradient, size_t count)
{
	struct reduce *r = reduce;
	const struct tensor_table *t = net_tensors(r->net);

	(void)count;
	pthread_mutex_lock(&r->lock);
	r->gradient = gradient - first;
	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].begin / sizeof(float) == first)
			r->complete[i] = true;
	while (r->incomplete > 0 &&
	    (r->complete[r->incomplete - 1] || !net_moves(r->net, r->incomplete - 1))) {
		r->incomplete--;
		r->ready = (size_t)(t->items[r->incomplete].begin / sizeof(float));
	}
	send_complete(r);
	pthread_mutex_unlock(&r->lock);
}

void
reduce_hand(struct reduce *r)
{
	r->vector = net_hand(r->net);
	pthread_mutex_lock(&r->lock);
	r->handed++;
	r->gradient = r->vector;
	r->ready = 0;
	send_complete(r);
	pthread_mutex_unlock(&r->lock);
}

/* --- the end of a step */

static void
exchange(struct reduce *r)
{
	for (size_t i = 0, own = 0; i < r->count; i++) {
		struct piece *p = &r->pieces[i];
		struct parcel parcel = {.peer = rank_of(r, p->owner),
		    .head = head_of(r, PARCEL_TOTAL, r->stage, i),
		    .data = r->vector + p->first,
		    .bytes = p->count * sizeof(float)};
		if (p->owner != r->replica) {
			p->parcel = parcel;
			courier_post(r->courier, &p->parcel);
			continue;
		}
		memcpy(r->vector + p->first, r->sums + p->at, parcel.bytes);
		parcel.sends = true;
		parcel.data = r->sums + p->at;
		for (unsigned q = 0; q < r->layout.replicas; q++) {
			parcel.peer = rank_of(r, q);
			if (q == r->replica)
				continue;
			r->peers[q].sums[own] = parcel;
			courier_post(r->courier, &r->peers[q].sums[own]);
		}
		own++;
	}
}

enum err
reduce_end(struct reduce *r)
{
	enum err e = ERR_OK;

	while (!e && r->wave < r->waves)
		e = end_wave(r);
	if (e)
		return e;
	if (!r->vector)
		r->vector = net_hand(r->net);
	exchange(r);
	for (size_t i = 0; !e && i < r->count; i++)
		if (r->pieces[i].owner != r->replica)
			e = courier_wait(r->courier, &r->pieces[i].parcel);
	for (unsigned q = 0; q < r->layout.replicas; q++)
		for (size_t i = 0; !e && q != r->replica && i < r->own_count; i++)
			e = courier_wait(r->courier, &r->peers[q].sums[i]);
	return e;
}
