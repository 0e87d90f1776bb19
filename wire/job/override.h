#ifndef OVERRIDE_H
#define OVERRIDE_H
#include "job.h"

/*
 * What may be changed of a job after its submission, by paths as in its document: nothing of it is part of the learning. The document
 * stays as it is; what is overridden lies beside it. Text: a JSON object from paths to numbers within the document's own bounds; null
 * takes an override away. FORMAT.md, "Overrides".
 */
enum override_key {
	OVERRIDE_SHARE,
	OVERRIDE_PRIORITY,
	OVERRIDE_ROUND_DEADLINE,
	OVERRIDE_ROUND_GRACE, /* synchronous */
	OVERRIDE_ROUND_TASK_TIMEOUT, /* buffered */
	OVERRIDE_ROUND_CONCURRENCY, /* buffered */
	OVERRIDE_STOP_ROUNDS,
	OVERRIDE_STOP_REPORTS,
	OVERRIDE_STOP_SECONDS,
	OVERRIDE_EVALUATE_DEADLINE,
	OVERRIDE_ROUND_GOAL, /* to be lowered alone */
	OVERRIDE_ROUND_QUORUM, /* likewise; never above the goal */
	OVERRIDE_KEYS, /* how many there are */
};

enum override_state {
	OVERRIDE_ABSENT,
	OVERRIDE_GIVEN,
	OVERRIDE_REMOVED, /* of a change: what was given is no more */
};

struct override_set {
	enum override_state state[OVERRIDE_KEYS];
	double value[OVERRIDE_KEYS]; /* where given */
};
#define OVERRIDE_TEXT_MAX 1024

/* What a job is run by: its document's, with what is overridden. */
struct job_terms {
	int64_t priority;
	uint32_t share;
	struct round_spec round;
	struct stop_spec stop;
	double evaluate_deadline_s;
};

const char *override_path(enum override_key key);
/* OVERRIDE_KEYS: there is none of this path. */
enum override_key override_find(const char *path);
/* On failure *out is empty, and why names the path. */
ERR_MUST_USE enum err override_parse(
    struct override_set *out, const char *text, size_t len, struct why *why);
/* From paths to numbers, and null where removed; the caller's. */
struct json *override_json(const struct override_set *o);
bool override_is_empty(const struct override_set *o);
/* May these be set of this job? ERR_INVALID: a path says nothing where it stands, or more than the document where that is the most. */
ERR_MUST_USE enum err override_check(
    const struct override_set *o, const struct job_spec *document, struct why *why);
/* Makes the change: what is left is given or absent. */
void override_merge(struct override_set *into, const struct override_set *change);
void override_terms(
    struct job_terms *out, const struct job_spec *document, const struct override_set *o);
/* A path's value in these terms. */
double override_value(const struct job_terms *terms, enum override_key key);

#endif
