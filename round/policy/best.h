#ifndef BEST_H
#define BEST_H
#include "job.h"

/*
 * The best models of a job by its monitor, as Lightning's ModelCheckpoint keeps its top k: a model goes before those that it beats, and of
 * equals the older stays before. One that is measured again counts by the newer figure. Pure.
 */
#define BEST_MAX JOB_KEEP_BEST_MAX

struct best_point {
	double value; /* finite */
	uint64_t round; /* that made the model; 0: the initial one */
	uint8_t model[32];
};

/* Zero at first. */
struct best {
	struct best_point points[BEST_MAX]; /* the best first */
	uint32_t count;
};

/* room: how many are kept, 1..BEST_MAX. A value that is not finite changes nothing. True if something changed. */
bool best_step(
    struct best *b, const struct monitor_spec *monitor, uint32_t room, const struct best_point *p);
bool best_holds(const struct best *b, const uint8_t model[32]);

#endif
