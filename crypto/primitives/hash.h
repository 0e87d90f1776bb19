#ifndef HASH_H
#define HASH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * SHA-256 (FIPS 180-4), HMAC-SHA-256 (RFC 2104) and constant-time comparison.
 * Hashing with a struct hash cannot fail. hash_sha256 and hash_hmac have no result either: should the back end not
 * get the few hundred bytes it needs for them, they end the process.
 */
#define HASH_LEN 32

struct hash; /* a running SHA-256; one owner, no locking */

/* NULL if memory is short. The caller frees it with hash_free (NULL is legal). */
struct hash *hash_new(void);
void hash_free(struct hash *h);
/* Starts a new hash. Needed before every hash, also the first: hash_new does not start one. */
void hash_start(struct hash *h);
void hash_update(struct hash *h, const void *data, size_t len);
void hash_finish(struct hash *h, uint8_t out[HASH_LEN]);

void hash_sha256(uint8_t out[HASH_LEN], const void *data, size_t len);
/* hash_sha256 of many bytes. ERR_CLOSED once `stop` (may be NULL) is asked for; ERR_NOMEM. */
struct stop;
ERR_MUST_USE enum err hash_bytes(
    uint8_t out[HASH_LEN], const void *data, uint64_t len, struct stop *stop);
/* SHA-256 of a regular file from fd, offset 0 to its end; reads in blocks, blocks the caller. */
ERR_MUST_USE enum err hash_file(int fd, uint8_t out[HASH_LEN]);
/* hash_file that gives ERR_CLOSED once `stop` is asked for. */
ERR_MUST_USE enum err hash_file_until(int fd, uint8_t out[HASH_LEN], struct stop *stop);
void hash_hmac(
    uint8_t out[HASH_LEN], const void *key, size_t key_len, const void *data, size_t data_len);
/* Constant in time for equal len. */
bool hash_equal(const void *a, const void *b, size_t len);
/* Clears memory in a way the compiler keeps. */
void hash_wipe(void *data, size_t len);

#endif
