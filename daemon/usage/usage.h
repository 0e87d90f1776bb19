#ifndef USAGE_H
#define USAGE_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct services;
struct job_view;

/* What the coordinator has on its disk, and whether the rest of its jobs will fit. Asks the file system: not on an I/O thread. */
struct usage {
	uint64_t models_bytes, model_files; /* optimizer states among them */
	uint64_t spool_bytes, kept_bytes, database_bytes; /* kept: deltas of rounds that are over */
	uint64_t free_bytes,
	    total_bytes; /* of the state directory's file system; total 0: it does not tell */
	/* What deltas of rounds that are over may still take; 0: they are not kept. */
	uint64_t keep_bytes;
	bool spool_on_disk;
	uint64_t need_bytes; /* what running and paused jobs will still take */
};

ERR_MUST_USE enum err usage_read(const struct services *s, struct usage *out, struct why *why);
/* Do so many bytes more? True if the file system does not tell. */
bool usage_fits(const struct usage *u, uint64_t bytes);
/* A job's forecast where the spool may be in memory and kept deltas have a limit. */
struct job_forecast usage_forecast(const struct usage *u, const struct job_view *job);
uint64_t usage_bytes(const struct job_forecast *f);
/* Logs once when the jobs do not fit any more, and once when they do again. `tight` is the caller's, false at first. */
void usage_watch(const struct services *s, bool *tight);

#endif
