#ifndef DOCUMENT_H
#define DOCUMENT_H
#include "work.h"

struct session;

/*
 * What a job is, by the document that its id is the hash of: where the owner lets some jobs alone use something, the coordinator's
 * word on a job's name and recipe is not enough.
 */
struct document {
	char job[33];
	char name[RECIPE_NAME_MAX];
	struct recipe_text *recipe; /* held */
	struct upload_spec upload;
};

/* text: as submitted. ERR_CORRUPT: it is not the job's; ERR_INVALID, ERR_UNSUPPORTED, ERR_NOMEM. On failure *out is empty. */
ERR_MUST_USE enum err document_read(
    struct document *out, const char *job, const char *text, size_t len, struct why *why);
/* From the coordinator: as above, or as session_do and session_problem. */
ERR_MUST_USE enum err document_fetch(
    struct document *out, struct session *s, const char *job, struct why *why);
/* The task's recipe becomes the document's. ERR_INVALID: the task wants a codec that the job does not. On failure *w is as before. */
ERR_MUST_USE enum err document_apply(const struct document *d, struct work *w, struct why *why);
void document_deinit(struct document *d);

#endif
