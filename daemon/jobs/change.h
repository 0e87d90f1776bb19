#ifndef CHANGE_H
#define CHANGE_H
#include <stdbool.h>
#include <stdint.h>

struct engine;

/*
 * A counter of what changes of jobs, and those who wait for it to differ from what they know. It begins at the start's wall clock in ms.
 * Counted are a job's state and reason, its round, that round's state and accepted reports, its model and metric, what was set of it, and
 * why it cannot move; a job that comes or goes. Bytes, waiting devices, invitations, times and forecasts are not. Several changes at one
 * moment may count as one. Any thread; no call waits.
 */

#define CHANGE_READERS_MAX 256
#define CHANGE_READERS_OF_ONE 8 /* of one identity, and of the admin socket: */
#define CHANGE_READERS_OF_SOCKET 32

/* Who waits. Zeros and the owner are the beginning; the memory is the caller's until jobs_change_leave. */
struct change_reader {
	uint8_t owner[32]; /* zeros: the admin socket */
	struct change_reader *next, **at; /* among those who wait; at NULL: it does not */
};

enum change_wait {
	CHANGE_KNOWN, /* the counter differs from `after`: *counter, and the reader has no place any more */
	CHANGE_PARKED, /* the reader has a place, and services.changed rings after the next change */
	CHANGE_FULL, /* there is none */
};
/* Compares and parks, in one step. */
enum change_wait jobs_change_wait(
    struct engine *g, struct change_reader *r, uint64_t after, uint64_t *counter);
/* The reader waits no longer. Returns the counter. Idempotent. */
uint64_t jobs_change_leave(struct engine *g, struct change_reader *r);

#endif
