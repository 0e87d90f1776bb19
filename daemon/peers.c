#include "peers.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rng.h"

#define BUCKETS 16384 /* a power of two */
#define PARTS 12 /* of the window: each counts for itself, and is forgotten as a whole */
#define PART_MS (PEERS_WINDOW_MS / PARTS)
#define KEY_LEN 16

struct peer {
	struct peer *chain; /* of its bucket */
	struct peer *older, *newer; /* of the idle ones, while handshakes is 0 */
	uint8_t key[KEY_LEN];
	uint32_t handshakes;
	uint32_t failures[PARTS]; /* by number of the part modulo PARTS */
	uint64_t part; /* number of the newest part that was counted into */
};

struct peers {
	pthread_mutex_t lock;
	uint64_t seed[2]; /* so that nobody can choose addresses for one bucket */
	uint32_t handshakes, count;
	struct peer *oldest, *newest; /* idle ones, in the order in which something last happened */
	struct peer *buckets[BUCKETS];
};

enum err
peers_new(struct peers **out)
{
	struct peers *p = calloc(1, sizeof(*p));

	if (!p)
		return ERR_NOMEM;
	enum err e = rng_bytes(p->seed, sizeof(p->seed));
	if (e) {
		free(p);
		return e;
	}
	pthread_mutex_init(&p->lock, NULL);
	*out = p;
	return ERR_OK;
}

void
peers_free(struct peers *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct peer *e = p->buckets[i], *next; e; e = next) {
			next = e->chain;
			free(e);
		}
	}
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* --- addresses */

/* What is no address shares one key. */
static void
key_of(uint8_t key[KEY_LEN], const char *address)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memset(key, 0, KEY_LEN);
	if (inet_pton(AF_INET6, address, key) == 1) {
		/* Who has an IPv6 address has 2^64 of them. */
		if (memcmp(key, mapped, sizeof(mapped)) != 0)
			memset(key + 8, 0, 8);
		return;
	}
	if (inet_pton(AF_INET, address, key + 12) == 1)
		memcpy(key, mapped, sizeof(mapped));
}

static struct peer **
bucket_of(struct peers *p, const uint8_t key[KEY_LEN])
{
	uint64_t half[2];

	memcpy(half, key, sizeof(half));
	uint64_t h = (half[0] ^ p->seed[0]) * 0x9e3779b97f4a7c15u;
	h ^= h >> 32;
	h = ((h + half[1]) ^ p->seed[1]) * 0xbf58476d1ce4e5b9u;
	h ^= h >> 29;
	return &p->buckets[(h * 0x94d049bb133111ebu >> 32) & (BUCKETS - 1)];
}

static struct peer *
find(struct peers *p, const uint8_t key[KEY_LEN])
{
	struct peer *e = *bucket_of(p, key);

	while (e && memcmp(e->key, key, KEY_LEN) != 0)
		e = e->chain;
	return e;
}

/* --- the idle ones */

static void
unlist(struct peers *p, struct peer *e)
{
	*(e->older ? &e->older->newer : &p->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &p->newest) = e->older;
	e->older = e->newer = NULL;
}

static void
list(struct peers *p, struct peer *e)
{
	e->older = p->newest;
	e->newer = NULL;
	*(p->newest ? &p->newest->newer : &p->oldest) = e;
	p->newest = e;
}

/* An idle one, in the list. */
static void
forget(struct peers *p, struct peer *e)
{
	struct peer **at = bucket_of(p, e->key);

	while (*at != e)
		at = &(*at)->chain;
	*at = e->chain;
	unlist(p, e);
	free(e);
	p->count--;
}

/* Finds the address or adds it, idle. NULL without memory, or when all in a full table have handshakes. */
static struct peer *
find_or_add(struct peers *p, const char *address)
{
	uint8_t key[KEY_LEN];

	key_of(key, address);
	struct peer *e = find(p, key);
	if (e)
		return e;
	if (p->count >= PEERS_MAX && p->oldest)
		forget(p, p->oldest);
	if (p->count >= PEERS_MAX || !(e = calloc(1, sizeof(*e))))
		return NULL;
	struct peer **at = bucket_of(p, key);
	memcpy(e->key, key, KEY_LEN);
	e->chain = *at;
	*at = e;
	list(p, e);
	p->count++;
	return e;
}

/* --- the window */

/* Makes `now` the newest part. Threads read the clock before they lock, so it may seem to go back a little. */
static void
advance(struct peer *e, uint64_t now_ms)
{
	uint64_t now = now_ms / PART_MS;

	if (now <= e->part)
		return;
	if (now - e->part >= PARTS)
		memset(e->failures, 0, sizeof(e->failures));
	else
		while (++e->part < now)
			e->failures[e->part % PARTS] = 0;
	e->part = now;
	e->failures[now % PARTS] = 0;
}

static uint32_t
sum(struct peer *e, uint64_t now_ms)
{
	uint32_t n = 0;

	advance(e, now_ms);
	for (size_t i = 0; i < PARTS; i++)
		n += e->failures[i];
	return n;
}

/* --- calls */

bool
peers_enter(struct peers *p, const char *address, uint32_t most, uint32_t most_each)
{
	pthread_mutex_lock(&p->lock);
	struct peer *e = p->handshakes < most ? find_or_add(p, address) : NULL;
	bool ok = e && e->handshakes < most_each;
	if (ok) {
		if (e->handshakes++ == 0)
			unlist(p, e);
		p->handshakes++;
	}
	pthread_mutex_unlock(&p->lock);
	return ok;
}

void
peers_leave(struct peers *p, const char *address)
{
	uint8_t key[KEY_LEN];

	key_of(key, address);
	pthread_mutex_lock(&p->lock);
	struct peer *e = find(p, key);
	if (e && e->handshakes > 0) {
		p->handshakes--;
		if (--e->handshakes == 0)
			list(p, e);
		/* Most addresses never fail: they need not wait to be forgotten. */
		if (e->handshakes == 0 && sum(e, 0) == 0)
			forget(p, e);
	}
	pthread_mutex_unlock(&p->lock);
}

void
peers_failed(struct peers *p, const char *address, uint64_t now_ms)
{
	pthread_mutex_lock(&p->lock);
	while (p->oldest && sum(p->oldest, now_ms) == 0)
		forget(p, p->oldest);
	struct peer *e = find_or_add(p, address);
	if (e) {
		advance(e, now_ms);
		e->failures[e->part % PARTS]++;
		if (e->handshakes == 0) {
			unlist(p, e);
			list(p, e);
		}
	}
	pthread_mutex_unlock(&p->lock);
}

uint32_t
peers_failures(struct peers *p, const char *address, uint64_t now_ms)
{
	uint8_t key[KEY_LEN];

	key_of(key, address);
	pthread_mutex_lock(&p->lock);
	struct peer *e = find(p, key);
	uint32_t n = e ? sum(e, now_ms) : 0;
	if (e && n == 0 && e->handshakes == 0)
		forget(p, e);
	pthread_mutex_unlock(&p->lock);
	return n;
}

uint32_t
peers_count(struct peers *p)
{
	pthread_mutex_lock(&p->lock);
	uint32_t n = p->count;
	pthread_mutex_unlock(&p->lock);
	return n;
}
