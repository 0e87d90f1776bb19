#ifndef TRIAL_RUN_H
#define TRIAL_RUN_H
#include "work.h"

struct dataset;
struct train_score;

/* A job without a coordinator: its model as a file in a scratch directory, and a task for that model. */
struct cmd_trial {
	struct work work; /* the task as an agent would have it */
	struct job_spec *job; /* its recipe is moved into the task, and back by cmd_trial_deinit */
	char path[PATH_MAX]; /* the model's file */
	bool loaded; /* `work` holds weights */
};

/* Draws the model from the job's seed, or reads it from the file `init`. The job must outlive the trial and is not to be
 * used meanwhile. cmd_trial_deinit is due even on failure. */
ERR_MUST_USE enum err cmd_trial_init(struct cmd_trial *t, struct job_spec *job, const char *scratch,
    const char *init, struct why *why);
void cmd_trial_deinit(struct cmd_trial *t);
/* Makes the weights as they are now the base of the next round. */
ERR_MUST_USE enum err cmd_trial_base(struct cmd_trial *t, struct why *why);
ERR_MUST_USE enum err cmd_trial_evaluate(
    struct cmd_trial *t, const struct dataset *set, struct train_score *out, struct why *why);
/* Writes the present weights as a model file. */
ERR_MUST_USE enum err cmd_trial_save(struct cmd_trial *t, const char *path, struct why *why);

#endif
