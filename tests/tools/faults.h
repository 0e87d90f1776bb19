#ifndef FAULTS_H
#define FAULTS_H
/* Deltas with one fault each: what wire_peer sends. */
#include <endian.h>
#include <math.h>

#include "base64.h"
#include "https.h"
#include "manifest.h"
#include "merkle.h"
#include "sign.h"

#define REPORT_TEXT "{\"metrics\":{\"probe\":1}}"
#define EXAMPLES 10u /* that a good delta states */
#define STEPS 2u
#define BODY_MAX ((uint64_t)256 << 20)

/* A delta while it is made. Faults change it at their stage, and only there. */
struct attempt {
	struct manifest m;
	uint8_t raw[MANIFEST_LEN];
	uint8_t *body; /* leaves, then payload */
	uint64_t body_bytes, leaf_bytes, length; /* length: what Content-Length says */
	char manifest[1024]; /* header values; "" leaves the header away */
	char report[16384];
	struct key *key; /* signs */
	bool sparse; /* codec sparse: the first element alone */
};

static inline uint8_t *
payload(struct attempt *a)
{
	return a->body + a->leaf_bytes;
}

static inline void
put_float(struct attempt *a, uint64_t element, float v)
{
	memcpy(payload(a) + 4 * element, &v, 4);
}

/* --- faults */

static inline void
f_nan(struct attempt *a)
{
	put_float(a, a->m.elements / 2, NAN);
}

static inline void
f_no_normaliser(struct attempt *a)
{
	a->m.normaliser = 0;
}

static inline void
f_infinity(struct attempt *a)
{
	put_float(a, a->m.elements - 1, -INFINITY);
}

static inline void
f_large(struct attempt *a)
{
	put_float(a, 7, 1e6f);
}

static inline void
f_another(struct attempt *a)
{
	put_float(a, 3, 0.25f);
}

static inline void
f_wrong_leaf(struct attempt *a)
{
	a->body[a->leaf_bytes - 1] ^= 1;
}

static inline void
f_wrong_chunk(struct attempt *a)
{
	payload(a)[1] ^= 1;
}

static inline void
f_wrong_last_chunk(struct attempt *a)
{
	a->body[a->body_bytes - 4] ^= 1;
}

static inline void
encode_manifest(struct attempt *a, size_t len)
{
	uint8_t raw[MANIFEST_LEN + 1] = {0};
	char text[BASE64_LEN(MANIFEST_LEN + 1) + 1];

	memcpy(raw, a->raw, len < MANIFEST_LEN ? len : MANIFEST_LEN);
	base64_encode(text, raw, len);
	snprintf(a->manifest, sizeof(a->manifest), ":%s:", text);
}

static inline void
encode_report(struct attempt *a, const char *text, size_t len)
{
	a->report[0] = ':';
	base64_encode(a->report + 1, text, len);
	strcat(a->report, ":");
}

static inline void
f_unsigned(struct attempt *a)
{
	memset(a->raw + MANIFEST_SIGNED, 0, SIGN_LEN);
	encode_manifest(a, MANIFEST_LEN);
}

static inline void
f_truncated(struct attempt *a)
{
	encode_manifest(a, MANIFEST_LEN - 1);
}

static inline void
f_empty(struct attempt *a)
{
	strcpy(a->manifest, "::");
}

static inline void
f_extended(struct attempt *a)
{
	encode_manifest(a, MANIFEST_LEN + 1);
}

static inline void
f_junk(struct attempt *a)
{
	memcpy(a->manifest + 9, "!?*", 3);
}

static inline void
f_no_colons(struct attempt *a)
{
	memmove(a->manifest, a->manifest + 1, strlen(a->manifest));
}

static inline void
f_missing(struct attempt *a)
{
	a->manifest[0] = '\0';
}

static inline void
f_shorter(struct attempt *a)
{
	a->length = a->body_bytes -= 1;
}

static inline void
f_longer(struct attempt *a)
{
	a->length++;
}

static inline void
f_report_missing(struct attempt *a)
{
	a->report[0] = '\0';
}

static inline void
f_report_other(struct attempt *a)
{
	encode_report(a, "{}", 2);
}

static inline void
f_report_base64(struct attempt *a)
{
	strcpy(a->report, ":{}:");
}

