#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "clock.h"
#include "hex.h"
#include "registry.h"
#include "registry_inside.h"
#include "store.h"

#define ACCESS_MAX 1000000
#define BATCH 64 /* rows in one transaction */

/* Access tokens by id in memory: they are looked at on I/O threads, where nobody waits for the store. */
static size_t
access_at(const struct registry *r, const uint8_t id[8])
{
	return bytes_place(r->access, r->access_count, sizeof(*r->access), id, 8);
}

static bool
is_at(const struct registry *r, size_t at, const uint8_t id[8])
{
	return at < r->access_count && memcmp(r->access[at].id, id, 8) == 0;
}

/* out: the owner of the token's jobs, the same for all tokens of a named owner. No device id is equal to it. */
static void
owner_of(const struct store_token *t, uint8_t out[HASH_LEN])
{
	uint8_t text[5 + sizeof(t->owner)];
	struct bytes_writer w = bytes_writer(text, sizeof(text));
	size_t len = strlen(t->owner);

	bytes_put(&w, len > 0 ? "owner" : "token", 5);
	if (len > 0)
		bytes_put(&w, t->owner, len);
	else
		bytes_put(&w, t->id, sizeof(t->id));
	hash_sha256(out, text, (size_t)(w.p - text));
}

/* Notes the name of the owner of a token. Lock held. */
static enum err
name_owner(struct registry *r, const uint8_t id[32], const struct store_token *t)
{
	size_t at = bytes_place(r->owners, r->owner_count, sizeof(*r->owners), id, 32);
	char hex[17];

	if (at < r->owner_count && memcmp(r->owners[at].id, id, 32) == 0)
		return ERR_OK;
	struct registry_owner *owners =
	    bytes_grow(r->owners, r->owner_count, &r->owner_room, sizeof(*owners));
	if (!owners)
		return ERR_NOMEM;
	r->owners = owners;
	struct registry_owner *o = &r->owners[at];
	memmove(o + 1, o, (r->owner_count++ - at) * sizeof(*o));
	memcpy(o->id, id, sizeof(o->id));
	hex_encode(hex, t->id, sizeof(t->id));
	if (t->owner[0])
		memcpy(o->name, t->owner, sizeof(o->name));
	else
		snprintf(o->name, sizeof(o->name), "token:%s", hex);
	return ERR_OK;
}

void
registry_owner_name(struct registry *r, const uint8_t owner[32], char out[64])
{
	out[0] = '\0';
	pthread_mutex_lock(&r->lock);
	size_t at = bytes_place(r->owners, r->owner_count, sizeof(*r->owners), owner, 32);
	const struct device *d = registry_device(r, owner);
	if (at < r->owner_count && memcmp(r->owners[at].id, owner, 32) == 0)
		memcpy(out, r->owners[at].name, sizeof(r->owners[at].name));
	else if (d)
		snprintf(out, 64, "%s", d->view.row.name);
	pthread_mutex_unlock(&r->lock);
}

static enum err
make_room(struct registry *r)
{
	if (r->access_count == ACCESS_MAX)
		return ERR_LIMIT;
	struct registry_access *access =
	    bytes_grow(r->access, r->access_count, &r->access_room, sizeof(*access));
	if (!access)
		return ERR_NOMEM;
	r->access = access;
	return ERR_OK;
}

enum err
registry_put_token(struct registry *r, const struct store_token *t)
{
	enum err e = ERR_OK;

	if (!t->access)
		return ERR_OK;
	pthread_mutex_lock(&r->lock);
	size_t at = access_at(r, t->id);
	uint8_t owner[HASH_LEN];
	owner_of(t, owner);
	/* Revoking is final, also when it overtakes the creation on its way here. */
	bool revoked = t->revoked;
	if (is_at(r, at, t->id)) {
		revoked |= r->access[at].revoked;
	} else {
		e = make_room(r);
		if (!e)
			e = name_owner(r, owner, t);
		if (!e) {
			memmove(&r->access[at + 1], &r->access[at],
			    (r->access_count - at) * sizeof(*r->access));
			r->access[at] = (struct registry_access){.use.at = t->last_used};
			memcpy(r->access[at].use.address, t->last_address,
			    sizeof(r->access[at].use.address));
			r->access_count++;
		}
	}
	if (!e) {
		struct registry_access *a = &r->access[at];
		memcpy(a->id, t->id, sizeof(a->id));
		memcpy(a->secret_hash, t->secret_hash, sizeof(a->secret_hash));
		a->role = registry_role(t->role) & (ROLE_READER | ROLE_SUBMITTER | ROLE_METRICS);
		a->expires_at = t->expires_at;
		a->revoked = revoked;
		memcpy(a->owner, owner, sizeof(a->owner));
		memcpy(a->owner_name, t->owner, sizeof(a->owner_name));
	}
	pthread_mutex_unlock(&r->lock);
	return e;
}

