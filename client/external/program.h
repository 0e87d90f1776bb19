#ifndef PROGRAM_H
#define PROGRAM_H
#include "cage.h"
#include "child.h"
#include "settings.h"

#define PROGRAM_WORDS_MAX 32

/* The program of a [trainer NAME], confined. */
struct program {
	const struct settings *settings; /* for its threads */
	const struct settings_trainer *trainer;
	const char *home; /* the agent's, which it never sees; NULL: none */
	const struct apart *apart; /* NULL: it has the agent's user */
	const char *directory; /* where it runs, and may change what it likes; NULL: "/" */
	const char *given; /* what it may only read beside; NULL: nothing */
	const char *word; /* one more than its exec has; NULL: none */
	const char *const *environment; /* more of it: "NAME=value", NULL-terminated; NULL: none */
	const struct settings_data *data; /* the task's; may be NULL */
};

/* The order to start it; its ends to write to are the caller's to fill in. It points into itself. */
struct program_order {
	struct spawner_order order;
	struct cage cage;
	const char *argv[PROGRAM_WORDS_MAX + 1];
	char words[SETTINGS_TEXT_MAX];
};

/* As cage_init, and ERR_INVALID for an exec that cannot be split into words. *p must outlive the order. */
ERR_MUST_USE enum err program_order_init(
    struct program_order *out, const struct program *p, struct why *why);
void program_order_deinit(struct program_order *o);

/* Runs it to its end, as child_run and program_order_init. The order of *child is filled in here; log takes the tail of what it said,
 * room bytes. */
struct program_run {
	struct child_options child;
	char *log;
	size_t room;
};
ERR_MUST_USE enum err program_run(struct child_result *out, const struct program *p,
    const struct program_run *run, struct why *why);

/* Could it be run? ERR_INVALID: its words cannot be split, a script among them is no whole path, or a path among read and write is none;
 * ERR_NOTFOUND: the program is not there, or a file that its words name by a whole path. `why` begins with the place in the settings.
 * above: NULL, or takes what cage_above_home says, "" for nothing. */
ERR_MUST_USE enum err program_try(const struct settings *settings,
    const struct settings_trainer *trainer, const char *home, char above[PATH_MAX],
    struct why *why);
/* What this kernel lacks to confine programs, in words; NULL: nothing. */
const char *program_unconfined(void);
/* Of the program and the scripts that exec names: another after one was changed or replaced. 0: one is not there. */
uint64_t program_stamp(const struct settings_trainer *trainer);

#endif
