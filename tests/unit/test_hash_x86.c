/* The processor's SHA-256 against the library's: the same hashes, however the bytes come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "prng.h"

#include "../../crypto/hash_mbedtls.c"

#define LENGTH 5000

static void
fill(uint8_t *data, size_t len, uint64_t seed)
{
	struct prng r;

	prng_seed(&r, seed);
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)prng_u64(&r);
}

/* The hash in pieces of at most `most` bytes, by the library or the processor. */
static void
in_pieces(uint8_t out[HASH_LEN], bool fast, const uint8_t *data, size_t len, size_t most)
{
	struct prng r;

	is_fast = fast;
	struct hash *h = hash_new();
	assert_non_null(h);
	prng_seed(&r, len * 31 + most);
	hash_start(h);
	while (len > 0) {
		size_t n = (size_t)prng_below(&r, most + 1);
		n = n < len ? n : len;
		hash_update(h, data, n);
		data += n;
		len -= n;
	}
	hash_finish(h, out);
	/* An object serves again. */
	hash_start(h);
	hash_update(h, out, HASH_LEN);
	hash_finish(h, out);
	hash_free(h);
}

static void
same_hashes(void **state)
{
	static const size_t most[] = {1, 3, 63, 64, 65, 128, 1000, LENGTH};
	static uint8_t data[LENGTH];
	uint8_t library[HASH_LEN], processor[HASH_LEN];

	(void)state;
	pthread_once(&once, look);
	if (!is_fast)
		skip();
	fill(data, sizeof(data), 9);
	for (size_t len = 0; len <= 300; len++) {
		is_fast = false;
		hash_sha256(library, data, len);
		is_fast = true;
		hash_sha256(processor, data, len);
		assert_memory_equal(library, processor, HASH_LEN);
	}
	for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++)
		for (size_t len = 0; len <= LENGTH; len += 1 + len / 9) {
			in_pieces(library, false, data, len, most[i]);
			in_pieces(processor, true, data, len, most[i]);
			assert_memory_equal(library, processor, HASH_LEN);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_hashes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
