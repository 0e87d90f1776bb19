#ifndef USAGE_H
#define USAGE_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "report.h"

struct services;
struct job_view;

/* What the coordinator has on its disk, and whether what its jobs still need will fit. Asks the file system: not on an I/O thread. */
struct usage {
	uint64_t models_bytes, model_files; /* optimizer states among them */
	uint64_t spool_bytes, kept_bytes, database_bytes; /* kept: deltas of ended rounds */
	/* Of the state directory's file system; total_bytes 0: the file system does not tell. */
	uint64_t free_bytes, total_bytes;
	/* Bytes that deltas of ended rounds may still take; 0: such deltas are not kept. */
	uint64_t keep_bytes;
	bool spool_on_disk;
	struct lost_report lost;
	uint64_t need_bytes; /* bytes that running and paused jobs will still take */
};

ERR_MUST_USE enum err usage_read(const struct services *s, struct usage *out, struct why *why);
/* Are so many bytes free? True if the file system does not tell. */
bool usage_fits(const struct usage *u, uint64_t bytes);
/* A job's forecast, without the spool if it is not on the disk, and with at most keep_bytes of kept deltas. */
struct job_forecast usage_forecast(const struct usage *u, const struct job_view *job);
uint64_t usage_bytes(const struct job_forecast *f);

/* What was read last, so that a report asks no disk. Any thread. */
struct usage_watch;
ERR_MUST_USE enum err usage_watch_new(struct usage_watch **out);
void usage_watch_free(struct usage_watch *w); /* NULL is legal */
/* Reads, and logs once when the disk has no room for the jobs any more, and once when it has again. */
void usage_watch_look(struct usage_watch *w, const struct services *s);
/* False: nothing was read yet. */
bool usage_watch_last(struct usage_watch *w, struct usage *out);

#endif
