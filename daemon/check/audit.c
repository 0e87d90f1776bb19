#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_rows.h"
#include "check_inside.h"
#include "hash.h"
#include "hex.h"
#include "job.h"
#include "json.h"
#include "record.h"
#include "sign.h"

struct walk {
	struct check *c;
	uint64_t expected;
	uint8_t previous[HASH_LEN];
	const struct json *hashes; /* the details that the present entry commits to */
};

/* Returns what is wrong with an entry; NULL if nothing is. */
static const char *
entry_fault(const struct walk *w, const struct store_audit *a, struct record *r)
{
	uint8_t hash[HASH_LEN];

	if (record_decode(r, a->link, sizeof(a->link), NULL) || r->seq != a->seq)
		return "it cannot be read";
	if (r->seq != w->expected)
		return "the entry before it is missing";
	if (memcmp(r->previous, w->previous, HASH_LEN) != 0)
		return "it does not follow the entry before it";
	hash_sha256(hash, a->body, a->body_len);
	if (memcmp(hash, r->body_hash, HASH_LEN) != 0)
		return "its body is another than the signed one";
	if (memcmp(a->job, r->job, sizeof(r->job)) != 0 || a->round != r->round)
		return "it is listed under another job or round than the signed one";
	hash_sha256(hash, a->link, RECORD_SIGNED);
	if (w->c->has_signer && sign_verify(w->c->signer, hash, r->signature))
		return "its signature is not of this coordinator's key";
	return NULL;
}

/* Checks a detail against the hash in its entry. A missing detail is no fault, as details may be erased. */
static enum err
see_detail(void *ctx, const struct store_detail *d)
{
	struct walk *w = ctx;
	const char *hex = json_string(json_at(w->hashes, d->place));
	uint8_t digest[HASH_LEN], listed[HASH_LEN];
	char where[64];

	hash_hmac(digest, d->salt, sizeof(d->salt), d->data, d->len);
	if (hex && hex_decode(listed, HASH_LEN, hex, strlen(hex)) &&
	    hash_equal(digest, listed, HASH_LEN))
		return ERR_OK;
	snprintf(where, sizeof(where), "entry %llu detail %llu", (unsigned long long)d->seq,
	    (unsigned long long)d->place);
	check_found(w->c, CHECK_AUDIT_DAMAGED, where, false, "it is another than the signed one");
	return ERR_OK;
}

static enum err
see_entry(void *ctx, const struct store_audit *a)
{
	struct walk *w = ctx;
	struct json *body = NULL;
	struct record r;
	char where[40];

	const char *fault = entry_fault(w, a, &r);
	snprintf(where, sizeof(where), "entry %llu", (unsigned long long)a->seq);
	if (fault)
		check_found(w->c, CHECK_AUDIT_DAMAGED, where, false, "%s", fault);
	w->expected = a->seq + 1;
	hash_sha256(w->previous, a->link, RECORD_SIGNED);
	if (fault || json_parse(&body, a->body, a->body_len, NULL))
		return ERR_OK;
	w->hashes = json_get(body, "details");
	enum err e = store_audit_detail_each(w->c->db, a->seq, see_detail, w);
	json_free(body);
	return e;
}

void
check_audit_run(struct check *c)
{
	struct walk w = {.c = c, .expected = 1};

	if (!c->has_rows)
		return;
	enum err e = store_audit_each(c->db, 1, INT64_MAX, see_entry, &w);
	if (e)
		check_found(c, CHECK_AUDIT_DAMAGED, "rivulet.db", false,
		    "the audit log cannot be read: %s", err_name(e));
}
