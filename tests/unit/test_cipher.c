/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cipher.h"
#include "hex.h"

/* RFC 8439, 2.4.2: key 00..1f, the nonce below, counter 1. */
static const char text[] =
    "Ladies and Gentlemen of the class of '99: If I could offer you only one "
    "tip for the future, sunscreen would be it.";
static const char want[] = "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
			   "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
			   "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
			   "5af90bbf74a35be6b40b8eedf2785e42874d";
static const uint8_t nonce[CIPHER_NONCE_LEN] = {0, 0, 0, 0, 0, 0, 0, 0x4a};

static void
key_of(uint8_t key[CIPHER_KEY_LEN])
{
	for (int i = 0; i < CIPHER_KEY_LEN; i++)
		key[i] = (uint8_t)i;
}

static void
rfc8439(void **state)
{
	uint8_t key[CIPHER_KEY_LEN], data[sizeof(text)], expected[sizeof(text)];

	(void)state;
	key_of(key);
	memcpy(data, text, sizeof(text) - 1);
	assert_true(hex_decode(expected, sizeof(text) - 1, want, strlen(want)));
	assert_int_equal(cipher_xor(key, nonce, 64, data, sizeof(text) - 1), ERR_OK);
	assert_memory_equal(data, expected, sizeof(text) - 1);
	assert_int_equal(cipher_xor(key, nonce, 64, data, sizeof(text) - 1), ERR_OK);
	assert_memory_equal(data, text, sizeof(text) - 1);
}

/* Any piece is the same as that piece of the whole. */
static void
any_offset(void **state)
{
	uint8_t key[CIPHER_KEY_LEN], whole[700] = {0}, piece[700];

	(void)state;
	key_of(key);
	assert_int_equal(cipher_xor(key, nonce, 0, whole, sizeof(whole)), ERR_OK);
	for (size_t at = 0; at < sizeof(whole); at += 7)
		for (size_t len = 0; len <= sizeof(whole) - at; len += 61) {
			memset(piece, 0, sizeof(piece));
			assert_int_equal(cipher_xor(key, nonce, at, piece, len), ERR_OK);
			assert_memory_equal(piece, whole + at, len);
		}
}

static void
the_end(void **state)
{
	uint8_t key[CIPHER_KEY_LEN], last[2] = {0};

	(void)state;
	key_of(key);
	assert_int_equal(cipher_xor(key, nonce, CIPHER_STREAM_MAX - 2, last, 2), ERR_OK);
	assert_int_equal(cipher_xor(key, nonce, CIPHER_STREAM_MAX - 1, last, 2), ERR_LIMIT);
	assert_int_equal(cipher_xor(key, nonce, UINT64_MAX, last, 2), ERR_LIMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rfc8439),
	    cmocka_unit_test(any_offset),
	    cmocka_unit_test(the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
