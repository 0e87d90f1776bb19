#ifndef UPLOAD_H
#define UPLOAD_H
#include "handle_inside.h"

/* A delta of the outbox on its way: PUT, and when that broke, HEAD and PATCH with what is not there yet. A delta of one chunk is
 * sent whole each time. */
struct upload {
	const struct outbox_entry *entry;
	const char *task;
	/* As session_call; more while the coordinator has more of it each time. */
	unsigned attempts;
	bool resumes; /* something of it may be there: asks before the first byte */
};

/* As session_do; the answer is that to PUT or PATCH. Never a 409 `wrong-offset`. */
ERR_MUST_USE enum err upload_send(
    struct rivulet *r, const struct upload *u, struct transport_answer *answer, struct why *why);

#endif
