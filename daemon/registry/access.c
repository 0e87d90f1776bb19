#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "hex.h"
#include "registry_inside.h"

#define ACCESS_MAX 1000000

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

static enum err
make_room(struct registry *r)
{
	if (r->access_count == ACCESS_MAX)
		return ERR_LIMIT;
	if (r->access_count < r->access_room)
		return ERR_OK;
	size_t room = r->access_room ? r->access_room * 2 : 16;
	struct registry_access *access = realloc(r->access, room * sizeof(*access));
	if (!access)
		return ERR_NOMEM;
	r->access = access;
	r->access_room = room;
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
	/* Revoking is final, also when it overtakes the creation on its way here. */
	bool revoked = t->revoked;
	if (is_at(r, at, t->id)) {
		revoked |= r->access[at].revoked;
	} else {
		e = make_room(r);
		if (!e) {
			memmove(&r->access[at + 1], &r->access[at],
			    (r->access_count - at) * sizeof(*r->access));
			r->access_count++;
		}
	}
	if (!e) {
		struct registry_access *a = &r->access[at];
		memcpy(a->id, t->id, sizeof(a->id));
		memcpy(a->secret_hash, t->secret_hash, sizeof(a->secret_hash));
		a->role = registry_role(t->role) & (ROLE_READER | ROLE_SUBMITTER);
		a->expires_at = t->expires_at;
		a->revoked = revoked;
	}
	pthread_mutex_unlock(&r->lock);
	return e;
}

/* Whose jobs are this token's: no device id looks like it. */
static void
token_owner(uint8_t out[HASH_LEN], const uint8_t id[8])
{
	uint8_t text[5 + 8] = "token";

	memcpy(text + 5, id, 8);
	hash_sha256(out, text, sizeof(text));
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
			token_owner(who->owner, a->id);
		}
	}
	pthread_mutex_unlock(&r->lock);
}
