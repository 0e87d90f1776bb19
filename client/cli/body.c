#include "body.h"

#include <stdio.h>
#include <string.h>

#include "hash.h"
#include "hex.h"
#include "job.h"

enum err
cmd_body_document(struct cmd_admin *a, const char *path, const char *text, size_t len,
    struct json **answer, struct why *why)
{
	struct buf body;

	buf_init(&body, JOB_DOCUMENT_MAX);
	enum err e = buf_append(&body, text, len);
	if (e)
		err_set(why, e, "the document is larger than %u bytes", JOB_DOCUMENT_MAX);
	else
		e = cmd_admin_call(a, "POST", path, &body, answer, why);
	buf_deinit(&body);
	return e;
}

static enum err
receive(struct cmd_admin *a, const char *id, struct transport_sink *sink, struct why *why)
{
	char path[96];
	struct transport_answer answer;
	const struct session_call call = {
	    .path = path, .attempts = 1, .request = {.method = "GET", .sink = sink}};

	snprintf(path, sizeof(path), "/v1/models/%.64s", id);
	enum err e = session_do(a->session, &call, &answer, why);
	if (!e)
		e = session_refusal(&answer, NULL, why);
	transport_answer_deinit(&answer);
	return e;
}

enum err
cmd_body_model(struct cmd_admin *a, const char *id, int fd, uint64_t most, struct why *why)
{
	char got[65];
	uint8_t digest[HASH_LEN];
	struct hash *hash = hash_new();
	struct transport_sink sink = {.fd = fd, .max = most, .hash = hash};

	if (!hash)
		return err_set(why, ERR_NOMEM, "no memory for a hash");
	hash_start(hash);
	enum err e = receive(a, id, &sink, why);
	hash_finish(hash, digest);
	hash_free(hash);
	hex_encode(got, digest, sizeof(digest));
	if (e || strcmp(got, id) == 0)
		return e;
	return err_set(
	    why, ERR_CORRUPT, "what came is not model %.12s: its hash is %.12s", id, got);
}
