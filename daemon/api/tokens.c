#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "audit.h"
#include "clock.h"
#include "engine.h"
#include "err.h"
#include "hex.h"
#include "job.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "messages.h"
#include "registry.h"
#include "rng.h"
#include "server.h"
#include "services.h"
#include "services_ca.h"
#include "shared.h"
#include "store.h"

struct json *
api_labels_json(const char *text)
{
	struct json *v = NULL;

	if (text[0] && json_parse(&v, text, strlen(text), NULL) == ERR_OK)
		return v;
	return json_object();
}

/* A token as JSON, for the list and for the answer to its creation. */
static struct json *
token_json(struct registry *r, const struct store_token *t)
{
	struct registry_token_use use;
	struct json *v = json_object();
	char hex[17];

	hex_encode(hex, t->id, sizeof(t->id));
	json_add_string(v, "id", hex);
	json_add_string(v, "role", t->role);
	json_add(v, "labels", api_labels_json(t->labels));
	json_add_string(v, "name", t->name);
	json_add_string(v, "name_prefix", t->name_prefix);
	json_add_bool(v, "access", t->access);
	json_add_bool(v, "suspended", t->suspended);
	json_add_string(v, "owner", t->owner);
	if (registry_token_use(r, t->id, &use)) {
		json_add_double(v, "last_used", use.at);
		json_add_string(v, "last_address", use.address);
	}
	json_add_u64(v, "uses", t->uses);
	json_add_u64(v, "uses_left", t->uses_left);
	json_add_seconds(v, "created_at", t->created_at);
	json_add_seconds(v, "expires_at", t->expires_at);
	json_add_bool(v, "revoked", t->revoked);
	return v;
}

/* The tokens that are still to be listed. */
struct tokens_cursor {
	struct exchange *x;
	uint64_t after; /* row number of the last token that was listed */
	bool more;
};

/* Adds a token to the list. ERR_CLOSED: the token is left for the next piece. */
static enum err
add_token(void *ctx, const struct store_token *t)
{
	struct tokens_cursor *c = ctx;

	c->more = exchange_list_full(c->x);
	if (c->more)
		return ERR_CLOSED;
	exchange_looked(c->x, 1);
	exchange_list_add(c->x, token_json(c->x->services->registry, t));
	return ERR_OK;
}

static enum err
read_tokens(struct store_db *db, void *arg, struct why *why)
{
	struct tokens_cursor *c = arg;

	(void)why;
	c->more = false;
	enum err e = store_token_each(db, &c->after, add_token, c);
	return c->more ? ERR_OK : e;
}

static enum err
fill_tokens(struct exchange *x, void *cursor, struct why *why)
{
	struct tokens_cursor *c = cursor;
	enum err e = store_read(x->services->store, read_tokens, c, why);

	return !e && c->more ? ERR_AGAIN : e;
}

void
api_tokens_list(struct exchange *x)
{
	struct tokens_cursor *cursor = calloc(1, sizeof(*cursor));

	if (cursor)
		cursor->x = x;
	exchange_list(x, NULL, "tokens", fill_tokens, cursor);
}

/* A token to be written or revoked, and by whom. */
struct token_change {
	const struct services *services;
	char actor[EXCHANGE_ACTOR_MAX];
	struct store_token row;
};

static enum err
write_token(struct store_db *db, void *arg, struct why *why)
{
	const struct token_change *c = arg;

	enum err e = store_token_put(db, &c->row);
	return e ? e : audit_token(db, c->services, RECORD_TOKEN_CREATED, &c->row, c->actor, why);
}

static enum err
labels_text(const struct token_request *q, char out[STORE_LABELS_MAX])
{
	struct json *v = json_object();
	struct buf text;

	for (size_t i = 0; i < q->label_count; i++)
		json_add_string(v, q->labels[i].key, q->labels[i].value);
	buf_init(&text, STORE_LABELS_MAX - 1);
	enum err e = json_print(&text, v, false);
	if (!e)
		snprintf(out, STORE_LABELS_MAX, "%s", buf_str(&text));
	buf_deinit(&text);
	json_free(v);
	return e;
}

/* Makes a new token and its row, which has only the hash of the secret. */
static enum err
make_token(const struct services *s, const struct token_request *q, struct token *t,
    struct store_token *row)
{
	enum err e = labels_text(q, row->labels);

