#include "spent.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "clock.h"
#include "config.h"
#include "hex.h"
#include "log.h"
#include "row.h"
#include "shared.h"
#include "store.h"

#define HOUR_S 3600
#define HOUR_MS (1000u * HOUR_S)
#define PARTS 25 /* hours: a day, and the one that runs */
#define TRY_AGAIN_S 1
#define LINE_BYTES 200 /* of time, event, ids and the like */
#define SWEEP 1024 /* identities: from then on the idle ones go before there are more */

struct entry {
	uint8_t id[32]; /* first: they are sorted by it */
	uint64_t busy_ms; /* when its changes are paid for, by clock_ms; may be ahead */
	uint64_t hour; /* the newest that was counted into */
	uint64_t quiet; /* 1 + the hour in which it was last told that lines are left out */
	uint64_t parts[SPENT_KINDS][PARTS]; /* by hour modulo PARTS */
};

struct spent {
	pthread_mutex_t lock;
	uint64_t first_hour, first_ms; /* since 1970, and by clock_ms, when it was made */
	struct entry *entries;
	size_t count, room, sweep_at;
};

/* The present hour since 1970, by the wall clock at the start and the monotonic clock since. */
static uint64_t
hour_of(const struct spent *s, uint64_t now_ms)
{
	return s->first_hour + (now_ms - s->first_ms) / HOUR_MS;
}

enum err
spent_new(struct spent **out)
{
	struct spent *s = calloc(1, sizeof(*s));
	int64_t now = clock_unix();

	if (!s)
		return ERR_NOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->first_ms = clock_ms();
	s->first_hour = now > 0 ? (uint64_t)now / HOUR_S : 0;
	s->sweep_at = SWEEP;
	*out = s;
	return ERR_OK;
}

void
spent_free(struct spent *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s->entries);
	free(s);
}

/* --- identities; all of it with the lock held */

/* What was counted a day ago goes. */
static void
advance(struct entry *n, uint64_t hour)
{
	if (hour >= n->hour + PARTS)
		memset(n->parts, 0, sizeof(n->parts));
	else
		for (uint64_t h = n->hour + 1; h <= hour; h++)
			for (unsigned kind = 0; kind < SPENT_KINDS; kind++)
				n->parts[kind][h % PARTS] = 0;
	if (hour > n->hour)
		n->hour = hour;
}

static uint64_t
sum(const struct entry *n, enum spent_kind kind)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < PARTS; i++)
		bytes += n->parts[kind][i];
	return bytes;
}

static void
sweep(struct spent *s, uint64_t now_ms)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct entry *n = &s->entries[i];
		bool busy = n->busy_ms > now_ms;
		advance(n, hour_of(s, now_ms));
		for (unsigned kind = 0; kind < SPENT_KINDS; kind++)
			busy = busy || sum(n, kind) > 0;
		if (busy)
			s->entries[kept++] = *n;
	}
	s->count = kept;
	s->sweep_at = kept < SWEEP ? SWEEP : 2 * kept;
}

/* The entry of an identity as of now, made if there is none; NULL: no memory. */
static struct entry *
find(struct spent *s, const uint8_t who[32], uint64_t now_ms)
{
	if (s->count >= s->sweep_at)
		sweep(s, now_ms);
	size_t at = bytes_place(s->entries, s->count, sizeof(*s->entries), who, 32);
	if (at == s->count || memcmp(s->entries[at].id, who, 32) != 0) {
		struct entry *all = bytes_grow(s->entries, s->count, &s->room, sizeof(*all));
		if (!all)
			return NULL;
		s->entries = all;
		memmove(all + at + 1, all + at, (s->count++ - at) * sizeof(*all));
		all[at] = (struct entry){.hour = hour_of(s, now_ms)};
		memcpy(all[at].id, who, 32);
	}
	advance(&s->entries[at], hour_of(s, now_ms));
	return &s->entries[at];
}

/* Seconds until at most `left` of the counted bytes are left: the oldest hours go first. */
static uint32_t
wait_s(const struct entry *n, enum spent_kind kind, uint64_t left, uint64_t into_ms)
{
	uint64_t bytes = sum(n, kind), ms = HOUR_MS - into_ms;

	for (unsigned i = 1; i < PARTS; i++, ms += HOUR_MS) {
		bytes -= n->parts[kind][(n->hour + i) % PARTS];
		if (bytes <= left)
			break;
	}
	return (uint32_t)(ms / 1000) + 1;
}

/* --- changes in an hour */

/* An hour ahead no more are taken. */
static uint32_t
keep_busy(struct entry *n, uint32_t share_ms, uint64_t now)
{
	uint64_t busy = n->busy_ms > now ? n->busy_ms : now;

	if (busy + share_ms > now + HOUR_MS)
		return (uint32_t)((busy + share_ms - now - HOUR_MS + 999) / 1000);
	n->busy_ms = busy + share_ms;
	return 0;
}

