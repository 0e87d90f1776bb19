#ifndef SPOOL_INSIDE_H
#define SPOOL_INSIDE_H
#include <stdatomic.h>
#include <sys/stat.h>

#include "delta_body.h"
#include "err.h"
#include "spool.h"

/* Inside of the spool: shared by spool.c, recover.c, verified.c, reseal.c, lost.c and orphan.c. */

#define SUFFIX_PART ".part"
#define SUFFIX_DELTA ".delta"
#define SUFFIX_COPY ".new" /* behind a number: the copies of reseal.h */
#define PATH_ROOM 1100

/* When bytes of a file were first hashed, and the file as it was when only this process had written to it. */
struct spool_proof {
	uint64_t since_ms;
	struct stat st;
};

struct spool_slot {
	struct spool_slot *next;
	uint8_t task[16], device[32], job[16];
	uint64_t round;
	uint64_t bytes; /* counted against the quota */
	uint64_t idle_since_ms;
	char began[REQUEST_ID_MAX];
	struct spool_part *live; /* NULL between two transfers */
	struct delta_watermark good; /* verified.h; at 0: none */
	struct spool_proof proof; /* of the bytes before `good` */
};

/* An accepted delta that must not be used. */
struct condemned {
	struct condemned *next;
	uint8_t task[16];
	struct why why;
};

/* An accepted name whose commit failed: orphan.h. */
struct orphan {
	struct orphan *next;
	uint8_t task[16], job[16], device[32];
	uint64_t round;
};

struct spool {
	char dir[1024], lost[1024];
	uint64_t quota;
	bool memory, sealed;
	struct delta_key key;
	atomic_uint_least64_t used;
	uint64_t lost_found; /* deltas set aside at the start */
	atomic_uint_least64_t lost_bytes; /* the part of `used` that lies in lost/ */
	atomic_uint copies; /* the last number in the name of a copy (reseal.h) */
	atomic_bool dirty; /* names changed since the last directory sync */
	/* Guards slots, the names of parts, and which part is live; taken before a part's own lock. */
	pthread_mutex_t lock;
	struct spool_slot *slots;
	struct condemned *condemned;
	struct orphan *orphans;
	struct spool_verified *verified;
	struct stop *stop; /* may be NULL */
};

/* Adds a slot for a part of this manifest. NULL without memory. Lock held, or no other thread. */
struct spool_slot *spool_slot_add(struct spool *s, const struct manifest *m, uint64_t bytes);

#endif
