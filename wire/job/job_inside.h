#ifndef JOB_INSIDE_H
#define JOB_INSIDE_H
#include "job.h"

/* Bounds of what may be changed after a job's submission, too (override.h). */
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
/* Can it be the most of factors whose mean is about 1? 0 is none, below 0 no word. */
bool job_factor_is_bound(double most);
/* "round". */
void job_round_read(struct round_spec *out, struct field *doc);
/* "staleness" of "aggregate", after the round and the rule. */
void job_round_read_staleness(struct job_spec *out, struct field *aggregate);
/* What the round's mode cannot stand beside. After all else. */
void job_round_check(const struct job_spec *job, struct field *doc);
/* "guard". After the recipe, which says what is evaluated. */
void job_guard_read(struct job_spec *out, struct field *doc);
/* "scale" of the server optimizer. After the recipe: it needs one local step. */
void job_guard_read_scale(struct job_spec *out, struct field *server);
/* "monitor" and "keep", after the recipe and before what names metrics. */
void job_monitor_read(struct job_spec *out, struct field *doc);
void job_monitor_read_keep(struct job_spec *out, struct field *doc);
/* Is the word that of the monitor's own metric? Else an error at this key of `at`. */
bool job_monitor_takes(
    const struct job_spec *job, const char *word, struct field *at, const char *key);

#endif
