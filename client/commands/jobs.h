#ifndef JOBS_H
#define JOBS_H
#include "json.h"

/* Jobs and rounds as people read them. */

/* A table of an array of JOB. */
void cmd_jobs_print(const struct json *jobs);
/* A table of an array of ROUND. */
void cmd_jobs_rounds(const struct json *rounds);
/* One JOB, a line per fact. */
void cmd_jobs_one(const struct json *job);

#endif
