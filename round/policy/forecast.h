#ifndef FORECAST_H
#define FORECAST_H
#include "job.h"

/*
 * What a job will still need of a coordinator's disk, from what it is: docs/configuration.md has the sums. Pure.
 */

/* What is known of the job; a new one has the zeros. */
struct forecast_job {
	const struct job_spec *spec;
	struct keep_spec keep; /* JOB_KEEP_CONFIGURED replaced by what [retention] says */
	uint64_t elements, model_bytes;
	uint64_t payload_bytes; /* of a delta, with what else travels in it, at most */
	uint64_t state_bytes; /* of the optimizer and what else is kept between rounds */
	uint64_t rounds; /* after which it ends; 0: it says no number */
	uint64_t committed; /* of them */
	uint64_t accepted; /* deltas of the open round */
	uint32_t best_held; /* models that are kept because they were the best */
};

struct job_forecast {
	uint64_t rounds_left; /* 0: the job sets no end; the figures are then those of one round */
	uint64_t models_bytes;
	uint64_t spool_bytes; /* of the open round */
	uint64_t deltas_bytes; /* if deltas of rounds that are over are kept */
	uint64_t database_bytes;
};

struct job_forecast forecast_job(const struct forecast_job *j);
/* Bytes of the models that are kept of a job that ends after so many rounds; 0: at any time. UINT64_MAX: without end. */
uint64_t forecast_kept(const struct keep_spec *keep, uint64_t model_bytes, uint64_t rounds);
/* Of the files beside each model but the first, which devices fetch in its place; 0: the job has none. */
uint64_t forecast_difference_bytes(const struct job_spec *spec, uint64_t elements);

#endif
