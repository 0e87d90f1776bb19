#ifndef KEY_H
#define KEY_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "hash.h"

/*
 * P-256 keys. A private key is an opaque object that any number of threads may sign with at once
 * (crypto/primitives/sign.h). A public key travels as its 91-byte uncompressed SubjectPublicKeyInfo DER (SPKI).
 */
#define KEY_SPKI_LEN 91
#define KEY_ID_HEX (2 * HASH_LEN + 1) /* room for a device id in hex and its zero byte */
#define KEY_PEM_MAX 4096

struct key;

ERR_MUST_USE enum err key_generate(struct key **out, struct why *why);
/* Reads an unencrypted PEM private key. ERR_DENIED if group or others have any access to the file,
 * ERR_UNSUPPORTED for anything but P-256, ERR_NOTFOUND if there is no file. */
ERR_MUST_USE enum err key_load(struct key **out, const char *path, struct why *why);
/* Writes PEM with mode 0600, durably; ERR_EXISTS if the file is there already. */
ERR_MUST_USE enum err key_save(const struct key *key, const char *path, struct why *why);
/* Wipes and frees; NULL is legal. */
void key_free(struct key *key);

/* The public half. */
const uint8_t *key_spki(const struct key *key);
/* Private PEM text (NUL-terminated) into out of KEY_PEM_MAX bytes; the caller wipes it. For libcurl. */
ERR_MUST_USE enum err key_pem(const struct key *key, char *out);
/* Device id: SHA-256 of the SPKI. */
void key_id(uint8_t out[HASH_LEN], const uint8_t spki[KEY_SPKI_LEN]);
/* ERR_INVALID unless spki is a valid uncompressed P-256 point in the exact 91-byte form. */
ERR_MUST_USE enum err key_check_spki(const uint8_t *spki, size_t len);

#endif
