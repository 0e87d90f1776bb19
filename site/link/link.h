#ifndef LINK_H
#define LINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * One rank's end of a world: what a back end does. Messages between two ranks with one tag arrive in the order in which they were posted. A
 * send may be complete only when it is received. One thread makes all calls (courier.h).
 */
#define LINK_HEAD 64 /* bytes of a message's head */
#define LINK_BODY_MAX ((size_t)256 << 10)
#define LINK_RANKS_MAX 64
#define LINK_TAG_MAX ((1u << 22) - 1)

struct link_message {
	unsigned peer;
	uint32_t tag;
	bool sends; /* false: it is received */
	uint8_t head[LINK_HEAD];
	void *body; /* stays the caller's; of a receive room for `room` bytes */
	size_t room; /* bytes to send, or that may be received */
	size_t got; /* of a complete receive: bytes of its body */
	/* The back end's. */
	bool complete;
	struct link_message *next;
	uintptr_t handle[2];
};

struct link {
	const struct link_calls *calls;
	unsigned rank, ranks;
	bool threads; /* of one process are its ranks */
	uint32_t world; /* the same at all ranks, and another in another world */
};

struct link_calls {
	/* Begins to send or to receive; the message stays where it is until it is complete. */
	enum err (*post)(struct link *l, struct link_message *m);
	/* Is it complete? ERR_AGAIN: not yet; ERR_CLOSED: the world is gone. */
	enum err (*test)(struct link *l, struct link_message *m);
	/* wake() is to be called, by any thread, when it is worth to test messages; NULL: no. A back end that knows of no such moment calls it
	 * never. */
	void (*listen)(struct link *l, void (*wake)(void *context), void *context);
	/* Leaves the world; no message is under way. */
	void (*close)(struct link *l);
	/* Ends the world for all ranks; may end the process. Behind it nobody looks at this rank's messages. */
	void (*abort)(struct link *l);
};

#endif
