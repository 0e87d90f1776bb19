#ifndef ORDER_H
#define ORDER_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Order statistics of each coordinate over n vectors: a sorting network over rows (Batcher's merge exchange; Knuth, TAOCP 3,
 * algorithm 5.2.2M), whose compare-exchanges are minima and maxima of whole vector registers, without a branch. Only what the
 * wanted ranks depend on is carried out.
 */
#define ORDER_MAX 4096 /* vectors */

struct order;

/* Makes the network that brings the ranks [from, to) of n values to their places. 1 <= n <= ORDER_MAX, from < to <= n, else
 * ERR_INVALID; ERR_NOMEM. */
ERR_MUST_USE enum err order_new(struct order **out, size_t n, size_t from, size_t to);
void order_free(struct order *o);
size_t order_comparators(const struct order *o);

/* out[i] = mean of the ranks [from, to) of rows[0][i] .. rows[n-1][i], summed in f64 in ascending order and rounded once. rows:
 * n rows of `count` floats, `stride` floats apart, all finite. scratch: order_scratch(o) numbers. Several threads may use one
 * network, each with a scratch of its own. */
void order_mean(const struct order *o, const float *rows, size_t stride, size_t count,
    int32_t *scratch, float *out);
/* out[i] = mean of the `keep` values nearest to the median of column i: among all runs of `keep` neighbours in sorted order, the run
 * whose farther end is nearest to the median, of two equal runs the lower. The network must bring all ranks to their places. */
void order_around(const struct order *o, const float *rows, size_t stride, size_t count,
    size_t keep, int32_t *scratch, float *out);
size_t order_scratch(const struct order *o);

#endif
