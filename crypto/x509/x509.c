#include "x509.h"

#include <arpa/inet.h>
#include <mbedtls/asn1.h>
#include <mbedtls/asn1write.h>
#include <mbedtls/oid.h>
#include <mbedtls/pem.h>
#include <mbedtls/x509_crt.h>
#include <string.h>
#include <time.h>

#include "date.h"
#include "mbed.h"

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----\n"
#define PEM_END "-----END CERTIFICATE-----\n"

/* Parses one certificate whose key and signature are of the only kind a fleet has. */
static enum err
parse(mbedtls_x509_crt *crt, const struct x509_cert *cert, struct why *why)
{
	if (cert->len == 0 || cert->len > X509_DER_MAX)
		return err_set(why, ERR_INVALID, "certificate of %zu bytes", cert->len);
	if (mbedtls_x509_crt_parse_der(crt, cert->der, cert->len) != 0 || crt->raw.len != cert->len)
		return err_set(why, ERR_INVALID, "malformed certificate");
	if (!key_is_p256(&crt->pk))
		return err_set(why, ERR_UNSUPPORTED, "the certificate's key is not P-256");
	return ERR_OK;
}

static int64_t
seconds_of(const mbedtls_x509_time *t)
{
	struct tm tm = {.tm_year = t->year - 1900,
	    .tm_mon = t->mon - 1,
	    .tm_mday = t->day,
	    .tm_hour = t->hour,
	    .tm_min = t->min,
	    .tm_sec = t->sec};

	return date_seconds(&tm);
}

bool
x509_copy_text(char *out, size_t room, const uint8_t *text, size_t len)
{
	bool fits = len < room && !memchr(text, '\0', len);

	if (fits)
		memcpy(out, text, len);
	out[fits ? len : 0] = '\0';
	return fits;
}

bool
x509_copy_common_name(char *out, size_t room, const mbedtls_x509_name *subject)
{
	out[0] = '\0';
	for (const mbedtls_x509_name *n = subject; n; n = n->next)
		if (MBEDTLS_OID_CMP(MBEDTLS_OID_AT_CN, &n->oid) == 0)
			return x509_copy_text(out, room, n->val.p, n->val.len);
	return true;
}

/* AuthorityKeyIdentifier ::= SEQUENCE { keyIdentifier [0] OCTET STRING OPTIONAL, ... } */
static void
copy_issuer_key(uint8_t out[X509_KEY_ID_LEN], const mbedtls_x509_crt *crt)
{
	static const char oid[] = MBEDTLS_OID_AUTHORITY_KEY_IDENTIFIER;
	size_t len;
	unsigned char *p = x509_ext_find(crt, oid, sizeof(oid) - 1, &len);

	memset(out, 0, X509_KEY_ID_LEN);
	if (p &&
	    mbedtls_asn1_get_tag(
		&p, p + len, &len, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE) == 0 &&
	    mbedtls_asn1_get_tag(&p, p + len, &len, MBEDTLS_ASN1_CONTEXT_SPECIFIC | 0) == 0 &&
	    len == X509_KEY_ID_LEN)
		memcpy(out, p, len);
}

enum err
x509_parse(struct x509_info *out, const struct x509_cert *cert, struct why *why)
{
	mbedtls_x509_crt crt;

	mbedtls_x509_crt_init(&crt);
	enum err e = parse(&crt, cert, why);
	if (!e)
		e = key_spki_of(&crt.pk, out->spki);
	if (!e && !x509_copy_common_name(out->common_name, sizeof(out->common_name), &crt.subject))
		e = err_set(why, ERR_INVALID, "bad common name in the certificate");
	if (!e) {
		out->not_before = seconds_of(&crt.valid_from);
		out->not_after = seconds_of(&crt.valid_to);
		out->is_ca = crt.MBEDTLS_PRIVATE(ca_istrue) != 0;
		copy_issuer_key(out->issuer_key, &crt);
	}
	mbedtls_x509_crt_free(&crt);
	return e;
}

static bool
same(const mbedtls_x509_buf *a, const mbedtls_x509_buf *b)
{
	return a->len == b->len && memcmp(a->p, b->p, a->len) == 0;
}

/* mbedtls_x509_crt_verify believes a certificate that is itself the anchor without looking at its signature;
 * the contract here is the signature. */
