#include "audit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "audit_rows.h"
#include "buf.h"
#include "clock.h"
#include "config.h"
#include "err.h"
#include "hex.h"
#include "json.h"
#include "log.h"
#include "record.h"
#include "rng.h"
#include "row.h"
#include "services.h"
#include "shared.h"
#include "sign.h"
#include "store.h"

/* --- one entry */

/* An entry being made: its row, and its details, which refer to it. */
struct entry {
	struct store_db *db;
	struct store_audit row;
	struct json *body, *hashes;
	struct buf text; /* of the first detail */
	struct store_detail *details;
	size_t count;
};

/* Follows the last entry of this transaction's view: a savepoint that was undone left none behind. */
static enum err
start(struct entry *n, struct record *r, struct why *why)
{
	uint8_t last[RECORD_LEN];
	struct record before;

	enum err e = store_audit_last(n->db, last);
	if (e == ERR_NOTFOUND) {
		r->seq = 1;
		return ERR_OK;
	}
	if (!e && record_decode(&before, last, sizeof(last), why))
		e = err_set(why, ERR_CORRUPT, "the last entry of the audit chain is damaged");
	if (e)
		return e;
	r->seq = before.seq + 1;
	hash_sha256(r->previous, last, RECORD_SIGNED);
	return ERR_OK;
}

static enum err
add_detail(struct entry *n, const struct audit_item *item)
{
	struct store_detail *d = &n->details[n->count];
	uint8_t digest[HASH_LEN];
	char hex[2 * HASH_LEN + 1];

	if (item->len > RECORD_DETAIL_MAX)
		return ERR_LIMIT;
	*d = (struct store_detail){.seq = n->row.seq,
	    .place = n->count++,
	    .data = (uint8_t *)(uintptr_t)item->data,
	    .len = item->len};
	enum err e = rng_bytes(d->salt, sizeof(d->salt));
	if (e)
		return e;
	if (item->device)
		memcpy(d->device, item->device, sizeof(d->device));
	hash_hmac(digest, d->salt, sizeof(d->salt), item->data, item->len);
	hex_encode(hex, digest, sizeof(digest));
	json_push(n->hashes, json_new_string(hex));
	return ERR_OK;
}

static enum err
add_object(struct entry *n, const struct audit_event *v)
{
	char hex[2 * HASH_LEN + 1];
	struct json *o = v->detail ? json_copy(v->detail) : json_object();

	if (v->device) {
		hex_encode(hex, v->device, HASH_LEN);
		json_add_string(o, "device", hex);
	}
	enum err e = json_print(&n->text, o, false);
	json_free(o);
	return e ? e : add_detail(n, &(struct audit_item){v->device, n->text.data, n->text.len});
}

static enum err
add_details(struct entry *n, const struct audit_event *v)
{
	n->details = calloc(v->item_count + 1, sizeof(*n->details));
	if (!n->details)
		return ERR_NOMEM;
	enum err e = v->detail || v->device ? add_object(n, v) : ERR_OK;
	for (size_t i = 0; i < v->item_count && !e; i++)
		e = add_detail(n, &v->items[i]);
	if (n->count > 0) {
		json_add(n->body, "details", n->hashes);
		n->hashes = NULL;
	}
	return e;
}

static void
start_body(struct entry *n, const struct audit_event *v)
{
	char hex[33];

	n->body = json_object();
	n->hashes = json_array();
	json_add_string(n->body, "event", record_event_name(v->event));
	if (v->job) {
		hex_encode(hex, v->job, 16);
		json_add_string(n->body, "job", hex);
	}
	if (v->round > 0)
		json_add_u64(n->body, "round", v->round);
	for (const struct json *m = json_first(v->facts); m; m = json_next(m))
		json_add(n->body, json_key(m), json_copy(m));
}

/* Signs the entry and writes its rows. */
static enum err
write_rows(struct entry *n, const struct services *s, struct record *r, const struct buf *body)
{
	uint8_t digest[HASH_LEN];

	hash_sha256(r->body_hash, body->data, body->len);
	record_encode(n->row.link, r);
	hash_sha256(digest, n->row.link, RECORD_SIGNED);
	enum err e = sign_hash(s->sign_key, digest, n->row.link + RECORD_SIGNED);
	if (e)
		return e;
	n->row.body = body->data;
	n->row.body_len = body->len;
	e = store_audit_insert(n->db, &n->row);
	for (size_t i = 0; i < n->count && !e; i++)
		e = store_audit_detail_insert(n->db, &n->details[i]);
	return e;
}

static enum err
append(struct entry *n, const struct services *s, const struct audit_event *v, struct why *why)
{
	struct record r = {.at_ms = (uint64_t)(clock_wall() * 1000), .incarnation = s->incarnation};
	struct buf body;

	enum err e = start(n, &r, why);
	if (e)
		return e;
	n->row.seq = r.seq;
	n->row.round = r.round = v->round;
	if (v->job) {
		memcpy(r.job, v->job, sizeof(r.job));
		memcpy(n->row.job, v->job, sizeof(n->row.job));
	}
	start_body(n, v);
	e = add_details(n, v);
	buf_init(&body, RECORD_BODY_MAX);
	if (!e)
		e = json_print(&body, n->body, false);
	if (!e)
		e = write_rows(n, s, &r, &body);
	buf_deinit(&body);
	return e;
}

enum err
audit_append(
    struct store_db *db, const struct services *s, const struct audit_event *event, struct why *why)
{
	struct entry n = {.db = db};

