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
	/* Of a text: room for the next tokens of one example; NULL: the set has labels. */
	int32_t *next;
	float *targets;
	bool takes_targets; /* the network's loss compares with the set's targets */
	float *scratch; /* room for one example, for augmentation; NULL: no augmentation */
};

/* Makes room for `size` examples. The caller calls batch_deinit also after an error. ERR_NOMEM. */
ERR_MUST_USE enum err batch_init(
    struct batch *b, const struct net *net, const struct dataset *data, uint32_t size);
void batch_deinit(struct batch *b);
/* Fills the batch with n examples: order[first] and following, or without an order the examples from `first` on. */
void batch_fill(const struct batch *b, const struct dataset *data, const struct data_spec *spec,
    const struct draw *draw, const uint32_t *order, size_t first, uint32_t n);
/* Writes only the labels of the set's example `at`, as the batch's example i. Of a text: the token behind each token, or behind the
 * last. */
void batch_labels(const struct batch *b, const struct dataset *data, uint32_t at, uint32_t i);
/* The first n examples as a net_batch. */
struct net_batch batch_of(const struct batch *b, uint32_t n, const struct draw *draw);

#endif
