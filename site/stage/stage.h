#ifndef STAGE_H
#define STAGE_H
#include "courier.h"
#include "draw.h"
#include "layout.h"
#include "net.h"

/*
 * One stage of a pipeline on a rank: a range of a net's layers, and memory for what enters and leaves it. Two gradients may be on their
 * way in each direction, and as many batches as the stage has contexts.
 *
 * A parcel without bytes says that the rank before has failed: its receiver computes nothing any more, but goes on, so that nobody waits.
 */
#define STAGE_GRADIENTS 2

struct counts;

/* A batch at the stage. */
struct stage_batch {
	float *x; /* max_batch x in */
	uint32_t n;
	float share;
	double whole;
	struct draw draw;
	struct parcel in, out;
};

/* What the last stage compares outputs with, of a batch. */
struct stage_answer {
	void *data; /* labels, then targets */
	struct parcel in;
};

struct stage {
	struct net *net;
	size_t range; /* of the net */
	unsigned number;
	bool first, last; /* of the pipeline */
	bool fed; /* its inputs, or its answers, are given by this process */
	unsigned own, feeder, before, behind; /* ranks */
	size_t layers;
	uint32_t context, contexts; /* the net's: the first, and how many */
	uint32_t max_batch;
	size_t in, out; /* floats of an example */
	size_t label_bytes, answer_bytes; /* of an example */
	struct stage_batch *batches; /* `contexts` */
	struct stage_answer *answers; /* `answer_count`; of the last stage */
	uint32_t answer_count;
	float *gradient_in[STAGE_GRADIENTS], *gradient_out[STAGE_GRADIENTS];
	struct parcel gradient_arrives[STAGE_GRADIENTS], gradient_leaves[STAGE_GRADIENTS];
};

/* Where a stage is, and for what. */
struct stage_place {
	const struct layout *layout; /* not looked at by stage_bytes */
	unsigned replica, number;
	bool first, last; /* of the pipeline */
	uint32_t contexts, first_contexts; /* of the stage, of the pipeline's first one */
	struct net *net;
	size_t range;
	uint32_t max_batch;
	bool train; /* false leaves out gradients */
};
/* ERR_NOMEM; stage_deinit is due even then, and accepts zeros. It blocks until what the stage has sent is done, or the courier has failed. */
ERR_MUST_USE enum err stage_init(struct stage *s, const struct stage_place *place);
void stage_deinit(struct stage *s, struct courier *c);
/* Bytes that stage_init allocates for a net, which may be a planned one. */
uint64_t stage_bytes(const struct stage_place *place);

/* The step that is made, as one replica sees it. */
struct stage_step {
	uint64_t number; /* of the world's: parcels of two steps are told apart by it */
	uint64_t drawn; /* steps made before, from which dropout is drawn */
	uint64_t seed;
	uint32_t batches; /* of this replica */
	bool looks; /* it is an evaluation */
	const struct layout *layout;
	unsigned replica;
};

/* Posts the receives of the step's, or the evaluation's, first batches. */
void stage_begin(struct stage *s, struct courier *c, const struct stage_step *step);
/* Gives the first stage, or the last one, what it is fed by this process of a batch; copies. Without x it is not to be computed. */
ERR_MUST_USE enum err stage_feed_input(
    struct stage *s, struct courier *c, uint32_t batch, const struct net_batch *from, float share);
void stage_feed_answer(struct stage *s, uint32_t batch, const struct net_batch *from);

/* One pass. *failed: why nothing is computed any more, here or at a rank before; ERR_OK at first. Errors are the courier's. */
struct stage_pass {
	struct courier *courier;
	const struct stage_step *step;
	uint32_t batch;
	enum err *failed;
	struct net_result *result; /* of a pass back of the last stage */
	/* net_gradients. */
	void (*complete)(void *context, size_t first, const float *gradient, size_t count);
	void *context;
};
ERR_MUST_USE enum err stage_forward(struct stage *s, const struct stage_pass *pass);
ERR_MUST_USE enum err stage_back(struct stage *s, const struct stage_pass *pass);
/* A pass of an evaluation: there is none back. The last stage counts its outputs, unless counts is NULL. */
ERR_MUST_USE enum err stage_look(
    struct stage *s, const struct stage_pass *pass, struct counts *counts);

#endif
