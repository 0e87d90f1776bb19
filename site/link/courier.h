#ifndef COURIER_H
#define COURIER_H
#include "link.h"

/*
 * The thread of a rank that makes all calls of its link, and naps in between, so that what travels goes on while the rank computes. Parcels
 * of any size go in messages of at most LINK_BODY_MAX bytes, of which at most COURIER_WINDOW are on their way to a peer.
 *
 * Parcels to a peer leave in the order in which they were posted. Of parcels from a peer, those of one tag arrive in order.
 */
#define COURIER_WINDOW 4

/* What a parcel is, which its receiver compares with what is expected; and what it is told. */
enum parcel_kind {
	PARCEL_ORDER, /* rank 0's: what comes next */
	PARCEL_TEXT, /* the task */
	PARCEL_INPUT, /* examples, and */
	PARCEL_LABELS, /* their labels or targets */
	PARCEL_OUTPUT, /* of a stage, to the next */
	PARCEL_GRADIENT, /* of a stage's inputs, to the one before */
	PARCEL_RUN, /* a piece of a run's gradient, to its owner */
	PARCEL_TOTAL, /* the owner's sum */
	PARCEL_NORM, /* lanes of a norm, then the factor */
	PARCEL_REPORT, /* figures of a step */
	PARCEL_PARAMETERS,
	PARCEL_KINDS
};
struct parcel_head {
	/* Compared. */
	uint32_t kind,
	    edge; /* edge: the stage that it goes to, or another number that tells parcels of one kind apart */
	uint64_t step;
	uint32_t batch; /* of the step */
	/* Told. */
	uint32_t n; /* examples */
	double whole; /* net_batch.whole */
	float share; /* net_gradients.share */
};

/* The caller's, with its data, until it is done. */
struct parcel {
	unsigned peer;
	bool sends;
	struct parcel_head head;
	void *data;
	size_t bytes; /* to send; of a receive the most */
	/* Called by the courier's thread when the parcel is done, for which nobody waits then; NULL: no. It may post parcels, also this one. */
	void (*arrived)(void *context, struct parcel *p);
	void *context;
	/* The courier's. */
	bool posted;
	size_t got; /* bytes of a received one */
	size_t begun, ended,
	    count; /* messages given to the link, complete, of all; count 0: not known yet */
	struct link_message messages[COURIER_WINDOW];
	struct parcel *next;
};

struct courier;
struct courier_world {
	/* Called by the courier's thread. ERR_CLOSED, ... */
	enum err (*open)(struct link **out, void *context, struct why *why);
	void *context;
};
/* Blocks until the world is there. */
ERR_MUST_USE enum err courier_new(
    struct courier **out, const struct courier_world *world, struct why *why);
/* Blocks until what was posted is sent, unless the courier has failed. */
void courier_free(struct courier *c);
unsigned courier_rank(const struct courier *c);
unsigned courier_ranks(const struct courier *c);
/* Are the ranks threads of one process? */
bool courier_threads(const struct courier *c);

/* Never blocks. A parcel that is posted must be done before it is posted again. */
void courier_post(struct courier *c, struct parcel *p);
/* Blocks until the parcel is done; at once for one that was never posted. ERR_CLOSED: a peer is gone; ERR_CORRUPT: another parcel came than
 * the expected one. After an error nothing arrives any more. */
ERR_MUST_USE enum err courier_wait(struct courier *c, struct parcel *p);
/* Calls fn once, on the courier's thread, when the courier fails; at once if it has. fn NULL: nobody is to be called any more, and a call
 * that had begun is over. */
void courier_watch(struct courier *c, void (*fn)(void *context), void *context);
/* Ends the world, for all ranks: for one that cannot do what the others wait for. May end the process. All parcels are the callers' again. */
void courier_abort(struct courier *c);

#endif
