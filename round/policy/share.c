#include "share.h"

#include <math.h>
#include <string.h>

/* Of a job none of whose tasks has ended: enough to move it behind its peers. */
#define FIRST_SECONDS 1.0
/* How much the last task tells of the next one. */
#define WEIGHT 0.1

struct share_use
share_none(void)
{
	return (struct share_use){.level = -INFINITY};
}

static double
half_lives(uint64_t ms)
{
	return (double)ms / SHARE_HALF_LIFE_MS;
}

void
share_charge(struct share_use *u, double seconds, uint64_t now_ms)
{
	if (!isfinite(seconds) || !(fabs(seconds) > 0))
		return;
	const double shift = half_lives(now_ms);
	const double have = share_seconds(u, now_ms);

	u->level = have + seconds > 0 ? log2(have + seconds) + shift : -INFINITY;
	u->charged_ms = now_ms;
}

double
share_seconds(const struct share_use *u, uint64_t now_ms)
{
	return exp2(u->level - half_lives(now_ms));
}

double
share_key(const struct share_use *u, uint32_t share)
{
	return u->level - log2((double)share);
}

void
share_raise(struct share_use *u, uint32_t share, double key)
{
	const double level = key + log2((double)share);

	if (level > u->level)
		u->level = level;
}

double
share_begin(struct share_use *u, uint64_t now_ms)
{
	const double charged = u->task_seconds > 0 ? u->task_seconds : FIRST_SECONDS;

	share_charge(u, charged, now_ms);
	return charged;
}

void
share_end(struct share_use *u, double charged, double seconds, uint64_t now_ms)
{
	share_charge(u, seconds - charged, now_ms);
	u->task_seconds += (u->task_seconds > 0 ? WEIGHT : 1) * (seconds - u->task_seconds);
}

/* --- the order */

static bool
is_before(const struct share_place *a, const struct share_place *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->key < b->key || a->key > b->key)
		return a->key < b->key;
	return a->serial < b->serial;
}

/* How many stand before this place; at: and at it. */
static size_t
count_before(const struct share_order *o, const struct share_place *p, bool at)
{
	size_t low = 0, high = o->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct share_place *there = &o->items[middle]->at;
		if (is_before(there, p) || (at && !is_before(p, there)))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool
share_order_add(struct share_order *o, struct share_member *m)
{
	if (o->count == SHARE_ORDER_MAX)
		return false;
	m->at = (struct share_place){
	    .priority = m->priority, .key = share_key(&m->use, m->share), .serial = m->serial};
	const size_t at = count_before(o, &m->at, false);
	memmove(&o->items[at + 1], &o->items[at], (o->count - at) * sizeof(void *));
	o->items[at] = m;
	o->count++;
	m->is_in = true;
	return true;
}

void
share_order_remove(struct share_order *o, struct share_member *m)
{
	if (!m->is_in)
		return;
	const size_t at = count_before(o, &m->at, false);
	o->count--;
	memmove(&o->items[at], &o->items[at + 1], (o->count - at) * sizeof(void *));
	m->is_in = false;
}

void
share_order_move(struct share_order *o, struct share_member *m)
{
	if (!m->is_in)
		return;
	share_order_remove(o, m);
	/* There is a place: it had one. */
	(void)share_order_add(o, m);
}

void
share_order_raise(struct share_order *o, struct share_member *m, uint64_t now_ms)
{
	const struct share_place first = {.priority = m->priority, .key = -INFINITY};

	for (size_t i = count_before(o, &first, false); i < o->count; i++) {
		const struct share_member *peer = o->items[i];
		if (peer->priority != m->priority)
			break;
		if (peer == m || peer->waits || peer->use.charged_ms == 0 ||
		    peer->use.charged_ms + SHARE_HALF_LIFE_MS <= now_ms)
			continue;
		share_raise(&m->use, m->share, peer->at.key);
		break;
	}
	share_order_move(o, m);
}

struct share_member *
share_order_next(const struct share_order *o, const struct share_place *after)
{
	const size_t at = after ? count_before(o, after, true) : 0;

	return at < o->count ? o->items[at] : NULL;
}