static bool
signed_by(mbedtls_x509_crt *crt, mbedtls_x509_crt *ca)
{
	uint8_t digest[HASH_LEN];
	const mbedtls_x509_buf *sig = &crt->MBEDTLS_PRIVATE(sig);

	if (!ca->MBEDTLS_PRIVATE(ca_istrue) ||
	    mbedtls_x509_crt_check_key_usage(ca, MBEDTLS_X509_KU_KEY_CERT_SIGN) != 0 ||
	    !same(&crt->issuer_raw, &ca->subject_raw) ||
	    crt->MBEDTLS_PRIVATE(sig_md) != MBEDTLS_MD_SHA256 ||
	    crt->MBEDTLS_PRIVATE(sig_pk) != MBEDTLS_PK_ECDSA)
		return false;
	hash_sha256(digest, crt->tbs.p, crt->tbs.len);
	return mbedtls_pk_verify(
		   &ca->pk, MBEDTLS_MD_SHA256, digest, sizeof(digest), sig->p, sig->len) == 0;
}

enum err
x509_verify(const struct x509_cert *cert, const struct x509_cert *ca)
{
	mbedtls_x509_crt leaf, root;

	mbedtls_x509_crt_init(&leaf);
	mbedtls_x509_crt_init(&root);
	enum err e = parse(&leaf, cert, NULL);
	if (!e)
		e = parse(&root, ca, NULL);
	if (!e && !signed_by(&leaf, &root))
		e = ERR_DENIED;
	mbedtls_x509_crt_free(&leaf);
	mbedtls_x509_crt_free(&root);
	return e;
}

struct names {
	char (*out)[X509_NAME_MAX];
	size_t count, room;
	enum err e;
};

static bool
take_name(void *ctx, int tag, const uint8_t *content, size_t len)
{
	struct names *n = ctx;

	if (tag != X509_EXT_DNS && tag != X509_EXT_ADDRESS)
		return true;
	if (n->count == n->room) {
		n->e = ERR_LIMIT;
		return false;
	}
	char *out = n->out[n->count];
	bool ok = tag == X509_EXT_DNS ? len > 0 && len < X509_NAME_MAX && !memchr(content, 0, len)
				      : len == 4 || len == 16;
	if (ok && tag == X509_EXT_DNS) {
		memcpy(out, content, len);
		out[len] = '\0';
	} else if (ok) {
		inet_ntop(len == 4 ? AF_INET : AF_INET6, content, out, X509_NAME_MAX);
	}
	n->count += ok;
	return true;
}

enum err
x509_names(char (*out)[X509_NAME_MAX], size_t *count, const struct x509_cert *cert)
{
	struct names n = {.out = out, .room = *count};
	mbedtls_x509_crt crt;

	mbedtls_x509_crt_init(&crt);
	n.e = parse(&crt, cert, NULL);
	if (!n.e)
		x509_ext_each_name(&crt, take_name, &n);
	mbedtls_x509_crt_free(&crt);
	*count = n.count;
	return n.e;
}

enum err
x509_from_pem(struct x509_cert *out, const char *pem, struct why *why)
{
	mbedtls_pem_context ctx;
	mbedtls_x509_crt crt;
	enum err e = ERR_OK;
	size_t used = 0;

	mbedtls_pem_init(&ctx);
	mbedtls_x509_crt_init(&crt);
	if (mbedtls_pem_read_buffer(&ctx, "-----BEGIN CERTIFICATE-----",
		"-----END CERTIFICATE-----", (const unsigned char *)pem, NULL, 0, &used) != 0)
		e = err_set(why, ERR_INVALID, "no certificate in PEM form");
	else if (strstr(pem + used, "-----BEGIN "))
		e = err_set(why, ERR_INVALID, "more than one object in PEM form");
	else if (ctx.MBEDTLS_PRIVATE(buflen) > X509_DER_MAX)
		e = err_set(why, ERR_LIMIT, "certificate larger than %d bytes", X509_DER_MAX);
	if (!e) {
		out->len = ctx.MBEDTLS_PRIVATE(buflen);
		memcpy(out->der, ctx.MBEDTLS_PRIVATE(buf), out->len);
		e = parse(&crt, out, why);
	}
	mbedtls_x509_crt_free(&crt);
	mbedtls_pem_free(&ctx);
	return e;
}

enum err
x509_to_pem(char *out, size_t *len, const struct x509_cert *cert)
{
	size_t written = 0;

	if (mbedtls_pem_write_buffer(PEM_BEGIN, PEM_END, cert->der, cert->len, (unsigned char *)out,
		*len, &written) != 0)
		return ERR_LIMIT;
	*len = written - 1;
	return ERR_OK;
}
