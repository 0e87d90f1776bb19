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

/* Where the tensors of a work are whose weights are not in memory. */
struct work_files {
	int base; /* the base model's file */
	int local; /* a file with the local tensors as the last round left them, in the table's order; -1: none */
	uint64_t local_at;
	struct work_place {
		int fd; /* of one of `left` */
		uint64_t at;
	} * after; /* where a program left each tensor; NULL: it left none; fd -1: it did not leave this tensor */
	struct work_left {
		int fd;
		struct stat stat; /* when the program left the file */
	} * left;
	size_t left_count;
};

/*
 * One task in hand: its message, the base model's file and the weights as training changes them. `weights` is a copy of
 * the model's data section, so before and after are both there until the delta is made. If the task streams, no array of the model's
 * size is in memory: a program trains from the base model's file, and its result stays in files.
 */
struct work {
	struct task task;
	char *text; /* the task message as it came */
	double came_at; /* backoff_now() */
	char path[PATH_MAX]; /* of the base model */
	uint64_t file_bytes, data_at;
	struct tensor_table table; /* with the job's roles */
	bool streams; /* set before work_load */
	/* The base model's data section, the caller's; NULL: the section is read from the file. */
	const uint8_t *base;
	uint8_t *weights; /* table.bytes; NULL if the task streams */
	struct work_files *files; /* NULL unless the task streams */
	char *params, *recipe; /* JSON text */
	/* Control variates (scaffold.h) of coordinator and device; zeros for a job without them. */
	struct work_vector server, own;
	float *shift; /* added to every gradient; NULL for zeros, and if the task streams */
	uint64_t needed_bytes, memory_bytes; /* of a task that does not fit into memory; else 0 */
};

/* Loads the base model of work->task from `path`. Reasons: ERR_CORRUPT, ERR_LIMIT past memory_bytes (0: no limit), ... */
ERR_MUST_USE enum err work_load(
    struct work *w, const char *path, uint64_t memory_bytes, struct why *why);
void work_deinit(struct work *w);
/* Seconds that training may take from now on: a share of the time until the deadline, at most `own` (0: no limit of the owner's), never
 * 0. */
double work_budget(const struct work *w, double own);
/* Reads len bytes of tensor t from its byte `at` on, as the tensor is now (before or after the training). */
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
/* The delta's values; *d and `why` must outlive the result. Reading gives ERR_NUMERIC if a value is not finite; `why` names its tensor. */
struct codec_elements work_delta_values(struct work_delta *d);
void work_delta_close(struct work_delta *d);
/* Are all values of the delta finite? ERR_NUMERIC, as for work_delta_values. */
ERR_MUST_USE enum err work_delta_check(const struct work *w, struct why *why);
/* Are the files that a program left still unchanged? ERR_INVALID if not. */
ERR_MUST_USE enum err work_unchanged(const struct work *w, struct why *why);
/* The learning rate of the task's round: the job's, after its schedule; 0 if the job gives none. */
double work_rate(const struct work *w);
/* Does the job want error feedback? */
bool work_feedback(const struct work *w);
/* Does the job want control variates? */
bool work_variates(const struct work *w);

#endif
