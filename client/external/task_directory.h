#ifndef TASK_DIRECTORY_H
#define TASK_DIRECTORY_H
#include <limits.h>
#include <sys/stat.h>

#include "work.h"

/*
 * The directory in which a program finds a task, and leaves what it made of it (docs/devices.md, External trainers). Beside it stands
 * another that it may only read: base model and examples lie there as links to the agent's files, so that a program sees these and
 * nothing else of the home. Of a program that stays, all such directories lie in two that it was given when it was started. A program
 * with a user of its own finds them outside the home, where copies stand for links.
 */
struct task_directory {
	char path
	    [PATH_MAX]; /* resolved: HOME/work/TASK, of one that stays HOME/work/NAME.tasks/TASK */
	char given
	    [PATH_MAX]; /* the one to read: HOME/work/TASK.given, or HOME/work/NAME.given/TASK */
	const struct apart *apart; /* NULL: the program has the agent's user */
	bool copies; /* as its place says */
	int fd; /* of `path`, for what stands there by that name may soon be something else; -1: it was not made */
	/* Of a link, as the program got it. */
	struct task_directory_seen {
		char source[PATH_MAX]; /* the agent's file; "": there is none */
		char id[65]; /* its hash */
		struct stat stat;
	} base, examples;
	struct why lost; /* why the program is not given what it kept; "": it is, or kept nothing */
};

/* What a program that stays is given, made anew: may be changed, and read. `path`s are resolved. */
struct task_directory_stay {
	char tasks[PATH_MAX], given[PATH_MAX];
};

/* Where a trainer's directories are. */
struct task_directory_place {
	const char *home; /* the agent's */
	const struct apart *apart; /* NULL: programs have the agent's user */
	const struct settings_trainer *trainer;
	bool
	    copies; /* each task has a base model of its own: as many tasks at a time as there are may share the file */
};

struct task_directory_options {
	const struct work *work;
	const struct dataset *train, *validation; /* validation->count may be 0 */
	const struct settings *settings;
	const struct settings_data *data; /* what the owner says of the data set; may be NULL */
	struct task_directory_place place;
	const char *kept_home; /* where programs' states are (program_state.h) */
	const uint8_t *device; /* 32 bytes */
	double seconds; /* time budget; <= 0: none */
	uint64_t all; /* the two were drawn of so many examples; 0: they were not */
	const char *kernels; /* for task.json; may be NULL */
	char *examples_id; /* as in examples_file.h; may be NULL */
};

/* Makes it anew with all that the program is to find. Blocks on the disk. task_directory_remove is due even on failure; it takes
 * zeros. */
ERR_MUST_USE enum err task_directory_make(
    struct task_directory *out, const struct task_directory_options *from, struct why *why);
/* Is what was given still what it was? ERR_CORRUPT: the program changed it (which one that is not confined can), and the agent's file
 * is gone now, to be fetched or written anew. */
ERR_MUST_USE enum err task_directory_check(const struct task_directory *d, struct why *why);
/* What the program left can be read from now on. */
ERR_MUST_USE enum err task_directory_show(const struct task_directory *d, struct why *why);
void task_directory_remove(struct task_directory *d);
/* The two directories of a program that stays, empty. */
ERR_MUST_USE enum err task_directory_stay(
    struct task_directory_stay *out, const struct task_directory_place *place, struct why *why);
void task_directory_leave(const struct task_directory_place *place);
/* Removes what a killed agent left of them all. */
void task_directory_clean(const char *home, const struct apart *apart);

#endif
