#ifndef DIRECTORY_H
#define DIRECTORY_H
#include <limits.h>

#include "builtin.h"
#include "dataset.h"
#include "tensors.h"

/*
 * A task as an agent lays it out for a program (docs/devices.md, External trainers), read back. The model stays in its files, of which
 * tensors are read piece by piece. Calls block on the disk.
 */
struct directory {
	const char *path; /* the caller's */
	struct task task;
	struct tensors base; /* with the job's roles */
	struct tensors local, variates; /* of this device; data NULL: there are none */
	struct training_source shift; /* reads the variates */
	struct dataset train, validation;
	uint8_t device[32];
	uint64_t threads; /* 0: all of the machine's */
	double seconds; /* <= 0: no limit */
};

/* ERR_INVALID, ERR_NOTFOUND, ERR_IO, ... with why; directory_close is due even then. */
ERR_MUST_USE enum err directory_open(struct directory *out, const char *path, struct why *why);
void directory_close(struct directory *d);
/* What training_run takes of it: the rest, who takes the tensors (result.h) and a reason to stop, is the caller's to set. */
struct training_in directory_task(struct directory *d);
/* The path of one of the directory's files. ERR_LIMIT. */
ERR_MUST_USE enum err directory_file(
    char out[PATH_MAX], const char *directory, const char *name, struct why *why);

#endif
