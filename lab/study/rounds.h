#ifndef ROUNDS_H
#define ROUNDS_H
#include "find.h"
#include "series.h"

/* A job and its rounds, from the coordinator. */

/* *job: the JOB that a word means (find.h), which the caller frees; its "job" is an id of 32 hex digits. */
ERR_MUST_USE enum err cmd_rounds_job(
    struct cmd_admin *a, const char *word, struct json **job, struct why *why);

/* Calls `visit` for each round that has ended, in ascending order without a gap, from number `from` on. Stops at visit's first error. */
typedef enum err cmd_rounds_visit(void *context, const struct json *round, struct why *why);
ERR_MUST_USE enum err cmd_rounds_each(struct cmd_admin *a, const struct json *job, uint64_t from,
    cmd_rounds_visit *visit, void *context, struct why *why);

/* Adds each round that has ended, from number `from` on, to `count` series, which series_init has begun. */
ERR_MUST_USE enum err cmd_rounds_series(struct cmd_admin *a, const struct json *job, uint64_t from,
    struct series *series, size_t count, struct why *why);

/* What decides which round of a job is the best: its monitor. */
struct cmd_rounds_monitor {
	char tag[SCALARS_TAG_MAX];
	bool largest; /* mode "max" */
};
/* The monitor that JOB says; from an older coordinator, which does not say it, the largest accuracy or smallest loss. Of the tags that the
 * monitor means (scalars_meant), the first that some round has. */
ERR_MUST_USE enum err cmd_rounds_monitor(
    struct cmd_admin *a, const struct json *job, struct cmd_rounds_monitor *out, struct why *why);
/* The best round of a job, as JOB says, else found in the rounds. */
struct cmd_rounds_best {
	bool known; /* there is a best round, and the members below are set */
	uint64_t round; /* the round that made the best model; 0: the initial model */
	double value;
	char model[65];
};
/* The number of the round whose model a round's figure with this tag measures: devices measure a round's base, made by the round before. */
uint64_t cmd_rounds_measured(const struct json *job, const char *tag, uint64_t round);
ERR_MUST_USE enum err cmd_rounds_best(struct cmd_admin *a, const struct json *job,
    const struct cmd_rounds_monitor *monitor, struct cmd_rounds_best *out, struct why *why);

#endif
