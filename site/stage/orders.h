#ifndef ORDERS_H
#define ORDERS_H
#include "layout.h"
#include "net.h"
#include "rank.h"

/* What the leader tells the other ranks, and they answer. The bytes of a world are those of one build on one kind of machine. */
enum order_kind {
	ORDER_TASK, /* a recipe's text follows; answered */
	ORDER_BEGIN, /* steps as `how` says; answered */
	ORDER_STEP, /* answered with figures */
	ORDER_LOOK, /* an evaluation; answered with figures and counts */
	ORDER_READ, /* elements of a stage's parameters; answered with them */
	ORDER_WRITE, /* elements follow */
	ORDER_MEASURE, /* a recipe's text follows; answered with the seconds of some layers' passes, and memory */
	ORDER_PING, /* n parcels follow, each of which is sent back */
	ORDER_LEAVE, /* the task is over */
	ORDER_END /* the world is */
};

struct order {
	enum order_kind kind;
	/* TASK */
	struct layout layout;
	uint64_t text; /* bytes */
	uint64_t max_bytes; /* of a rank's net; 0: no limit */
	uint32_t classes, max_batch, threads;
	bool train, recompute;
	struct net_update how; /* TASK that trains, BEGIN */
	struct rank_step step; /* STEP, LOOK */
	bool counts; /* LOOK: figures of the recipe are counted */
	/* READ, WRITE; PING: parcels, and their bytes; MEASURE: layers [first, last), and the tail */
	uint32_t stage, n;
	uint64_t first, last, tail_first;
};

/* What a rank measured. */
struct order_measured {
	double seconds; /* forward and back of all that was asked for */
	uint64_t memory; /* timing_memory */
};

/* Most elements of an ORDER_READ or ORDER_WRITE. */
#define ORDER_ELEMENTS ((size_t)1 << 20)

/* Most bytes of a parcel of ORDER_PING. */
#define ORDER_PING_MAX ((size_t)4 << 20)

/* An answer; of a step or evaluation the figures of `batches` own batches follow. */
struct answer {
	int32_t failed; /* enum err */
	uint32_t batches;
	char text[256];
};

#endif
