#include "tally.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rng.h"

#define BUCKETS 16384 /* a power of two */
#define PARTS 12 /* of the window: each counts for itself, and is forgotten as a whole */
#define PART_MS (TALLY_WINDOW_MS / PARTS)

struct entry {
	struct entry *chain; /* the next entry of the bucket */
	struct entry *older, *newer; /* in the list of idle entries, while in_hand is 0 */
	uint8_t key[TALLY_KEY];
	uint32_t in_hand;
	uint64_t held; /* bytes */
	uint32_t events[PARTS]; /* by number of the part modulo PARTS */
	uint64_t part; /* number of the newest part that was counted into */
};

struct tally {
	pthread_mutex_t lock;
	uint64_t seed[2]; /* so that nobody can choose keys for one bucket */
	uint32_t in_hand, busy; /* things in hand over all keys; keys with something in hand */
	uint32_t count;
	struct entry *oldest,
	    *newest; /* idle ones, in the order in which something last happened */
	struct entry *buckets[BUCKETS];
};

enum err
tally_new(struct tally **out)
{
	struct tally *t = calloc(1, sizeof(*t));

	if (!t)
		return ERR_NOMEM;
	enum err e = rng_bytes(t->seed, sizeof(t->seed));
	if (e) {
		free(t);
		return e;
	}
	pthread_mutex_init(&t->lock, NULL);
	*out = t;
	return ERR_OK;
}

void
tally_free(struct tally *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct entry *e = t->buckets[i], *next; e; e = next) {
			next = e->chain;
			free(e);
		}
	}
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static struct entry **
bucket_of(struct tally *t, const uint8_t key[TALLY_KEY])
{
	uint64_t half[2];

	memcpy(half, key, sizeof(half));
	uint64_t h = (half[0] ^ t->seed[0]) * 0x9e3779b97f4a7c15u;
	h ^= h >> 32;
	h = ((h + half[1]) ^ t->seed[1]) * 0xbf58476d1ce4e5b9u;
	h ^= h >> 29;
	return &t->buckets[(h * 0x94d049bb133111ebu >> 32) & (BUCKETS - 1)];
}

static struct entry *
find(struct tally *t, const uint8_t key[TALLY_KEY])
{
	struct entry *e = *bucket_of(t, key);

	while (e && memcmp(e->key, key, TALLY_KEY) != 0)
		e = e->chain;
	return e;
}

/* --- the idle ones */

static void
unlist(struct tally *t, struct entry *e)
{
	*(e->older ? &e->older->newer : &t->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &t->newest) = e->older;
	e->older = e->newer = NULL;
}

static void
list(struct tally *t, struct entry *e)
{
	e->older = t->newest;
	e->newer = NULL;
	*(t->newest ? &t->newest->newer : &t->oldest) = e;
	t->newest = e;
}

/* Removes an idle entry. */
static void
forget(struct tally *t, struct entry *e)
{
	struct entry **at = bucket_of(t, e->key);

	while (*at != e)
		at = &(*at)->chain;
	*at = e->chain;
	unlist(t, e);
	free(e);
	t->count--;
}

/* Finds the key's entry, or adds an idle one. NULL without memory, or if the table is full of keys with something in hand. */
static struct entry *
find_or_add(struct tally *t, const uint8_t key[TALLY_KEY])
{
	struct entry *e = find(t, key);

	if (e)
		return e;
	if (t->count >= TALLY_MAX && t->oldest)
		forget(t, t->oldest);
	if (t->count >= TALLY_MAX || !(e = calloc(1, sizeof(*e))))
		return NULL;
	struct entry **at = bucket_of(t, key);
	memcpy(e->key, key, TALLY_KEY);
	e->chain = *at;
	*at = e;
	list(t, e);
	t->count++;
	return e;
}

/* --- the window */

/* Makes `now` the newest part. Threads read the clock before they lock, so it may seem to go back a little. */
static void
advance(struct entry *e, uint64_t now_ms)
{
	uint64_t now = now_ms / PART_MS;

	if (now <= e->part)
		return;
	if (now - e->part >= PARTS)
		memset(e->events, 0, sizeof(e->events));
	else
		while (++e->part < now)
			e->events[e->part % PARTS] = 0;
	e->part = now;
	e->events[now % PARTS] = 0;
}

