#ifndef QUOTA_H
#define QUOTA_H
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * How many bytes of a day's limit are used up: HOME/transferred, which is durable before the bytes are sent. A day ends at midnight of the
 * wall clock. A clock that was set back begins no new day, neither then nor when it is right again: used bytes stay used until the next
 * midnight that passes, so that a clock which stood years ahead costs one day at most. If the file cannot be read, the day counts as used
 * up.
 */
#define QUOTA_FILE "transferred"

enum quota_way { QUOTA_UP, QUOTA_DOWN };
#define QUOTA_WAYS 2

struct quota {
	const char *home;
	uint64_t most[QUOTA_WAYS]; /* bytes of a day; 0: no limit, and nothing is counted */
	uint32_t day; /* 20261125 */
	/* The day from which the clock was set back, to which the counts belong, too; 0: none. */
	uint32_t held;
	uint64_t used[QUOTA_WAYS];
	bool refused[QUOTA_WAYS]; /* a transfer of today did not fit */
};

/* Reads HOME/transferred; an absent file means that nothing is used. home must outlive *q. */
void quota_init(struct quota *q, const char *home, const uint64_t most[QUOTA_WAYS], uint32_t today);
/* Tells the date: a new day begins with nothing used. */
void quota_turn(struct quota *q, uint32_t today);
/* Counts bytes before they are transferred. ERR_LIMIT if the bytes do not fit: none are counted, and quota_over is true for today. ERR_IO:
 * the count cannot be written; nothing may be transferred. */
ERR_MUST_USE enum err quota_charge(
    struct quota *q, enum quota_way way, uint64_t bytes, struct why *why);
/* Takes back bytes that were charged and not transferred. */
void quota_refund(struct quota *q, enum quota_way way, uint64_t bytes);
bool quota_over(const struct quota *q, enum quota_way way);

#endif
