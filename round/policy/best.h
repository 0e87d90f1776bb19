#ifndef BEST_H
#define BEST_H
#include "job.h"

/*
 * The best models of a job by its monitor, as Lightning's ModelCheckpoint keeps its top k: a better model stands before a worse one, of
 * equal models the older first. A model that is measured again counts by the newer figure. Pure.
 */
#define BEST_MAX JOB_KEEP_BEST_MAX

struct best_point {
	double value; /* finite */
	uint64_t round; /* the round that made the model; 0: the initial model */
	uint8_t model[32];
};

/* Zero at first. */
struct best {
	struct best_point points[BEST_MAX]; /* the best first */
	uint32_t count;
};

/* Adds a measured model. room: how many models are kept, 1..BEST_MAX. A value that is not finite changes nothing. True if *b changed. */
bool best_step(
    struct best *b, const struct monitor_spec *monitor, uint32_t room, const struct best_point *p);
bool best_holds(const struct best *b, const uint8_t model[32]);

#endif