/*
 * A fault of the manifest adds `add` to the little-endian 32-bit number at `at`, before it is signed (SIGNED) or after (RAW).
 * All others have a function.
 */
static const struct fault {
	const char *name;
	enum stage { NONE, NUMBERS, SIGNED, RAW, BODY, HEAD } stage;
	unsigned at;
	uint32_t add;
	void (*apply)(struct attempt *a);
	const char *report; /* announced and signed */
} faults[] = {
    {"none", NONE, .apply = NULL},
    {"with-report", NONE, .report = REPORT_TEXT},
    {"better", NONE, .report = "{\"metrics\":{\"probe\":9}}"},
    {"auc", NONE,
	.report = "{\"evaluate\":{\"examples\":2,\"loss\":1,\"auc\":{\"positive\":[[128,1]],"
		  "\"negative\":[[0,1]]}}}"},
    {"regression", NONE,
	.report =
	    "{\"evaluate\":{\"examples\":2,\"loss\":1,\"regression\":{\"values\":2,\"absolute\":2,"
	    "\"squares\":2,\"sum\":3,\"sum_squares\":5}}}"},
    {"no-normaliser", NUMBERS, .apply = f_no_normaliser},
    {"other-key", NONE, .apply = NULL}, /* its signer does it */
    {"another", NUMBERS, .apply = f_another},
    {"nan", NUMBERS, .apply = f_nan},
    {"infinity", NUMBERS, .apply = f_infinity},
    {"large", NUMBERS, .apply = f_large},
    {"wrong-job", SIGNED, .at = 12, .add = 1},
    {"older-round", SIGNED, .at = 24, .add = UINT32_MAX},
    {"newer-round", SIGNED, .at = 24, .add = 1},
    {"wrong-base", SIGNED, .at = 60, .add = 1},
    {"wrong-device", SIGNED, .at = 64, .add = 1},
    {"wrong-task", SIGNED, .at = 96, .add = 1},
    {"no-examples", SIGNED, .at = 112, .add = (uint32_t)-EXAMPLES},
    {"many-examples", SIGNED, .at = 112, .add = 991}, /* 1001 */
    {"endless-examples", SIGNED, .at = 116, .add = UINT32_MAX},
    {"no-steps", SIGNED, .at = 120, .add = (uint32_t)-STEPS},
    {"elements", SIGNED, .at = 128, .add = 1},
    {"payload-short", SIGNED, .at = 136, .add = (uint32_t)-4},
    {"payload-long", SIGNED, .at = 136, .add = 4},
    {"wrong-root", SIGNED, .at = 152, .add = 16},
    {"codec-f16", SIGNED, .at = 176, .add = 1},
    {"codec-unknown", SIGNED, .at = 176, .add = 999},
    {"masked", SIGNED, .at = 180, .add = MANIFEST_MASKED},
    {"second-vector", SIGNED, .at = 180, .add = MANIFEST_SECOND},
    {"other-kind", SIGNED, .at = 180, .add = 3u << MANIFEST_KIND_SHIFT},
    {"reserved-bits", SIGNED, .at = 180, .add = 1u << 31},
    {"block", SIGNED, .at = 184, .add = 64},
    {"slice", SIGNED, .at = 212, .add = 1},
    {"magic", SIGNED, .at = 0, .add = 1},
    {"version", SIGNED, .at = 4, .add = 1},
    {"changed", RAW, .at = 112, .add = 1},
    {"flipped-signature", RAW, .at = MANIFEST_SIGNED + 40, .add = 1},
    {"unsigned", HEAD, .apply = f_unsigned},
    {"wrong-leaf", BODY, .apply = f_wrong_leaf},
    {"wrong-chunk", BODY, .apply = f_wrong_chunk},
    {"wrong-last-chunk", BODY, .apply = f_wrong_last_chunk},
    {"truncated", HEAD, .apply = f_truncated},
    {"empty", HEAD, .apply = f_empty},
    {"extended", HEAD, .apply = f_extended},
    {"junk", HEAD, .apply = f_junk},
    {"no-colons", HEAD, .apply = f_no_colons},
    {"no-manifest", HEAD, .apply = f_missing},
    {"shorter", HEAD, .apply = f_shorter},
    {"longer", HEAD, .apply = f_longer},
    {"report-missing", HEAD, .apply = f_report_missing, .report = REPORT_TEXT},
    {"report-other", HEAD, .apply = f_report_other, .report = REPORT_TEXT},
    {"report-unannounced", HEAD, .apply = f_report_other},
    {"report-base64", HEAD, .apply = f_report_base64, .report = REPORT_TEXT},
    {"report-junk", NONE, .report = "{\"evaluate\""},
    {"report-wrong", NONE, .report = "{\"evaluate\":{\"accuracy\":7}}"},
    /* Of a job that asks for top1. */
    {"report-counts", NONE, .report = "{\"evaluate\":{\"examples\":3,\"loss\":1,\"top\":[[1,4]]}}"},
    {"report-uncounted", NONE, .report = "{\"evaluate\":{\"examples\":3,\"loss\":1}}"},
};

