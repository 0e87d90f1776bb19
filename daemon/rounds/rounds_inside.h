#ifndef ROUNDS_INSIDE_H
#define ROUNDS_INSIDE_H
#include "drive.h"
#include "job_struct.h"

#define ENGINE_RETRY_MS 1000 /* until a fold that failed is tried again, the first time */
/* The round is folded again then, if it still waits for it. Lock held. */
void engine_fold_at(struct engine *g, struct engine_job *j, uint64_t ms);

/* whether jobs move. No lock; looks once in a second. */
void engine_view_stuck(struct engine *g, uint64_t now_ms);
/* The open round is opened again: what came of the tasks that brought no report, and whose they were. Lock held. */
void engine_view_reopened(struct engine_job *j);

#endif
