#ifndef TASK_FILE_H
#define TASK_FILE_H
#include "work.h"

/* The task.json that a program reads (docs/devices.md, External trainers): the task message, and what the agent adds. */
struct task_file {
	const struct work *work;
	const struct settings_data *data; /* what the owner says of the data set; may be NULL */
	const uint8_t *device; /* 32 bytes */
	uint64_t threads;
	const char *kernels; /* kernel_choice.h's text; NULL or "": none is told */
	double seconds; /* time budget; <= 0: none is told */
	const char *examples, *base; /* paths */
	const char *local, *variates, *validation, *share; /* paths; "": there are none */
	/* What the program kept of an earlier task: its path; "": nothing. Of that task the round, and the model that it began with. */
	const char *kept, *kept_model;
	uint64_t kept_round;
	uint64_t kept_bytes; /* that it may want kept */
};

/* Makes it in the open directory. */
ERR_MUST_USE enum err task_file_write(int directory, const struct task_file *f, struct why *why);

#endif
