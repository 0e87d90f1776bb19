#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "audit_rows.h"
#include "engine.h"
#include "err.h"
#include "exchange.h"
#include "hex.h"
#include "http.h"
#include "job.h"
#include "json.h"
#include "num.h"
#include "record_json.h"
#include "registry.h"
#include "services.h"
#include "services_ca.h"
#include "shared.h"
#include "store.h"
#include "views.h"
#include "x509.h"

#define ENTRIES_PAGE 1000
#define ENTRIES_LOOKED 10000 /* of one request that picks: some 0.1 s */
#define PAGE_BYTES (8u << 20) /* a page ends once it is this large, with one entry at least */

/* Whose entries are listed: those with the word in "by", and those that are about the device. */
struct culprit {
	char word[8 + 2 * HASH_LEN]; /* as exchange_actor prints it; "": everybody's */
	bool is_device;
	uint8_t device[32];
};

/* --- entries with their details */

static enum err
add_detail(void *ctx, const struct store_detail *d)
{
	struct record_detail detail = {d->seq, d->place, {0}, d->data, d->len};

	memcpy(detail.salt, d->salt, sizeof(detail.salt));
	json_push(ctx, record_json_detail(&detail));
	return ERR_OK;
}

static enum err
entry_json(struct store_db *db, const struct store_audit *a, bool with_details, struct json **out)
{
	struct json *details = with_details ? json_array() : NULL;
	enum err e =
	    with_details ? store_audit_detail_each(db, a->seq, add_detail, details) : ERR_OK;

	if (e)
		json_free(details);
	else
		*out = record_json_entry(a->link, a->body, details);
	return e;
}

/* --- whose */

static bool
has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (; text; text = strchr(text, ' ')) {
		text += *text == ' ';
		if (strncmp(text, word, len) == 0 && (text[len] == ' ' || text[len] == '\0'))
			return true;
	}
	return false;
}

static bool
says(const struct store_detail *d, const char *word)
{
	struct json *v = NULL;

	if (json_parse(&v, (const char *)d->data, d->len, NULL))
		return false;
	bool found = has_word(json_string(json_get(v, "by")), word);
	json_free(v);
	return found;
}

struct sight {
	const struct culprit *by;
	bool found;
};

static enum err
look_at(void *ctx, const struct store_detail *d)
{
	struct sight *s = ctx;

	s->found = s->found ||
	    (s->by->is_device && memcmp(d->device, s->by->device, sizeof(d->device)) == 0) ||
	    says(d, s->by->word);
	return ERR_OK;
}

/* The entries that are still to be listed. */
struct audit_cursor {
	struct exchange *x;
	struct store_db *db; /* while an entry is read */
	uint64_t from, left, last; /* last: the last entry when the page was begun */
	struct culprit by;
	uint64_t looks; /* entries that this request may still look at */
	size_t bytes;
	bool more; /* there are entries for the next piece */
};

static enum err
is_picked(const struct audit_cursor *at, const struct store_audit *a, bool *picked)
{
	struct sight s = {.by = &at->by, .found = at->by.word[0] == '\0'};
	enum err e =
	    s.found ? ERR_OK : store_audit_sight(at->db, a->seq, at->by.device, look_at, &s);

	*picked = s.found;
	return e;
}

/* Adds an entry to the list. ERR_CLOSED: the entry is left for the next piece, or for the next page. */
static enum err
add_entry(void *ctx, const struct store_audit *a)
{
	struct audit_cursor *at = ctx;
	size_t before = at->x->response.body.len;
	struct json *v = NULL;
	bool picked = false;

	if (a->seq > at->last || at->left == 0 || at->looks == 0 || at->bytes > PAGE_BYTES)
		return ERR_CLOSED;
	at->more = exchange_list_full(at->x);
	if (at->more)
		return ERR_CLOSED;
	at->looks--;
	exchange_looked(at->x, 1);
	at->from = a->seq + 1;
	enum err e = is_picked(at, a, &picked);
	if (!e && picked)
		e = entry_json(at->db, a, true, &v);
	if (e || !picked)
		return e;
	exchange_list_add(at->x, v);
	at->bytes += at->x->response.body.len - before;
	at->left--;
	return ERR_OK;
}

static enum err
read_entries(struct store_db *db, void *arg, struct why *why)
{
	struct audit_cursor *at = arg;

	(void)why;
	at->db = db;
	at->more = false;
	enum err e = store_audit_each(db, at->from, UINT64_MAX, add_entry, at);
	return e == ERR_CLOSED ? ERR_OK : e;
}

static enum err
fill_entries(struct exchange *x, void *cursor, struct why *why)
{
	struct audit_cursor *at = cursor;
	/* A piece may be empty: whoever picks few of many leaves the worker to others in between. */
	enum err e = store_read(x->services->store, read_entries, at, why);

	if (!e && at->more)
		return ERR_AGAIN;
	exchange_list_tail(x, "next", at->from <= at->last ? &at->from : NULL);
	return e;
}

static enum err
take_time(void *ctx, const struct store_audit *a)
{
	struct record r;
	enum err e = record_decode(&r, a->link, RECORD_LEN, NULL);

	if (!e)
		*(uint64_t *)ctx = r.at_ms / 1000;
	return e;
}

struct audit_range {
	uint64_t from, last; /* seq; last 0: the chain is empty */
	uint64_t since_s; /* Unix time */
};

