#ifndef WORK_H
#define WORK_H
#include <limits.h>

#include "messages.h"
#include "modelfile.h"

/*
 * One task in hand: its message, the base model's file and the weights as training changes them. `weights` is a copy of
 * the model's data section, so before and after are both there until the delta is made.
 */
struct work {
	struct task task;
	char *text; /* the task message as it came */
	double came_at; /* backoff_now() */
	char path[PATH_MAX]; /* of the base model */
	uint64_t file_bytes, data_at;
	struct tensor_table table; /* with the job's roles */
	uint8_t *weights; /* table.bytes */
	char *params, *recipe; /* JSON text */
	/* Of a job with control variates (scaffold.h), table.elements each; else NULL. */
	float *server_variate, *own_variate;
	float *shift; /* is added to every gradient; NULL for zeros */
	uint64_t needed_bytes, memory_bytes; /* of a task that does not fit into memory; else 0 */
};

/* Loads the base model of work->task from `path`. Reasons: ERR_CORRUPT, ERR_LIMIT past memory_bytes (0: no limit), ... */
ERR_MUST_USE enum err work_load(
    struct work *w, const char *path, uint64_t memory_bytes, struct why *why);
void work_deinit(struct work *w);
/* Seconds until the task's deadline; negative when it is over. */
double work_left(const struct work *w);
/* Seconds that training may take from now on: a share of what is left, at most `own` (0: no limit of the owner's), never 0. */
double work_budget(const struct work *w, double own);
/* The delta vector, table.elements floats: weights minus the base model in the file. The caller frees it. ERR_NUMERIC: a value is not
 * finite; `why` names its tensor. */
ERR_MUST_USE enum err work_delta(const struct work *w, float **out, struct why *why);
/* The learning rate of the task's round: the job's, after its schedule; 0 if it gives none. */
double work_rate(const struct work *w);
/* Does the job want error feedback? */
bool work_feedback(const struct work *w);
/* And control variates? */
bool work_variates(const struct work *w);

#endif
