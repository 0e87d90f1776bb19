#ifndef COURSE_ROWS_H
#define COURSE_ROWS_H
#include "course.h"
#include "store.h"

/* A job's course (aggregator/course.h) from the rows of its rounds. */

/* row: a round that has ended. */
void course_rows_step(struct course *c, const struct job_spec *spec, const struct store_round *row,
    struct course_turn *out);
/* After all rounds that have ended; the beginning if the job needs no course. Errors of the store. */
ERR_MUST_USE enum err course_rows_load(
    struct store_db *db, const struct job_spec *spec, const uint8_t job[16], struct course *out);
/* The same of a row whose document was not yet read; the beginning if it cannot be. */
ERR_MUST_USE enum err course_rows_of(
    struct store_db *db, const struct store_job *row, struct course *out);

#endif
