#ifndef JOBS_H
#define JOBS_H
#include <stdbool.h>

/* Jobs and rounds as people read them. */

/* A new array of those that are not over; the caller frees it. */
struct json *cmd_jobs_living(const struct json *jobs);
/* A table of an array of JOB; without `all` it only counts those that are over. */
void cmd_jobs_print(const struct json *jobs, bool all);
/* A table of an array of ROUND. */
void cmd_jobs_rounds(const struct json *job, const struct json *rounds);
/* The tasks that devices gave back, and what they said of it. */
void cmd_jobs_failures(const struct json *failures);
/* What was set of a JOB, a line each. */
void cmd_jobs_overrides(const struct json *job);
/* Of an array of JOB those that cannot move, with what to do, a line each. */
void cmd_jobs_stuck(const struct json *jobs);
/* One JOB, a line per fact. */
void cmd_jobs_one(const struct json *job);

/* Who cannot hold what: a line for each, behind that word. */
void cmd_jobs_refused(const char *head, const struct json *refused);

#endif
