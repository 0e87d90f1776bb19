#ifndef TRAINER_H
#define TRAINER_H
#include "abort_reason.h"
#include "companions.h"
#include "dataset.h"
#include "finish.h"
#include "settings.h"
#include "spawner.h"
#include "work.h"

/*
 * What turns a task and local data into changed weights: a program of the owner's (trainer_external.c, docs in README.md), or
 * what is built in (trainer_builtin.c). Each is a row of a table in trainer.c.
 */
#define TRAINER_LOG_MAX 2048

struct trainer_in {
	struct work *work;
	const struct dataset *train, *validation; /* validation->count may be 0 */
	const struct settings *settings;
	const struct settings_data *data; /* what the owner says of the data set; NULL in tests */
	const char *home; /* scratch directories go below it */
	const uint8_t *device; /* 32 bytes */
	struct spawner *spawner; /* starts programs; NULL: each is started by one of its own */
	struct companions
	    *companions; /* programs that stay; NULL: they do not stay longer than a task */
	double seconds; /* time budget; <= 0: none */
	char *examples_id; /* of train and validation, as in examples_file.h; may be NULL */
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
	char log[TRAINER_LOG_MAX]; /* tail of what an external trainer said */
};

struct trainer {
	const char *name;
	/* Does it do jobs of that recipe on a device with these settings? */
	bool (*fits)(const struct settings *settings, const struct recipe *recipe);
	/* Changes in->work->weights in place and fills *out, which the caller ends with trainer_out_deinit, also after a failure, when
	 * out->abort is set; of a task that evaluates, only out's report and finish.examples. Blocks. */
	enum err (*run)(const struct trainer_in *in, struct trainer_out *out, struct why *why);
};

/* Frees what hangs in it. */
void trainer_out_deinit(struct trainer_out *out);

/* Is what a task that trains was broken off with too little to be of use, less than a tenth of the steps that the job plans? Then `why`
 * says how much it is. */
bool trainer_too_little(const struct trainer_in *in, const struct finish *finish, struct why *why);

/* The one for the recipe; NULL if there is none here. */
const struct trainer *trainer_find(const struct settings *settings, const struct recipe *recipe);

/* Bytes that the built-in trainer takes for a task of the recipe, beside weights and examples, at its most. Of `train` it looks at the
 * count and what an example is. ERR_LIMIT above the settings' memory_bytes; ERR_INVALID, ERR_NOMEM. */
ERR_MUST_USE enum err trainer_builtin_bytes(const struct settings *settings,
    const struct recipe *recipe, const struct dataset *train, uint64_t validation, uint64_t *bytes,
    struct why *why);
bool trainer_builtin_fits(const struct settings *settings, const struct recipe *recipe);
ERR_MUST_USE enum err trainer_builtin_run(
    const struct trainer_in *in, struct trainer_out *out, struct why *why);
/* A [trainer NAME] of the settings that bears the name in the recipe. */
bool trainer_external_fits(const struct settings *settings, const struct recipe *recipe);
ERR_MUST_USE enum err trainer_external_run(
    const struct trainer_in *in, struct trainer_out *out, struct why *why);

#endif
