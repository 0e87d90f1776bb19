#include <stdio.h>
#include <string.h>

#include "age.h"
#include "audit.h"
#include "claim.h"
#include "err.h"
#include "hex.h"
#include "json.h"
#include "log.h"
#include "registry.h"
#include "server.h"
#include "services.h"
#include "store.h"

#define ASKED_MIN 8 /* digits */

struct rekey {
	const struct services *services;
	char actor[EXCHANGE_ACTOR_MAX];
	uint8_t id[HASH_LEN];
	const char *asked; /* the beginning of a fingerprint; NULL: the only newer key */
	double now; /* 0: the clock is doubted */
	struct store_claim claims[CLAIM_MAX];
	size_t count;
	struct store_device row;
	bool changed; /* the key */
};

static enum err
collect(void *ctx, const struct store_claim *c)
{
	struct rekey *r = ctx;

	if (r->count < CLAIM_MAX)
		r->claims[r->count++] = *c;
	return ERR_OK;
}

static void
print_key(const uint8_t spki[KEY_SPKI_LEN], char out[KEY_ID_HEX])
{
	uint8_t id[HASH_LEN];

	key_id(id, spki);
	hex_encode(out, id, HASH_LEN);
}

/* --- deciding */

static bool
is_asked(const struct rekey *r, const uint8_t spki[KEY_SPKI_LEN])
{
	char hex[KEY_ID_HEX];

	print_key(spki, hex);
	return strncmp(hex, r->asked, strlen(r->asked)) == 0;
}

/* *chosen: the claim that the administrator has chosen; NULL: the present key. */
static enum err
choose(const struct rekey *r, const struct store_claim **chosen, struct why *why)
{
	size_t found = 0;

	*chosen = NULL;
	if (!r->asked && r->count == 1) {
		*chosen = &r->claims[0];
		return ERR_OK;
	}
	if (!r->asked)
		return err_set(why, ERR_STATE,
		    "several keys claim to be the device's: \"rivulet device show\" lists them; "
		    "name one");
	bool present = is_asked(r, r->row.spki);
	found += present;
	for (size_t i = 0; i < r->count; i++) {
		if (hash_equal(r->claims[i].spki, r->row.spki, KEY_SPKI_LEN) ||
		    !is_asked(r, r->claims[i].spki))
			continue;
		*chosen = &r->claims[i];
		found++;
	}
	if (found == 1)
		return ERR_OK;
	return err_set(why, ERR_STATE,
	    found ? "several keys of the device begin so" : "no key of the device begins so");
}

/* Puts the other claiming keys on record as retired keys, so that they are refused as such from now on. */
static enum err
retire_others(struct store_db *db, const struct rekey *r)
{
	uint8_t key[HASH_LEN];
	enum err e = ERR_OK;

	for (size_t i = 0; i < r->count && !e; i++) {
		if (hash_equal(r->claims[i].spki, r->row.spki, KEY_SPKI_LEN))
			continue;
		key_id(key, r->claims[i].spki);
		e = store_key_put(db, key, r->row.id);
		e = e == ERR_EXISTS ? ERR_OK : e;
		if (!e)
			e = store_key_retire(db, key, r->now);
	}
	return e ? e : store_claim_clear(db, r->row.id);
}

static enum err
write_rekey(struct store_db *db, void *arg, struct why *why)
{
	struct rekey *r = arg;
	const struct store_claim *chosen = NULL;

	enum err e = store_device_get(db, r->id, &r->row);
	if (e)
		return e;
	if (r->row.state != DEVICE_SUSPENDED || r->row.claim != CLAIM_CONTESTED)
		return err_set(why, ERR_STATE,
		    "no other key claims to be the device's: it is %s and keeps its key",
		    states_device_name(r->row.state));
	r->count = 0;
	e = store_claim_each(db, r->id, collect, r);
	if (!e)
		e = choose(r, &chosen, why);
	if (!e && chosen && !hash_equal(chosen->spki, r->row.spki, KEY_SPKI_LEN)) {
		r->changed = true;
		e = claim_replace(db, &r->row, chosen->spki, chosen->issued_at);
	}
	r->row.state = DEVICE_ACTIVE;
	r->row.claim = CLAIM_SETTLED;
	if (!e)
		e = store_device_put(db, &r->row);
	if (!e)
		e = retire_others(db, r);
	return e ? e : claim_audit(db, r->services, &r->row, r->actor, why);
}

static void
answer(struct exchange *x, const struct rekey *r)
{
	char hex[KEY_ID_HEX], key[KEY_ID_HEX];
	struct json *v = json_object();

	hex_encode(hex, r->id, HASH_LEN);
	print_key(r->row.spki, key);
	json_add_string(v, "device", hex);
	json_add_string(v, "name", r->row.name);
	json_add_string(v, "state", states_device_name(r->row.state));
	json_add_string(v, "key", key);
	json_add_bool(v, "changed", r->changed);
	exchange_json(x, 200, v);
	log_event(LOG_LEVEL_INFO, "device.rekeyed", LOG_S("device", hex),
	    LOG_S("name", r->row.name), LOG_S("key", key), LOG_S("by", r->actor));
}

static bool
find(struct exchange *x, struct rekey *r)
{
	struct registry_view view;

	enum err e = registry_find(x->services->registry, x->param[0], &view);
	if (e)
		exchange_problem(x, PROBLEM_NOT_FOUND,
		    e == ERR_EXISTS ? "several devices have this name; use the id"
				    : "no such device");
	else
		memcpy(r->id, view.row.id, sizeof(r->id));
	return !e;
}

void
claim_rekey(struct exchange *x)
{
	const struct services *s = x->services;
	struct rekey r = {.services = s, .asked = x->param[1][0] ? x->param[1] : NULL};
	struct why why = {""};

	if (r.asked &&
	    (strlen(r.asked) < ASKED_MIN ||
		strspn(r.asked, "0123456789abcdef") != strlen(r.asked))) {
		exchange_problem(x, PROBLEM_BAD_MESSAGE,
		    "a key is named by %d to 64 digits of its fingerprint", ASKED_MIN);
		return;
	}
	if (!find(x, &r))
		return;
	exchange_actor(x, r.actor);
	if (!age_now(s->age, &r.now))
		r.now = 0;
	enum err e = store_write_reserved(s->store, write_rekey, NULL, &r, &why);
	if (!e)
		e = registry_follow(s->registry, r.id);
	if (!e)
		server_forget(s->server);
	if (!e && r.changed)
		registry_forget_machines(s->registry, r.id);
	if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_WRONG_STATE, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	else
		answer(x, &r);
}

/* --- what is shown */

static enum err
read_claims(struct store_db *db, void *arg, struct why *why)
{
	struct rekey *r = arg;

	(void)why;
	return store_claim_each(db, r->id, collect, r);
}

void
claim_describe(struct json *v, const struct services *s, const struct store_device *row)
{
	struct rekey r = {.count = 0};
	struct json *list = json_array();
	char hex[KEY_ID_HEX];

	memcpy(r.id, row->id, sizeof(r.id));
	print_key(row->spki, hex);
	json_add_string(v, "key", hex);
	if (row->claim == CLAIM_CONTESTED)
		(void)!store_read(s->store, read_claims, &r, NULL);
	for (size_t i = 0; i < r.count; i++) {
		struct json *c = json_object();
		print_key(r.claims[i].spki, hex);
		json_add_string(c, "key", hex);
		json_add_seconds(c, "issued_at", r.claims[i].issued_at);
		json_push(list, c);
	}
	json_add(v, "claims", list);
}
