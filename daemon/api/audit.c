#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "audit_rows.h"
#include "engine.h"
#include "hex.h"
#include "num.h"
#include "record_json.h"

#define ENTRIES_PAGE 1000
#define PAGE_BYTES (8u << 20) /* a page ends once it is this large, with one entry at least */

/* --- entries with their details */

struct page {
	struct store_db *db;
	bool with_details;
	struct json *entries, *details;
	uint64_t from, limit, count;
	size_t bytes;
	uint64_t last; /* seq of the chain's last entry */
};

static enum err
add_detail(void *ctx, const struct store_detail *d)
{
	struct page *p = ctx;
	struct record_detail detail = {d->seq, d->place, {0}, d->data, d->len};

	memcpy(detail.salt, d->salt, sizeof(detail.salt));
	json_push(p->details, record_json_detail(&detail));
	p->bytes += d->len * 4 / 3 + 128;
	return ERR_OK;
}

static enum err
entry_json(struct page *p, const struct store_audit *a, struct json **out)
{
	p->details = p->with_details ? json_array() : NULL;
	enum err e =
	    p->with_details ? store_audit_detail_each(p->db, a->seq, add_detail, p) : ERR_OK;
	if (e)
		json_free(p->details);
	else
		*out = record_json_entry(a->link, a->body, p->details);
	p->details = NULL;
	return e;
}

/* ERR_CLOSED: the page is full. */
static enum err
add_entry(void *ctx, const struct store_audit *a)
{
	struct page *p = ctx;
	struct json *v = NULL;

	if (p->count > 0 && p->bytes > PAGE_BYTES)
		return ERR_CLOSED;
	enum err e = entry_json(p, a, &v);
	if (e)
		return e;
	json_push(p->entries, v);
	p->bytes += a->body_len + 512;
	p->count++;
	return ERR_OK;
}

static enum err
read_page(struct store_db *db, void *arg, struct why *why)
{
	uint8_t link[RECORD_LEN];
	struct page *p = arg;
	struct record r;

	p->db = db;
	enum err e = store_audit_last(db, link);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	if (!e)
		e = record_decode(&r, link, sizeof(link), why);
	if (e)
		return e;
	p->last = r.seq;
	e = store_audit_each(db, p->from, p->limit, add_entry, p);
	return e == ERR_CLOSED ? ERR_OK : e;
}

static void
add_pem(struct json *v, const char *key, const struct x509_cert *cert)
{
	char pem[X509_DER_MAX * 2];
	size_t len = sizeof(pem);

	if (cert->len > 0 && x509_to_pem(pem, &len, cert) == ERR_OK)
		json_add_string(v, key, pem);
}

static bool
read_number(struct exchange *x, const char *name, uint64_t max, uint64_t *out)
{
	char text[24];

	if (!http_query(&x->request, name, text, sizeof(text)) || num_u64(text, max, out))
		return true;
	exchange_problem(x, PROBLEM_BAD_REQUEST, "%s must be a number up to %llu", name,
	    (unsigned long long)max);
	return false;
}

void
api_audit_list(struct exchange *x)
{
	struct page p = {.with_details = true, .from = 1, .limit = ENTRIES_PAGE};
	struct why why = {""};

	if (!read_number(x, "from", INT64_MAX, &p.from) ||
	    !read_number(x, "limit", ENTRIES_PAGE, &p.limit))
		return;
	p.entries = json_array();
	enum err e = store_read(x->services->store, read_page, &p, &why);
	if (e) {
		json_free(p.entries);
		exchange_failed(x, e, &why);
		return;
	}
	struct json *v = json_object();
	const struct services_ca *ca = shared_take(x->services->ca);
	json_add_u64(v, "last", p.last);
	add_pem(v, "ca", &ca->current);
	add_pem(v, "signer", &ca->signer);
	shared_give(x->services->ca, ca);
	json_add(v, "entries", p.entries);
	exchange_json(x, 200, v);
}

/* --- the record of one round */

struct record_query {
	struct page page;
	uint8_t job[16];
	uint64_t round;
	struct json *entry;
};

static enum err
read_record(struct store_db *db, void *arg, struct why *why)
{
	struct record_query *q = arg;
	struct store_audit a;

	(void)why;
	q->page.db = db;
	enum err e = store_audit_round(db, q->job, q->round, &a);
	if (e)
		return e;
	e = entry_json(&q->page, &a, &q->entry);
	free(a.body);
	return e;
}

void
api_round_record(struct exchange *x)
{
	bool reader = x->who.roles & ROLE_READERS;
	struct record_query q = {.page = {.with_details = reader}};
	struct why why = {""};

	if (!hex_decode(q.job, sizeof(q.job), x->param[0], strlen(x->param[0])) ||
	    (!reader && !engine_may_work(x->services->engine, x->who.device, q.job))) {
		exchange_problem(x, PROBLEM_UNKNOWN_JOB, "no such job, or not for this device");
		return;
	}
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