static uint32_t
sum(struct entry *e, uint64_t now_ms)
{
	uint32_t n = 0;

	advance(e, now_ms);
	for (size_t i = 0; i < PARTS; i++)
		n += e->events[i];
	return n;
}

/* Seconds until fewer than `most` of the events are left in the window. */
static uint32_t
wait_s(const struct entry *e, uint32_t n, uint32_t most, uint64_t now_ms)
{
	uint64_t ms = PART_MS - now_ms % PART_MS;

	/* The part after the newest is the oldest one, and goes first. */
	for (size_t i = 1; i <= PARTS; i++, ms += PART_MS) {
		n -= e->events[(e->part + i) % PARTS];
		if (n < most)
			break;
	}
	return (uint32_t)(ms / 1000) + 1;
}

/* --- calls */

/* May this key, which has something in hand or nothing, have one more? */
static bool
has_room(const struct tally *t, const struct entry *e, const struct tally_limits *limits)
{
	uint32_t keys = t->busy + (e->in_hand == 0), fair = limits->crowd / keys;

	return t->in_hand < limits->crowd ||
	    e->in_hand < (fair > limits->most_each ? fair : limits->most_each);
}

enum tally_room
tally_enter(struct tally *t, const uint8_t key[TALLY_KEY], const struct tally_limits *limits)
{
	enum tally_room room = TALLY_FULL;

	pthread_mutex_lock(&t->lock);
	struct entry *e = t->in_hand < limits->most ? find_or_add(t, key) : NULL;
	if (e)
		room = has_room(t, e, limits) ? TALLY_ROOM : TALLY_KEY_FULL;
	if (room == TALLY_ROOM) {
		if (e->in_hand++ == 0) {
			unlist(t, e);
			t->busy++;
		}
		t->in_hand++;
	}
	pthread_mutex_unlock(&t->lock);
	return room;
}

void
tally_leave(struct tally *t, const uint8_t key[TALLY_KEY])
{
	pthread_mutex_lock(&t->lock);
	struct entry *e = find(t, key);
	if (e && e->in_hand > 0) {
		t->in_hand--;
		if (--e->in_hand == 0) {
			list(t, e);
			t->busy--;
		}
		/* Most keys have no events: they need not wait to be forgotten. */
		if (e->in_hand == 0 && sum(e, 0) == 0)
			forget(t, e);
	}
	pthread_mutex_unlock(&t->lock);
}

bool
tally_hold(
    struct tally *t, const uint8_t key[TALLY_KEY], uint64_t *held, uint64_t bytes, uint64_t most)
{
	pthread_mutex_lock(&t->lock);
	struct entry *e = find(t, key);
	uint64_t others = e ? e->held - *held : 0;
	bool room = bytes <= *held || others == 0 || (others <= most && bytes <= most - others);
	if (e && room) {
		e->held = others + bytes;
		*held = bytes;
	}
	pthread_mutex_unlock(&t->lock);
	return room;
}

/* Under the lock. */
static struct entry *
count(struct tally *t, const uint8_t key[TALLY_KEY], uint32_t n, uint64_t now_ms)
{
	while (t->oldest && sum(t->oldest, now_ms) == 0)
		forget(t, t->oldest);
	struct entry *e = find_or_add(t, key);
	if (e) {
		advance(e, now_ms);
		e->events[e->part % PARTS] += n;
		if (e->in_hand == 0) {
			unlist(t, e);
			list(t, e);
		}
	}
	return e;
}

void
tally_add(struct tally *t, const uint8_t key[TALLY_KEY], uint32_t n, uint64_t now_ms)
{
	pthread_mutex_lock(&t->lock);
	(void)count(t, key, n, now_ms);
	pthread_mutex_unlock(&t->lock);
}

uint32_t
tally_take(struct tally *t, const uint8_t key[TALLY_KEY], uint32_t most, uint64_t now_ms)
{
	uint32_t wait = 0;

	pthread_mutex_lock(&t->lock);
	struct entry *e = find(t, key);
	uint32_t n = e ? sum(e, now_ms) : 0;
	if (e && n >= most)
		wait = wait_s(e, n, most, now_ms);
	else if (e && most >= TALLY_SMOOTH && e->events[e->part % PARTS] >= most / 10)
		wait = (uint32_t)(PART_MS - now_ms % PART_MS) / 1000 + 1;
	else
		(void)count(t, key, 1, now_ms);
	pthread_mutex_unlock(&t->lock);
	return wait;
}
