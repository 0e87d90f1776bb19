#include <mbedtls/oid.h>
#include <mbedtls/x509_csr.h>
#include <string.h>

#include "mbed.h"
#include "x509.h"

enum err
x509_csr_make(
    uint8_t *out, size_t *len, const struct key *key, const char *common_name, struct why *why)
{
	mbedtls_x509write_csr w;
	int n = -1;

	mbedtls_x509write_csr_init(&w);
	mbedtls_x509write_csr_set_md_alg(&w, MBEDTLS_MD_SHA256);
	mbedtls_x509write_csr_set_key(&w, (mbedtls_pk_context *)(uintptr_t)&key->pk);
	if (x509_issue_set_name(&w.MBEDTLS_PRIVATE(subject), common_name))
		n = mbedtls_x509write_csr_der(&w, out, *len, rng_mbedtls, NULL);
	mbedtls_x509write_csr_free(&w);
	if (n <= 0)
		return err_set(why, ERR_LIMIT, "cannot write a request for \"%.80s\"", common_name);
	memmove(out, out + *len - (size_t)n, (size_t)n);
	*len = (size_t)n;
	return ERR_OK;
}

/* An algorithm this mbedTLS has never heard of is another kind of key, not a malformed request. */
static enum err
classify(int result)
{
	int high = -((-result) & 0x7f80);

	return high == MBEDTLS_ERR_PK_UNKNOWN_PK_ALG ||
		high == MBEDTLS_ERR_PK_UNKNOWN_NAMED_CURVE ||
		high == MBEDTLS_ERR_X509_UNKNOWN_SIG_ALG
	    ? ERR_UNSUPPORTED
	    : ERR_INVALID;
}

static enum err
check(mbedtls_x509_csr *csr, uint8_t spki[KEY_SPKI_LEN], struct why *why)
{
	uint8_t digest[HASH_LEN];
	const mbedtls_x509_buf *sig = &csr->MBEDTLS_PRIVATE(sig);
	enum err e = key_spki_of(&csr->pk, spki);

	if (e)
		return err_set(why, e, "the request's key is not P-256");
	if (csr->MBEDTLS_PRIVATE(sig_pk) != MBEDTLS_PK_ECDSA ||
	    csr->MBEDTLS_PRIVATE(sig_md) != MBEDTLS_MD_SHA256)
		return err_set(
		    why, ERR_UNSUPPORTED, "the request is not signed by ECDSA with SHA-256");
	hash_sha256(digest, csr->cri.p, csr->cri.len);
	if (mbedtls_pk_verify(
		&csr->pk, MBEDTLS_MD_SHA256, digest, sizeof(digest), sig->p, sig->len) != 0)
		return err_set(why, ERR_DENIED, "the request is not signed by its own key");
	return ERR_OK;
}

enum err
x509_csr_check(const uint8_t *der, size_t len, uint8_t spki[KEY_SPKI_LEN], struct why *why)
{
	mbedtls_x509_csr csr;
	enum err e;

	if (len == 0)
		return err_set(why, ERR_INVALID, "empty certificate request");
	if (len > X509_CSR_MAX)
		return err_set(
		    why, ERR_LIMIT, "certificate request larger than %d bytes", X509_CSR_MAX);
	mbedtls_x509_csr_init(&csr);
	int result = mbedtls_x509_csr_parse_der(&csr, der, len);
	if (result != 0) {
		e = classify(result);
		err_set(why, e,
		    e == ERR_INVALID ? "malformed certificate request"
				     : "the request's key is not P-256");
	} else {
		e = check(&csr, spki, why);
	}
	mbedtls_x509_csr_free(&csr);
	return e;
}
