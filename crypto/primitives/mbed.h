#ifndef MBED_H
#define MBED_H
#include <mbedtls/asn1.h>
#include <mbedtls/pk.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <stdbool.h>

#include "key.h"

/*
 * Internal to crypto/: what its files share about mbedTLS, and one spelling for what 2.28 and 3.6 name
 * differently. No other folder includes it.
 */
#define MBED_3 (MBEDTLS_VERSION_NUMBER >= 0x03000000)

#if !MBED_3
#define MBEDTLS_PRIVATE(member) member
#endif

struct key {
	mbedtls_pk_context pk; /* primed: see sign_attach */
	uint8_t spki[KEY_SPKI_LEN];
	void *native; /* the same key as the OpenSSL back end wants it; NULL with mbedTLS */
};

/* mbedTLS's random callback over rng_bytes. */
int rng_mbedtls(void *unused, unsigned char *out, size_t len);

/* Takes over nothing: pk stays the caller's. ERR_UNSUPPORTED unless P-256. */
ERR_MUST_USE enum err key_spki_of(const mbedtls_pk_context *pk, uint8_t spki[KEY_SPKI_LEN]);
/* Makes a second object of the same key; the caller frees *out. */
ERR_MUST_USE enum err key_copy(struct key **out, const struct key *key);
/* Private key as DER into out, at its start; the caller wipes it. */
ERR_MUST_USE enum err key_der(const struct key *key, uint8_t out[256], size_t *len);
/* Is everything before the point's coordinates as a P-256 SPKI has it? */
bool key_has_prefix(const uint8_t spki[KEY_SPKI_LEN]);
/* True for a P-256 EC key. */
bool key_is_p256(const mbedtls_pk_context *pk);

/* Makes a fresh key ready for signing by any number of threads, and undoes it. mbedTLS 2.28 stores a table of
 * multiples in the key at its first use, without a lock: one signature before the key is shared settles that. */
ERR_MUST_USE enum err sign_attach(struct key *key);
void sign_detach(struct key *key);

/* Appends a common name of 1 to 64 bytes to a name being written. */
bool x509_issue_set_name(mbedtls_asn1_named_data **list, const char *common_name);

/* Copies a common name out of a certificate. "" and false if the name does not fit or holds a NUL: a part is never taken for the whole. */
bool x509_copy_text(char *out, size_t room, const uint8_t *text, size_t len);
/* The first common name of a subject; "" and true if there is none. */
bool x509_copy_common_name(char *out, size_t room, const mbedtls_x509_name *subject);

struct x509_cert;
/* Removes from a certificate the NULL that mbedTLS before 3.5 writes behind the signature's algorithm and that RFC 5758 forbids, and signs
 * the certificate anew with `key`, its signer. ERR_INVALID if *cert is no certificate, ERR_LIMIT if the result cannot be written. */
ERR_MUST_USE enum err x509_strict_algorithm(struct x509_cert *cert, const struct key *key);

/* Tags among GeneralNames. */
#define X509_EXT_DNS (MBEDTLS_ASN1_CONTEXT_SPECIFIC | 2)
#define X509_EXT_ADDRESS (MBEDTLS_ASN1_CONTEXT_SPECIFIC | 7)

/* The value of a certificate's extension, inside the certificate's memory, or NULL. */
unsigned char *x509_ext_find(
    const mbedtls_x509_crt *crt, const char *oid, size_t oid_len, size_t *len);
/* Calls fn with tag and content of each GeneralName of subjectAltName until it returns false. */
void x509_ext_each_name(const mbedtls_x509_crt *crt,
    bool (*fn)(void *ctx, int tag, const uint8_t *content, size_t len), void *ctx);
/* Does subjectAltName hold this address of 4 or 16 bytes? mbedTLS 2.28 looks at DNS names only. */
bool x509_ext_has_address(const mbedtls_x509_crt *crt, const uint8_t *address, size_t address_len);

/* Parses a private key: PEM, its zero byte counted in `len`, or DER. */
static inline int
mbed_pk_parse_key(mbedtls_pk_context *pk, const uint8_t *text, size_t len)
{
#if MBED_3
	return mbedtls_pk_parse_key(pk, text, len, NULL, 0, rng_mbedtls, NULL);
#else
	return mbedtls_pk_parse_key(pk, text, len, NULL, 0);
#endif
}

#endif
