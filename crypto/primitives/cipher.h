#ifndef CIPHER_H
#define CIPHER_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * The ChaCha20 key stream (RFC 8439, block counter from 0), for files that are written and read in any order. It hides, it does
 * not protect against change: what is read must be checked by other means.
 */
#define CIPHER_KEY_LEN 32
#define CIPHER_NONCE_LEN 12
#define CIPHER_STREAM_MAX ((uint64_t)64 << 32)

/* XORs `data` in place with the stream of key and nonce from its byte `at`: encrypts and decrypts. ERR_LIMIT past
 * CIPHER_STREAM_MAX; ERR_NOMEM. Any thread. */
ERR_MUST_USE enum err cipher_xor(const uint8_t key[CIPHER_KEY_LEN],
    const uint8_t nonce[CIPHER_NONCE_LEN], uint64_t at, void *data, size_t len);

#endif
