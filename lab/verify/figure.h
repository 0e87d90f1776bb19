#ifndef FIGURE_H
#define FIGURE_H
#include "history.h"
#include "manifest.h"

/* The figure that a named evaluator's program reported of a model, in the audit entry before that of the model's round: signed by the
 * evaluator, not by the coordinator. */

/* Does the document want such a figure (evaluate.by is "program")? */
bool cmd_verify_figure_wanted(const char *document, size_t len);
/* Reads the figure of an entry into j->figure; ERR_CORRUPT if the entry's report says another figure. *manifest and m: the report's
 * manifest, whose signature the caller still checks; *manifest NULL: the device was erased, or the details are missing. */
ERR_MUST_USE enum err cmd_verify_figure_read(struct cmd_verify_job *j,
    const struct cmd_verify_entry *e, const struct record_detail **manifest, struct manifest *m,
    struct why *why);
/* ERR_CORRUPT unless a round with an evaluator's figure has just that figure, and, if by_program (cmd_verify_figure_wanted), a round
 * without one has none. */
ERR_MUST_USE enum err cmd_verify_figure_check(const struct cmd_verify_figure *f,
    const struct cmd_verify_round *r, bool by_program, struct why *why);

#endif
