#include <mbedtls/asn1write.h>
#include <string.h>

#include "mbed.h"
#include "x509.h"

#define SEQUENCE (MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE)
#define VERSION (MBEDTLS_ASN1_CONTEXT_SPECIFIC | MBEDTLS_ASN1_CONSTRUCTED | 0)

/* An AlgorithmIdentifier of ECDSA with SHA-256: as RFC 5758 wants it, and as mbedTLS before 3.5 writes it. */
static const uint8_t bare[] = {
    0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02};
static const uint8_t with_null[] = {
    0x30, 0x0c, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02, 0x05, 0x00};

/* Written backwards, as mbedTLS's ASN.1 writer does. */
struct writer {
	uint8_t bytes[X509_DER_MAX];
	uint8_t *p;
	int failed; /* sticky */
};

static void
put(struct writer *w, const void *data, size_t len)
{
	int n = mbedtls_asn1_write_raw_buffer(&w->p, w->bytes, data, len);

	w->failed = n < 0 ? n : w->failed;
}

/* Wraps all that was written. */
static void
wrap(struct writer *w, uint8_t tag)
{
	size_t len = (size_t)(w->bytes + sizeof(w->bytes) - w->p);
	int n = mbedtls_asn1_write_len(&w->p, w->bytes, len);

	if (n >= 0)
		n = mbedtls_asn1_write_tag(&w->p, w->bytes, tag);
	w->failed = n < 0 ? n : w->failed;
}

/* Where the identifier stands in the part that is signed, and where that part's content begins and ends. */
static uint8_t *
find(struct x509_cert *c, uint8_t **from, uint8_t **to)
{
	uint8_t *p = c->der, *end = c->der + c->len;
	size_t len;

	if (mbedtls_asn1_get_tag(&p, end, &len, SEQUENCE) != 0 ||
	    mbedtls_asn1_get_tag(&p, end, &len, SEQUENCE) != 0)
		return NULL;
	*from = p;
	*to = p + len;
	if (mbedtls_asn1_get_tag(&p, *to, &len, VERSION) != 0)
		return NULL;
	p += len;
	if (mbedtls_asn1_get_tag(&p, *to, &len, MBEDTLS_ASN1_INTEGER) != 0)
		return NULL;
	p += len;
	return (size_t)(*to - p) >= sizeof(with_null) ? p : NULL;
}

static bool
sign(uint8_t sig[MBEDTLS_PK_SIGNATURE_MAX_SIZE], size_t *len, const struct writer *part,
    const struct key *key)
{
	mbedtls_pk_context *pk = (mbedtls_pk_context *)(uintptr_t)&key->pk;
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, part->p, (size_t)(part->bytes + sizeof(part->bytes) - part->p));
#if MBED_3
	return mbedtls_pk_sign(pk, MBEDTLS_MD_SHA256, digest, sizeof(digest), sig,
		   MBEDTLS_PK_SIGNATURE_MAX_SIZE, len, rng_mbedtls, NULL) == 0;
#else
	return mbedtls_pk_sign(
		   pk, MBEDTLS_MD_SHA256, digest, sizeof(digest), sig, len, rng_mbedtls, NULL) == 0;
#endif
}

enum err
x509_strict_algorithm(struct x509_cert *c, const struct key *key)
{
	uint8_t sig[MBEDTLS_PK_SIGNATURE_MAX_SIZE], *from, *to, *at = find(c, &from, &to);
	struct writer part = {.failed = 0}, all = {.failed = 0};
	size_t len = 0;

	if (!at)
		return ERR_INVALID;
	if (memcmp(at, with_null, sizeof(with_null)) != 0)
		return ERR_OK;
	part.p = part.bytes + sizeof(part.bytes);
	put(&part, at + sizeof(with_null), (size_t)(to - at) - sizeof(with_null));
	put(&part, bare, sizeof(bare));
	put(&part, from, (size_t)(at - from));
	wrap(&part, SEQUENCE);
	if (part.failed || !sign(sig, &len, &part, key))
		return ERR_LIMIT;
	all.p = all.bytes + sizeof(all.bytes);
	put(&all, sig, len);
	put(&all, "", 1); /* no unused bits */
	wrap(&all, MBEDTLS_ASN1_BIT_STRING);
	put(&all, bare, sizeof(bare));
	put(&all, part.p, (size_t)(part.bytes + sizeof(part.bytes) - part.p));
	wrap(&all, SEQUENCE);
	if (all.failed)
		return ERR_LIMIT;
	c->len = (size_t)(all.bytes + sizeof(all.bytes) - all.p);
	memcpy(c->der, all.p, c->len);
	return ERR_OK;
}
