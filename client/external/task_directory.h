#ifndef TASK_DIRECTORY_H
#define TASK_DIRECTORY_H
#include <limits.h>
#include <sys/stat.h>

#include "work.h"

/*
 * The directory in which a program finds a task, and leaves its results (docs/devices.md, External trainers). Beside it is a directory that
 * the program may only read: base model and examples lie there as hard links to the agent's files, so that a program sees these files and
 * nothing else of the home. For a persistent program all such directories lie in two directories that it was given at its start. A program
 * with a user of its own has its directories outside the home, with copies instead of links.
 */
struct task_directory {
	/* The directory to change, resolved: HOME/work/TASK, of a persistent program HOME/work/NAME.tasks/TASK. */
	char path[PATH_MAX];
	/* The directory to read: HOME/work/TASK.given, of a persistent program HOME/work/NAME.given/TASK. */
	char given[PATH_MAX];
	const struct apart *apart; /* NULL: the program has the agent's user */
	bool copies; /* task_directory_place.copies */
	/* `path`, opened when it was made, as the name may later lead to something else; -1: it was not made. */
	int fd;
	/* A link in `given`, as it was when the program got it. */
	struct task_directory_seen {
		char source[PATH_MAX]; /* the agent's file; "": there is none */
		char id[65]; /* the file's hash, hex */
		struct stat stat;
	} base, examples;
	struct why lost; /* why the program is not given its kept state; "": it is, or kept none */
};

/* The two directories of a persistent program, resolved: one that it may change, one that it may only read. */
struct task_directory_stay {
	char tasks[PATH_MAX], given[PATH_MAX];
};

/* Where a trainer's directories are. */
struct task_directory_place {
	const char *home; /* the agent's */
	const struct apart *apart; /* NULL: programs have the agent's user */
	const struct settings_trainer *trainer;
	/* Each task gets a copy of the base model, as several tasks at a time may use the agent's file. */
	bool copies;
};

struct task_directory_options {
	const struct work *work;
	const struct dataset *train, *validation; /* validation->count may be 0 */
	const struct settings *settings;
	const struct settings_data *data; /* what the owner says of the data set; may be NULL */
	struct task_directory_place place;
	const char *kept_home; /* the home that keeps programs' states (program_state.h) */
	const uint8_t *device; /* 32 bytes */
	double seconds; /* time budget; <= 0: none */
	uint64_t all; /* train and validation were drawn from so many examples; 0: not drawn */
	const char *kernels; /* for task.json; may be NULL */
	char *examples_id; /* as in examples_file.h; may be NULL */
};

/* Makes the directories anew with all that the program is to find. Blocks on the disk. The caller calls task_directory_remove even on
 * failure; it accepts zeros. */
ERR_MUST_USE enum err task_directory_make(
    struct task_directory *out, const struct task_directory_options *from, struct why *why);
/* ERR_CORRUPT: the program has changed a file that it may only read (possible without a sandbox); the agent's file was removed, to be
 * fetched or written anew. */
ERR_MUST_USE enum err task_directory_check(const struct task_directory *d, struct why *why);
/* Makes the files that the program left readable for the agent. */
ERR_MUST_USE enum err task_directory_show(const struct task_directory *d, struct why *why);
void task_directory_remove(struct task_directory *d);
/* Makes the two directories of a persistent program, empty; task_directory_leave removes them. */
ERR_MUST_USE enum err task_directory_stay(
    struct task_directory_stay *out, const struct task_directory_place *place, struct why *why);
void task_directory_leave(const struct task_directory_place *place);
/* Removes all task directories that a killed agent left. */
void task_directory_clean(const char *home, const struct apart *apart);

#endif