/* Finds the first entry that is not older than since_s: the times of entries ascend with their numbers. */
static enum err
find_since(struct store_db *db, struct audit_range *r)
{
	uint64_t end = r->last + 1;
	enum err e = ERR_OK;

	while (r->from < end && !e) {
		uint64_t middle = r->from + (end - r->from) / 2, at = 0;
		e = store_audit_each(db, middle, 1, take_time, &at);
		if (at < r->since_s)
			r->from = middle + 1;
		else
			end = middle;
	}
	return e;
}

static enum err
read_range(struct store_db *db, void *arg, struct why *why)
{
	uint8_t link[RECORD_LEN];
	struct audit_range *range = arg;
	struct record r;

	enum err e = store_audit_last(db, link);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	if (!e)
		e = record_decode(&r, link, sizeof(link), why);
	if (e)
		return e;
	range->last = r.seq;
	return range->since_s > 0 ? find_since(db, range) : ERR_OK;
}

static void
add_pem(struct json *v, const char *key, const struct x509_cert *cert)
{
	char pem[X509_DER_MAX * 2];
	size_t len = sizeof(pem);

	if (cert->len > 0 && x509_to_pem(pem, &len, cert) == ERR_OK)
		json_add_string(v, key, pem);
}

static struct json *
page_head(struct exchange *x, uint64_t last)
{
	const struct services_ca *ca = shared_take(x->services->ca);
	struct json *v = json_object();

	json_add_u64(v, "last", last);
	add_pem(v, "ca", &ca->current);
	add_pem(v, "signer", &ca->signer);
	shared_give(x->services->ca, ca);
	return v;
}

/* Finds the device of this name, and sets its id in by. */
static bool
find_device(struct exchange *x, const char *name, struct culprit *by)
{
	struct registry_view view;
	char hex[2 * HASH_LEN + 1];

	if (registry_find(x->services->registry, name, &view))
		return false;
	by->is_device = true;
	memcpy(by->device, view.row.id, sizeof(by->device));
	hex_encode(hex, view.row.id, sizeof(view.row.id));
	snprintf(by->word, sizeof(by->word), "device:%s", hex);
	return true;
}

static bool
read_by(struct exchange *x, struct culprit *by)
{
	char text[sizeof(by->word)];

	if (!http_query(&x->request, "by", text, sizeof(text)))
		return true;
	if (strncmp(text, "device:", 7) == 0) {
		if (find_device(x, text + 7, by))
			return true;
		exchange_problem(x, PROBLEM_NOT_FOUND, "by: no such device, or several");
		return false;
	}
	memcpy(by->word, text, sizeof(text));
	if ((strncmp(text, "token:", 6) == 0 || strncmp(text, "owner:", 6) == 0) && text[6])
		return true;
	exchange_problem(x, PROBLEM_BAD_REQUEST, "by must be token:ID, owner:NAME or device:NAME");
	return false;
}

void
api_audit_list(struct exchange *x)
{
	struct audit_cursor first = {.x = x, .left = ENTRIES_PAGE, .looks = ENTRIES_LOOKED};
	struct audit_range range = {.from = 1};
	struct why why = {""};

	if (!exchange_number(x, "from", INT64_MAX, &range.from) ||
	    !exchange_number(x, "limit", ENTRIES_PAGE, &first.left) ||
	    !exchange_number(x, "since", INT64_MAX / 1000, &range.since_s) ||
	    !read_by(x, &first.by) || (first.by.word[0] && !exchange_walk(x)))
		return;
	enum err e = store_read(x->services->store, read_range, &range, &why);
	if (e) {
		exchange_failed(x, e, &why);
		return;
	}
	first.from = range.from;
	first.last = range.last;
	struct audit_cursor *cursor = malloc(sizeof(*cursor));
	if (cursor)
		*cursor = first;
	exchange_list(x, page_head(x, first.last), "entries", fill_entries, cursor);
}

/* --- the record of one round */

struct record_query {
	uint8_t job[16];
	uint64_t round;
	bool with_details;
	struct json *entry;
};

static enum err
read_record(struct store_db *db, void *arg, struct why *why)
{
	struct record_query *q = arg;
	struct store_audit a;

	(void)why;
	enum err e = store_audit_round(db, q->job, q->round, &a);
	if (e)
		return e;
	e = entry_json(db, &a, q->with_details, &q->entry);
	free(a.body);
	return e;
}

void
api_round_record(struct exchange *x)
{
	bool reader = x->who.roles & ROLE_READERS;
	struct record_query q = {.with_details = reader};
	struct why why = {""};
	uint64_t read = 0;

	if (!hex_decode(q.job, sizeof(q.job), x->param[0], strlen(x->param[0])) ||
	    (!reader && !engine_may_work(x->services->engine, x->who.device, q.job, &read))) {
		exchange_looked(x, read / VIEWS_BYTES_PER_ROW);
		exchange_problem(x, PROBLEM_UNKNOWN_JOB, "no such job, or not for this device");
		return;
	}
	exchange_looked(x, read / VIEWS_BYTES_PER_ROW);
	enum err e = num_u64(x->param[1], INT64_MAX, &q.round) && q.round > 0
	    ? store_read(x->services->store, read_record, &q, &why)
	    : ERR_NOTFOUND;
	if (e == ERR_NOTFOUND)
		exchange_problem(x, PROBLEM_NOT_FOUND, "no record of such a round: it is not over");
	else if (e)
		exchange_failed(x, e, &why);
	else
		exchange_json(x, 200, q.entry);
}