/* --- making a delta */

static inline const struct fault *
find_fault(const char *name)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		if (strcmp(faults[i].name, name) == 0)
			return &faults[i];
	https_die(name, "no such fault");
}

static inline void
apply(const struct fault *f, enum stage stage, struct attempt *a)
{
	uint32_t v;

	if (f->stage != stage)
		return;
	if (f->apply) {
		f->apply(a);
		return;
	}
	memcpy(&v, a->raw + f->at, sizeof(v));
	v = htole32(le32toh(v) + f->add);
	memcpy(a->raw + f->at, &v, sizeof(v));
}

/* The ends of the blocks, then a gap of none and the value 1 as bf16. */
#define SPARSE_BLOCK 16384
#define SPARSE_ENTRY 3

static inline uint64_t
sparse_bytes(uint64_t elements)
{
	return (elements + SPARSE_BLOCK - 1) / SPARSE_BLOCK * 4 + SPARSE_ENTRY;
}

static inline void
put_sparse(struct attempt *a)
{
	uint8_t *p = payload(a);

	for (; p + SPARSE_ENTRY < payload(a) + a->m.payload_bytes; p += 4)
		*p = SPARSE_ENTRY;
	p[1] = 0x80;
	p[2] = 0x3f;
}

static inline void
make_body(struct attempt *a, const struct fault *f)
{
	uint64_t chunks = manifest_chunks(a->m.payload_bytes);

	a->leaf_bytes = chunks * HASH_LEN;
	a->body_bytes = a->length = manifest_body_bytes(a->m.payload_bytes);
	if (a->body_bytes > BODY_MAX || !(a->body = calloc(1, a->body_bytes + 4)))
		https_die("body", "too large");
	for (uint64_t i = 0; i < a->m.elements && !a->sparse; i++)
		put_float(a, i, 1e-4f * (float)(i % 13));
	if (a->sparse)
		put_sparse(a);
	apply(f, NUMBERS, a);
	for (uint64_t i = 0; i < chunks; i++) {
		uint64_t at = i * MANIFEST_CHUNK, left = a->m.payload_bytes - at;
		merkle_leaf(a->body + i * HASH_LEN, payload(a) + at,
		    left < MANIFEST_CHUNK ? left : MANIFEST_CHUNK);
	}
	merkle_root(a->m.root, a->body, chunks);
}

static inline void
make_report(struct attempt *a, const struct fault *f)
{
	if (!f->report)
		return;
	a->m.flags |= MANIFEST_REPORT;
	hash_sha256(a->m.report_hash, f->report, strlen(f->report));
	encode_report(a, f->report, strlen(f->report));
}

static inline void
make_attempt(struct attempt *a, const struct fault *f)
{
	uint8_t digest[HASH_LEN];

	make_body(a, f);
	make_report(a, f);
	manifest_encode(a->raw, &a->m);
	apply(f, SIGNED, a);
	hash_sha256(digest, a->raw, MANIFEST_SIGNED);
	if (sign_hash(a->key, digest, a->raw + MANIFEST_SIGNED) != ERR_OK)
		https_die("sign", "failed");
	apply(f, RAW, a);
	apply(f, BODY, a);
	encode_manifest(a, MANIFEST_LEN);
	apply(f, HEAD, a);
}

#endif
