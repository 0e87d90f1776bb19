#include <mbedtls/sha256.h>
#include <mbedtls/version.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "hash_x86.h"

#define BLOCK 64

#if MBEDTLS_VERSION_NUMBER < 0x03000000
#define mbedtls_sha256 mbedtls_sha256_ret
#define mbedtls_sha256_starts mbedtls_sha256_starts_ret
#define mbedtls_sha256_update mbedtls_sha256_update_ret
#define mbedtls_sha256_finish mbedtls_sha256_finish_ret
#endif

/* Where the processor has instructions for it, the blocks go there: the library takes five times as long. */
struct hash {
	bool fast;
	mbedtls_sha256_context ctx; /* unless fast */
	uint32_t state[8];
	uint64_t bytes;
	uint8_t rest[BLOCK]; /* bytes % BLOCK of them wait */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_fast;

static void
look(void)
{
	is_fast = hash_x86_here();
}

static void
fast_start(struct hash *h)
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memcpy(h->state, start, sizeof(start));
	h->bytes = 0;
}

static void
fast_update(struct hash *h, const uint8_t *p, size_t len)
{
	size_t have = (size_t)(h->bytes % BLOCK);

	h->bytes += len;
	if (have > 0) {
		size_t n = len < BLOCK - have ? len : BLOCK - have;
		memcpy(h->rest + have, p, n);
		p += n;
		len -= n;
		if (have + n < BLOCK)
			return;
		hash_x86_blocks(h->state, h->rest, 1);
	}
	if (len >= BLOCK)
		hash_x86_blocks(h->state, p, len / BLOCK);
	memcpy(h->rest, p + len / BLOCK * BLOCK, len % BLOCK);
}

/* FIPS 180-4, 5.1.1: a one bit, zeros, the length in bits. */
static void
fast_finish(struct hash *h, uint8_t out[HASH_LEN])
{
	uint64_t bits = h->bytes * 8;
	uint8_t end[2 * BLOCK] = {0x80};
	size_t have = (size_t)(h->bytes % BLOCK);
	size_t len = (have < BLOCK - 8 ? BLOCK : 2 * BLOCK) - have;

	for (size_t i = 0; i < 8; i++)
		end[len - 1 - i] = (uint8_t)(bits >> (8 * i));
	fast_update(h, end, len);
	for (size_t i = 0; i < HASH_LEN; i++)
		out[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

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

	pthread_once(&once, look);
	if (h) {
		h->fast = is_fast;
		mbedtls_sha256_init(&h->ctx);
	}
	return h;
}

void
hash_free(struct hash *h)
{
	if (!h)
		return;
	mbedtls_sha256_free(&h->ctx);
	hash_wipe(h, sizeof(*h));
	free(h);
}

void
hash_start(struct hash *h)
{
	if (h->fast)
		fast_start(h);
	else
		must(mbedtls_sha256_starts(&h->ctx, 0));
}

void
hash_update(struct hash *h, const void *data, size_t len)
{
	if (len > 0 && h->fast)
		fast_update(h, data, len);
	else if (len > 0)
		must(mbedtls_sha256_update(&h->ctx, data, len));
}

void
hash_finish(struct hash *h, uint8_t out[HASH_LEN])
{
	if (h->fast)
		fast_finish(h, out);
	else
		must(mbedtls_sha256_finish(&h->ctx, out));
}

void
hash_sha256(uint8_t out[HASH_LEN], const void *data, size_t len)
{
	struct hash h = {.fast = true};

	pthread_once(&once, look);
	if (!is_fast) {
		must(mbedtls_sha256(len > 0 ? data : (const void *)"", len, out, 0));
		return;
	}
	fast_start(&h);
	if (len > 0)
		fast_update(&h, data, len);
	fast_finish(&h, out);
	hash_wipe(&h, sizeof(h));
}
