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
	/* As LOOKUP_MODEL, or a word for a job, which means the job's present model. */
	LOOKUP_WEIGHTS,
	LOOKUP_UNKNOWN,
};
enum lookup_kind lookup_kind_find(const char *word);

struct lookup_question {
	enum lookup_kind kind;
	const char *word;
	/* 32 bytes: jobs and devices of this owner come first; NULL: nobody's do. */
	const uint8_t *owner;
	uint64_t *looked; /* unless NULL, the number of things that were looked at is added */
};

/*
 * id: what the word means, in hex (README.md). ERR_NOTFOUND; ERR_EXISTS: two things fit the word at one step, and why names
 * both. Looks at every job or device, releasing locks in between: for a worker.
 */
ERR_MUST_USE enum err lookup_find(struct engine *g, struct registry *registry,
    const struct lookup_question *q, char id[65], struct why *why);

/* GET /v1/find?kind=KIND&word=WORD */
void lookup_handle(struct exchange *x);

#endif
