#ifndef TASK_FILE_H
#define TASK_FILE_H
#include "work.h"

/* The task.json that a program reads (docs/devices.md, External trainers): the task message, and what the agent adds. */
struct task_file {
	const struct work *work;
	const struct settings_data *data; /* what the owner says of the data set; may be NULL */
	const uint8_t *device; /* 32 bytes */
	uint64_t threads;
	const char *kernels; /* kernel_choice_text; NULL or "": not written */
	double seconds; /* time budget; <= 0: not written */
	const char *examples, *base; /* paths */
	const char *local, *variates, *validation, *share; /* paths; "": there is no such file */
	/* The state that the program kept of an earlier task: its path ("": none), and that task's base model and round. */
	const char *kept, *kept_model;
	uint64_t kept_round;
	uint64_t kept_bytes; /* the most bytes of state that the program may have kept */
};

/* Writes task.json in the open directory. */
ERR_MUST_USE enum err task_file_write(int directory, const struct task_file *f, struct why *why);

#endif
