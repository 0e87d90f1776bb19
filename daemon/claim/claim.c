#include "claim.h"

#include <math.h>
#include <string.h>

#include "age.h"
#include "audit.h"
#include "err.h"
#include "hex.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "registry.h"
#include "server.h"
#include "services.h"
#include "store.h"

#define AHEAD_S 60 /* a certificate may be so much newer than the clock */

struct claim {
	const struct services *services;
	const struct identity *who;
	const char *peer;
	bool used; /* the backup's key, as the registry knows it */
	bool believed; /* the clock, which says */
	double now;
	/* results */
	struct store_device row;
	enum problem_type problem;
	bool taken;
	const char *contested; /* why; NULL: it is not, or was before */
};

enum err
claim_replace(struct store_db *db, struct store_device *row, const uint8_t spki[KEY_SPKI_LEN],
    double issued_at)
{
	uint8_t key[HASH_LEN], retired[HASH_LEN];

	key_id(key, spki);
	key_id(retired, row->previous);
	memcpy(row->previous, row->spki, KEY_SPKI_LEN);
	memcpy(row->spki, spki, KEY_SPKI_LEN);
	row->key_at = issued_at;
	enum err e = store_key_put(db, key, row->id);
	/* It was noted before. */
	if (e == ERR_EXISTS)
		e = ERR_OK;
	return e ? e : store_key_retire(db, retired, issued_at);
}

enum err
claim_audit(struct store_db *db, const struct services *s, const struct store_device *row,
    const char *by, struct why *why)
{
	char key[2 * KEY_SPKI_LEN + 1];
	struct json *detail = json_object();

	hex_encode(key, row->spki, sizeof(row->spki));
	json_add_string(detail, "key", key);
	json_add_string(detail, "by", by);
	return audit_append(db, s,
	    &(struct audit_event){
		.event = RECORD_DEVICE_ROTATED, .device = row->id, .detail = detail},
	    why);
}

/* --- deciding, on the store thread */

static enum err
count_one(void *ctx, const struct store_claim *c)
{
	(void)c;
	++*(unsigned *)ctx;
	return ERR_OK;
}

/* Notes a key that claims to be the device's, for the administrator who decides. */
static enum err
note(struct store_db *db, const struct claim *c)
{
	struct store_claim row = {.issued_at = (double)c->who->issued_at};
	unsigned count = 0;

	memcpy(row.device, c->who->device, sizeof(row.device));
	memcpy(row.spki, c->who->spki, sizeof(row.spki));
	enum err e = store_claim_each(db, row.device, count_one, &count);
	return e || count >= CLAIM_MAX ? e : store_claim_put(db, &row);
}

static enum err
take(struct store_db *db, struct claim *c, struct why *why)
{
	c->row.claim = CLAIM_TAKEN;
	c->taken = true;
	enum err e = claim_replace(db, &c->row, c->who->spki, (double)c->who->issued_at);
	if (!e)
		e = store_device_put(db, &c->row);
	if (!e)
		e = note(db, c);
	return e ? e : claim_audit(db, c->services, &c->row, "certificate", why);
}

static enum err
contest(struct store_db *db, struct claim *c, const char *text, struct why *why)
{
	struct json *detail = json_object();

	c->contested = text;
	c->row.state = DEVICE_SUSPENDED;
	c->row.claim = CLAIM_CONTESTED;
	json_add_string(detail, "by", "coordinator");
	json_add_string(detail, "why", text);
	enum err e = store_device_put(db, &c->row);
	if (!e)
		e = note(db, c);
	if (!e)
		return audit_append(db, c->services,
		    &(struct audit_event){
			.event = RECORD_DEVICE_SUSPENDED, .device = c->row.id, .detail = detail},
		    why);
	json_free(detail);
	return e;
}

/* Why an administrator has to decide; NULL: nobody has to. */
static const char *
doubt(const struct claim *c)
{
	if ((double)c->who->issued_at > c->now + AHEAD_S)
		return "the certificate of another key of this device is of a time to come";
	if (c->row.restored_key_at == 0)
		return "another key of this device was shown, and nobody knows how old the "
		       "backup's is";
	if (c->used || c->row.claim == CLAIM_USED)
		return "a newer key of this device was shown after the backup's was used";
	if (c->row.claim == CLAIM_TAKEN)
		return "two keys of this device are newer than the backup's";
	return NULL;
}

/* Was the certificate issued between the backup and the restore, so that the backup does not know it? A date in the future may be, too. */
static bool
fits(const struct claim *c, double restored_at)
{
	const double issued = (double)c->who->issued_at;

	return (c->row.restored_key_at == 0 || issued >= floor(c->row.restored_key_at)) &&
	    (issued < restored_at || issued > c->now + AHEAD_S);
}

