#ifndef BODY_H
#define BODY_H
#include "admin.h"

/* What is no small JSON: documents that go, models that come. Calls block on the network. */

/* Posts a job document's bytes; *answer is what came, and the caller frees it. */
ERR_MUST_USE enum err cmd_body_document(struct cmd_admin *a, const char *path, const char *text,
    size_t len, struct json **answer, struct why *why);
/* Fetches the model of this id into an empty file. ERR_LIMIT past `most` bytes, ERR_CORRUPT if another one came. */
ERR_MUST_USE enum err cmd_body_model(
    struct cmd_admin *a, const char *id, int fd, uint64_t most, struct why *why);

#endif