void
registry_identify_token(struct registry *r, const struct token *t, double now, struct identity *who)
{
	uint8_t digest[HASH_LEN];

	who->problem = PROBLEM_BAD_TOKEN;
	hash_sha256(digest, t->secret, sizeof(t->secret));
	pthread_mutex_lock(&r->lock);
	size_t at = access_at(r, t->id);
	if (is_at(r, at, t->id)) {
		const struct registry_access *a = &r->access[at];
		if (hash_equal(digest, a->secret_hash, HASH_LEN) && !a->revoked &&
		    now <= a->expires_at) {
			who->problem = PROBLEM_NONE;
			who->roles |= a->role;
			who->by_token = true;
			memcpy(who->token, a->id, sizeof(who->token));
			memcpy(who->owner, a->owner, sizeof(who->owner));
			memcpy(who->owner_name, a->owner_name, sizeof(who->owner_name));
		}
	}
	pthread_mutex_unlock(&r->lock);
}

void
registry_token_used(struct registry *r, const uint8_t id[8], const char *address)
{
	pthread_mutex_lock(&r->lock);
	size_t at = access_at(r, id);
	if (is_at(r, at, id)) {
		struct registry_access *a = &r->access[at];
		a->use.at = clock_wall();
		snprintf(a->use.address, sizeof(a->use.address), "%s", address);
		a->unsaved = true;
	}
	pthread_mutex_unlock(&r->lock);
}

bool
registry_token_use(struct registry *r, const uint8_t id[8], struct registry_token_use *out)
{
	pthread_mutex_lock(&r->lock);
	size_t at = access_at(r, id);
	bool used = is_at(r, at, id) && r->access[at].use.at > 0;
	if (used)
		*out = r->access[at].use;
	pthread_mutex_unlock(&r->lock);
	return used;
}

bool
registry_token_owner(struct registry *r, const uint8_t id[8], uint8_t owner[32])
{
	pthread_mutex_lock(&r->lock);
	size_t at = access_at(r, id);
	bool found = is_at(r, at, id);
	if (found)
		memcpy(owner, r->access[at].owner, 32);
	pthread_mutex_unlock(&r->lock);
	return found;
}

/* --- uses, to the database */

struct uses {
	size_t count;
	struct {
		uint8_t id[8];
		struct registry_token_use use;
	} rows[BATCH];
};

static enum err
write_uses(struct store_db *db, void *arg, struct why *why)
{
	const struct uses *u = arg;
	enum err e = ERR_OK;

	(void)why;
	for (size_t i = 0; i < u->count && !e; i++)
		e = store_token_used(db, u->rows[i].id, u->rows[i].use.at, u->rows[i].use.address);
	return e;
}

/* Takes a batch of unsaved uses from index *at on; false: none was left. */
static bool
collect(struct registry *r, size_t *at, struct uses *u)
{
	u->count = 0;
	pthread_mutex_lock(&r->lock);
	for (; *at < r->access_count && u->count < BATCH; ++*at) {
		struct registry_access *a = &r->access[*at];
		if (!a->unsaved)
			continue;
		a->unsaved = false;
		memcpy(u->rows[u->count].id, a->id, sizeof(a->id));
		u->rows[u->count++].use = a->use;
	}
	pthread_mutex_unlock(&r->lock);
	return u->count > 0;
}

void
registry_flush_tokens(struct registry *r, struct store *store)
{
	size_t at = 0;

	for (;;) {
		struct uses *u = malloc(sizeof(*u));
		if (!u)
			return;
		if (!collect(r, &at, u) ||
		    store_submit(store, write_uses, registry_seen_written, u)) {
			free(u);
			return;
		}
	}
}