/* *known: another request has put the key on record meanwhile; then the registry reads the row, and the request is routed again. */
static enum err
is_known(struct store_db *db, const struct claim *c, bool *known)
{
	uint8_t key[HASH_LEN], owner[HASH_LEN];
	struct store_device other;

	key_id(key, c->who->spki);
	enum err e = store_key_get(db, key, owner);
	if (e == ERR_NOTFOUND)
		e = store_device_get(db, key, &other);
	*known = !e;
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

static enum err
decide(struct store_db *db, void *arg, struct why *why)
{
	struct claim *c = arg;
	double restored_at = 0;
	bool known = false;

	enum err e = store_device_get(db, c->who->device, &c->row);
	if (!e)
		e = is_known(db, c, &known);
	if (!e)
		e = store_restored_at(db, &restored_at);
	if (e || known)
		return e;
	if (c->row.claim == CLAIM_CONTESTED)
		return note(db, c);
	c->problem =
	    c->row.state == DEVICE_ACTIVE ? PROBLEM_NONE : registry_state_problem(c->row.state);
	if (c->problem)
		return ERR_OK;
	if (isnan(restored_at) || !c->believed)
		c->problem = PROBLEM_UNAVAILABLE;
	else if (restored_at == 0 || c->row.claim == CLAIM_SETTLED || !fits(c, restored_at))
		c->problem = PROBLEM_UNKNOWN_DEVICE;
	if (c->problem)
		return ERR_OK;
	const char *text = doubt(c);
	return text ? contest(db, c, text, why) : take(db, c, why);
}

/* --- the request */

static void
tell(const struct claim *c)
{
	char hex[2 * HASH_LEN + 1], key[2 * HASH_LEN + 1];
	uint8_t id[HASH_LEN];

	hex_encode(hex, c->who->device, HASH_LEN);
	key_id(id, c->who->spki);
	hex_encode(key, id, HASH_LEN);
	if (c->taken)
		log_event(LOG_LEVEL_INFO, "device.rotated", LOG_S("device", hex),
		    LOG_S("name", c->row.name), LOG_S("peer", c->peer), LOG_S("key", key),
		    LOG_S("why", "its certificate is newer than the restored backup"));
	else if (c->contested)
		log_event(LOG_LEVEL_ERROR, "device.contested", LOG_S("device", hex),
		    LOG_S("name", c->row.name), LOG_S("peer", c->peer), LOG_S("key", key),
		    LOG_S("why", c->contested),
		    LOG_S("todo", "\"rivulet device rekey\" says which key is its own"));
}

static const char *
explain(enum problem_type problem)
{
	return problem == PROBLEM_UNAVAILABLE
	    ? "this coordinator was restored from a backup, and its clock is in doubt: \"rivulet "
	      "clock confirm\" there"
	    : problem == PROBLEM_UNKNOWN_DEVICE
	    ? "this coordinator does not know the key, and its certificate is not newer than the "
	      "backup that it was restored from"
	    : "the device may not do that";
}

static void
begin(struct exchange *x)
{
	const struct services *s = x->services;
	struct claim c = {.services = s, .who = &x->who, .peer = x->peer};
	struct why why = {""};

	if (!registry_claim_begin(s->registry, x->who.device, &c.used)) {
		exchange_problem(x, PROBLEM_UNAVAILABLE, "another key of the device asks now");
		return;
	}
	c.believed = age_now(s->age, &c.now);
	enum err e = store_write(s->store, decide, &c, &why);
	if (!e)
		e = registry_follow(s->registry, x->who.device);
	registry_claim_end(
	    s->registry, x->who.device, x->who.spki, e || c.problem == PROBLEM_UNAVAILABLE);
	if (!e && (c.taken || c.contested))
		server_forget(s->server);
	if (!e && c.taken)
		registry_forget_machines(s->registry, x->who.device);
	if (!e)
		tell(&c);
	if (e)
		exchange_failed(x, e, &why);
	else if (c.problem)
		exchange_problem(x, c.problem, "%s", explain(c.problem));
	else
		x->again = true;
}

static enum err
refuse_data(struct exchange *x, const void *p, size_t len)
{
	(void)x, (void)p, (void)len;
	return ERR_STATE;
}

static void
drop(struct exchange *x)
{
	(void)x;
}

const struct stream_ops claim_stream = {
    .begin = begin, .data = refuse_data, .finish = exchange_done, .drop = drop};
