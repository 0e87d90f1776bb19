#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "api.h"
#include "audit.h"
#include "clock.h"
#include "fault.h"
#include "hex.h"
#include "issue.h"
#include "json.h"
#include "log.h"
#include "messages.h"
#include "registry.h"
#include "server.h"
#include "services.h"
#include "shared.h"
#include "store.h"
#include "tasks.h"
#include "x509.h"

#define ROTATIONS 3 /* at will */
#define RENEWALS_LOGGED 3600 /* seconds */

/* What a device does with its own identity: renew, rotate, leave. Each needs a certificate. */

static bool
is_certified(struct exchange *x)
{
	if (x->who.has_cert)
		return true;
	exchange_problem(
	    x, PROBLEM_NO_CERTIFICATE, "an identity is renewed by its own certificate");
	return false;
}

static void
log_identity(const struct exchange *x, const char *event, const struct store_device *d)
{
	char hex[65];

	hex_encode(hex, d->id, 32);
	log_event(LOG_LEVEL_INFO, event, LOG_S("device", hex), LOG_S("name", d->name),
	    LOG_S("peer", x->peer));
}

/* --- renew: the same key, and nothing in the registry changes. A device that renews on and on is logged once. */

/* A renewal is due after two thirds of a certificate's life. */
static uint64_t
repeat_seconds(const struct services *s)
{
	const struct config *c = shared_take(s->config);
	uint64_t third = c->device_validity_s / 3;

	shared_give(s->config, c);
	return third < RENEWALS_LOGGED ? third : RENEWALS_LOGGED;
}

void
api_renew(struct exchange *x)
{
	struct registry_view view;

	if (!is_certified(x))
		return;
	if (registry_get(x->services->registry, x->who.device, &view)) {
		exchange_problem(x, PROBLEM_UNKNOWN_DEVICE, "no such device");
		return;
	}
	issue_answer(x, &view.row, false, 200);
	if (x->response.status == 200 &&
	    registry_note_renewal(
		x->services->registry, x->who.device, repeat_seconds(x->services)))
		log_identity(x, "device.renewed", &view.row);
}

/* --- rotate */

struct rotation {
	const struct services *services;
	const char *peer;
	const uint8_t *device, *old; /* the device that asks, and its present key */
	uint8_t spki[KEY_SPKI_LEN]; /* the new key */
	struct store_device row;
	enum problem_type problem;
	uint32_t wait_s; /* of too-many-requests */
	bool changed;
	struct store_pruning pruned;
};

static enum err
refuse(struct rotation *r, enum problem_type problem, struct why *why, const char *text)
{
	r->problem = problem;
	return err_set(why, ERR_DENIED, "%s", text);
}

static enum err
audit_rotation(struct store_db *db, const struct rotation *r, struct why *why)
{
	char key[2 * KEY_SPKI_LEN + 1];
	struct json *detail = json_object();

	hex_encode(key, r->row.spki, sizeof(r->row.spki));
	json_add_string(detail, "key", key);
	json_add_string(detail, "peer", r->peer);
	return audit_append(db, r->services,
	    &(struct audit_event){
		.event = RECORD_DEVICE_ROTATED, .device = r->row.id, .detail = detail},
	    why);
}

/* Limits rotations, because each leaves an audit entry for good and a key for long: a few at once, then one every rotate_every. */
static enum err
charge(struct rotation *r, struct why *why)
{
	const struct config *c = shared_take(r->services->config);
	double now = clock_wall(), every = (double)c->rotate_every_s;

	shared_give(r->services->config, c);
	/* It is no later than that, unless a clock was wrong: then nobody knows, and it begins anew. */
	const double latest = now + ROTATIONS * every;
	double at = r->row.rotations_at > latest ? now : fmax(r->row.rotations_at, now);
	double wait = at - now - (ROTATIONS - 1) * every;
	if (wait > 0) {
		r->wait_s = (uint32_t)ceil(wait);
		r->problem = PROBLEM_TOO_MANY_REQUESTS;
		return err_set(why, ERR_DENIED,
		    "%d new keys are taken at will, then one in %.0f s: ask again in %u s",
		    ROTATIONS, every, r->wait_s);
	}
	r->row.rotations_at = at + every;
	return ERR_OK;
}

/* Unix seconds; 0 while the clock is doubted. */
static double
known_time(const struct services *s)
{
	double now;

	return age_now(s->age, &now) ? now : 0;
}

/* Replaces the device's key. The key before its present one may do nothing from now on, and is deleted once no manifest needs it. */
static enum err
replace_key(struct store_db *db, struct rotation *r, const uint8_t key[HASH_LEN])
{
	struct store_pruning *p = &r->pruned;
	uint8_t retired[HASH_LEN];

	key_id(retired, r->row.previous);
	memcpy(r->row.previous, r->row.spki, KEY_SPKI_LEN);
	memcpy(r->row.spki, r->spki, KEY_SPKI_LEN);
	memcpy(p->device, r->row.id, sizeof(p->device));
	memcpy(p->present, key, sizeof(p->present));
	key_id(p->previous, r->row.previous);
	r->row.key_at = known_time(r->services);
	double restored_at = 0;
	enum err e = store_key_put(db, key, r->row.id);
	if (!e)
		e = store_key_retire(db, retired, r->row.key_at);
	if (!e)
		e = store_restored_at(db, &restored_at);
	/* One that was retired since must not look like one that the backup did not know. */
	return e || restored_at != 0 ? e : store_key_prune(db, p);
}

