#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "api.h"
#include "audit.h"
#include "buf.h"
#include "clock.h"
#include "err.h"
#include "exchange.h"
#include "fault.h"
#include "hex.h"
#include "issue.h"
#include "json.h"
#include "log.h"
#include "messages.h"
#include "names.h"
#include "ready.h"
#include "registry.h"
#include "report.h"
#include "services.h"
#include "services_ca.h"
#include "shared.h"
#include "spent.h"
#include "store.h"
#include "x509.h"

/* One enrolment, carried through the store's transaction. */
struct enrolment {
	const struct services *services;
	struct token token;
	struct store_device device;
	double now;
	const char *peer; /* address */
	enum problem_type problem;
	bool repeated;
	/* Made inside the transaction: a device that gets no certificate spends no token. */
	struct buf answer;
};

static enum problem_type
check_token(struct store_db *db, struct enrolment *j, struct store_token *t)
{
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, j->token.secret, sizeof(j->token.secret));
	if (store_token_get(db, j->token.id, t) || !hash_equal(digest, t->secret_hash, HASH_LEN))
		return PROBLEM_BAD_TOKEN;
	return PROBLEM_NONE;
}

/* Why nobody can join with a token that exists; NULL: devices can. */
static const char *
spent(const struct store_token *t, double now)
{
	if (t->access)
		return "is for access, not for joining";
	if (t->revoked)
		return "is revoked";
	if (now > t->expires_at)
		return "is expired";
	return t->uses_left == 0 ? "is used up" : NULL;
}

/* *out: the device that has or had this key; ERR_NOTFOUND: the key is not on record. */
static enum err
find_known(struct store_db *db, const uint8_t spki[KEY_SPKI_LEN], struct store_device *out)
{
	uint8_t key[32], device[32];

	key_id(key, spki);
	enum err e = store_key_get(db, key, device);
	if (e && e != ERR_NOTFOUND)
		return e;
	return store_device_get(db, !e ? device : key, out);
}

/* Chooses the device's name: the token's name, or the token's prefix and the name that the device asks for. */
static enum err
choose_name(struct enrolment *j, const struct store_token *t, struct why *why)
{
	char own[sizeof(j->device.name)];
	size_t prefix = strlen(t->name_prefix);

	if (t->name[0])
		memcpy(j->device.name, t->name, sizeof(t->name));
	if (t->name[0] || strncmp(j->device.name, t->name_prefix, prefix) == 0)
		return ERR_OK;
	memcpy(own, j->device.name, sizeof(own));
	if (prefix + strlen(own) >= sizeof(own)) {
		j->problem = PROBLEM_BAD_MESSAGE;
		return err_set(why, ERR_DENIED, "behind \"%s\", the token's, the name is too long",
		    t->name_prefix);
	}
	memcpy(j->device.name, t->name_prefix, prefix);
	memcpy(j->device.name + prefix, own, strlen(own) + 1);
	return ERR_OK;
}

/* Admits a device. One that left comes back with its id, and gets name, role, labels and state of this token; any other known device keeps
 * its own. */
static enum err
admit(struct store_db *db, struct enrolment *j, const struct store_token *t,
    const struct store_device *known, struct why *why)
{
	j->device.state = t->suspended ? DEVICE_SUSPENDED : DEVICE_ACTIVE;
	struct store_device fresh = j->device;

	if (known) {
		j->device = *known;
		if (known->state == DEVICE_ACTIVE)
			return ERR_OK;
		j->device.state = fresh.state;
		if (fresh.name[0])
			memcpy(j->device.name, fresh.name, sizeof(fresh.name));
	}
	snprintf(j->device.role, sizeof(j->device.role), "%s", t->role);
	snprintf(j->device.labels, sizeof(j->device.labels), "%s", t->labels);
	enum err e = choose_name(j, t, why);
	if (!e)
		e = names_check(db, &j->device, why);
	if (e == ERR_EXISTS)
		j->problem = PROBLEM_NAME_IN_USE;
	return e ? e : store_device_put(db, &j->device);
}

static enum err
use_token(struct store_db *db, struct enrolment *j, struct store_token *t)
{
	t->uses_left--;
	FAULT("join.device");
	enum err e = store_token_put(db, t);
	if (e)
		return e;
	e = store_join_put(db, t->id, j->device.spki, j->device.id);
	return e == ERR_EXISTS ? ERR_OK : e;
}

static enum err
audit_join(struct store_db *db, const struct enrolment *j, struct why *why)
{
	struct json *facts = json_object(), *detail = json_object();
	char token[17], key[2 * KEY_SPKI_LEN + 1];

	hex_encode(token, j->token.id, sizeof(j->token.id));
	hex_encode(key, j->device.spki, sizeof(j->device.spki));
	json_add_string(facts, "token", token);
	json_add_string(facts, "role", j->device.role);
	if (j->device.state == DEVICE_SUSPENDED)
		json_add_bool(facts, "suspended", true);
	json_add_string(detail, "name", j->device.name);
	json_add_string(detail, "labels", j->device.labels);
	json_add_string(detail, "key", key);
	json_add_string(detail, "peer", j->peer);
	return audit_append(db, j->services,
	    &(struct audit_event){.event = RECORD_DEVICE_JOINED,
		.facts = facts,
		.device = j->device.id,
		.detail = detail},
	    why);
}

