/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "hex.h"
#include "key.h"
#include "rng.h"
#include "sign.h"

#define SPKI_PREFIX "3059301306072a8648ce3d020106082a8648ce3d03010703420004"
/* RFC 6979, A.2.5: the public key and the SHA-256 signatures of "sample" and "test". */
#define RFC6979_KEY \
	SPKI_PREFIX \
	"60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6" \
	"7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
#define RFC6979_SAMPLE \
	"efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716" \
	"f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
#define RFC6979_TEST \
	"f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367" \
	"019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083"
/* The curve's order. */
#define ORDER "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"

static char dir[] = "/tmp/rivulet-key-XXXXXX";
static char path[64];
static struct why why;

static void
unhex(void *out, size_t len, const char *text)
{
	assert_int_equal(strlen(text), 2 * len);
	assert_true(hex_decode(out, len, text, 2 * len));
}

static void
put_file(const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static int
make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/key.pem", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static int
no_file(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void
save_and_load(void **state)
{
	struct key *a = NULL, *b = NULL;
	struct stat st;
	char pem_a[KEY_PEM_MAX], pem_b[KEY_PEM_MAX];

	(void)state;
	assert_int_equal(key_generate(&a, &why), ERR_OK);
	assert_int_equal(key_save(a, path, &why), ERR_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(key_save(a, path, &why), ERR_EXISTS);
	assert_int_equal(key_load(&b, path, &why), ERR_OK);
	assert_memory_equal(key_spki(a), key_spki(b), KEY_SPKI_LEN);
	assert_int_equal(key_pem(a, pem_a), ERR_OK);
	assert_int_equal(key_pem(b, pem_b), ERR_OK);
	assert_string_equal(pem_a, pem_b);
	assert_non_null(strstr(pem_a, "PRIVATE KEY-----"));
	key_free(a);
	key_free(b);
	key_free(NULL);
}

static void
modes_of_others_are_refused(void **state)
{
	static const mode_t bad[] = {0640, 0604, 0610, 0601, 0660, 0644, 0777};
	struct key *key = NULL;

	(void)state;
	assert_int_equal(key_generate(&key, &why), ERR_OK);
	assert_int_equal(key_save(key, path, &why), ERR_OK);
	key_free(key);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(chmod(path, bad[i]), 0);
		assert_int_equal(key_load(&key, path, &why), ERR_DENIED);
		assert_non_null(strstr(why.text, "chmod 600"));
	}
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(key_load(&key, path, &why), ERR_OK);
	key_free(key);
}

static void
bad_files(void **state)
{
	static char large[KEY_PEM_MAX + 1];
	struct key *key = NULL;

	(void)state;
	assert_int_equal(key_load(&key, path, &why), ERR_NOTFOUND);
	put_file("", 0600);
	assert_int_equal(key_load(&key, path, &why), ERR_INVALID);
	put_file("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0600);
	assert_int_equal(key_load(&key, path, &why), ERR_INVALID);
	memset(large, 'A', sizeof(large) - 1);
	put_file(large, 0600);
	assert_int_equal(key_load(&key, path, &why), ERR_LIMIT);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(key_load(&key, path, &why), ERR_INVALID);
	assert_int_equal(rmdir(path), 0);
	assert_null(key);
}

/* Made with: openssl ecparam -name secp384r1 -genkey -noout. */
static void
other_kinds(void **state)
{
	struct key *key = NULL;

	(void)state;
	put_file("-----BEGIN EC PRIVATE KEY-----\n"
		 "MIGkAgEBBDC+fPSnOCMgXO9V3hOokk0/cpB5C2x89nSSuNuWpOMrHYZgP7Xyxc92\n"
		 "9AA7s4eDrRagBwYFK4EEACKhZANiAATR214Y2K2FtSDAb49dZsqcnh4rIUkC8UGM\n"
		 "/eE5XpYek/i66e7UFpIZVGPHcB2DIBUcWveTIV1J7jPCHvpq4b2VyS1f9LSzfT0k\n"
		 "nU17Salih1dRwCo0D4GbcaZQwr0L76E=\n"
		 "-----END EC PRIVATE KEY-----\n",
	    0600);
	assert_int_equal(key_load(&key, path, &why), ERR_UNSUPPORTED);
	assert_null(key);
}

/* RFC 6979's private key beside the curve's base point as its public half: ours is computed. */
static void
public_half_is_recomputed(void **state)
{
	struct key *a = NULL;
	uint8_t want[KEY_SPKI_LEN];

	(void)state;
	put_file("-----BEGIN EC PRIVATE KEY-----\n"
		 "MHcCAQEEIMmvqdhFunUWa1whV2ex1pNOUMPbNuibEnuKYisSD2choAoGCCqGSM49\n"
		 "AwEHoUQDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/\n"
		 "m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n"
		 "-----END EC PRIVATE KEY-----\n",
	    0600);
	unhex(want, sizeof(want), RFC6979_KEY);
	assert_int_equal(key_load(&a, path, &why), ERR_OK);
	assert_memory_equal(key_spki(a), want, KEY_SPKI_LEN);
	key_free(a);
}

static void
public_keys(void **state)
{
	uint8_t spki[KEY_SPKI_LEN + 1] = {0}, bad[KEY_SPKI_LEN], id[HASH_LEN], want[HASH_LEN];

	(void)state;
	unhex(spki, KEY_SPKI_LEN, RFC6979_KEY);
	assert_int_equal(key_check_spki(spki, KEY_SPKI_LEN), ERR_OK);
	assert_int_equal(key_check_spki(spki, KEY_SPKI_LEN - 1), ERR_INVALID);
	assert_int_equal(key_check_spki(spki, KEY_SPKI_LEN + 1), ERR_INVALID);
	for (size_t i = 0; i < KEY_SPKI_LEN; i++) {
		memcpy(bad, spki, sizeof(bad));
		bad[i] ^= 1;
		assert_int_equal(key_check_spki(bad, sizeof(bad)), ERR_INVALID);
	}
	memset(bad + 27, 0, 64);
	assert_int_equal(key_check_spki(bad, sizeof(bad)), ERR_INVALID);
	key_id(id, spki);
	hash_sha256(want, spki, KEY_SPKI_LEN);
	assert_memory_equal(id, want, HASH_LEN);
}

static void
known_signatures(void **state)
{
	uint8_t spki[KEY_SPKI_LEN], sig[SIGN_LEN], sample[HASH_LEN], test[HASH_LEN];

	(void)state;
	unhex(spki, sizeof(spki), RFC6979_KEY);
	hash_sha256(sample, "sample", 6);
	hash_sha256(test, "test", 4);
	unhex(sig, sizeof(sig), RFC6979_SAMPLE);
	assert_int_equal(sign_verify(spki, sample, sig), ERR_OK);
	assert_int_equal(sign_verify(spki, test, sig), ERR_DENIED);
	unhex(sig, sizeof(sig), RFC6979_TEST);
	assert_int_equal(sign_verify(spki, test, sig), ERR_OK);
	assert_int_equal(sign_verify(spki, sample, sig), ERR_DENIED);
}

/* (r, n - s) verifies too: that is why nothing is keyed on the bytes of a signature. */
static void
malleable_twin(void **state)
{
	uint8_t spki[KEY_SPKI_LEN], sig[SIGN_LEN], digest[HASH_LEN], order[32];
	int borrow = 0;

	(void)state;
	unhex(spki, sizeof(spki), RFC6979_KEY);
	unhex(sig, sizeof(sig), RFC6979_SAMPLE);
	unhex(order, sizeof(order), ORDER);
	hash_sha256(digest, "sample", 6);
	for (int i = 31; i >= 0; i--) {
		int v = order[i] - sig[32 + i] - borrow;
		borrow = v < 0;
		sig[32 + i] = (uint8_t)v;
	}
	assert_int_equal(sign_verify(spki, digest, sig), ERR_OK);
}

static void
bad_signatures(void **state)
{
	uint8_t spki[KEY_SPKI_LEN], sig[SIGN_LEN], digest[HASH_LEN];

	(void)state;
	unhex(spki, sizeof(spki), RFC6979_KEY);
	hash_sha256(digest, "sample", 6);
	for (size_t i = 0; i < SIGN_LEN; i++) {
		unhex(sig, sizeof(sig), RFC6979_SAMPLE);
		sig[i] ^= 0x10;
		assert_int_equal(sign_verify(spki, digest, sig), ERR_DENIED);
	}
	memset(sig, 0, sizeof(sig));
	assert_int_equal(sign_verify(spki, digest, sig), ERR_DENIED);
	memset(sig, 0xff, sizeof(sig));
	assert_int_equal(sign_verify(spki, digest, sig), ERR_DENIED);
	unhex(sig, sizeof(sig), RFC6979_SAMPLE);
	memset(sig + 32, 0, 32);
	assert_int_equal(sign_verify(spki, digest, sig), ERR_DENIED);
	unhex(sig, sizeof(sig), RFC6979_SAMPLE);
	unhex(sig + 32, 32, ORDER);
	assert_int_equal(sign_verify(spki, digest, sig), ERR_DENIED);
}

static void
bad_public_keys(void **state)
{
	uint8_t spki[KEY_SPKI_LEN], sig[SIGN_LEN], digest[HASH_LEN];

	(void)state;
	hash_sha256(digest, "sample", 6);
	unhex(sig, sizeof(sig), RFC6979_SAMPLE);
	for (size_t i = 0; i < KEY_SPKI_LEN; i++) {
		unhex(spki, sizeof(spki), RFC6979_KEY);
		spki[i] ^= 1;
		assert_int_equal(sign_verify(spki, digest, sig), ERR_INVALID);
	}
}

static void *
sign_and_verify(void *arg)
{
	const struct key *key = arg;
	uint8_t digest[HASH_LEN], sig[SIGN_LEN];

	for (int i = 0; i < 30; i++) {
		if (rng_bytes(digest, sizeof(digest)) || sign_hash(key, digest, sig) ||
		    sign_verify(key_spki(key), digest, sig))
			return (void *)"failed";
		digest[5] ^= 1;
		if (sign_verify(key_spki(key), digest, sig) != ERR_DENIED)
			return (void *)"accepted a wrong digest";
	}
	return NULL;
}

static void
many_threads_one_key(void **state)
{
	pthread_t thread[4];
	struct key *key = NULL;
	void *result;

	(void)state;
	assert_int_equal(key_generate(&key, &why), ERR_OK);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, sign_and_verify, key), 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(thread[i], &result), 0);
		assert_null(result);
	}
	key_free(key);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(save_and_load, no_file),
	    cmocka_unit_test_setup(modes_of_others_are_refused, no_file),
	    cmocka_unit_test_setup(bad_files, no_file),
	    cmocka_unit_test_setup(other_kinds, no_file),
	    cmocka_unit_test_setup(public_half_is_recomputed, no_file),
	    cmocka_unit_test(public_keys),
	    cmocka_unit_test(known_signatures),
	    cmocka_unit_test(malleable_twin),
	    cmocka_unit_test(bad_signatures),
	    cmocka_unit_test(bad_public_keys),
	    cmocka_unit_test(many_threads_one_key),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
