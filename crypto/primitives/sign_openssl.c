#include <pthread.h>
#include <string.h>

#include "mbed.h"
#include "ossl.h"
#include "sign.h"

#define POINT_LEN 65
#define DER_MAX 72 /* SEQUENCE of two INTEGERs of at most 33 bytes */

/* An EVP_PKEY with the curve and no point. Copying its parameters costs far less than decoding an SPKI or
 * naming the curve each time. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_PKEY *curve;

static void
make_curve(void)
{
	curve = EVP_EC_gen("P-256");
}

enum err
sign_attach(struct key *key)
{
	uint8_t der[256];
	size_t len = 0;
	enum err e = key_der(key, der, &len);
	const unsigned char *p = der;

	if (!e) {
		key->native = d2i_PrivateKey(EVP_PKEY_EC, NULL, &p, (long)len);
		e = key->native ? ERR_OK : ERR_NOMEM;
	}
	hash_wipe(der, sizeof(der));
	ERR_clear_error();
	return e;
}

void
sign_detach(struct key *key)
{
	EVP_PKEY_free(key->native);
	key->native = NULL;
}

/* r || s from the DER form. */
static bool
to_raw(uint8_t sig[SIGN_LEN], const uint8_t *der, size_t len)
{
	ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)len);
	bool good = pair &&
	    BN_bn2binpad(ECDSA_SIG_get0_r(pair), sig, SIGN_LEN / 2) == SIGN_LEN / 2 &&
	    BN_bn2binpad(ECDSA_SIG_get0_s(pair), sig + SIGN_LEN / 2, SIGN_LEN / 2) == SIGN_LEN / 2;

	ECDSA_SIG_free(pair);
	return good;
}

/* One INTEGER of DER from 32 big-endian bytes; returns its length. */
static size_t
put_integer(uint8_t *out, const uint8_t number[SIGN_LEN / 2])
{
	size_t skip = 0;

	while (skip < SIGN_LEN / 2 - 1 && number[skip] == 0)
		skip++;
	size_t zero = number[skip] >> 7, len = SIGN_LEN / 2 - skip;
	out[0] = 0x02;
	out[1] = (uint8_t)(len + zero);
	out[2] = 0;
	memcpy(out + 2 + zero, number + skip, len);
	return 2 + zero + len;
}

static size_t
to_der(uint8_t out[DER_MAX], const uint8_t sig[SIGN_LEN])
{
	size_t len = put_integer(out + 2, sig);

	len += put_integer(out + 2 + len, sig + SIGN_LEN / 2);
	out[0] = 0x30;
	out[1] = (uint8_t)len;
	return 2 + len;
}

enum err
sign_hash(const struct key *key, const uint8_t digest[HASH_LEN], uint8_t sig[SIGN_LEN])
{
	uint8_t der[DER_MAX];
	size_t len = sizeof(der);
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key->native, NULL);
	bool good = ctx && EVP_PKEY_sign_init(ctx) > 0 &&
	    EVP_PKEY_sign(ctx, der, &len, digest, HASH_LEN) > 0 && to_raw(sig, der, len);

	EVP_PKEY_CTX_free(ctx);
	ERR_clear_error();
	return good ? ERR_OK : ERR_NOMEM;
}

/* The key of an SPKI; NULL unless it is a point of the curve. */
static EVP_PKEY *
read_key(const uint8_t spki[KEY_SPKI_LEN])
{
	EVP_PKEY *pkey = key_has_prefix(spki) ? EVP_PKEY_new() : NULL;

	if (pkey && EVP_PKEY_copy_parameters(pkey, curve) > 0 &&
	    EVP_PKEY_set1_encoded_public_key(pkey, spki + KEY_SPKI_LEN - POINT_LEN, POINT_LEN) > 0)
		return pkey;
	EVP_PKEY_free(pkey);
	return NULL;
}

enum err
sign_verify(
    const uint8_t spki[KEY_SPKI_LEN], const uint8_t digest[HASH_LEN], const uint8_t sig[SIGN_LEN])
{
	uint8_t der[DER_MAX];
	enum err e = ERR_INVALID;

	pthread_once(&once, make_curve);
	if (!curve)
		return ERR_NOMEM;
	EVP_PKEY *pkey = read_key(spki);
	EVP_PKEY_CTX *ctx = pkey ? EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL) : NULL;
	if (pkey && (!ctx || EVP_PKEY_verify_init(ctx) <= 0))
		e = ERR_NOMEM;
	else if (pkey)
		e = EVP_PKEY_verify(ctx, der, to_der(der, sig), digest, HASH_LEN) == 1 ? ERR_OK
										       : ERR_DENIED;
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	ERR_clear_error();
	return e;
}
