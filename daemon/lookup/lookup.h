#ifndef LOOKUP_H
#define LOOKUP_H
#include <stdint.h>

#include "err.h"

struct engine;
struct exchange;
struct registry;

enum lookup_kind {
	LOOKUP_JOB,
	LOOKUP_DEVICE,
	LOOKUP_MODEL, /* the present and the best models of jobs, by the beginning of an id */
	LOOKUP_WEIGHTS, /* likewise, and a job's word, which means its present model */
	LOOKUP_UNKNOWN,
};
enum lookup_kind lookup_kind_find(const char *word);

struct lookup_question {
	enum lookup_kind kind;
	const char *word;
	const uint8_t *owner; /* whose things come first, 32 bytes; NULL: nobody's */
	uint64_t *looked; /* NULL, or: how many things were looked at is added */
};

/*
 * The id of what the word means, in hex (see the README). ERR_NOTFOUND; ERR_EXISTS: it means two things at one step, and why names
 * both. Looks at every job or device, without a lock in between: for a worker.
 */
ERR_MUST_USE enum err lookup_find(struct engine *g, struct registry *registry,
    const struct lookup_question *q, char id[65], struct why *why);

/* GET /v1/find?kind=KIND&word=WORD */
void lookup_handle(struct exchange *x);

#endif
