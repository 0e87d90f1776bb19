#include <arpa/inet.h>
#include <mbedtls/asn1write.h>
#include <mbedtls/oid.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "date.h"
#include "mbed.h"
#include "rng.h"
#include "x509.h"

/*
 * Extensions are written by hand, backwards as mbedTLS's ASN.1 writer does: 2.28 has no writer for alternative
 * names or extended key usage, and marks basicConstraints as not critical.
 */
#define SERIAL_LEN 16
#define COMMON_NAME_MAX 64 /* RFC 5280's ub-common-name */
#define DNS_NAME_MAX 253
#define NAME_DNS 2 /* GeneralName tags */
#define NAME_IP 7
#define EARLIEST INT64_C(946684800) /* 2000-01-01: UTCTime's two digits read alike everywhere */
#define LATEST INT64_C(253402300799) /* the end of the year 9999 */

/* RFC 9336's document signing: a use that no TLS library takes for its own. */
#define OID_DOCUMENT_SIGNING MBEDTLS_OID_KP "\x24"

struct der {
	uint8_t bytes[X509_DER_MAX];
	uint8_t *p; /* start of what is written; the end is the end of bytes */
	int failed; /* sticky */
};

static void
der_begin(struct der *d)
{
	d->p = d->bytes + sizeof(d->bytes);
	d->failed = 0;
}

static void
der_keep(struct der *d, int result)
{
	if (result < 0)
		d->failed = result;
}

static void
der_raw(struct der *d, const void *data, size_t len)
{
	der_keep(d, mbedtls_asn1_write_raw_buffer(&d->p, d->bytes, data, len));
}

/* Wraps what was written since `end` in a tag. */
static void
der_wrap(struct der *d, const uint8_t *end, uint8_t tag)
{
	der_keep(d, mbedtls_asn1_write_len(&d->p, d->bytes, (size_t)(end - d->p)));
	der_keep(d, mbedtls_asn1_write_tag(&d->p, d->bytes, tag));
}

static bool
add(mbedtls_x509write_cert *w, const char *oid, size_t oid_len, bool critical, struct der *d)
{
	size_t len = (size_t)(d->bytes + sizeof(d->bytes) - d->p);

	return d->failed == 0 &&
	    mbedtls_x509write_crt_set_extension(w, oid, oid_len, critical, d->p, len) == 0;
}

static bool
add_constraints(mbedtls_x509write_cert *w, bool ca)
{
	static const uint8_t leaf[] = {0x30, 0x00};
	static const uint8_t root[] = {0x30, 0x03, 0x01, 0x01, 0xff};
	struct der d;

	der_begin(&d);
	der_raw(&d, ca ? root : leaf, ca ? sizeof(root) : sizeof(leaf));
	return add(
	    w, MBEDTLS_OID_BASIC_CONSTRAINTS, sizeof(MBEDTLS_OID_BASIC_CONSTRAINTS) - 1, true, &d);
}

static bool
add_usage(mbedtls_x509write_cert *w, bool ca)
{
	static const uint8_t digital_signature[] = {0x03, 0x02, 0x07, 0x80};
	static const uint8_t cert_and_crl_sign[] = {0x03, 0x02, 0x01, 0x06};
	struct der d;

	der_begin(&d);
	der_raw(&d, ca ? cert_and_crl_sign : digital_signature, 4);
	return add(w, MBEDTLS_OID_KEY_USAGE, sizeof(MBEDTLS_OID_KEY_USAGE) - 1, true, &d);
}

static bool
add_extended_usage(mbedtls_x509write_cert *w, enum x509_use use)
{
	static const char *const purpose[] = {
	    [X509_SERVER] = MBEDTLS_OID_SERVER_AUTH,
	    [X509_CLIENT] = MBEDTLS_OID_CLIENT_AUTH,
	    [X509_SIGNER] = OID_DOCUMENT_SIGNING,
	};
	struct der d;

	der_begin(&d);
	const uint8_t *end = d.p;
	der_keep(&d, mbedtls_asn1_write_oid(&d.p, d.bytes, purpose[use], strlen(purpose[use])));
	der_wrap(&d, end, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE);
	return add(w, MBEDTLS_OID_EXTENDED_KEY_USAGE, sizeof(MBEDTLS_OID_EXTENDED_KEY_USAGE) - 1,
	    false, &d);
}

