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

struct lookup_question {
	enum lookup_kind kind;
	const char *word;
	/* 32 bytes: jobs and devices of this owner come first; NULL: nobody's do. */
	const uint8_t *owner;
	uint64_t *looked; /* unless NULL, the number of things that were looked at is added */
};

/* GET /v1/find?kind=KIND&word=WORD */
void lookup_handle(struct exchange *x);

#endif
