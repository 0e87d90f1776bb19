#ifndef WORK_H
#define WORK_H
#include <limits.h>
#include <sys/stat.h>

#include "messages.h"
#include "modelfile.h"

/* A vector of table.elements floats: in a file, in memory, or zeros. */
struct work_vector {
	const float *memory; /* not owned */
	bool in_file;
	int fd; /* owned */
	uint64_t at;
};

/* Where tensors lie of a work whose weights are not in memory. */
struct work_files {
	int base; /* the model's file */
	int local; /* -1, or the local tensors as the last round left them, one behind the other in the table's order */
	uint64_t local_at;
	struct work_place {
		int fd; /* of one of `left` */
		uint64_t at;
	} * after; /* of each tensor as a program left it; NULL: of none, fd -1: not of that one */
	struct work_left {
		int fd;
		struct stat stat; /* as it was then */
	} * left;
	size_t left_count;
};

/*
 * One task in hand: its message, the base model's file and the weights as training changes them. `weights` is a copy of
 * the model's data section, so before and after are both there until the delta is made. Of a task that streams nothing as long as
 * the model is in memory: a program trains it from the base's file, and what it leaves stays in its files.
 */
struct work {
	struct task task;
	char *text; /* the task message as it came */
	double came_at; /* backoff_now() */
	char path[PATH_MAX]; /* of the base model */
	uint64_t file_bytes, data_at;
	struct tensor_table table; /* with the job's roles */
	bool streams; /* before work_load */
	const uint8_t
	    *base; /* the base model's data section, the caller's; NULL: it is read from the file */
	uint8_t *weights; /* table.bytes; NULL: it streams */
	struct work_files *files; /* NULL: it does not */
	char *params, *recipe; /* JSON text */
	/* Of a job with control variates (scaffold.h); else zeros. */
	struct work_vector server, own;
	float *shift; /* is added to every gradient; NULL for zeros, and where it streams */
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
/* Bytes of one of the table's tensors as it is now: after the training, or before it. */
ERR_MUST_USE enum err work_read(
    const struct work *w, const struct tensor *t, uint64_t at, size_t len, void *out);
struct codec_elements work_vector_values(const struct work_vector *v);

/* The delta vector, table.elements floats: the weights as they are now minus the base model. */
struct work_delta {
	const struct work *work;
	int base; /* its file; -1: it is in memory */
	struct why *why;
};
ERR_MUST_USE enum err work_delta_open(struct work_delta *d, const struct work *w, struct why *why);
/* While *d and `why` live. ERR_NUMERIC: a value is not finite; `why` names its tensor. */
struct codec_elements work_delta_values(struct work_delta *d);
void work_delta_close(struct work_delta *d);
/* Are all its values finite? As the reading says it. */
ERR_MUST_USE enum err work_delta_check(const struct work *w, struct why *why);
/* Are the files that a program left what they were when it left them? ERR_INVALID. */
ERR_MUST_USE enum err work_unchanged(const struct work *w, struct why *why);
/* The learning rate of the task's round: the job's, after its schedule; 0 if it gives none. */
double work_rate(const struct work *w);
/* Does the job want error feedback? */
bool work_feedback(const struct work *w);
/* And control variates? */
bool work_variates(const struct work *w);

#endif
