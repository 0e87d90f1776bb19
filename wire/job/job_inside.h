#ifndef JOB_INSIDE_H
#define JOB_INSIDE_H
#include "field.h"
#include "job.h"

/* Parts of job_parse in files of their own. Within wire/ only; errors stick in the reader. */

/* "guard". After the recipe, which says what is evaluated. */
void job_guard_read(struct job_spec *out, struct field *doc);
/* "scale" of the server optimizer. After the recipe: it needs one local step. */
void job_guard_read_scale(struct job_spec *out, struct field *server);

#endif
