#ifndef ROUNDS_INSIDE_H
#define ROUNDS_INSIDE_H
#include "drive.h"
#include "job_facts.h"

#define ENGINE_RETRY_MS 1000 /* until a fold that failed is tried again, the first time */
/* The round is folded again then, if it still waits for it. Lock held. */
void rounds_fold_at(struct engine *g, struct job *j, uint64_t ms);

/* Looks whether jobs move, once in a second. No lock. */
void rounds_look_stuck(struct engine *g, uint64_t now_ms);
/* The open round is opened again: what came of the tasks that brought no report, and whose they were. Lock held. */
void rounds_note_reopened(struct job *j);

#endif
