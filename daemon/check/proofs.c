#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_rows.h"
#include "bytes.h"
#include "check_inside.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "inspect.h"
#include "json.h"
#include "sign.h"
#include "store.h"
#include "task_kind.h"
#include "x509.h"

#define PEM_MAX 4096
/* Of rows with a matching checksum only so many signatures are verified, to see by which key they are: each takes a millisecond. */
#define SAMPLE 64

static const uint8_t none[91];

/* --- the keys that made what is looked at */

void
check_proofs_begin(struct check *c)
{
	struct x509_cert cert;
	struct x509_info info;
	char path[CHECK_PATH_MAX];
	char *pem = NULL, *key = NULL;
	size_t len = 0;

	check_path(c, "keys/sign.crt", path);
	c->has_signer = file_read(path, PEM_MAX, &pem, &len, NULL) == ERR_OK &&
	    x509_from_pem(&cert, pem, NULL) == ERR_OK && x509_parse(&info, &cert, NULL) == ERR_OK;
	if (c->has_signer)
		memcpy(c->signer, info.spki, KEY_SPKI_LEN);
	free(pem);
	check_path(c, "keys/task.key", path);
	c->has_task_key = file_read(path, sizeof(c->task_key), &key, &len, NULL) == ERR_OK &&
	    len == sizeof(c->task_key);
	if (c->has_task_key)
		memcpy(c->task_key, key, sizeof(c->task_key));
	if (key)
		hash_wipe(key, len);
	free(key);
}

static void
tried(struct check_made *m, const char *where, bool sound)
{
	m->tried++;
	if (sound)
		return;
	if (m->failed < CHECK_FAILURES)
		snprintf(m->where[m->failed], sizeof(m->where[0]), "%s", where);
	m->failed++;
}

/* Reports what the verifications say of a key: if none succeeds, the key is another coordinator's; else each object that fails is
 * damaged. */
static void
judge_made(struct check *c, const struct check_made *m, const char *name, const char *mixed,
    const char *damaged)
{
	if (m->tried >= 2 && m->failed == m->tried) {
		check_found(c, CHECK_KEY_MIXED, name, false, "%s", mixed);
		return;
	}
	for (uint64_t i = 0; i < m->failed && i < CHECK_FAILURES; i++)
		check_found(c, CHECK_ROW_DAMAGED, m->where[i], false, "%s", damaged);
	if (m->failed > CHECK_FAILURES)
		check_found(c, CHECK_ROW_DAMAGED, "rivulet.db", false, "%llu more rows: %s",
		    (unsigned long long)(m->failed - CHECK_FAILURES), damaged);
}

void
check_proofs_end(struct check *c)
{
	judge_made(c, &c->receipts, "keys/sign.key", "it did not sign the receipts in the database",
	    "its receipt is not signed by this coordinator's key");
	judge_made(c, &c->tasks, "keys/task.key", "it did not name the tasks in the database",
	    "its task is not one that this coordinator's key names");
}

/* --- accepted deltas, and reports of evaluators */

static bool
is_task(const struct check *c, const struct manifest *m, bool evaluates)
{
	uint8_t text[56], mac[HASH_LEN];
	struct bytes_writer w = bytes_writer(text, sizeof(text));

	bytes_put(&w, m->job, 16);
	bytes_put_u64(&w, evaluates ? m->round | STORE_EVALUATION_TASK : m->round);
	bytes_put(&w, m->device, 32);
	hash_hmac(mac, c->task_key, 32, text, sizeof(text));
	return hash_equal(mac, m->task, 16);
}

static bool
hashes_to(const void *data, size_t len, const uint8_t hash[32])
{
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, data, len);
	return memcmp(digest, hash, HASH_LEN) == 0;
}

/* Is the manifest signed by a key that the device has or had? True also if the key may be one that was replaced and deleted since. */
static bool
is_signed(const struct check *c, const uint8_t manifest[MANIFEST_LEN], const struct manifest *m)
{
	uint8_t digest[HASH_LEN];
	struct store_device d;

	hash_sha256(digest, manifest, MANIFEST_SIGNED);
	if (store_device_get(c->db, m->device, &d) ||
	    sign_verify(d.spki, digest, m->signature) == ERR_OK)
		return true;
	bool first = hashes_to(d.spki, sizeof(d.spki), d.id);
	bool second = memcmp(d.previous, none, sizeof(d.previous)) != 0;
	if (!first && second && sign_verify(d.previous, digest, m->signature) == ERR_OK)
		return true;
	return !first && !(second && hashes_to(d.previous, sizeof(d.previous), d.id));
}

const char *
check_proofs_manifest(
    const struct check *c, const uint8_t manifest[MANIFEST_LEN], const struct manifest *m)
{
	return is_signed(c, manifest, m) ? NULL : "its manifest is not signed by its device";
}

