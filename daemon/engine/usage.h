#ifndef USAGE_H
#define USAGE_H
#include "json.h"
#include "services.h"

/* What the coordinator has on its disk, and whether the rest of its jobs will fit. Asks the file system: not on an I/O thread. */
struct usage {
	uint64_t models, model_files; /* optimizer states among them */
	uint64_t spool, kept, database; /* bytes; kept: deltas of rounds that are over */
	uint64_t room, total; /* of the state directory's file system; total 0: it does not tell */
	uint64_t need; /* what running and paused jobs will still take of room */
};

ERR_MUST_USE enum err usage_read(const struct services *s, struct usage *out, struct why *why);
/* Adds "disk" and "forecast" to a status. */
void usage_json(const struct services *s, struct json *status);
/* Logs once when the jobs do not fit any more, and once when they do again. `tight` is the caller's, false at first. */
void usage_watch(const struct services *s, bool *tight);

#endif
