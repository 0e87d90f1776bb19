/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hash.h"
#include "hex.h"
#include "merkle.h"
#include "rng.h"

static void
assert_hash(const uint8_t got[HASH_LEN], const char *want)
{
	char text[2 * HASH_LEN + 1];

	hex_encode(text, got, HASH_LEN);
	assert_string_equal(text, want);
}

/* FIPS 180-4 examples as published by NIST. */
static void
sha256_known_answers(void **state)
{
	static const char *const known[][2] = {
	    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	};
	uint8_t out[HASH_LEN];

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		hash_sha256(out, known[i][0], strlen(known[i][0]));
		assert_hash(out, known[i][1]);
	}
	hash_sha256(out, NULL, 0);
	assert_hash(out, known[0][1]);
}

/* A million 'a', in pieces of changing size, twice with one object. */
static void
sha256_in_pieces(void **state)
{
	char piece[1000];
	uint8_t out[HASH_LEN];
	struct hash *h = hash_new();

	(void)state;
	assert_non_null(h);
	memset(piece, 'a', sizeof(piece));
	for (int again = 0; again < 2; again++) {
		size_t left = 1000000, n = 1;
		hash_start(h);
		while (left > 0) {
			n = n % sizeof(piece) + 1;
			hash_update(h, piece, n < left ? n : left);
			left -= n < left ? n : left;
		}
		hash_finish(h, out);
		assert_hash(
		    out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
	hash_start(h);
	hash_update(h, "junk", 4);
	hash_start(h);
	hash_update(h, NULL, 0);
	hash_finish(h, out);
	assert_hash(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	hash_free(h);
	hash_free(NULL);
}

/* RFC 4231, cases 1, 2, 3 and 6. */
static void
hmac_known_answers(void **state)
{
	uint8_t key[131], data[50], out[HASH_LEN];
	const char *large = "Test Using Larger Than Block-Size Key - Hash Key First";

	(void)state;
	memset(key, 0x0b, 20);
	hash_hmac(out, key, 20, "Hi There", 8);
	assert_hash(out, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	hash_hmac(out, "Jefe", 4, "what do ya want for nothing?", 28);
	assert_hash(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	memset(data, 0xdd, sizeof(data));
	hash_hmac(out, key, 20, data, sizeof(data));
	assert_hash(out, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	hash_hmac(out, key, sizeof(key), large, strlen(large));
	assert_hash(out, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void
file_hash(void **state)
{
	char path[] = "/tmp/rivulet-hash-XXXXXX";
	static char data[700001];
	uint8_t out[HASH_LEN], want[HASH_LEN];
	int fd = mkstemp(path), ends[2];

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(hash_file(fd, out), ERR_OK);
	assert_hash(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	assert_int_equal(write(fd, data, sizeof(data)), sizeof(data));
	hash_sha256(want, data, sizeof(data));
	assert_int_equal(hash_file(fd, out), ERR_OK);
	assert_memory_equal(out, want, HASH_LEN);
	close(fd);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(hash_file(ends[0], out), ERR_INVALID);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(hash_file(-1, out), ERR_INVALID);
}

static void
equal_and_wipe(void **state)
{
	uint8_t a[32], b[32];

	(void)state;
	assert_int_equal(rng_bytes(a, sizeof(a)), ERR_OK);
	memcpy(b, a, sizeof(a));
	assert_true(hash_equal(a, b, sizeof(a)));
	for (size_t i = 0; i < sizeof(a); i++) {
		b[i] ^= 0x80;
		assert_false(hash_equal(a, b, sizeof(a)));
		assert_true(hash_equal(a, b, i));
		b[i] ^= 0x80;
	}
	hash_wipe(a, sizeof(a));
	memset(b, 0, sizeof(b));
	assert_memory_equal(a, b, sizeof(a));
}

static void
random_bytes(void **state)
{
	static uint8_t a[5000], b[5000];
	unsigned ones = 0;

	(void)state;
	assert_int_equal(rng_bytes(a, sizeof(a)), ERR_OK);
	assert_int_equal(rng_bytes(b, sizeof(b)), ERR_OK);
	assert_memory_not_equal(a, b, 32);
	for (size_t i = 0; i < sizeof(a); i++)
		ones += (unsigned)__builtin_popcount(a[i]);
	/* 20,000 expected; eight standard deviations are 800. */
	assert_in_range(ones, 19200, 20800);
	assert_int_equal(rng_bytes(NULL, 0), ERR_OK);
}

/* The eight leaves and roots that Certificate Transparency's reference implementation tests RFC 6962 with. */
static void
merkle_known_answers(void **state)
{
	static const char *const leaf[] = {"", "00", "10", "2021", "3031", "40414243",
	    "5051525354555657", "606162636465666768696a6b6c6d6e6f"};
	static const char *const root[] = {
	    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
	    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
	    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
	    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
	    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
	    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
	    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
	    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	};
	uint8_t leaves[8][HASH_LEN], out[HASH_LEN], data[16];

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		size_t len = strlen(leaf[i]) / 2;
		assert_true(hex_decode(data, len, leaf[i], 2 * len));
		merkle_leaf(leaves[i], data, len);
		merkle_root(out, leaves[0], i + 1);
		assert_hash(out, root[i]);
	}
}

/* RFC 6962's own, recursive definition. */
static void
merkle_by_definition(uint8_t out[HASH_LEN], const uint8_t *leaves, size_t n)
{
	uint8_t both[1 + 2 * HASH_LEN] = {0x01};
	size_t k = 1;

	if (n == 1) {
		memcpy(out, leaves, HASH_LEN);
		return;
	}
	while (2 * k < n)
		k *= 2;
	merkle_by_definition(both + 1, leaves, k);
	merkle_by_definition(both + 1 + HASH_LEN, leaves + k * HASH_LEN, n - k);
	hash_sha256(out, both, sizeof(both));
}

static void
merkle_sizes(void **state)
{
	static uint8_t leaves[300 * HASH_LEN];
	uint8_t a[HASH_LEN], b[HASH_LEN];

	(void)state;
	assert_int_equal(rng_bytes(leaves, sizeof(leaves)), ERR_OK);
	for (size_t n = 1; n <= 300; n++) {
		merkle_root(a, leaves, n);
		merkle_by_definition(b, leaves, n);
		assert_memory_equal(a, b, HASH_LEN);
	}
}

static void
merkle_leaf_in_pieces(void **state)
{
	uint8_t a[HASH_LEN], b[HASH_LEN];
	struct hash *h = hash_new();

	(void)state;
	merkle_leaf_start(h);
	hash_update(h, "ri", 2);
	hash_update(h, "vulet", 5);
	merkle_leaf_finish(h, a);
	merkle_leaf(b, "rivulet", 7);
	assert_memory_equal(a, b, HASH_LEN);
	hash_sha256(b, "rivulet", 7);
	assert_memory_not_equal(a, b, HASH_LEN);
	hash_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sha256_known_answers),
	    cmocka_unit_test(sha256_in_pieces),
	    cmocka_unit_test(hmac_known_answers),
	    cmocka_unit_test(file_hash),
	    cmocka_unit_test(equal_and_wipe),
	    cmocka_unit_test(random_bytes),
	    cmocka_unit_test(merkle_known_answers),
	    cmocka_unit_test(merkle_sizes),
	    cmocka_unit_test(merkle_leaf_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
