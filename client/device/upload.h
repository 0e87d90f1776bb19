#ifndef UPLOAD_H
#define UPLOAD_H
#include "handle_inside.h"

/* Uploads a delta of the outbox: PUT, and after an interruption HEAD and PATCH with the bytes that the coordinator does not have yet. A
 * delta of one chunk is sent whole each time. */
struct upload {
	const struct outbox_entry *entry;
	const char *task;
	/* As session_call.attempts; attempts after which the coordinator has more bytes than before do not count. */
	unsigned attempts;
	/* The coordinator may have a part already: HEAD comes before the first byte. */
	bool resumes;
};

/* Errors of session_do; *answer is the answer to PUT or PATCH, never a 409 `wrong-offset`. */
ERR_MUST_USE enum err upload_send(
    struct rivulet *r, const struct upload *u, struct transport_answer *answer, struct why *why);

#endif
