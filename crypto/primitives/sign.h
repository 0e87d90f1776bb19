#ifndef SIGN_H
#define SIGN_H
#include <stdint.h>

#include "key.h"

/*
 * ECDSA P-256 over a SHA-256 digest; signatures are raw r || s, 64 bytes, big-endian (RFC 7518 form).
 * Signatures are malleable: never use their bytes as an identity. Any thread.
 */
#define SIGN_LEN 64

ERR_MUST_USE enum err sign_hash(
    const struct key *key, const uint8_t digest[HASH_LEN], uint8_t sig[SIGN_LEN]);
/* ERR_DENIED if the signature does not verify, ERR_INVALID if spki is not a P-256 key. */
ERR_MUST_USE enum err sign_verify(
    const uint8_t spki[KEY_SPKI_LEN], const uint8_t digest[HASH_LEN], const uint8_t sig[SIGN_LEN]);

#endif
