#ifndef FORECAST_H
#define FORECAST_H
#include "job.h"

/*
 * How many bytes a job will still need on a coordinator's disk; docs/configuration.md has the sums. Pure.
 */

/* What is known of the job; for a new job the counts are 0. */
struct forecast_job {
	const struct job_spec *spec;
	struct keep_spec keep; /* JOB_KEEP_CONFIGURED replaced by what [retention] says */
	uint64_t elements, model_bytes;
	uint64_t payload_bytes; /* the most bytes of a delta's payload, a second vector included */
	/* Of the optimizer's state and all else that is kept between rounds. */
	uint64_t state_bytes;
	uint64_t rounds; /* how many the job has at most; 0: no number is set */
	uint64_t committed; /* rounds so far */
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
/* The most bytes of a job's kept models, at its end after so many rounds; rounds 0: at any time. UINT64_MAX: they grow without end. */
uint64_t forecast_kept(const struct keep_spec *keep, uint64_t model_bytes, uint64_t rounds);
/* Bytes of the difference that lies beside each model but the first, for devices that hold the model before; 0: the job has none. */
uint64_t forecast_difference_bytes(const struct job_spec *spec, uint64_t elements);

#endif
