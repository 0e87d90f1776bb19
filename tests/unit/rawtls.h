#ifndef RAWTLS_H
#define RAWTLS_H
/*
 * A TLS 1.2 client that misbehaves: after a proper handshake it sends records of any type and content, rightly encrypted. On
 * mbedTLS whatever the back end under test is. Blocking socket or not: what cannot be sent at once is an error.
 */
#include <errno.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>
#include <string.h>
#include <sys/socket.h>

#include "rng.h"
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
#include <psa/crypto.h>
#else
#define MBEDTLS_PRIVATE(member) member
#endif

struct rawtls {
	mbedtls_ssl_config conf;
	mbedtls_ssl_context ssl;
	int fd;
};

/* Exported by the library, declared in none of its public headers. */
int mbedtls_ssl_write_record(mbedtls_ssl_context *ssl, int force_flush);

static inline int
rawtls_random(void *unused, unsigned char *out, size_t len)
{
	(void)unused;
	return rng_bytes(out, len) == ERR_OK ? 0 : -1;
}

static inline int
rawtls_send(void *ctx, const unsigned char *data, size_t len)
{
	ssize_t n = send(((struct rawtls *)ctx)->fd, data, len, MSG_NOSIGNAL);

	if (n >= 0)
		return (int)n;
	return errno == EAGAIN ? MBEDTLS_ERR_SSL_WANT_WRITE : MBEDTLS_ERR_NET_SEND_FAILED;
}

static inline int
rawtls_recv(void *ctx, unsigned char *data, size_t len)
{
	ssize_t n = recv(((struct rawtls *)ctx)->fd, data, len, 0);

	if (n >= 0)
		return (int)n;
	return errno == EAGAIN ? MBEDTLS_ERR_SSL_WANT_READ : MBEDTLS_ERR_NET_RECV_FAILED;
}

/* Verifies nothing. False without memory. */
static inline int
rawtls_init(struct rawtls *r, int fd)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
	if (psa_crypto_init() != PSA_SUCCESS)
		return 0;
#endif
	r->fd = fd;
	mbedtls_ssl_config_init(&r->conf);
	mbedtls_ssl_init(&r->ssl);
	if (mbedtls_ssl_config_defaults(&r->conf, MBEDTLS_SSL_IS_CLIENT,
		MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT) != 0)
		return 0;
	mbedtls_ssl_conf_rng(&r->conf, rawtls_random, NULL);
	mbedtls_ssl_conf_authmode(&r->conf, MBEDTLS_SSL_VERIFY_NONE);
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
	mbedtls_ssl_conf_max_tls_version(&r->conf, MBEDTLS_SSL_VERSION_TLS1_2);
#endif
	if (mbedtls_ssl_setup(&r->ssl, &r->conf) != 0 ||
	    mbedtls_ssl_set_hostname(&r->ssl, NULL) != 0)
		return 0;
	mbedtls_ssl_set_bio(&r->ssl, r, rawtls_send, rawtls_recv, NULL);
	return 1;
}

static inline void
rawtls_deinit(struct rawtls *r)
{
	mbedtls_ssl_free(&r->ssl);
	mbedtls_ssl_config_free(&r->conf);
}

/* One step: 0 when the handshake is done, MBEDTLS_ERR_SSL_WANT_* to go on. */
static inline int
rawtls_handshake(struct rawtls *r)
{
	return mbedtls_ssl_handshake(&r->ssl);
}

/* An encrypted record of a type (21 alert, 22 handshake, 23 data). 0 if it went out whole. */
static inline int
rawtls_record(struct rawtls *r, int type, const void *data, size_t len)
{
	r->ssl.MBEDTLS_PRIVATE(out_msgtype) = type;
	r->ssl.MBEDTLS_PRIVATE(out_msglen) = len;
	if (len > 0)
		memcpy(r->ssl.MBEDTLS_PRIVATE(out_msg), data, len);
	return mbedtls_ssl_write_record(&r->ssl, 1);
}

/* A ClientHello that asks for the one suite every server here has. */
static inline int
rawtls_hello(struct rawtls *r)
{
	static const unsigned char hello[] = {1, 0, 0, 43, /* ClientHello of 43 bytes */
	    3, 3, /* TLS 1.2 */
	    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
	    25, 26, 27, 28, 29, 30, 31, 32, /* random */
	    0, /* no session */
	    0, 4, 0xc0, 0x2b, 0xcc, 0xa9, /* suites */
	    1, 0}; /* no compression */

	return rawtls_record(r, MBEDTLS_SSL_MSG_HANDSHAKE, hello, sizeof(hello));
}

#endif
