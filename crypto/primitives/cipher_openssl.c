#include "cipher.h"

#include <string.h>

#include "ossl.h"

#define PIECE (1 << 30)

static enum err
xor_stream(EVP_CIPHER_CTX *c, uint8_t *p, size_t len)
{
	while (len > 0) {
		int n = len < PIECE ? (int)len : PIECE, done = 0;
		if (EVP_EncryptUpdate(c, p, &done, p, n) != 1 || done != n)
			return ERR_IO;
		p += n;
		len -= (size_t)n;
	}
	return ERR_OK;
}

enum err
cipher_xor(const uint8_t key[CIPHER_KEY_LEN], const uint8_t nonce[CIPHER_NONCE_LEN], uint64_t at,
    void *data, size_t len)
{
	uint64_t block = at / 64;
	uint8_t skipped[64] = {0}, start[16];

	if (at > CIPHER_STREAM_MAX || len > CIPHER_STREAM_MAX - at)
		return ERR_LIMIT;
	/* OpenSSL's IV is the block counter, little-endian, and the nonce behind it. */
	for (int i = 0; i < 4; i++)
		start[i] = (uint8_t)(block >> (8 * i));
	memcpy(start + 4, nonce, CIPHER_NONCE_LEN);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	if (!c)
		return ERR_NOMEM;
	enum err e =
	    EVP_EncryptInit_ex(c, EVP_chacha20(), NULL, key, start) == 1 ? ERR_OK : ERR_NOMEM;
	/* What lies before `at` in its block goes into nothing. */
	if (!e)
		e = xor_stream(c, skipped, (size_t)(at % 64));
	if (!e)
		e = xor_stream(c, data, len);
	EVP_CIPHER_CTX_free(c);
	return e;
}