	if (!e)
		e = rng_bytes(t->id, sizeof(t->id));
	if (!e)
		e = rng_bytes(t->secret, sizeof(t->secret));
	if (e)
		return e;
	const struct services_ca *ca = shared_take(s->ca);
	memcpy(t->ca_hash, ca->hash, sizeof(t->ca_hash));
	shared_give(s->ca, ca);
	memcpy(row->id, t->id, sizeof(row->id));
	hash_sha256(row->secret_hash, t->secret, sizeof(t->secret));
	snprintf(row->role, sizeof(row->role), "%s", q->role);
	snprintf(row->name, sizeof(row->name), "%s", q->name);
	snprintf(row->name_prefix, sizeof(row->name_prefix), "%s", q->name_prefix);
	row->access = q->access;
	row->suspended = q->suspended;
	snprintf(row->owner, sizeof(row->owner), "%s", q->owner);
	row->uses = row->uses_left = q->access ? 0 : q->uses;
	row->created_at = clock_wall();
	row->expires_at = row->created_at + (double)q->expires_s;
	return ERR_OK;
}

static void
log_token(const char *event, const struct token_change *c)
{
	char hex[17];

	hex_encode(hex, c->row.id, sizeof(c->row.id));
	log_event(LOG_LEVEL_INFO, event, LOG_S("token", hex), LOG_S("role", c->row.role),
	    LOG_S("kind", c->row.access ? "access" : "join"), LOG_U("uses", c->row.uses),
	    LOG_S("by", c->actor));
}

void
api_tokens_create(struct exchange *x)
{
	struct token_change c = {.services = x->services};
	struct token_request q;
	struct why why = {""};
	struct token t;
	char text[TOKEN_TEXT_MAX];

	if (messages_token_decode(&q, buf_str(&x->body), x->body.len, &why)) {
		exchange_problem(x, PROBLEM_BAD_MESSAGE, "%s", why.text);
		return;
	}
	exchange_actor(x, c.actor);
	enum err e = make_token(x->services, &q, &t, &c.row);
	if (!e)
		e = store_write(x->services->store, write_token, &c, &why);
	if (!e)
		e = registry_put_token(x->services->registry, &c.row);
	if (e) {
		exchange_failed(x, e, &why);
	} else {
		struct json *v = token_json(x->services->registry, &c.row);
		messages_token_text(text, &t);
		json_add_string(v, "token", text);
		exchange_json(x, 201, v);
		log_token("token.created", &c);
	}
	hash_wipe(&t, sizeof(t));
	hash_wipe(text, sizeof(text));
}

static enum err
revoke_token(struct store_db *db, void *arg, struct why *why)
{
	struct token_change *c = arg;

	enum err e = store_token_get(db, c->row.id, &c->row);
	if (e)
		return e;
	c->row.revoked = true;
	e = store_token_put(db, &c->row);
	return e ? e : audit_token(db, c->services, RECORD_TOKEN_REVOKED, &c->row, c->actor, why);
}

/* Stops the jobs of the token's owner, whichever of the owner's tokens submitted them. */
static void
stop_jobs(struct exchange *x, const struct token_change *c)
{
	uint8_t owner[32];
	uint64_t stopped = 0;
	struct why why = {""};

	enum err e = registry_token_owner(x->services->registry, c->row.id, owner)
	    ? engine_stop_of(x->services->engine, owner, c->actor, &stopped, &why)
	    : ERR_OK;
	if (e) {
		exchange_failed(x, e, &why);
		return;
	}
	struct json *v = json_object();
	json_add_u64(v, "stopped", stopped);
	exchange_json(x, 200, v);
}

void
api_token_revoke(struct exchange *x)
{
	struct token_change c = {.services = x->services};
	struct why why = {""};
	bool stop;

	if (!exchange_flag(x, "stop-jobs", &stop))
		return;
	exchange_actor(x, c.actor);
	enum err e = hex_decode(c.row.id, sizeof(c.row.id), x->param[0], strlen(x->param[0]))
	    ? store_write_reserved(x->services->store, revoke_token, NULL, &c, &why)
	    : ERR_NOTFOUND;
	if (!e)
		e = registry_put_token(x->services->registry, &c.row);
	if (e) {
		exchange_failed(x, e, &why);
		return;
	}
	/* An upload or a long poll by this token ends too. */
	server_check(x->services->server);
	log_token("token.revoked", &c);
	if (stop)
		stop_jobs(x, &c);
	else
		exchange_status(x, 204);
}
