#ifndef FIGURE_H
#define FIGURE_H
#include "history.h"
#include "manifest.h"

/* What a program of a named evaluator said of a model (the entry before that of its round): the evaluator's word, signed, and not the
 * coordinator's. */

/* Does the document say so? */
bool cmd_verify_figure_wanted(const char *document, size_t len);
/* Into its job; ERR_CORRUPT if the figure is not the one that its report says. *manifest: whose signature is still to be checked; NULL: its
 * device was erased, or the details are not there. */
ERR_MUST_USE enum err cmd_verify_figure_read(struct cmd_verify_job *j,
    const struct cmd_verify_entry *e, const struct record_detail **manifest, struct manifest *m,
    struct why *why);
/* Has the round the figure of its evaluator, and none where there is none? by_program: its job's document says so. */
ERR_MUST_USE enum err cmd_verify_figure_check(const struct cmd_verify_figure *f,
    const struct cmd_verify_round *r, bool by_program, struct why *why);

#endif
