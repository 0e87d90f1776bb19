#ifndef BATCH_H
#define BATCH_H
#include "net.h"

struct dataset;

/* Room for one batch in the form that net.h takes, and its filling from a data set. */
struct batch {
	uint32_t size;
	float *x;
	int32_t *labels;
	size_t label_width;
	int32_t *next; /* of a text: an example's; NULL: labels stand in the set */
	float *targets;
	bool takes_targets; /* the network compares with those of the set */
	float *scratch; /* an example's, for augmentation; NULL: there is none */
};

/* The caller frees with batch_deinit in either case. ERR_NOMEM. */
ERR_MUST_USE enum err batch_init(
    struct batch *b, const struct net *net, const struct dataset *data, uint32_t size);
void batch_deinit(struct batch *b);
/* Gathers the n examples named by order, or those from `first` on without an order. */
void batch_fill(const struct batch *b, const struct dataset *data, const struct data_spec *spec,
    const struct draw *draw, const uint32_t *order, size_t first, uint32_t n);
/* The labels alone of the set's example `at`, as the batch's example i. Of a text: the token behind each, or behind the last. */
void batch_labels(const struct batch *b, const struct dataset *data, uint32_t at, uint32_t i);
/* The first n. */
struct net_batch batch_of(const struct batch *b, uint32_t n, const struct draw *draw);

#endif
