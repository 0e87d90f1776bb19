#ifndef EVALUATION_H
#define EVALUATION_H
#include <stdint.h>

#include "json.h"

/* The document of a job that only evaluates a model, made of the document of one that knows how. Pure. */
struct cmd_evaluation {
	const struct json *like; /* a job's document */
	const char *model; /* its id in hex */
	const char *
	    name; /* of the new job; NULL: that of `like`, "-evaluate-" and the beginning of the model's id */
	uint64_t goal; /* reports wanted, and needed; 0: as in `like` */
};

/* What says how it is evaluated is that of `like`, the seed included: with it each device keeps the same examples for validation. What
 * belongs to rounds that make models is left out. ERR_INVALID: `like` has no model to put this one in the place of; ERR_NOMEM. */
ERR_MUST_USE enum err cmd_evaluation_document(
    struct buf *out, const struct cmd_evaluation *v, struct why *why);

#endif
