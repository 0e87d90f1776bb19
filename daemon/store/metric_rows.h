#ifndef METRIC_ROWS_H
#define METRIC_ROWS_H
#include <stdint.h>

#include "err.h"

struct best;
struct store_db;

/* The metrics and figures of rounds that do not stand in the round's own row (which must exist), and the best models of a job. */
#define METRIC_ROWS_MAX 64 /* named metrics of a round */

/* A metric that trainers reported under a name of their own, over all devices of a round. */
struct metric_row {
	char name[64]; /* padded with zeros */
	double mean; /* weighted by examples; NaN if not a number */
	uint64_t reports; /* devices that reported the metric */
};
ERR_MUST_USE enum err metric_rows_put(struct store_db *db, const uint8_t job[16], uint64_t round,
    const struct metric_row *row); /* insert or replace; ERR_NOTFOUND without the round */
ERR_MUST_USE enum err metric_rows_each(struct store_db *db, const uint8_t job[16], uint64_t round,
    enum err (*fn)(void *ctx, const struct metric_row *row), void *ctx); /* by name */

/* A round's figures, JSON as the API shows it. Insert or replace; ERR_NOTFOUND without the round. */
ERR_MUST_USE enum err metric_rows_put_figures(
    struct store_db *db, const uint8_t job[16], uint64_t round, const char *text);
/* The figures as JSON, which the caller frees; ERR_NOTFOUND if the round has none. */
ERR_MUST_USE enum err metric_rows_figures(
    struct store_db *db, const uint8_t job[16], uint64_t round, char **text);

/* Replaces all best models of the job; ERR_NOTFOUND without the job. */
ERR_MUST_USE enum err metric_rows_put_best(
    struct store_db *db, const uint8_t job[16], const struct best *best);
/* The best models of the job; *out is empty if the job has none. */
ERR_MUST_USE enum err metric_rows_best(
    struct store_db *db, const uint8_t job[16], struct best *out);

#endif