static const char *
report_fault(const struct store_accept *a, const struct manifest *m)
{
	bool has = m->flags & MANIFEST_REPORT;

	if (!a->report)
		return has ? "its report is missing" : NULL;
	return has && hashes_to(a->report, strlen(a->report), m->report_hash)
	    ? NULL
	    : "its report is not the one that its manifest signs";
}

static const char *
receipt_fault(const struct store_accept *a, const struct receipt *r)
{
	if (!hashes_to(a->manifest, MANIFEST_SIGNED, r->manifest_hash))
		return "its receipt is not for its manifest";
	if (memcmp(r->job, a->job, sizeof(r->job)) != 0 || r->round != a->round)
		return "its receipt is of another job or round";
	return NULL;
}

static const char *
number_fault(const struct store_accept *a, const struct manifest *m, bool evaluates)
{
	uint64_t bytes = m->payload_bytes ? manifest_body_bytes(m->payload_bytes) : 0;

	/* It has neither a body nor a round that it goes into. */
	if (evaluates)
		return manifest_kind(m) == TASK_EVALUATE && bytes == 0
		    ? NULL
		    : "its manifest is not that of an evaluation";
	if (a->body_bytes != bytes)
		return "its body has another length than its manifest says";
	return a->folded < a->round ? "it goes into a round before that of its task" : NULL;
}

const char *
check_proofs_delta(struct check *c, const struct store_accept *a, const struct manifest *m,
    const struct check_row *row)
{
	uint8_t digest[HASH_LEN];
	struct receipt r;

	if (manifest_receipt_decode(&r, a->receipt, sizeof(a->receipt), NULL))
		return "its receipt cannot be read";
	const char *fault = receipt_fault(a, &r);
	fault = fault ? fault : report_fault(a, m);
	fault = fault ? fault : number_fault(a, m, row->evaluates);
	if (fault)
		return fault;
	if (c->has_task_key)
		tried(&c->tasks, row->where, is_task(c, m, row->evaluates));
	if (row->proved && !row->open && c->receipts.tried >= SAMPLE)
		return NULL;
	hash_sha256(digest, a->receipt, RECEIPT_SIGNED);
	if (c->has_signer)
		tried(&c->receipts, row->where,
		    sign_verify(c->signer, digest, r.signature) == ERR_OK);
	return check_proofs_manifest(c, a->manifest, m);
}

/* --- devices: an id is the hash of the first key, and later keys are listed by theirs */

static bool
is_key_of(const struct check *c, const struct store_device *d, const uint8_t spki[91])
{
	uint8_t key[HASH_LEN], holder[32];

	hash_sha256(key, spki, 91);
	return memcmp(key, d->id, 32) == 0 ||
	    (store_key_get(c->db, key, holder) == ERR_OK && memcmp(holder, d->id, 32) == 0);
}

static enum err
see_device(void *ctx, const struct store_device *d)
{
	struct check *c = ctx;
	char hex[65], where[80];
	struct json *labels = NULL;

	if (store_inspect_proved(c->db))
		return ERR_OK;
	hex_encode(hex, d->id, 32);
	snprintf(where, sizeof(where), "device %.16s", hex);
	if (!is_key_of(c, d, d->spki))
		check_found(c, CHECK_ROW_DAMAGED, where, false, "its key is none that it had");
	if (memcmp(d->previous, none, sizeof(d->previous)) != 0 && !is_key_of(c, d, d->previous))
		check_found(
		    c, CHECK_ROW_DAMAGED, where, false, "its previous key is none that it had");
	if (json_parse(&labels, d->labels, strlen(d->labels), NULL))
		check_found(c, CHECK_ROW_DAMAGED, where, false, "its labels cannot be read");
	json_free(labels);
	return ERR_OK;
}

enum err
check_proofs_devices(struct check *c)
{
	return store_device_each(c->db, see_device, c);
}

/* --- rounds: the audit log says what came of them */

static bool
says(const struct json *body, const char *key, const uint8_t id[32])
{
	const char *text = json_string(json_get(body, key));
	uint8_t said[32];

	if (!text)
		return memcmp(id, none, 32) == 0;
	return hex_decode(said, 32, text, strlen(text)) && memcmp(said, id, 32) == 0;
}

const char *
check_proofs_round(struct check *c, const struct store_round *r)
{
	struct store_audit a = {.body = NULL};
	struct json *body = NULL;
	const char *fault = NULL;

	if (r->state != OUTCOME_COMMITTED || store_audit_round(c->db, r->job, r->round, &a))
		return NULL;
	if (json_parse(&body, a.body, a.body_len, NULL) == ERR_OK && json_get(body, "base")) {
		if (!says(body, "base", r->base))
			fault = "its base is another than the audit log says";
		else if (!says(body, "model", r->model))
			fault = "its model is another than the audit log says";
		else if (!says(body, "optimizer_state", r->optimizer_state))
			fault = "its optimizer's state is another than the audit log says";
	}
	json_free(body);
	free(a.body);
	return fault;
}