/* RFC 7093, method 1: the first 160 bits of SHA-256 of the public point. */
void
x509_key_id(uint8_t out[X509_KEY_ID_LEN], const uint8_t spki[KEY_SPKI_LEN])
{
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, spki + KEY_SPKI_LEN - 65, 65);
	memcpy(out, digest, X509_KEY_ID_LEN);
}

/* The identifier that the CA's certificate states, or else the one we would have given it. */
static void
issuer_identifier(struct der *d, const mbedtls_x509_crt *ca, const struct key *ca_key)
{
	static const char oid[] = MBEDTLS_OID_SUBJECT_KEY_IDENTIFIER;
	uint8_t id[X509_KEY_ID_LEN];
	size_t len;
	unsigned char *p = x509_ext_find(ca, oid, sizeof(oid) - 1, &len);

	if (p && mbedtls_asn1_get_tag(&p, p + len, &len, MBEDTLS_ASN1_OCTET_STRING) == 0) {
		der_raw(d, p, len);
		return;
	}
	x509_key_id(id, key_spki(ca_key));
	der_raw(d, id, sizeof(id));
}

static bool
add_key_ids(mbedtls_x509write_cert *w, const uint8_t *spki, const mbedtls_x509_crt *ca,
    const struct key *ca_key)
{
	uint8_t id[X509_KEY_ID_LEN];
	struct der d;

	der_begin(&d);
	x509_key_id(id, spki);
	der_keep(&d, mbedtls_asn1_write_octet_string(&d.p, d.bytes, id, sizeof(id)));
	if (!add(w, MBEDTLS_OID_SUBJECT_KEY_IDENTIFIER,
		sizeof(MBEDTLS_OID_SUBJECT_KEY_IDENTIFIER) - 1, false, &d))
		return false;
	der_begin(&d);
	const uint8_t *end = d.p;
	issuer_identifier(&d, ca, ca_key);
	der_wrap(&d, end, MBEDTLS_ASN1_CONTEXT_SPECIFIC | 0);
	der_wrap(&d, end, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE);
	return add(w, MBEDTLS_OID_AUTHORITY_KEY_IDENTIFIER,
	    sizeof(MBEDTLS_OID_AUTHORITY_KEY_IDENTIFIER) - 1, false, &d);
}

static bool
is_dns_name(const char *name)
{
	static const char legal[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._*";
	size_t len = strlen(name);

	return len > 0 && len <= DNS_NAME_MAX && strspn(name, legal) == len;
}

static bool
der_name(struct der *d, const char *name)
{
	uint8_t address[16];
	const uint8_t *end = d->p;
	uint8_t tag = NAME_IP;

	if (inet_pton(AF_INET, name, address) == 1) {
		der_raw(d, address, 4);
	} else if (inet_pton(AF_INET6, name, address) == 1) {
		der_raw(d, address, 16);
	} else if (is_dns_name(name)) {
		der_raw(d, name, strlen(name));
		tag = NAME_DNS;
	} else {
		return false;
	}
	der_wrap(d, end, (uint8_t)(MBEDTLS_ASN1_CONTEXT_SPECIFIC | tag));
	return true;
}

static enum err
add_names(mbedtls_x509write_cert *w, const struct x509_request *r, struct why *why)
{
	struct der d;

	der_begin(&d);
	const uint8_t *end = d.p;
	for (size_t i = r->name_count; i-- > 0;)
		if (!der_name(&d, r->names[i]))
			return err_set(why, ERR_INVALID,
			    "\"%.80s\" is neither a DNS name nor an IP address", r->names[i]);
	der_wrap(&d, end, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE);
	if (d.failed)
		return err_set(why, ERR_LIMIT, "the server's names are too long together");
	if (!add(w, MBEDTLS_OID_SUBJECT_ALT_NAME, sizeof(MBEDTLS_OID_SUBJECT_ALT_NAME) - 1, false,
		&d))
		return err_set(why, ERR_NOMEM, "no memory for a certificate");
	return ERR_OK;
}

static bool
set_serial(mbedtls_x509write_cert *w)
{
	uint8_t serial[SERIAL_LEN];

	if (rng_bytes(serial, sizeof(serial)))
		return false;
	/* Positive and of full length, so that DER has nothing to add or strip. */
	serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40);
#if MBED_3
	return mbedtls_x509write_crt_set_serial_raw(w, serial, sizeof(serial)) == 0;
#else
	mbedtls_mpi number;
	mbedtls_mpi_init(&number);
	bool good = mbedtls_mpi_read_binary(&number, serial, sizeof(serial)) == 0 &&
	    mbedtls_x509write_crt_set_serial(w, &number) == 0;
	mbedtls_mpi_free(&number);
	return good;
#endif
}

