#ifndef JOB_INSIDE_H
#define JOB_INSIDE_H
#include "job.h"

/* Bounds of values that may also be changed after a job's submission (override.h). */
#define JOB_PRIORITY_MAX 1000000
#define JOB_SHARE_MAX 1000
#define JOB_STOP_ROUNDS_MAX 1000000000
#define JOB_STOP_REPORTS_MAX 1000000000000
#define JOB_STOP_SECONDS_MAX 1e9
#define JOB_SECONDS_MIN 0.1 /* of a round */
#define JOB_SECONDS_MAX 1e8
#define JOB_GRACE_MAX 1e6
#define JOB_TASK_TIMEOUT_MIN 1.0
#define JOB_FACTOR_MAX 1e30

/* Parts of job_parse in files of their own. Within wire/ only; errors stick in the reader. */

/* The mean of all deltas, with nothing before it. */
bool job_is_plain_mean(const struct rule_spec *rule);
/* Can `most` be the largest of factors whose mean is about 1? Also true for 0 (no bound) and below 0 (not given). */
bool job_factor_is_bound(double most);
/* Reads "round". */
void job_round_read(struct round_spec *out, struct field *doc);
/* Reads "staleness" of "aggregate"; called after the round and the rule were read. */
void job_round_read_staleness(struct job_spec *out, struct field *aggregate);
/* Sets an error for what the round's mode cannot be combined with; called after all else was read. */
void job_round_check(const struct job_spec *job, struct field *doc);
/* Reads "guard"; called after the recipe, which says what is evaluated. */
void job_guard_read(struct job_spec *out, struct field *doc);
/* Reads "scale" of the server optimizer, which needs a recipe with one local step; called after the recipe. */
void job_guard_read_scale(struct job_spec *out, struct field *server);
/* Read "monitor" and "keep"; called after the recipe and before every key that names a metric. */
void job_monitor_read(struct job_spec *out, struct field *doc);
void job_monitor_read_keep(struct job_spec *out, struct field *doc);
/* Is `word` that of the monitor's own metric? If not, sets an error at `key` of `at`. */
bool job_monitor_takes(
    const struct job_spec *job, const char *word, struct field *at, const char *key);

#endif
