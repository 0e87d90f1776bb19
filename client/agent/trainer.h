#ifndef TRAINER_H
#define TRAINER_H
#include "abort_reason.h"
#include "finish.h"

struct events;
struct examples_task;

/*
 * What turns a task and local data into changed weights: a program of the owner's (trainer_external.c, docs in README.md), or
 * what is built in (builtin.h). Each is a row of a table in trainer.c.
 */
#define TRAINER_LOG_MAX 2048

struct trainer_in {
	struct work *work;
	const struct dataset *train, *validation; /* validation->count may be 0 */
	const struct settings *settings;
	const struct settings_data *data; /* what the owner says of the data set; NULL in tests */
	const char *home; /* scratch directories go below it */
	const char *
	    kernels; /* the device's home, where the choice of kernels is kept (kernel_choice.h); NULL: it has none */
	const char *kept_home; /* what programs keep between tasks lies below it; NULL: `home` */
	const struct apart *apart; /* the user of programs; NULL: this process's */
	bool copies; /* task_directory_place.copies */
	const uint8_t *device; /* 32 bytes */
	struct spawner *spawner; /* starts programs; NULL: each is started by one of its own */
	struct companions
	    *companions; /* programs that stay; NULL: they do not stay longer than a task */
	double seconds; /* time budget; <= 0: none */
	unsigned threads; /* of the built-in trainer, at most; 0: as the settings say */
	char *examples_id; /* of train and validation, as in examples_file.h; may be NULL */
	uint64_t all; /* they were drawn of so many examples; 0: they were not */
	bool (*stop)(void *context); /* finish early with what there is; may be NULL */
	void *context;
};

struct trainer_out {
	struct finish finish; /* finish.report is not set here */
	struct report report;
	bool has_report;
	struct counts *counts; /* owned; report.counts */
	enum abort_reason
	    abort; /* on failure: why; ABORT_UNKNOWN: for a reason of the program's own, */
	char word[ABORT_WORD_MAX]; /* which is this */
	struct why
	    lost; /* why a program was not given what it kept, also after a failure; "": it was */
	struct why unkept; /* why its next will not be; "": it will */
	char log[TRAINER_LOG_MAX]; /* tail of what an external trainer said */
};

struct trainer {
	const char *name;
	/* Does it do jobs of that recipe on a device with these settings? */
	bool (*fits)(const struct settings *settings, const struct recipe *recipe);
	/* Changes in->work->weights and fills *out, which the caller ends with trainer_out_deinit, also after a failure, when out->abort
	 * is set and the weights may be gone (NULL); of a task that evaluates, only out's report and finish.examples. Blocks. */
	enum err (*run)(const struct trainer_in *in, struct trainer_out *out, struct why *why);
};

/* The examples to work on. examples_id is that of what they were drawn of. */
void trainer_in_give(struct trainer_in *in, const struct examples_task *hand, char *examples_id);
/* Says that of its program's state something is lost: "kept.lost". */
void trainer_out_tell(const struct trainer_out *out, const struct events *events, const char *job);
/* Frees what hangs in it. */
void trainer_out_deinit(struct trainer_out *out);

/* Is what a task that trains was broken off with too little to be of use, less than a tenth of the steps that the job plans? Then `why`
 * says how much it is. */
bool trainer_too_little(const struct trainer_in *in, const struct finish *finish, struct why *why);

/* The one for the recipe; NULL if there is none here. */
const struct trainer *trainer_find(const struct settings *settings, const struct recipe *recipe);

/* Is that the one that is built in? */
bool trainer_is_builtin(const struct settings *settings, const struct recipe *recipe);
bool trainer_builtin_fits(const struct settings *settings, const struct recipe *recipe);
ERR_MUST_USE enum err trainer_builtin_run(
    const struct trainer_in *in, struct trainer_out *out, struct why *why);
/* A [trainer NAME] of the settings that bears the name in the recipe. */
bool trainer_external_fits(const struct settings *settings, const struct recipe *recipe);
ERR_MUST_USE enum err trainer_external_run(
    const struct trainer_in *in, struct trainer_out *out, struct why *why);

#endif