static bool
set_validity(mbedtls_x509write_cert *w, int64_t from, int64_t to)
{
	char text[2][32];
	const int64_t when[2] = {from < EARLIEST ? EARLIEST : from, to};
	struct tm tm;

	for (int i = 0; i < 2; i++) {
		date_parts(&tm, when[i]);
		if (strftime(text[i], sizeof(text[i]), "%Y%m%d%H%M%S", &tm) != 14)
			return false;
	}
	return mbedtls_x509write_crt_set_validity(w, text[0], text[1]) == 0;
}

/* Adds one attribute with its string type; mbedTLS's own way takes text and would need escaping. */
static bool
add_attribute(mbedtls_asn1_named_data **list, const mbedtls_x509_name *from)
{
	mbedtls_asn1_named_data *made = mbedtls_asn1_store_named_data(
	    list, (const char *)from->oid.p, from->oid.len, from->val.p, from->val.len);

	if (made)
		made->val.tag = from->val.tag;
	return made != NULL;
}

bool
x509_issue_set_name(mbedtls_asn1_named_data **list, const char *common_name)
{
	static const char oid[] = MBEDTLS_OID_AT_CN;
	mbedtls_x509_name name = {0};
	size_t len = strlen(common_name);

	if (len == 0 || len > COMMON_NAME_MAX)
		return false;
	name.oid.p = (unsigned char *)(uintptr_t)oid;
	name.oid.len = sizeof(oid) - 1;
	name.val.tag = MBEDTLS_ASN1_UTF8_STRING;
	name.val.p = (unsigned char *)(uintptr_t)common_name;
	name.val.len = len;
	return add_attribute(list, &name);
}

/* The issuer's name exactly as the CA's certificate has it. */
static bool
set_issuer(mbedtls_x509write_cert *w, const mbedtls_x509_name *name)
{
	for (; name && name->oid.p; name = name->next)
		if (!add_attribute(&w->MBEDTLS_PRIVATE(issuer), name))
			return false;
	return true;
}

static enum err
check_request(const struct x509_request *r, struct why *why)
{
	size_t len = strlen(r->common_name);

	if (len == 0 || len > COMMON_NAME_MAX)
		return err_set(why, ERR_INVALID, "a certificate's common name has 1 to %d bytes",
		    COMMON_NAME_MAX);
	if (key_check_spki(r->spki, KEY_SPKI_LEN))
		return err_set(why, ERR_INVALID, "not a P-256 public key");
	if (r->not_after < EARLIEST || r->not_after > LATEST || r->not_before > r->not_after)
		return err_set(
		    why, ERR_INVALID, "impossible dates for a certificate: check the clock");
	if (r->name_count > X509_NAMES_MAX)
		return err_set(why, ERR_LIMIT, "more than %d names", X509_NAMES_MAX);
	if (r->use == X509_SERVER && r->name_count == 0)
		return err_set(why, ERR_INVALID, "a server certificate needs a name or an address");
	return ERR_OK;
}