uint32_t
spent_change(struct spent *s, const uint8_t who[32], uint32_t most)
{
	uint64_t now = clock_ms();

	if (!s || most == 0)
		return 0;
	pthread_mutex_lock(&s->lock);
	struct entry *n = find(s, who, now);
	uint32_t wait = n ? keep_busy(n, HOUR_MS / most, now) : TRY_AGAIN_S;
	pthread_mutex_unlock(&s->lock);
	return wait;
}

/* --- bytes in a day */

/* Lock held. */
static uint32_t
take(struct spent *s, struct entry *n, const struct spent_bytes *b, uint64_t now)
{
	uint64_t have = sum(n, b->kind);
	bool fits = b->most == 0 || (have <= b->most && b->bytes <= b->most - have);

	if (!fits)
		return wait_s(n, b->kind, b->most > b->bytes ? b->most - b->bytes : 0,
		    (now - s->first_ms) % HOUR_MS);
	n->parts[b->kind][n->hour % PARTS] += b->bytes;
	return 0;
}

uint32_t
spent_take(struct spent *s, const uint8_t who[32], const struct spent_bytes *b)
{
	uint64_t now = clock_ms();

	if (!s)
		return 0;
	pthread_mutex_lock(&s->lock);
	struct entry *n = find(s, who, now);
	uint32_t wait = n ? take(s, n, b, now) : TRY_AGAIN_S;
	pthread_mutex_unlock(&s->lock);
	return wait;
}

void
spent_give(struct spent *s, const uint8_t who[32], enum spent_kind kind, uint64_t bytes)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	struct entry *n = find(s, who, clock_ms());
	/* The hour may have changed in between. */
	for (unsigned i = 0; n && bytes > 0 && i < PARTS; i++) {
		uint64_t *part = &n->parts[kind][(n->hour + PARTS - i) % PARTS];
		uint64_t less = bytes < *part ? bytes : *part;
		*part -= less;
		bytes -= less;
	}
	pthread_mutex_unlock(&s->lock);
}

bool
spent_line(struct spent *s, const uint8_t who[32], uint64_t bytes, uint64_t most)
{
	const struct spent_bytes b = {SPENT_LINES, bytes, most};
	uint64_t now = clock_ms();
	bool fits = true, tell = false;
	char hex[17];

	if (!s)
		return true;
	pthread_mutex_lock(&s->lock);
	struct entry *n = find(s, who, now);
	if (n) {
		fits = take(s, n, &b, now) == 0;
		tell = !fits && n->quiet != n->hour + 1;
		if (tell)
			n->quiet = n->hour + 1;
	}
	pthread_mutex_unlock(&s->lock);
	hex_encode(hex, who, 8);
	if (tell)
		log_event(LOG_LEVEL_WARN, "log.quiet", LOG_S("owner", hex),
		    LOG_S("why", "its lines of a day are as many as owner_bytes_per_day allows"));
	return fits;
}

bool
spent_log(struct spent *s, struct shared *config, const uint8_t who[32], size_t text)
{
	const struct config *c = shared_take(config);
	uint64_t most = c->owner_bytes_per_day;

	shared_give(config, c);
	return spent_line(s, who, LINE_BYTES + text, most);
}

uint64_t
spent_count(struct spent *s)
{
	pthread_mutex_lock(&s->lock);
	uint64_t count = s->count;
	pthread_mutex_unlock(&s->lock);
	return count;
}

/* --- rows */

enum err
spent_store(struct spent *s, struct store_db *db, const uint8_t who[32], uint64_t bytes)
{
	if (!s || bytes == 0)
		return ERR_OK;
	struct store_spent row = {.hour = hour_of(s, clock_ms()), .bytes = bytes};
	memcpy(row.who, who, sizeof(row.who));
	return store_spent_add(db, &row, PARTS);
}

/* Counts a row of the last day. A row of a coming hour was written by a clock that was ahead, and counts as the present hour. */
static enum err
load_row(void *ctx, const struct store_spent *row)
{
	struct spent *s = ctx;
	uint64_t now = clock_ms(), hour = hour_of(s, now);

	if (row->hour + PARTS <= hour || row->hour >= hour + PARTS)
		return ERR_OK;
	struct entry *n = find(s, row->who, now);
	if (!n)
		return ERR_NOMEM;
	n->parts[SPENT_ROWS][(row->hour < hour ? row->hour : hour) % PARTS] += row->bytes;
	return ERR_OK;
}

static enum err
load_rows(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_spent_each(db, load_row, arg);
}

enum err
spent_load(struct spent *s, struct store *store, struct why *why)
{
	return s ? store_read(store, load_rows, s, why) : ERR_OK;
}
