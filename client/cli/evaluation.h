#ifndef EVALUATION_H
#define EVALUATION_H
#include <stdint.h>

#include "json.h"

/* Makes the document of a job that only evaluates a model from the document of a job whose models are evaluated. Pure. */
struct cmd_evaluation {
	const struct json *like; /* a job's document */
	const char *model; /* the model's id in hex */
	/* Name of the new job; NULL: the name of `like`, "-evaluate-" and the beginning of the model's id. */
	const char *name;
	uint64_t goal; /* reports wanted, and needed; 0: as in `like` */
};

/* Members of `like` that say how models are evaluated stay, also the seed: with it each device keeps the same examples for validation.
 * Members for rounds that make models are left out. ERR_INVALID: `like` has no model that v->model could replace; ERR_NOMEM. */
ERR_MUST_USE enum err cmd_evaluation_document(
    struct buf *out, const struct cmd_evaluation *v, struct why *why);

#endif
