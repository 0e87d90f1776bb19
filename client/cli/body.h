#ifndef BODY_H
#define BODY_H
#include "admin.h"

/* Large bodies: job documents that are sent, models that are fetched. Calls block on the network. */

/* Posts a job document's bytes; the caller frees *answer, the JSON that came back. */
ERR_MUST_USE enum err cmd_body_document(struct cmd_admin *a, const char *path, const char *text,
    size_t len, struct json **answer, struct why *why);
/* Fetches the model of this id into the empty file fd. ERR_LIMIT past `most` bytes, ERR_CORRUPT if the hash of what came is not the id. */
ERR_MUST_USE enum err cmd_body_model(
    struct cmd_admin *a, const char *id, int fd, uint64_t most, struct why *why);

#endif
