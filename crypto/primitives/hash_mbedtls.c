#include <mbedtls/sha256.h>
#include <mbedtls/version.h>
#include <stdlib.h>

#include "hash.h"

#if MBEDTLS_VERSION_NUMBER < 0x03000000
#define mbedtls_sha256 mbedtls_sha256_ret
#define mbedtls_sha256_starts mbedtls_sha256_starts_ret
#define mbedtls_sha256_update mbedtls_sha256_update_ret
#define mbedtls_sha256_finish mbedtls_sha256_finish_ret
#endif

struct hash {
	mbedtls_sha256_context ctx;
};

/* The software SHA-256 has no failing path; a hardware one that fails leaves nothing sensible to do. */
static void
must(int result)
{
	if (result != 0)
		abort();
}

struct hash *
hash_new(void)
{
	struct hash *h = malloc(sizeof(*h));

	if (h)
		mbedtls_sha256_init(&h->ctx);
	return h;
}

void
hash_free(struct hash *h)
{
	if (!h)
		return;
	mbedtls_sha256_free(&h->ctx);
	free(h);
}

void
hash_start(struct hash *h)
{
	must(mbedtls_sha256_starts(&h->ctx, 0));
}

void
hash_update(struct hash *h, const void *data, size_t len)
{
	if (len > 0)
		must(mbedtls_sha256_update(&h->ctx, data, len));
}

void
hash_finish(struct hash *h, uint8_t out[HASH_LEN])
{
	must(mbedtls_sha256_finish(&h->ctx, out));
}

void
hash_sha256(uint8_t out[HASH_LEN], const void *data, size_t len)
{
	must(mbedtls_sha256(len > 0 ? data : (const void *)"", len, out, 0));
}
