#ifndef JOBS_H
#define JOBS_H
#include <stdbool.h>

/* Prints jobs and rounds (JOB and ROUND of docs/api.md) for people. */

/* A new array of the jobs that are not over; the caller frees the array. */
struct json *cmd_jobs_living(const struct json *jobs);
/* Prints a table of jobs; without `all` jobs that are over are only counted. */
void cmd_jobs_print(const struct json *jobs, bool all);
/* Prints a table of a job's rounds. */
void cmd_jobs_rounds(const struct json *job, const struct json *rounds);
/* Prints the tasks that devices gave back, and their reasons. */
void cmd_jobs_failures(const struct json *failures);
/* Prints a job's overrides, a line each. */
void cmd_jobs_overrides(const struct json *job);
/* Prints the jobs that cannot make progress, with advice, a line each. */
void cmd_jobs_stuck(const struct json *jobs);
/* Prints one job, a line per fact. */
void cmd_jobs_one(const struct json *job);

/* Prints the devices that cannot do the job's tasks and why, a line each that begins with `head`. */
void cmd_jobs_refused(const char *head, const struct json *refused);

#endif