/* May a device join with a key that is on record? Not if the key was replaced, or the device revoked or suspended; but whose answer was lost
 * may repeat what made it suspended. */
static enum err
check_known(struct enrolment *j, const struct store_device *known, bool repeats, struct why *why)
{
	if (!hash_equal(known->spki, j->device.spki, sizeof(known->spki))) {
		j->problem = PROBLEM_KEY_ROTATED;
		return err_set(why, ERR_DENIED,
		    "this key was replaced by a newer one of device %.63s; join with that or with "
		    "a new key",
		    known->name);
	}
	if (known->state == DEVICE_ACTIVE || known->state == DEVICE_LEFT ||
	    (known->state == DEVICE_SUSPENDED && repeats))
		return ERR_OK;
	j->problem = registry_state_problem(known->state);
	return err_set(why, ERR_DENIED, "device %.63s is %s and may not join again", known->name,
	    states_device_name(known->state));
}

static enum err
enrol(struct store_db *db, void *arg, struct why *why)
{
	struct enrolment *j = arg;
	struct store_device known;
	struct store_token t;
	uint8_t device[32];

	j->problem = check_token(db, j, &t);
	if (j->problem)
		return err_set(why, ERR_DENIED, "the token is not known");
	enum err e = find_known(db, j->device.spki, &known);
	bool is_known = !e;
	if (e && e != ERR_NOTFOUND)
		return e;
	bool repeats =
	    is_known && store_join_get(db, j->token.id, j->device.spki, device) == ERR_OK;
	e = is_known ? check_known(j, &known, repeats && t.suspended, why) : ERR_OK;
	if (e)
		return e;
	/* A repeat by the same key is answered even when the token is spent or expired since. */
	if (repeats && known.state != DEVICE_LEFT) {
		j->repeated = true;
		j->device = known;
		return issue_make(j->services, &j->device, true, &j->answer, why);
	}
	const char *text = spent(&t, j->now);
	if (text) {
		j->problem = PROBLEM_BAD_TOKEN;
		return err_set(why, ERR_DENIED, "the token %s", text);
	}
	e = admit(db, j, &t, is_known ? &known : NULL, why);
	if (!e)
		e = use_token(db, j, &t);
	if (!e)
		e = audit_join(db, j, why);
	return e ? e : issue_make(j->services, &j->device, true, &j->answer, why);
}

static bool
read_request(struct exchange *x, struct enrolment *j)
{
	struct join_request *q = malloc(sizeof(*q));
	struct health_report state = {.reason = WAIT_NONE};
	struct why why = {""};
	bool ok = false;

	if (!q) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return false;
	}
	if (!ready_to_issue(x->services, &state))
		exchange_problem(x, PROBLEM_UNAVAILABLE, "%s", state.detail);
	else if (!exchange_bearer(x, &j->token))
		exchange_problem(
		    x, PROBLEM_BAD_TOKEN, "Authorization: Bearer TOKEN is missing or malformed");
	else if (messages_join_decode(q, buf_str(&x->body), x->body.len, &why))
		exchange_problem(x, PROBLEM_BAD_MESSAGE, "%s", why.text);
	else if (x509_csr_check(q->csr, q->csr_len, j->device.spki, &why))
		exchange_problem(x, PROBLEM_BAD_CSR, "%s", why.text);
	else
		ok = true;
	if (ok) {
		key_id(j->device.id, j->device.spki);
		snprintf(j->device.name, sizeof(j->device.name), "%s", q->name);
		j->device.joined_at = j->now;
		if (!age_now(j->services->age, &j->device.key_at))
			j->device.key_at = 0;
		/* No backup has a key of it. */
		j->device.restored_key_at = HUGE_VAL;
		const struct services_ca *ca = shared_take(j->services->ca);
		j->device.ca_generation = ca->generation;
		shared_give(j->services->ca, ca);
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
	buf_init(&j->answer, ISSUE_ANSWER_MAX);
	j->now = clock_wall();
	j->services = x->services;
	j->peer = x->peer;
	if (!read_request(x, j))
		goto out;
	FAULT("join.begin");
	enum err e = store_write(x->services->store, enrol, j, &why);
	FAULT("join.committed");
	if (!e)
		e = registry_follow(x->services->registry, j->device.id);
	hex_encode(hex, j->device.id, 32);
	if (j->problem)
		exchange_problem(x, j->problem, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	else
		exchange_bytes(
		    x, j->repeated ? 200 : 201, "application/json", j->answer.data, j->answer.len);
	/* A repeat is free, and no reason to fill a disk. */
	if (!e &&
	    (!j->repeated || spent_log(x->services->spent, x->services->config, j->device.id, 0)))
		log_event(LOG_LEVEL_INFO, "device.joined", LOG_S("device", hex),
		    LOG_S("name", j->device.name), LOG_S("role", j->device.role),
		    LOG_S("state", states_device_name(j->device.state)), LOG_S("peer", x->peer),
		    LOG_S("repeat", j->repeated ? "yes" : "no"));
out:
	buf_deinit(&j->answer);
	hash_wipe(j, sizeof(*j));
	free(j);
}
