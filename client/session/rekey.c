#include "rekey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "events.h"
#include "fault.h"
#include "hex.h"
#include "home.h"
#include "identity_set.h"
#include "messages.h"
#include "renew.h"
#include "session_inside.h"
#include "x509.h"

#define ATTEMPTS 5
#define PATIENCE_S 60
#define BODY_MAX (16u << 10)
#define ANSWER_MAX (64u << 10)

bool
rekey_begun(const char *home)
{
	return home_has(home, IDENTITY_SET_KEY);
}

static enum err
need_key(struct key **out, const char *home, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, home, IDENTITY_SET_KEY, why);

	if (!e)
		e = key_load(out, path, why);
	if (e != ERR_NOTFOUND)
		return e;
	e = key_generate(out, why);
	if (!e)
		e = key_save(*out, path, why);
	FAULT("rotate.key");
	return e;
}

static enum err
make_request(const struct key *new, struct buf *out, struct why *why)
{
	struct join_request *request = calloc(1, sizeof(*request));
	uint8_t id[HASH_LEN];
	char id_hex[KEY_ID_HEX];
	enum err e;

	if (!request)
		return err_set(why, ERR_NOMEM, "no memory");
	request->csr_len = sizeof(request->csr);
	key_id(id, key_spki(new));
	hex_encode(id_hex, id, sizeof(id));
	e = x509_csr_make(request->csr, &request->csr_len, new, id_hex, why);
	if (!e)
		e = messages_join_encode(out, request);
	free(request);
	return e;
}

static enum err
ask(struct session *s, const struct buf *body, struct join_answer *out, struct why *why)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct transport_answer answer;
	enum problem_type type = PROBLEM_NONE;
	struct why ignored;
	const struct session_call call = {.path = "/v1/rotate",
	    .attempts = ATTEMPTS,
	    .patience_s = PATIENCE_S,
	    .request = {.method = "POST",
		.headers = headers,
		.body = body->data,
		.body_len = body->len,
		.answer_max = ANSWER_MAX}};
	enum err e = session_do(s, &call, &answer, why);

	FAULT("rotate.answer");
	if (!e)
		e = session_problem(&answer, &type, why);
	if (!e)
		e = messages_joined_decode(out, buf_str(&answer.body), answer.body.len, why);
	/* Nobody waits for that here; the new key is kept for the next time. */
	if (type == PROBLEM_TOO_MANY_REQUESTS && answer.retry_after_s > PATIENCE_S)
		e = ERR_STATE;
	transport_answer_deinit(&answer);
	/* This key will never be taken; the next rotation makes another. */
	if (type == PROBLEM_KEY_IN_USE)
		(void)!home_drop(s->home, IDENTITY_SET_KEY, &ignored);
	return e;
}

static enum err
exchange_key(struct session *s, const struct key *new, struct why *why)
{
	struct join_answer *answer = malloc(sizeof(*answer));
	struct buf body;
	enum err e = answer ? ERR_OK : err_set(why, ERR_NOMEM, "no memory");

	buf_init(&body, BODY_MAX);
	if (!e)
		e = make_request(new, &body, why);
	FAULT("rotate.ask");
	if (!e)
		e = ask(s, &body, answer, why);
	if (!e)
		e = identity_set_check(answer, s->held.identity.device, key_spki(new), why);
	if (!e)
		e = identity_set_stage(s->home, answer, why);
	if (!e)
		e = identity_set_apply(s->home, why);
	buf_deinit(&body);
	free(answer);
	return e;
}

enum err
rekey_run(struct session *s, struct why *why)
{
	struct key *new = NULL;
	enum err e = need_key(&new, s->home, why);

	if (!e) {
		renew_if_due(s);
		s->changing = true;
		e = exchange_key(s, new, why);
		s->changing = false;
	}
	key_free(new);
	if (!e)
		e = session_reload(s, why);
	if (!e)
		events_emit(s->events, EVENTS_INFO, "key.rotated",
		    EVENTS_PAIRS(EVENTS_S("device", s->held.identity.device), SESSION_REQUEST(s)));
	else if (e != ERR_AGAIN)
		events_emit(s->events, EVENTS_WARN, "key.rotate-failed",
		    EVENTS_PAIRS(EVENTS_S("reason", why->text), SESSION_REQUEST(s)));
	return e;
}
