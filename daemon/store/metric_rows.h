#ifndef METRIC_ROWS_H
#define METRIC_ROWS_H
#include <stdint.h>

#include "err.h"

struct best;
struct store_db;

/* What rounds were measured by, beyond their rows, which must be there; and which models of a job were the best. */
#define METRIC_ROWS_MAX 64 /* of a round */

/* What the trainers of a round reported by names of their own, over all its devices. */
struct metric_row {
	char name[64]; /* zeros behind it */
	double mean; /* weighted by examples; NaN if it is no number */
	uint64_t reports; /* of so many devices */
};
ERR_MUST_USE enum err metric_rows_put(struct store_db *db, const uint8_t job[16], uint64_t round,
    const struct metric_row *row); /* insert or replace; ERR_NOTFOUND without the round */
ERR_MUST_USE enum err metric_rows_each(struct store_db *db, const uint8_t job[16], uint64_t round,
    enum err (*fn)(void *ctx, const struct metric_row *row), void *ctx); /* by name */

/* A round's figures, JSON as the API shows it. Insert or replace; ERR_NOTFOUND without the round. */
ERR_MUST_USE enum err metric_rows_put_figures(
    struct store_db *db, const uint8_t job[16], uint64_t round, const char *text);
/* The caller frees *text; ERR_NOTFOUND if there are none. */
ERR_MUST_USE enum err metric_rows_figures(
    struct store_db *db, const uint8_t job[16], uint64_t round, char **text);

/* All at once; ERR_NOTFOUND without the job. */
ERR_MUST_USE enum err metric_rows_put_best(
    struct store_db *db, const uint8_t job[16], const struct best *best);
/* None of a job that has none. */
ERR_MUST_USE enum err metric_rows_best(
    struct store_db *db, const uint8_t job[16], struct best *out);

#endif
