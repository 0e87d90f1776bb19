#ifndef TRAINER_H
#define TRAINER_H
#include "abort_reason.h"
#include "finish.h"

struct events;
struct examples_task;

/*
 * A trainer turns a task and local data into changed weights: a program of the owner's (trainer_external.c, client/external/README.md), or
 * the built-in one (builtin.h). Each is a row of the table in trainer.c.
 */
#define TRAINER_LOG_MAX 2048

struct trainer_in {
	struct work *work;
	const struct dataset *train, *validation; /* validation->count may be 0 */
	const struct settings *settings;
	const struct settings_data *data; /* what the owner says of the data set; NULL in tests */
	const char *home; /* the agent's; scratch directories are made below it */
	/* The device's home, which keeps the choice of kernels (kernel_choice.h); NULL: there is none. */
	const char *kernels;
	const char *kept_home; /* programs' state between tasks lies below it; NULL: below `home` */
	const struct apart *apart; /* the user of programs; NULL: this process's */
	bool copies; /* task_directory_place.copies */
	const uint8_t *device; /* 32 bytes */
	struct spawner *spawner; /* starts programs; NULL: a new spawner for each program */
	struct companions *companions; /* persistent programs; NULL: no program outlives its task */
	double seconds; /* time budget; <= 0: none */
	unsigned threads; /* of the built-in trainer, at most; 0: as the settings say */
	char *examples_id; /* of train and validation, as in examples_file.h; may be NULL */
	uint64_t all; /* train and validation were drawn from so many examples; 0: not drawn */
	bool (*stop)(void *context); /* true: finish early with the work done so far; may be NULL */
	void *context;
};

struct trainer_out {
	struct finish finish; /* finish.report is not set here */
	struct report report;
	bool has_report;
	struct counts *counts; /* owned; report.counts points to it */
	/* On failure: the reason; ABORT_UNKNOWN: the program's own, `word`. */
	enum abort_reason abort;
	char word[ABORT_WORD_MAX];
	/* Why a program was not given the state that it kept, also after a failure; "": it was given, or kept none. */
	struct why lost;
	/* Why the program's new state was not kept; "": it was, or it left none. */
	struct why unkept;
	char log[TRAINER_LOG_MAX]; /* the end of a program's output */
};

struct trainer {
	const char *name;
	/* Can the trainer do jobs with this recipe on a device with these settings? */
	bool (*fits)(const struct settings *settings, const struct recipe *recipe);
	/* Changes in->work->weights and fills *out, which the caller ends with trainer_out_deinit, also after a failure, when out->abort
	 * is set and the weights may be gone (NULL); of a task that evaluates, only out's report and finish.examples. Blocks. */
	enum err (*run)(const struct trainer_in *in, struct trainer_out *out, struct why *why);
};

/* Sets the examples of in. examples_id: of the shares that the examples were drawn from. */
void trainer_in_give(struct trainer_in *in, const struct examples_task *hand, char *examples_id);
/* Emits the event "kept.lost" if out->lost or out->unkept says that a program's state was lost. */
void trainer_out_tell(const struct trainer_out *out, const struct events *events, const char *job);
/* Emits "trained" or "evaluated": what came of the task in so many seconds. */
void trainer_out_done(const struct trainer_out *out, const struct events *events,
    const struct task *task, double seconds);
/* Frees what *out owns. */
void trainer_out_deinit(struct trainer_out *out);

/* Was a training task broken off with too few steps to be of use, less than a tenth of those that the job plans? Then `why` says how
 * many. */
bool trainer_too_little(const struct trainer_in *in, const struct finish *finish, struct why *why);

/* The trainer for the recipe; NULL if this device has none. */
const struct trainer *trainer_find(const struct settings *settings, const struct recipe *recipe);

/* Is the trainer for the recipe the built-in one? */
bool trainer_is_builtin(const struct settings *settings, const struct recipe *recipe);
ERR_MUST_USE enum err trainer_builtin_run(
    const struct trainer_in *in, struct trainer_out *out, struct why *why);
/* Do the settings have a [trainer NAME] of the name in the recipe? */
bool trainer_external_fits(const struct settings *settings, const struct recipe *recipe);
ERR_MUST_USE enum err trainer_external_run(
    const struct trainer_in *in, struct trainer_out *out, struct why *why);

#endif
