#include <pthread.h>
#include <stdlib.h>

#include "hash.h"
#include "ossl.h"

struct hash {
	EVP_MD_CTX *ctx;
};

/* Fetching an algorithm by name costs more than hashing a small message, so it is done once per process. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;

static void
fetch(void)
{
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

/* After the first EVP_DigestInit_ex2, which hash_new checks, the default provider's SHA-256 cannot fail. */
static void
must(int good)
{
	if (!good)
		abort();
}

struct hash *
hash_new(void)
{
	struct hash *h = malloc(sizeof(*h));

	pthread_once(&once, fetch);
	if (!h)
		return NULL;
	h->ctx = EVP_MD_CTX_new();
	if (sha256 && h->ctx && EVP_DigestInit_ex2(h->ctx, sha256, NULL))
		return h;
	hash_free(h);
	return NULL;
}

void
hash_free(struct hash *h)
{
	if (!h)
		return;
	EVP_MD_CTX_free(h->ctx);
	free(h);
}

void
hash_start(struct hash *h)
{
	must(EVP_DigestInit_ex2(h->ctx, NULL, NULL));
}

void
hash_update(struct hash *h, const void *data, size_t len)
{
	must(EVP_DigestUpdate(h->ctx, data, len));
}

void
hash_finish(struct hash *h, uint8_t out[HASH_LEN])
{
	must(EVP_DigestFinal_ex(h->ctx, out, NULL));
}

void
hash_sha256(uint8_t out[HASH_LEN], const void *data, size_t len)
{
	pthread_once(&once, fetch);
	must(sha256 && EVP_Digest(data, len, out, NULL, sha256, NULL));
}
