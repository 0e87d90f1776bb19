#ifndef X509_H
#define X509_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "key.h"

/*
 * Certificates: the private CA of one fleet. Always mbedTLS, whatever the TLS back end is.
 * All certificates are P-256 with SHA-256, DER in memory; PEM where a file or libcurl wants it. Times are Unix
 * seconds. Nothing here touches files or the clock.
 */
#define X509_DER_MAX 2048
#define X509_CSR_MAX 4096
#define X509_NAMES_MAX 16

struct x509_cert {
	uint8_t der[X509_DER_MAX];
	size_t len;
};

/* Which key signed a certificate: the authority key identifier, after RFC 7093 method 1. */
#define X509_KEY_ID_LEN 20

#define X509_COMMON_NAME 128 /* room for a common name with its zero byte */

struct x509_info {
	char common_name[X509_COMMON_NAME];
	uint8_t spki[KEY_SPKI_LEN];
	int64_t not_before;
	int64_t not_after;
	bool is_ca;
	uint8_t issuer_key[X509_KEY_ID_LEN]; /* zero if the certificate does not tell */
};

enum x509_use { X509_CA, X509_SERVER, X509_CLIENT, X509_SIGNER };

struct x509_request {
	enum x509_use use;
	const char *common_name; /* 1 to 64 bytes of UTF-8 */
	const char *const *names; /* X509_SERVER: DNS names and IP addresses for subjectAltName */
	size_t name_count;
	const uint8_t *spki; /* the subject's public key, KEY_SPKI_LEN bytes */
	int64_t not_before;
	int64_t not_after;
};

/* Issues a certificate signed by ca_key. For X509_CA, ca may be NULL: self-signed, spki must be ca_key's. With X509_CA and a ca, the
 * new CA replaces `ca` and the certificate has ca's name (RFC 5280: self-issued).
 * The serial number is 16 random bytes. basicConstraints, keyUsage and extendedKeyUsage follow `use`. A
 * not_before of the last century becomes 2000-01-01. ERR_INVALID names what is wrong with the request,
 * ERR_LIMIT if it does not fit X509_DER_MAX, ERR_UNSUPPORTED if ca_key is not ca's. */
ERR_MUST_USE enum err x509_issue(struct x509_cert *out, const struct x509_request *request,
    const struct x509_cert *ca, const struct key *ca_key, struct why *why);

/* The identifier by which certificates name the key that signed them. */
void x509_key_id(uint8_t out[X509_KEY_ID_LEN], const uint8_t spki[KEY_SPKI_LEN]);

/* Makes a PKCS#10 request (DER) for key with CN = common_name. *len enters as room. */
ERR_MUST_USE enum err x509_csr_make(
    uint8_t *out, size_t *len, const struct key *key, const char *common_name, struct why *why);
/* Checks a PKCS#10 request from outside, its own signature included, and returns its P-256 key.
 * ERR_INVALID malformed, ERR_UNSUPPORTED another kind of key, ERR_DENIED bad self-signature, ERR_LIMIT more
 * than X509_CSR_MAX bytes. */
ERR_MUST_USE enum err x509_csr_check(
    const uint8_t *der, size_t len, uint8_t spki[KEY_SPKI_LEN], struct why *why);

/* Parses one certificate; ERR_INVALID, or ERR_UNSUPPORTED if its key is not P-256. */
ERR_MUST_USE enum err x509_parse(
    struct x509_info *out, const struct x509_cert *cert, struct why *why);
/* Does `cert` carry a valid signature of `ca`? Dates are not looked at. ERR_DENIED if not. */
ERR_MUST_USE enum err x509_verify(const struct x509_cert *cert, const struct x509_cert *ca);

/* The DNS names and addresses of subjectAltName as text, in order; names of other kinds are left out. *count enters as the room of out and
 * leaves as the number of names. ERR_LIMIT if there are more, ERR_INVALID if *cert is no certificate. */
#define X509_NAME_MAX 256
ERR_MUST_USE enum err x509_names(
    char (*out)[X509_NAME_MAX], size_t *count, const struct x509_cert *cert);

/* One PEM certificate to DER and back; `out` of PEM is NUL-terminated, *len is room in and length out. */
ERR_MUST_USE enum err x509_from_pem(struct x509_cert *out, const char *pem, struct why *why);
ERR_MUST_USE enum err x509_to_pem(char *out, size_t *len, const struct x509_cert *cert);

#endif
