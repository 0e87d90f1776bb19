#ifndef TALLY_H
#define TALLY_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * Counts per key: things in hand now (handshakes, connections), bytes held, and events in the last minute. Keys are 16 bytes. Any thread
 * may call.
 *
 * A tally holds at most TALLY_MAX keys. A new key replaces the key that has been idle (nothing in hand) the longest; a key whose
 * events are a minute old is forgotten.
 */
#define TALLY_KEY 16
#define TALLY_MAX 65536
#define TALLY_WINDOW_MS 60000

struct tally;

ERR_MUST_USE enum err tally_new(struct tally **out);
/* NULL is legal. */
void tally_free(struct tally *t);

struct tally_limits {
	uint32_t most; /* things in hand, over all keys */
	/* Once `crowd` things are in hand over all keys, a key may have most_each, or `crowd` divided by the number of keys if that is
	 * more; before, there is no limit per key. */
	uint32_t most_each, crowd;
};
enum tally_room { TALLY_ROOM, TALLY_FULL, TALLY_KEY_FULL };
/* Counts one more thing in hand for the key; a caller that got TALLY_ROOM calls tally_leave once. */
enum tally_room tally_enter(
    struct tally *t, const uint8_t key[TALLY_KEY], const struct tally_limits *limits);
void tally_leave(struct tally *t, const uint8_t key[TALLY_KEY]);
/* Changes the bytes that the caller holds for a key that it has entered from *held to `bytes`, and sets *held, which the caller keeps, 0
 * at first. False, and nothing changes: the key holds other bytes, too, and would have more than `most`. Less is never refused. */
bool tally_hold(
    struct tally *t, const uint8_t key[TALLY_KEY], uint64_t *held, uint64_t bytes, uint64_t most);
/* Counts n events. Times are monotonic. */
void tally_add(struct tally *t, const uint8_t key[TALLY_KEY], uint32_t n, uint64_t now_ms);
/* Counts an event unless `most` happened in the last minute or, if `most` is at least TALLY_SMOOTH, a tenth of `most` in the last five
 * seconds. Returns 0 if the event was counted, else the seconds, at least 1, until one will be. */
#define TALLY_SMOOTH 600
uint32_t tally_take(struct tally *t, const uint8_t key[TALLY_KEY], uint32_t most, uint64_t now_ms);

#endif