static enum err
fill(mbedtls_x509write_cert *w, const struct x509_request *r, const mbedtls_x509_crt *ca_cert,
    const struct key *ca_key, struct why *why)
{
	bool ca = r->use == X509_CA;

	mbedtls_x509write_crt_set_version(w, MBEDTLS_X509_CRT_VERSION_3);
	mbedtls_x509write_crt_set_md_alg(w, MBEDTLS_MD_SHA256);
	if (!set_serial(w) || !set_validity(w, r->not_before, r->not_after) ||
	    !x509_issue_set_name(&w->MBEDTLS_PRIVATE(subject), r->common_name) ||
	    !add_constraints(w, ca) || !add_usage(w, ca) ||
	    (!ca && !add_extended_usage(w, r->use)) || !add_key_ids(w, r->spki, ca_cert, ca_key))
		return err_set(why, ERR_NOMEM, "cannot put a certificate together");
	return r->use == X509_SERVER ? add_names(w, r, why) : ERR_OK;
}

/* Signs, and checks that the result names its issuer as the CA names itself: a CA name that mbedTLS cannot
 * write again would make certificates that chain to nothing. */
static enum err
seal(struct x509_cert *out, mbedtls_x509write_cert *w, const struct x509_cert *ca,
    const struct key *ca_key, struct why *why)
{
	int n = mbedtls_x509write_crt_der(w, out->der, sizeof(out->der), rng_mbedtls, NULL);

	if (n <= 0)
		return err_set(
		    why, ERR_LIMIT, "cannot write a certificate of at most %d bytes", X509_DER_MAX);
	out->len = (size_t)n;
	memmove(out->der, out->der + sizeof(out->der) - out->len, out->len);
	if (x509_strict_algorithm(out, ca_key) || x509_verify(out, ca ? ca : out))
		return err_set(
		    why, ERR_UNSUPPORTED, "the key or name of the CA cannot issue certificates");
	return ERR_OK;
}

enum err
x509_issue(struct x509_cert *out, const struct x509_request *request, const struct x509_cert *ca,
    const struct key *ca_key, struct why *why)
{
	mbedtls_x509write_cert w;
	mbedtls_pk_context subject;
	mbedtls_x509_crt root;
	enum err e = check_request(request, why);

	if (e)
		return e;
	if (!ca && request->use != X509_CA)
		return err_set(why, ERR_INVALID, "only a CA signs itself");
	mbedtls_x509write_crt_init(&w);
	mbedtls_pk_init(&subject);
	mbedtls_x509_crt_init(&root);
	if (ca && mbedtls_x509_crt_parse_der(&root, ca->der, ca->len) != 0)
		e = err_set(why, ERR_INVALID, "malformed CA certificate");
	else if (mbedtls_pk_parse_public_key(&subject, request->spki, KEY_SPKI_LEN) != 0)
		e = err_set(why, ERR_INVALID, "not a P-256 public key");
	else
		e = fill(&w, request, &root, ca_key, why);
	if (!e &&
	    !(ca ? set_issuer(&w, &root.subject)
		 : x509_issue_set_name(&w.MBEDTLS_PRIVATE(issuer), request->common_name)))
		e = err_set(why, ERR_NOMEM, "no memory for a certificate");
	if (!e) {
		mbedtls_x509write_crt_set_subject_key(&w, &subject);
		mbedtls_x509write_crt_set_issuer_key(
		    &w, (mbedtls_pk_context *)(uintptr_t)&ca_key->pk);
		e = seal(out, &w, ca, ca_key, why);
	}
	mbedtls_x509_crt_free(&root);
	mbedtls_pk_free(&subject);
	mbedtls_x509write_crt_free(&w);
	return e;
}
