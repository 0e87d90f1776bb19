#ifndef JOB_INSIDE_H
#define JOB_INSIDE_H
#include "field.h"
#include "job.h"

/* Parts of job_parse in files of their own. Within wire/ only; errors stick in the reader. */

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
