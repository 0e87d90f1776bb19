#ifndef TASK_DIRECTORY_H
#define TASK_DIRECTORY_H
#include <limits.h>

#include "dataset.h"
#include "settings.h"
#include "work.h"

/* The directory in which a program finds a task, and leaves what it made of it (docs/devices.md, External trainers). */
struct task_directory {
	char path[PATH_MAX]; /* resolved: HOME/work/TASK */
};

struct task_directory_options {
	const struct work *work;
	const struct dataset *train, *validation; /* validation->count may be 0 */
	const struct settings *settings;
	const struct settings_data *data; /* what the owner says of the data set; may be NULL */
	const struct settings_trainer *trainer;
	const char *home; /* the agent's */
	const uint8_t *device; /* 32 bytes */
};

/* Makes it anew with all that the program is to find. Blocks on the disk. task_directory_remove is due even on failure. */
ERR_MUST_USE enum err task_directory_make(
    struct task_directory *out, const struct task_directory_options *from, struct why *why);
void task_directory_remove(struct task_directory *d);
/* Removes what a killed agent left of them. */
void task_directory_clean(const char *home);

#endif