	buf_init(&n.text, RECORD_DETAIL_MAX);
	enum err e = append(&n, s, event, why);
	buf_deinit(&n.text);
	free(n.details);
	json_free(n.body);
	json_free(n.hashes);
	json_free(event->facts);
	json_free(event->detail);
	if (e && why && !why->text[0])
		err_set(why, e, "the audit log: %s", err_name(e));
	return e;
}

enum err
audit_token(struct store_db *db, const struct services *s, enum record_event event,
    const struct store_token *t, const char *by, struct why *why)
{
	struct json *facts = json_object(), *detail = json_object();
	char hex[17];

	hex_encode(hex, t->id, sizeof(t->id));
	json_add_string(facts, "token", hex);
	json_add_string(facts, "role", t->role);
	json_add_u64(facts, "uses", t->uses);
	json_add_double(facts, "expires_at", t->expires_at);
	if (t->suspended)
		json_add_bool(facts, "suspended", true);
	json_add_string(detail, "labels", t->labels);
	if (t->name[0])
		json_add_string(detail, "name", t->name);
	if (t->name_prefix[0])
		json_add_string(detail, "name_prefix", t->name_prefix);
	if (by)
		json_add_string(detail, "by", by);
	return audit_append(
	    db, s, &(struct audit_event){.event = event, .facts = facts, .detail = detail}, why);
}

enum err
audit_device(struct store_db *db, const struct services *s, const struct store_device *d,
    const char *by, struct why *why)
{
	struct json *detail = json_object();

	json_add_string(detail, "name", d->name);
	json_add_string(detail, "labels", d->labels);
	json_add_string(detail, "by", by);
	return audit_append(db, s,
	    &(struct audit_event){
		.event = RECORD_DEVICE_CHANGED, .device = d->id, .detail = detail},
	    why);
}

/* --- refusals */

struct audit {
	const struct services *services;
	pthread_mutex_t lock; /* of all below */
	uint64_t counts[PROBLEM_UNKNOWN]; /* by problem */
	bool counted; /* any of them is above 0 */
	double since;
	uint64_t next_ms;
};

/* What is being appended: freed, or counted again, when that is known. */
struct refusals {
	struct audit *audit;
	uint64_t counts[PROBLEM_UNKNOWN];
	double since;
};

enum err
audit_new(struct audit **out, const struct services *s)
{
	struct audit *a = calloc(1, sizeof(*a));

	if (!a)
		return ERR_NOMEM;
	a->services = s;
	a->since = clock_wall();
	a->next_ms = clock_ms() + (uint64_t)s->fixed->audit_refusals_s * 1000;
	pthread_mutex_init(&a->lock, NULL);
	*out = a;
	return ERR_OK;
}

void
audit_refused(struct audit *a, enum problem_type problem)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->counts[problem]++;
	a->counted = true;
	pthread_mutex_unlock(&a->lock);
}

static enum err
append_refusals(struct store_db *db, void *arg, struct why *why)
{
	const struct refusals *r = arg;
	struct json *facts = json_object(), *counts = json_object();

	for (enum problem_type p = PROBLEM_NONE + 1; p < PROBLEM_UNKNOWN; p++)
		if (r->counts[p] > 0)
			json_add_u64(counts, problem_word(p), r->counts[p]);
	json_add_double(facts, "since", r->since);
	json_add(facts, "refusals", counts);
	return audit_append(db, r->audit->services,
	    &(struct audit_event){.event = RECORD_REFUSED, .facts = facts}, why);
}

static void
appended_refusals(void *arg, enum err e, const struct why *why)
{
	struct refusals *r = arg;
	struct audit *a = r->audit;

	if (e) {
		log_event(LOG_LEVEL_ERROR, "audit.failed", LOG_S("why", why->text));
		pthread_mutex_lock(&a->lock);
		for (size_t p = 0; p < PROBLEM_UNKNOWN; p++)
			a->counts[p] += r->counts[p];
		a->counted = true;
		a->since = r->since;
		pthread_mutex_unlock(&a->lock);
	}
	free(r);
}

/* Takes the counts to append them; NULL if there are none. */
static struct refusals *
take(struct audit *a)
{
	struct refusals *r = a->counted ? malloc(sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	*r = (struct refusals){.audit = a, .since = a->since};
	memcpy(r->counts, a->counts, sizeof(r->counts));
	memset(a->counts, 0, sizeof(a->counts));
	a->counted = false;
	return r;
}

void
audit_tick(struct audit *a)
{
	struct refusals *r = NULL;
	uint64_t now = clock_ms();
	const struct config *c = shared_take(a->services->config);

	pthread_mutex_lock(&a->lock);
	if (now >= a->next_ms) {
		r = take(a);
		a->since = clock_wall();
		a->next_ms = now + (uint64_t)c->audit_refusals_s * 1000;
	}
	pthread_mutex_unlock(&a->lock);
	shared_give(a->services->config, c);
	if (r && store_submit(a->services->store, append_refusals, appended_refusals, r))
		appended_refusals(r, ERR_CLOSED, &(struct why){"the store is closing"});
}

static enum err
nothing(struct store_db *db, void *arg, struct why *why)
{
	(void)db, (void)arg, (void)why;
	return ERR_OK;
}

void
audit_free(struct audit *a)
{
	struct why why = {""};

	if (!a)
		return;
	/* Behind what is queued: deltas that are refused at last are counted, too, and by nobody who comes too late. */
	(void)!store_write(a->services->store, nothing, NULL, NULL);
	struct refusals *r = take(a);
	if (r) {
		enum err e = store_write(a->services->store, append_refusals, r, &why);
		if (e)
			log_event(LOG_LEVEL_ERROR, "audit.failed", LOG_S("why", why.text));
		free(r);
	}
	pthread_mutex_destroy(&a->lock);
	free(a);
}