/* Rotates in a transaction. Registry and certificate were checked before, but rows decide, as another request may have come in between. */
static enum err
rotate(struct store_db *db, void *arg, struct why *why)
{
	struct rotation *r = arg;
	struct store_device other;
	uint8_t key[HASH_LEN], owner[HASH_LEN];

	enum err e = store_device_get(db, r->device, &r->row);
	if (e)
		return e;
	if (r->row.state != DEVICE_ACTIVE)
		return refuse(
		    r, registry_state_problem(r->row.state), why, "the device is not active");
	/* Done already: the answer was lost, or the new key asks for itself. */
	if (hash_equal(r->row.spki, r->spki, KEY_SPKI_LEN))
		return ERR_OK;
	if (!hash_equal(r->row.spki, r->old, KEY_SPKI_LEN))
		return refuse(r, PROBLEM_KEY_ROTATED, why, "the key was replaced by another one");
	key_id(key, r->spki);
	if (store_device_get(db, key, &other) != ERR_NOTFOUND ||
	    store_key_get(db, key, owner) != ERR_NOTFOUND)
		return refuse(r, PROBLEM_KEY_IN_USE, why, "rotate to a key that was never used");
	e = charge(r, why);
	if (e)
		return e;
	r->changed = true;
	e = replace_key(db, r, key);
	if (!e)
		e = store_device_put(db, &r->row);
	return e ? e : audit_rotation(db, r, why);
}

static bool
read_new_key(struct exchange *x, struct rotation *r)
{
	struct join_request *q = malloc(sizeof(*q));
	struct why why = {""};
	bool ok = false;

	if (!q)
		exchange_failed(x, ERR_NOMEM, NULL);
	else if (messages_join_decode(q, buf_str(&x->body), x->body.len, &why))
		exchange_problem(x, PROBLEM_BAD_MESSAGE, "%s", why.text);
	else if (x509_csr_check(q->csr, q->csr_len, r->spki, &why))
		exchange_problem(x, PROBLEM_BAD_CSR, "%s", why.text);
	else
		ok = true;
	free(q);
	return ok;
}

void
api_rotate(struct exchange *x)
{
	struct rotation r = {
	    .services = x->services, .peer = x->peer, .device = x->who.device, .old = x->who.spki};
	struct why why = {""};

	if (!is_certified(x) || !read_new_key(x, &r))
		return;
	enum err e = store_write(x->services->store, rotate, &r, &why);
	FAULT("member.rotated");
	if (!e)
		e = registry_follow(x->services->registry, r.row.id);
	for (size_t i = 0; !e && i < r.pruned.count; i++)
		registry_drop_key(x->services->registry, r.pruned.gone[i]);
	if (r.problem) {
		x->retry_after_s = r.wait_s;
		exchange_problem(x, r.problem, "%s", why.text);
	} else if (e) {
		exchange_failed(x, e, &why);
	} else {
		issue_answer(x, &r.row, false, r.changed ? 201 : 200);
		if (!r.changed)
			return;
		registry_forget_machines(x->services->registry, r.row.id);
		log_identity(x, "device.rotated", &r.row);
	}
}

/* --- leave */

struct leaving {
	const struct services *services;
	const char *peer;
	const uint8_t *device;
	struct store_device row;
};

static enum err
leave(struct store_db *db, void *arg, struct why *why)
{
	struct leaving *l = arg;
	enum err e = store_device_get(db, l->device, &l->row);

	if (e)
		return e;
	/* Suspended or revoked meanwhile: leaving would take that away. */
	if (l->row.state != DEVICE_ACTIVE)
		return ERR_OK;
	l->row.state = DEVICE_LEFT;
	e = store_device_put(db, &l->row);
	if (e)
		return e;
	struct json *detail = json_object();
	json_add_string(detail, "peer", l->peer);
	return audit_append(db, l->services,
	    &(struct audit_event){
		.event = RECORD_DEVICE_LEFT, .device = l->row.id, .detail = detail},
	    why);
}

void
api_leave(struct exchange *x)
{
	struct leaving l = {.services = x->services, .peer = x->peer, .device = x->who.device};
	struct why why = {""};

	if (!is_certified(x))
		return;
	enum err e = store_write(x->services->store, leave, &l, &why);
	FAULT("member.left");
	if (!e)
		e = registry_follow(x->services->registry, l.row.id);
	if (e) {
		exchange_failed(x, e, &why);
		return;
	}
	server_forget(x->services->server);
	if (l.row.state == DEVICE_LEFT)
		tasks_device_gone(x->services->engine, l.row.id, states_device_name(l.row.state));
	log_identity(x, "device.left", &l.row);
	exchange_status(x, 204);
}
