#ifndef ROUNDS_H
#define ROUNDS_H
#include "find.h"
#include "series.h"

/* A job and its rounds, from the coordinator. */

/* The JOB that a word means (find.h). The caller frees it; its "job" is an id of 32 hex digits. */
ERR_MUST_USE enum err cmd_rounds_job(
    struct cmd_admin *a, const char *word, struct json **job, struct why *why);

/* Calls `visit` for each round that is over, in ascending order and without a hole, from number `from` on. An error of it ends the walk. */
typedef enum err cmd_rounds_visit(void *context, const struct json *round, struct why *why);
ERR_MUST_USE enum err cmd_rounds_each(struct cmd_admin *a, const struct json *job, uint64_t from,
    cmd_rounds_visit *visit, void *context, struct why *why);

/* The same into `count` series, which were begun with series_init. */
ERR_MUST_USE enum err cmd_rounds_series(struct cmd_admin *a, const struct json *job, uint64_t from,
    struct series *series, size_t count, struct why *why);

/* What decides which round of a job is the best: its monitor. */
struct cmd_rounds_monitor {
	char tag[SCALARS_TAG_MAX];
	bool largest; /* mode "max" */
};
/* As JOB says it; for a coordinator that does not, the largest accuracy or smallest loss. Of its tags (scalars_meant) the first that some
 * round has. */
ERR_MUST_USE enum err cmd_rounds_monitor(
    struct cmd_admin *a, const struct json *job, struct cmd_rounds_monitor *out, struct why *why);
/* As JOB says it, else by the rounds. */
struct cmd_rounds_best {
	bool known; /* there is one: */
	uint64_t round; /* that made its model; 0: the first one */
	double value;
	char model[65];
};
/* The round that made the model which a figure of this round is of: what devices measure, they measure of the round's base. */
uint64_t cmd_rounds_measured(const struct json *job, const char *tag, uint64_t round);
ERR_MUST_USE enum err cmd_rounds_best(struct cmd_admin *a, const struct json *job,
    const struct cmd_rounds_monitor *monitor, struct cmd_rounds_best *out, struct why *why);

#endif
