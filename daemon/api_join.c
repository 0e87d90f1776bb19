#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "clock.h"
#include "fault.h"
#include "hex.h"
#include "log.h"
#include "messages.h"
#include "registry.h"
#include "store.h"

#define DAY 86400
#define BACKDATE (2 * DAY) /* for devices whose clock is behind */

/* One enrolment, carried through the store's transaction. */
struct enrolment {
	struct token token;
	struct store_device device;
	double now;
	const char *problem; /* error word */
	bool repeated;
};

static const char *
check_token(struct store_db *db, struct enrolment *j, struct store_token *t)
{
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, j->token.secret, sizeof(j->token.secret));
	if (store_token_get(db, j->token.id, t) != ERR_OK ||
	    !hash_equal(digest, t->secret_hash, HASH_LEN))
		return "bad-token";
	return NULL;
}

static enum err
enrol(struct store_db *db, void *arg, struct why *why)
{
	struct enrolment *j = arg;
	struct store_token t;
	uint8_t device[32];

	j->problem = check_token(db, j, &t);
	if (j->problem)
		return err_set(why, ERR_DENIED, "the token is not known");
	/* A repeat by the same key is answered even when the token is spent or expired since. */
	if (store_join_get(db, j->token.id, j->device.spki, device) == ERR_OK) {
		j->repeated = true;
		return store_device_get(db, device, &j->device);
	}
	if (t.revoked || t.uses_left == 0 || j->now > t.expires_at) {
		j->problem = "bad-token";
		return err_set(why, ERR_DENIED, "the token is %s",
		    t.revoked		   ? "revoked"
			: t.uses_left == 0 ? "used up"
					   : "expired");
	}
	struct store_device known;
	if (store_device_get(db, j->device.id, &known) == ERR_OK) {
		/* The key has joined before, with another token: it keeps its name, role and state. */
		j->device = known;
	} else {
		snprintf(j->device.role, sizeof(j->device.role), "%s", t.role);
		snprintf(j->device.labels, sizeof(j->device.labels), "%s", t.labels);
		enum err e = store_device_put(db, &j->device);
		if (e)
			return e;
	}
	t.uses_left--;
	FAULT("join.device");
	enum err e = store_token_put(db, &t);
	return e ? e : store_join_put(db, j->token.id, j->device.spki, j->device.id);
}

/* The token of "Authorization: Bearer ..."; false if there is none. */
static bool
bearer_token(const struct exchange *x, struct token *out)
{
	static const char scheme[] = "Bearer ";
	const char *text = x->request.authorization;

	return strncmp(text, scheme, sizeof(scheme) - 1) == 0 &&
	    messages_token_parse(out, text + sizeof(scheme) - 1) == ERR_OK;
}

static enum err
issue(const struct services *s, const struct store_device *d, int64_t now, struct x509_cert *out,
    struct why *why)
{
	char name[KEY_ID_HEX];
	struct x509_request r = {.use = X509_CLIENT,
	    .common_name = name,
	    .spki = d->spki,
	    .not_before = now - BACKDATE,
	    .not_after = now + (int64_t)s->config->device_days * DAY};

	hex_encode(name, d->id, sizeof(d->id));
	return x509_issue(out, &r, &s->ca, s->ca_key, why);
}

static void
answer(struct exchange *x, const struct enrolment *j)
{
	const struct services *s = x->services;
	struct join_answer a = {
	    .renew_after = (int64_t)j->now + (int64_t)s->config->device_days * DAY * 2 / 3};
	struct x509_cert cert;
	struct why why = {""};
	struct buf out;
	size_t len = sizeof(a.certificate), ca_len = sizeof(a.ca), signer_len = sizeof(a.signer);

	hex_encode(a.device, j->device.id, 32);
	snprintf(a.name, sizeof(a.name), "%s", j->device.name);
	snprintf(a.role, sizeof(a.role), "%s", j->device.role);
	buf_init(&out, 65536);
	enum err e = issue(s, &j->device, (int64_t)j->now, &cert, &why);
	if (e == ERR_OK)
		e = x509_to_pem(a.certificate, &len, &cert);
	if (e == ERR_OK)
		e = x509_to_pem(a.ca, &ca_len, &s->ca);
	if (e == ERR_OK)
		e = x509_to_pem(a.signer, &signer_len, &s->sign_cert);
	if (e == ERR_OK)
		e = messages_joined_encode(&out, &a);
	if (e)
		exchange_failed(x, e, &why);
	else
		exchange_bytes(x, j->repeated ? 200 : 201, "application/json", out.data, out.len);
	buf_deinit(&out);
}

static bool
read_request(struct exchange *x, struct enrolment *j)
{
	struct join_request *q = malloc(sizeof(*q));
	struct why why = {""};
	bool ok = false;

	if (!q) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return false;
	}
	if (!bearer_token(x, &j->token))
		exchange_problem(
		    x, "bad-token", "Authorization: Bearer TOKEN is missing or malformed");
	else if (messages_join_decode(q, buf_str(&x->body), x->body.len, &why) != ERR_OK)
		exchange_problem(x, "bad-message", "%s", why.text);
	else if (x509_csr_check(q->csr, q->csr_len, j->device.spki, &why) != ERR_OK)
		exchange_problem(x, "bad-csr", "%s", why.text);
	else
		ok = true;
	if (ok) {
		key_id(j->device.id, j->device.spki);
		snprintf(j->device.name, sizeof(j->device.name), "%s", q->name);
		snprintf(j->device.state, sizeof(j->device.state), "active");
		j->device.joined_at = j->now;
	}
	free(q);
	return ok;
}

void
api_join(struct exchange *x)
{
	struct enrolment *j = calloc(1, sizeof(*j));
	struct why why = {""};
	char hex[KEY_ID_HEX];

	if (!j) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return;
	}
	j->now = clock_wall();
	if (!read_request(x, j))
		goto out;
	FAULT("join.begin");
	enum err e = store_write(x->services->store, enrol, j, &why);
	FAULT("join.committed");
	if (e == ERR_OK)
		e = registry_put(x->services->registry, &j->device);
	hex_encode(hex, j->device.id, 32);
	if (j->problem)
		exchange_problem(x, j->problem, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	else if (strcmp(j->device.state, "active") != 0)
		exchange_problem(x,
		    strcmp(j->device.state, "revoked") == 0 ? "device-revoked" : "device-suspended",
		    "device %s may not join again", hex);
	else
		answer(x, j);
	if (e == ERR_OK)
		log_event(LOG_LEVEL_INFO, "device.joined", LOG_S("device", hex),
		    LOG_S("name", j->device.name), LOG_S("role", j->device.role),
		    LOG_S("peer", x->peer), LOG_S("repeat", j->repeated ? "yes" : "no"));
out:
	hash_wipe(j, sizeof(*j));
	free(j);
}
