#ifndef ROUND_FILES_H
#define ROUND_FILES_H
#include "fold.h"

/*
 * The files that a folded round leaves: the new model, how devices that hold the base get it, the optimizer's state. Writing takes as long
 * as the disk does and is done beside others; their names they get at once, shortly before the rows that name them. Zeros are none.
 */
struct round_files {
	struct models_file *model, *difference, *state;
	bool shown; /* the model has its name already */
	bool kept;
};

/* Of a round that is to be committed, else nothing; into out.row what they are called. ERR_CLOSED once the program is to end. */
ERR_MUST_USE enum err round_files_write(struct round_files *r, struct fold *w, struct why *why);
/* Gives the model its name, before any row has it, so that it can be measured; then as kept. */
ERR_MUST_USE enum err round_files_show(
    struct round_files *r, const struct fold *w, struct why *why);
ERR_MUST_USE enum err round_files_keep(
    struct round_files *r, const struct fold *w, struct why *why);
/* Removes what was not kept. */
void round_files_drop(struct round_files *r);

#endif
