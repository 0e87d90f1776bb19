#ifndef TRAINER_H
#define TRAINER_H
#include "dataset.h"
#include "finish.h"
#include "settings.h"
#include "work.h"

/*
 * What turns a task and local data into changed weights: built in (trainer_builtin.c), or a program of the owner's
 * (trainer_external.c, docs in README.md). Both change work->weights in place and fill `out`. Both block.
 */
#define TRAINER_LOG_MAX 2048

struct trainer_in {
	struct work *work;
	const struct dataset *train, *validation; /* validation->count may be 0 */
	const struct settings *settings;
	const struct settings_data *data; /* what the owner says of the data set; NULL in tests */
	const char *home; /* scratch directories go below it */
	const uint8_t *device; /* 32 bytes */
	double seconds; /* time budget; <= 0: none */
	bool (*stop)(void *context); /* finish early with what there is; may be NULL */
	void *context;
};

struct trainer_out {
	struct finish finish; /* finish.report is not set here */
	struct report report;
	bool has_report;
	const char *abort; /* on failure: the reason word */
	char log[TRAINER_LOG_MAX]; /* tail of what an external trainer said */
};

ERR_MUST_USE enum err trainer_builtin_run(
    const struct trainer_in *in, struct trainer_out *out, struct why *why);
ERR_MUST_USE enum err trainer_external_run(const struct trainer_in *in,
    const struct settings_trainer *program, struct trainer_out *out, struct why *why);
/* Removes what a killed agent left of its trainers' directories. */
void trainer_external_clean(const char *home);

#endif
