#ifndef OVERRIDE_H
#define OVERRIDE_H
#include "job.h"

/*
 * What may be changed of a job after its submission, by paths as in the job's document; no path is part of the learning. The document
 * stays as submitted; overrides are kept beside it. As text: a JSON object from paths to numbers within the document's own bounds; null
 * removes an override. FORMAT.md, "Overrides".
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
	OVERRIDE_ROUND_GOAL, /* can only be lowered */
	OVERRIDE_ROUND_QUORUM, /* can only be lowered; never above the goal */
	OVERRIDE_KEYS, /* how many there are */
};

enum override_state {
	OVERRIDE_ABSENT,
	OVERRIDE_GIVEN,
	OVERRIDE_REMOVED, /* in a change: the override is taken away */
};

struct override_set {
	enum override_state state[OVERRIDE_KEYS];
	double value[OVERRIDE_KEYS]; /* where given */
};
#define OVERRIDE_TEXT_MAX 1024

/* The terms by which a job runs: the document's values, replaced where overridden. */
struct job_terms {
	int64_t priority;
	uint32_t share;
	struct round_spec round;
	struct stop_spec stop;
	double evaluate_deadline_s;
};

const char *override_path(enum override_key key);
/* OVERRIDE_KEYS if no override has this path. */
enum override_key override_find(const char *path);
/* On failure *out is empty, and why names the path. */
ERR_MUST_USE enum err override_parse(
    struct override_set *out, const char *text, size_t len, struct why *why);
/* The JSON object from paths to numbers, with null where removed; the caller frees the object. */
struct json *override_json(const struct override_set *o);
bool override_is_empty(const struct override_set *o);
/* May a job with this document have these overrides? ERR_INVALID for a path that has no effect on such a job, or for a value above the
 * document's where a value can only be lowered. */
ERR_MUST_USE enum err override_check(
    const struct override_set *o, const struct job_spec *document, struct why *why);
/* Applies *change to *into, whose states are then OVERRIDE_GIVEN or OVERRIDE_ABSENT. */
void override_merge(struct override_set *into, const struct override_set *change);
void override_terms(
    struct job_terms *out, const struct job_spec *document, const struct override_set *o);
/* A path's value in these terms. */
double override_value(const struct job_terms *terms, enum override_key key);

#endif
