#include <mbedtls/ecdsa.h>
#include <mbedtls/ecp.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "mbed.h"
#include "sign.h"

#define POINT_AT (KEY_SPKI_LEN - 65)

/* The curve with its table of multiples, made once and only read afterwards. Verifying with a fresh group
 * would build that table each time. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static mbedtls_ecp_group p256;
static bool ready;

static void
prime_group(void)
{
	mbedtls_ecp_point q;
	mbedtls_mpi d;

	mbedtls_ecp_group_init(&p256);
	mbedtls_ecp_point_init(&q);
	mbedtls_mpi_init(&d);
	ready = mbedtls_ecp_group_load(&p256, MBEDTLS_ECP_DP_SECP256R1) == 0 &&
	    mbedtls_ecp_gen_keypair(&p256, &d, &q, rng_mbedtls, NULL) == 0;
	mbedtls_ecp_point_free(&q);
	mbedtls_mpi_free(&d);
}

enum err
sign_attach(struct key *key)
{
	uint8_t digest[HASH_LEN] = {0};
	uint8_t sig[SIGN_LEN];

	key->native = NULL;
	return sign_hash(key, digest, sig);
}

void
sign_detach(struct key *key)
{
	(void)key;
}

enum err
sign_hash(const struct key *key, const uint8_t digest[HASH_LEN], uint8_t sig[SIGN_LEN])
{
	mbedtls_ecp_keypair *pair = mbedtls_pk_ec(key->pk);
	mbedtls_mpi r, s;

	mbedtls_mpi_init(&r);
	mbedtls_mpi_init(&s);
	/* Deterministic (RFC 6979): a poor random number generator cannot give the key away. */
	bool good = mbedtls_ecdsa_sign_det_ext(&pair->MBEDTLS_PRIVATE(grp), &r, &s,
			&pair->MBEDTLS_PRIVATE(d), digest, HASH_LEN, MBEDTLS_MD_SHA256, rng_mbedtls,
			NULL) == 0 &&
	    mbedtls_mpi_write_binary(&r, sig, SIGN_LEN / 2) == 0 &&
	    mbedtls_mpi_write_binary(&s, sig + SIGN_LEN / 2, SIGN_LEN / 2) == 0;
	mbedtls_mpi_free(&r);
	mbedtls_mpi_free(&s);
	return good ? ERR_OK : ERR_NOMEM;
}

static bool
read_key(mbedtls_ecp_point *q, const uint8_t spki[KEY_SPKI_LEN])
{
	return key_has_prefix(spki) &&
	    mbedtls_ecp_point_read_binary(&p256, q, spki + POINT_AT, KEY_SPKI_LEN - POINT_AT) ==
	    0 &&
	    mbedtls_ecp_check_pubkey(&p256, q) == 0;
}

enum err
sign_verify(
    const uint8_t spki[KEY_SPKI_LEN], const uint8_t digest[HASH_LEN], const uint8_t sig[SIGN_LEN])
{
	enum err e = ERR_DENIED;
	mbedtls_ecp_point q;
	mbedtls_mpi r, s;

	pthread_once(&once, prime_group);
	if (!ready)
		return ERR_NOMEM;
	mbedtls_ecp_point_init(&q);
	mbedtls_mpi_init(&r);
	mbedtls_mpi_init(&s);
	if (!read_key(&q, spki))
		e = ERR_INVALID;
	else if (mbedtls_mpi_read_binary(&r, sig, SIGN_LEN / 2) != 0 ||
	    mbedtls_mpi_read_binary(&s, sig + SIGN_LEN / 2, SIGN_LEN / 2) != 0)
		e = ERR_NOMEM;
	else if (mbedtls_ecdsa_verify(&p256, digest, HASH_LEN, &q, &r, &s) == 0)
		e = ERR_OK;
	mbedtls_ecp_point_free(&q);
	mbedtls_mpi_free(&r);
	mbedtls_mpi_free(&s);
	return e;
}
