#ifndef DIRECTORY_H
#define DIRECTORY_H
#include "trainer.h"

/* A task as an agent lays it out for a program (client/external/task_directory.h), read back. Calls block on the disk. */
struct directory {
	struct work work;
	struct dataset train, validation;
	struct settings *settings; /* nobody's but for the threads */
	uint8_t device[32];
	double seconds; /* <= 0: no limit */
};

/* ERR_INVALID, ERR_NOTFOUND, ERR_IO, ... with why; directory_close is due even then. */
ERR_MUST_USE enum err directory_open(struct directory *out, const char *path, struct why *why);
void directory_close(struct directory *d);

#endif
