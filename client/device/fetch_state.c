#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fetch.h"
#include "hash.h"
#include "hex.h"
#include "scaffold.h"

#define ATTEMPTS 6
#define ANSWER_MAX (64u << 10)
/* The server optimizer's vectors, the rule's, what the download lost, and the variate. */
#define STATE_VECTORS_MAX 5

static enum err
check(const struct rivulet *r, struct transport_sink *sink, struct why *why)
{
	char id[2 * HASH_LEN + 1];
	uint8_t hash[HASH_LEN];

	if (sink->at != r->work.task.state_bytes)
		return err_set(why, ERR_CLOSED, "the state came incomplete");
	hash_finish(sink->hash, hash);
	hex_encode(id, hash, HASH_LEN);
	if (strcmp(id, r->work.task.state) == 0)
		return ERR_OK;
	hash_start(sink->hash);
	sink->at = 0;
	return err_set(why, ERR_CORRUPT, "the state's hash does not match its id");
}

/* What a broken connection brought is kept: the next request goes on from there. */
static enum err
download(struct rivulet *r, struct transport_sink *sink, struct why *why)
{
	char path[128];
	enum err e = ERR_CLOSED;

	snprintf(path, sizeof(path), "/v1/states/%.64s", r->work.task.state);
	const struct session_call call = {.path = path,
	    .attempts = 1,
	    .request = {.method = "GET", .sink = sink, .answer_max = ANSWER_MAX}};
	hash_start(sink->hash);
	for (unsigned i = 0; i < ATTEMPTS && (e == ERR_CLOSED || e == ERR_CORRUPT); i++) {
		struct transport_answer answer;
		if (i > 0 &&
		    !backoff_sleep(backoff_next(session_backoff(r->session)), handle_cancelled, r))
			return err_set(why, ERR_AGAIN, "cancelled");
		e = session_do(r->session, &call, &answer, why);
		if (!e)
			e = session_problem(&answer, NULL, why);
		transport_answer_deinit(&answer);
		if (!e)
			e = check(r, sink, why);
	}
	return e;
}

/* The variate is the last of the state's vectors; the file has no name from here on. */
static enum err
fetch_into(struct rivulet *r, const char *part, struct why *why)
{
	const struct task *t = &r->work.task;
	uint64_t bytes = r->work.table.elements * sizeof(float);
	struct transport_sink sink = {.max = t->state_bytes, .hash = hash_new()};

	if (!sink.hash)
		return err_set(why, ERR_NOMEM, "no memory");
	sink.fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	enum err e = sink.fd < 0 ? err_errno(why, "create %s", part) : download(r, &sink, why);
	if (sink.fd >= 0)
		unlink(part);
	if (!e)
		r->work.server = (struct work_vector){
		    .in_file = true, .fd = sink.fd, .at = t->state_bytes - bytes};
	else if (sink.fd >= 0)
		close(sink.fd);
	hash_free(sink.hash);
	return e;
}

enum err
fetch_state(struct rivulet *r, struct why *why)
{
	struct work *w = &r->work;
	uint64_t bytes = w->table.elements * sizeof(float);
	char part[PATH_MAX];

	if (!w->task.state[0])
		return ERR_OK;
	if (w->task.state_bytes % bytes != 0 || w->task.state_bytes / bytes > STATE_VECTORS_MAX)
		return err_set(why, ERR_INVALID, "a state of %llu bytes does not fit the model",
		    (unsigned long long)w->task.state_bytes);
	enum err e = scaffold_path(part, w, r->home, ".part", why);
	return e ? e : fetch_into(r, part, why);
}
