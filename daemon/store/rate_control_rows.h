#ifndef RATE_CONTROL_ROWS_H
#define RATE_CONTROL_ROWS_H
#include <stdint.h>

#include "err.h"

struct job_spec;
struct rate_control;
struct rate_control_turn;
struct store_db;
struct store_job;
struct store_round;

/* A job's schedule (round/policy/rate_control.h) from the rows of its rounds. */

/* Steps the schedule by one round. row: a round that has ended; measured_base: the base of round row->measured, if row->measured is
 * not 0. */
void rate_control_rows_step(struct rate_control *c, const struct job_spec *spec,
    const struct store_round *row, const uint8_t measured_base[32], struct rate_control_turn *out);
/* *out: the schedule after all rounds of the job that have ended, or at its beginning if the job needs no schedule. Errors of the store. */
ERR_MUST_USE enum err rate_control_rows_load(struct store_db *db, const struct job_spec *spec,
    const uint8_t job[16], struct rate_control *out);
/* As rate_control_rows_load, for a job's row whose document was not yet parsed; a schedule at its beginning if the document cannot be. */
ERR_MUST_USE enum err rate_control_rows_of(
    struct store_db *db, const struct store_job *row, struct rate_control *out);

#endif
