#ifndef DOCUMENT_H
#define DOCUMENT_H
#include "work.h"

struct session;

/*
 * A job's name and recipe from its document, whose hash is the job's id: where the owner allows something for some jobs only, a name and
 * recipe that the coordinator says are not enough.
 */
struct document {
	char job[33];
	char name[RECIPE_NAME_MAX];
	struct recipe_text *recipe; /* held */
	struct upload_spec upload;
};

/* text: the document as submitted. ERR_CORRUPT: its hash is not the job's id; ERR_INVALID, ERR_UNSUPPORTED, ERR_NOMEM. On failure *out is
 * empty. */
ERR_MUST_USE enum err document_read(
    struct document *out, const char *job, const char *text, size_t len, struct why *why);
/* Fetches the document from the coordinator. Errors as document_read, session_do and session_problem. */
ERR_MUST_USE enum err document_fetch(
    struct document *out, struct session *s, const char *job, struct why *why);
/* Replaces the recipe of the task in *w by the document's. ERR_INVALID: the task wants a codec that the document does not list. On failure
 * *w is as before. */
ERR_MUST_USE enum err document_apply(const struct document *d, struct work *w, struct why *why);
void document_deinit(struct document *d);

#endif
