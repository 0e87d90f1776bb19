#ifndef METRIC_ROWS_H
#define METRIC_ROWS_H
#include "store.h"

/* What the trainers of a round reported by names of their own, over all its devices. Of a round whose row is there. */
#define METRIC_ROWS_MAX 64 /* of a round */

struct metric_row {
	char name[64]; /* zeros behind it */
	double mean; /* weighted by examples; NaN if it is no number */
	uint64_t reports; /* of so many devices */
};
ERR_MUST_USE enum err metric_rows_put(struct store_db *db, const uint8_t job[16], uint64_t round,
    const struct metric_row *row); /* insert or replace; ERR_NOTFOUND without the round */
ERR_MUST_USE enum err metric_rows_each(struct store_db *db, const uint8_t job[16], uint64_t round,
    enum err (*fn)(void *ctx, const struct metric_row *row), void *ctx); /* by name */

#endif
