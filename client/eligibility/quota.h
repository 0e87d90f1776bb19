#ifndef QUOTA_H
#define QUOTA_H
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * What of a day's bytes are used up: HOME/transferred, which is durable before the bytes go. A day ends at midnight by the clock on
 * the wall. A clock that was set back begins no other day, neither then nor when it is right again: what was used stays used until the next
 * midnight that passes, so that a clock which stood years ahead costs a day and no more. A file that does not read counts as a day that is used up.
 */
#define QUOTA_FILE "transferred"

enum quota_way { QUOTA_UP, QUOTA_DOWN };
#define QUOTA_WAYS 2

struct quota {
	const char *home;
	uint64_t most[QUOTA_WAYS]; /* bytes of a day; 0: no limit, and nothing is counted */
	uint32_t day; /* 20261125 */
	uint32_t
	    held; /* a later day that the counts are of, too, for the clock was set back; 0: none */
	uint64_t used[QUOTA_WAYS];
	bool refused[QUOTA_WAYS]; /* today something did not fit */
};

/* home must outlive it. Reads what is there; absent means nothing is used. */
void quota_init(struct quota *q, const char *home, const uint64_t most[QUOTA_WAYS], uint32_t today);
/* Another day has come, perhaps. */
void quota_turn(struct quota *q, uint32_t today);
/* Counts bytes before they go. ERR_LIMIT if they do not fit: then none are counted, and the way is over for today. ERR_IO: the disk does
 * not take the count; nothing may go. */
ERR_MUST_USE enum err quota_charge(
    struct quota *q, enum quota_way way, uint64_t bytes, struct why *why);
/* Of what was charged, so much did not go. */
void quota_refund(struct quota *q, enum quota_way way, uint64_t bytes);
bool quota_over(const struct quota *q, enum quota_way way);

#endif
