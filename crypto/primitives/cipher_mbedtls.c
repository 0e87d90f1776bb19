#include "cipher.h"

#include "mbed.h"

#include <mbedtls/chacha20.h>

enum err
cipher_xor(const uint8_t key[CIPHER_KEY_LEN], const uint8_t nonce[CIPHER_NONCE_LEN], uint64_t at,
    void *data, size_t len)
{
	uint8_t skipped[64] = {0};
	mbedtls_chacha20_context c;

	if (at > CIPHER_STREAM_MAX || len > CIPHER_STREAM_MAX - at)
		return ERR_LIMIT;
	mbedtls_chacha20_init(&c);
	int rc = mbedtls_chacha20_setkey(&c, key);
	if (rc == 0)
		rc = mbedtls_chacha20_starts(&c, nonce, (uint32_t)(at / 64));
	/* The stream begins at a block; what lies before `at` in it goes into nothing. */
	if (rc == 0)
		rc = mbedtls_chacha20_update(&c, (size_t)(at % 64), skipped, skipped);
	if (rc == 0)
		rc = mbedtls_chacha20_update(&c, len, data, data);
	mbedtls_chacha20_free(&c);
	return rc == 0 ? ERR_OK : ERR_IO;
}
