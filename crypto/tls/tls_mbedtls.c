#include <arpa/inet.h>
#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/oid.h>
#include <mbedtls/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mbed.h"
#include "resume.h"
#include "tls.h"

#define PEER_NAME_MAX 255
#define DATE_FLAGS ((uint32_t)(MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE))
#define AHEAD_BYTES ((size_t)64 << 10)
/* Bytes without any data in them: a handshake, or alerts, renegotiations and empty records, which mbedTLS would read for as
 * long as they come. Must be more than one record. */
#define BARREN_BYTES ((size_t)48 << 10)

struct tls_context {
	mbedtls_ssl_config conf;
	mbedtls_x509_crt ca, own;
	struct key *key; /* a copy: conf points into it */
	bool server;
	char peer_name[PEER_NAME_MAX + 1]; /* client: a DNS name, or "" if the peer is an address */
	uint8_t address[16];
	size_t address_len; /* client: 4 or 16 if the peer is an address */
	/* NULL: no resumption. */
	struct sessions *sessions;
};

struct tls_session {
	mbedtls_ssl_context ssl;
	struct tls_context *ctx;
	int fd;
	bool over; /* the handshake is done */
	bool full; /* it was a full one */
	size_t record; /* most bytes that one record carries */
	size_t unsent; /* size of the record that mbedTLS holds but could not send */
	uint32_t flags; /* what was wrong with the peer's certificate */
	char claimed[X509_COMMON_NAME];
	enum tls_result ended; /* TLS_OK while reading may go on */
	bool more; /* another record follows at once */
	uint8_t *ahead; /* AHEAD_BYTES read from the socket before mbedTLS asked, or NULL */
	size_t ahead_at, ahead_len; /* what it has not asked for yet */
	size_t barren; /* bytes since the last data */
	char why[192];
};

/* ChaCha20-Poly1305 before AES: mbedTLS does it faster, even with AES instructions (409 against 313 MB/s
 * with 3.6, 345 against 237 with 2.28). */
static const int suites[] = {
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    0,
};

#if MBED_3
static const uint16_t groups[] = {
    MBEDTLS_SSL_IANA_TLS_GROUP_X25519, MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1, 0};
static const uint16_t signatures[] = {MBEDTLS_TLS1_3_SIG_ECDSA_SECP256R1_SHA256, 0};
#else
static const mbedtls_ecp_group_id groups[] = {
    MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_SECP256R1, MBEDTLS_ECP_DP_NONE};
static const int signatures[] = {MBEDTLS_MD_SHA256, MBEDTLS_MD_NONE};
#endif

static const mbedtls_x509_crt_profile profile = {
    .allowed_mds = MBEDTLS_X509_ID_FLAG(MBEDTLS_MD_SHA256),
    .allowed_pks = MBEDTLS_X509_ID_FLAG(MBEDTLS_PK_ECDSA) | MBEDTLS_X509_ID_FLAG(MBEDTLS_PK_ECKEY),
    .allowed_curves = MBEDTLS_X509_ID_FLAG(MBEDTLS_ECP_DP_SECP256R1),
};

const char *
tls_backend(void)
{
	return "mbedTLS " MBEDTLS_VERSION_STRING;
}

/* --- The peer's certificate */

/* Called for each certificate of the chain, the peer's own last, with what mbedTLS has against it. A server's authentication mode
 * is "optional", which forgives everything, so what is not forgiven here is a fatal error of the last call. */
static int
on_verify(void *arg, mbedtls_x509_crt *crt, int depth, uint32_t *flags)
{
	struct tls_session *s = arg;

	if (s->ctx->server) {
		*flags &= ~DATE_FLAGS;
		if (depth == 0 &&
		    mbedtls_x509_crt_check_extended_key_usage(crt, MBEDTLS_OID_CLIENT_AUTH,
			MBEDTLS_OID_SIZE(MBEDTLS_OID_CLIENT_AUTH)) != 0)
			*flags |= MBEDTLS_X509_BADCERT_EXT_KEY_USAGE;
	} else if (depth == 0 && s->ctx->address_len > 0 &&
	    !x509_ext_has_address(crt, s->ctx->address, s->ctx->address_len)) {
		*flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
	}
	s->flags |= *flags;
	if (!s->ctx->server || depth > 0)
		return 0;
	(void)x509_copy_common_name(s->claimed, sizeof(s->claimed), &crt->subject);
	return s->flags != 0 ? MBEDTLS_ERR_X509_FATAL_ERROR : 0;
}

/* --- Context */

/* mbedTLS 2.28 stores a table in a key at its first use, without a lock. One use before the context is shared
 * settles that; whether the CA is self-signed does not matter. */
static void
prime(mbedtls_x509_crt *crt)
{
	const mbedtls_x509_buf *sig = &crt->MBEDTLS_PRIVATE(sig);
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, crt->tbs.p, crt->tbs.len);
	(void)mbedtls_pk_verify(
	    &crt->pk, MBEDTLS_MD_SHA256, digest, sizeof(digest), sig->p, sig->len);
}

static enum err
set_identity(struct tls_context *ctx, const struct tls_config *config, struct why *why)
{
	const struct x509_cert *other = config->other_ca, *chain = config->chain;

	if (mbedtls_x509_crt_parse_der(&ctx->ca, config->ca->der, config->ca->len) != 0 ||
	    (other && mbedtls_x509_crt_parse_der(&ctx->ca, other->der, other->len) != 0))
		return err_set(why, ERR_INVALID, "malformed CA certificate");
	for (mbedtls_x509_crt *crt = &ctx->ca; crt; crt = crt->next)
		prime(crt);
	mbedtls_ssl_conf_ca_chain(&ctx->conf, &ctx->ca, NULL);
	if (!config->cert || !config->key)
		return config->server ? err_set(why, ERR_INVALID, "a server needs a certificate")
				      : ERR_OK;
	if (mbedtls_x509_crt_parse_der(&ctx->own, config->cert->der, config->cert->len) != 0 ||
	    (chain && mbedtls_x509_crt_parse_der(&ctx->own, chain->der, chain->len) != 0))
		return err_set(why, ERR_INVALID, "malformed certificate");
	enum err e = key_copy(&ctx->key, config->key);
	if (e)
		return err_set(why, e, "cannot copy a key: %s", err_name(e));
	uint8_t spki[KEY_SPKI_LEN];
	if (key_spki_of(&ctx->own.pk, spki) || memcmp(spki, key_spki(ctx->key), sizeof(spki)) != 0)
		return err_set(why, ERR_INVALID, "the certificate is not for this key");
	if (mbedtls_ssl_conf_own_cert(&ctx->conf, &ctx->own, &ctx->key->pk) != 0)
		return err_set(why, ERR_NOMEM, "no memory for TLS");
	return ERR_OK;
}

static enum err
set_peer(struct tls_context *ctx, const char *name, struct why *why)
{
	if (!name || !*name || strlen(name) > PEER_NAME_MAX)
		return err_set(why, ERR_INVALID, "a TLS client needs the name of its peer");
	if (inet_pton(AF_INET, name, ctx->address) == 1)
		ctx->address_len = 4;
	else if (inet_pton(AF_INET6, name, ctx->address) == 1)
		ctx->address_len = 16;
	else
		snprintf(ctx->peer_name, sizeof(ctx->peer_name), "%s", name);
	return ERR_OK;
}

static void
set_policy(mbedtls_ssl_config *conf, bool server)
{
	mbedtls_ssl_conf_rng(conf, rng_mbedtls, NULL);
	mbedtls_ssl_conf_ciphersuites(conf, suites);
	mbedtls_ssl_conf_cert_profile(conf, &profile);
	mbedtls_ssl_conf_authmode(
	    conf, server ? MBEDTLS_SSL_VERIFY_OPTIONAL : MBEDTLS_SSL_VERIFY_REQUIRED);
	mbedtls_ssl_conf_renegotiation(conf, MBEDTLS_SSL_RENEGOTIATION_DISABLED);
#if MBED_3
	mbedtls_ssl_conf_min_tls_version(conf, MBEDTLS_SSL_VERSION_TLS1_2);
	mbedtls_ssl_conf_max_tls_version(conf, MBEDTLS_SSL_VERSION_TLS1_2);
	mbedtls_ssl_conf_groups(conf, groups);
	mbedtls_ssl_conf_sig_algs(conf, signatures);
#else
	mbedtls_ssl_conf_min_version(
	    conf, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
	mbedtls_ssl_conf_curves(conf, groups);
	mbedtls_ssl_conf_sig_hashes(conf, signatures);
#endif
	if (!server)
		mbedtls_ssl_conf_session_tickets(conf, MBEDTLS_SSL_SESSION_TICKETS_DISABLED);
}

static enum err
configure(struct tls_context *ctx, const struct tls_config *config, struct why *why)
{
	int end = config->server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT;

	if (mbedtls_ssl_config_defaults(
		&ctx->conf, end, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT) != 0)
		return err_set(why, ERR_NOMEM, "no memory for TLS");
	set_policy(&ctx->conf, config->server);
	enum err e = set_identity(ctx, config, why);
	if (!e && !config->server)
		e = set_peer(ctx, config->peer_name, why);
	if (e || config->cache_entries == 0)
		return e;
	ctx->sessions = sessions_new(config->server ? config->cache_entries : 1);
	if (!ctx->sessions)
		return err_set(why, ERR_NOMEM, "no memory for %u sessions", config->cache_entries);
	if (config->server)
		tls_resume_serve(&ctx->conf, ctx->sessions);
	return ERR_OK;
}

enum err
tls_context_new(struct tls_context **out, const struct tls_config *config, struct why *why)
{
	struct tls_context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return err_set(why, ERR_NOMEM, "no memory for TLS");
	ctx->server = config->server;
	mbedtls_ssl_config_init(&ctx->conf);
	mbedtls_x509_crt_init(&ctx->ca);
	mbedtls_x509_crt_init(&ctx->own);
	enum err e = configure(ctx, config, why);
	if (e)
		tls_context_free(ctx);
	else
		*out = ctx;
	return e;
}

void
tls_context_free(struct tls_context *ctx)
{
	if (!ctx)
		return;
	mbedtls_ssl_config_free(&ctx->conf);
	mbedtls_x509_crt_free(&ctx->own);
	mbedtls_x509_crt_free(&ctx->ca);
	key_free(ctx->key);
	sessions_free(ctx->sessions);
	free(ctx);
}

void
tls_context_forget(struct tls_context *ctx)
{
	if (ctx->sessions)
		sessions_forget(ctx->sessions);
}

/* --- Session */

static int
on_send(void *arg, const unsigned char *data, size_t len)
{
	const struct tls_session *s = arg;
	ssize_t n;

	do
		n = send(s->fd, data, len, MSG_NOSIGNAL | (s->more ? MSG_MORE : 0));
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return (int)n;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return MBEDTLS_ERR_SSL_WANT_WRITE;
	return errno == EPIPE || errno == ECONNRESET ? MBEDTLS_ERR_NET_CONN_RESET
						     : MBEDTLS_ERR_NET_SEND_FAILED;
}

/* recv that knows mbedTLS's results. */
static int
receive(int fd, unsigned char *data, size_t len)
{
	ssize_t n;

	do
		n = recv(fd, data, len, 0);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return (int)n;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return MBEDTLS_ERR_SSL_WANT_READ;
	return errno == EPIPE || errno == ECONNRESET ? MBEDTLS_ERR_NET_CONN_RESET
						     : MBEDTLS_ERR_NET_RECV_FAILED;
}

/* mbedTLS asks for a record's 5-byte head and then for its body. After the handshake we read many records at once, and
 * keep the memory only while they come. */
static int
on_recv(void *arg, unsigned char *data, size_t len)
{
	struct tls_session *s = arg;

	if (s->barren > BARREN_BYTES)
		return MBEDTLS_ERR_NET_RECV_FAILED;
	if (s->ahead_len == 0) {
		if (s->over && !s->ahead)
			s->ahead = malloc(AHEAD_BYTES);
		if (!s->ahead) {
			int direct = receive(s->fd, data, len);
			s->barren += direct > 0 ? (size_t)direct : 0;
			return direct;
		}
		int n = receive(s->fd, s->ahead, AHEAD_BYTES);
		if (n <= 0) {
			free(s->ahead);
			s->ahead = NULL;
			return n;
		}
		s->ahead_at = 0;
		s->ahead_len = (size_t)n;
	}
	if (len > s->ahead_len)
		len = s->ahead_len;
	memcpy(data, s->ahead + s->ahead_at, len);
	s->ahead_at += len;
	s->ahead_len -= len;
	s->barren += len;
	return (int)len;
}

enum err
tls_session_new(struct tls_session **out, struct tls_context *ctx, int fd)
{
	struct tls_session *s = calloc(1, sizeof(*s));

	if (!s)
		return ERR_NOMEM;
	s->ctx = ctx;
	s->fd = fd;
	mbedtls_ssl_init(&s->ssl);
	/* The name is set even if there is none: 3.6 takes an unset one for an oversight. */
	if (mbedtls_ssl_setup(&s->ssl, &ctx->conf) != 0 ||
	    (!ctx->server &&
		mbedtls_ssl_set_hostname(&s->ssl, ctx->peer_name[0] ? ctx->peer_name : NULL) !=
		    0)) {
		tls_session_free(s);
		return ERR_NOMEM;
	}
	mbedtls_ssl_set_verify(&s->ssl, on_verify, s);
	mbedtls_ssl_set_bio(&s->ssl, s, on_send, on_recv, NULL);
	if (!ctx->server && ctx->sessions)
		tls_resume_offer(&s->ssl, ctx->sessions);
	*out = s;
	return ERR_OK;
}

void
tls_session_free(struct tls_session *s)
{
	if (!s)
		return;
	mbedtls_ssl_free(&s->ssl);
	free(s->ahead);
	free(s);
}

static void
explain(struct tls_session *s, int result)
{
	char text[128] = "";

	if (s->flags != 0 && !s->over) {
		(void)mbedtls_x509_crt_verify_info(text, sizeof(text), "", s->flags);
		text[strcspn(text, "\n")] = '\0';
		snprintf(s->why, sizeof(s->why), "the peer's certificate: %s", text);
		return;
	}
	mbedtls_strerror(result, text, sizeof(text));
	snprintf(s->why, sizeof(s->why), "%s: %s", s->over ? "TLS" : "TLS handshake", text);
}

static enum tls_result
fail(struct tls_session *s, const char *why)
{
	snprintf(s->why, sizeof(s->why), "%s", why);
	return s->ended = TLS_FAILED;
}

/* Turns what mbedTLS returned into one of the five results; an end is remembered. */
static enum tls_result
settle(struct tls_session *s, int result)
{
	if (result == MBEDTLS_ERR_SSL_WANT_READ)
		return TLS_AGAIN_IN;
	if (result == MBEDTLS_ERR_SSL_WANT_WRITE)
		return TLS_AGAIN_OUT;
	if (result == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY && s->over)
		return s->ended = TLS_CLOSED;
	if (s->barren > BARREN_BYTES)
		return fail(s, "too many records without data");
	if (result == 0)
		return fail(s, "the connection ended without a close_notify");
	explain(s, result);
	return s->ended = TLS_FAILED;
}

enum tls_result
tls_handshake(struct tls_session *s)
{
	if (s->ended != TLS_OK)
		return s->ended;
	/* Only a full handshake passes through the key exchange; that is how resuming shows. */
	while (s->ssl.MBEDTLS_PRIVATE(state) != MBEDTLS_SSL_HANDSHAKE_OVER) {
		if (s->ssl.MBEDTLS_PRIVATE(state) == MBEDTLS_SSL_CLIENT_KEY_EXCHANGE)
			s->full = true;
		int result = mbedtls_ssl_handshake_step(&s->ssl);
		if (result != 0)
			return settle(s, result);
	}
	if (!s->over) {
		s->over = true;
		s->record = (size_t)mbedtls_ssl_get_max_out_record_payload(&s->ssl);
		if (!s->ctx->server && s->ctx->sessions && s->full)
			tls_resume_keep(&s->ssl, s->ctx->sessions);
	}
	return TLS_OK;
}

enum tls_result
tls_read(struct tls_session *s, void *data, size_t len, size_t *done)
{
	unsigned char *p = data;

	*done = 0;
	if (s->ended != TLS_OK)
		return s->ended;
	while (*done < len) {
		int n = mbedtls_ssl_read(&s->ssl, p + *done, len - *done);
		if (n <= 0) {
			enum tls_result r = settle(s, n);
			return *done > 0 ? TLS_OK : r;
		}
		*done += (size_t)n;
		s->barren = 0;
	}
	return TLS_OK;
}

enum tls_result
tls_write(struct tls_session *s, const void *data, size_t len, size_t *done)
{
	const unsigned char *p = data;

	*done = 0;
	if (s->ended == TLS_FAILED)
		return TLS_FAILED;
	while (*done < len) {
		size_t n = len - *done < s->record ? len - *done : s->record;
		/* mbedTLS finishes the record it holds whatever it is given, so it is given the same. */
		if (s->unsent > n)
			return fail(s, "a write was repeated with fewer bytes");
		if (s->unsent > 0)
			n = s->unsent;
		s->more = *done + n < len;
		int sent = mbedtls_ssl_write(&s->ssl, p + *done, n);
		s->more = false;
		if (sent <= 0) {
			enum tls_result r = settle(s, sent);
			s->unsent = r == TLS_AGAIN_OUT ? n : 0;
			return *done > 0 && r != TLS_FAILED ? TLS_OK : r;
		}
		s->unsent = 0;
		*done += (size_t)sent;
	}
	return TLS_OK;
}

bool
tls_pending(const struct tls_session *s)
{
	return mbedtls_ssl_get_bytes_avail(&s->ssl) > 0 || s->ahead_len > 0;
}

void
tls_shutdown(struct tls_session *s)
{
	if (s->over && s->ended != TLS_FAILED)
		(void)mbedtls_ssl_close_notify(&s->ssl);
}

enum err
tls_peer_cert(const struct tls_session *s, struct x509_cert *out)
{
	const mbedtls_x509_crt *crt = mbedtls_ssl_get_peer_cert(&s->ssl);

	if (!s->over || !crt || crt->raw.len == 0)
		return ERR_NOTFOUND;
	if (crt->raw.len > sizeof(out->der))
		return ERR_LIMIT;
	out->len = crt->raw.len;
	memcpy(out->der, crt->raw.p, out->len);
	return ERR_OK;
}

bool
tls_resumed(const struct tls_session *s)
{
	return s->over && !s->full;
}

bool
tls_heard(const struct tls_session *s)
{
	return s->over || s->barren > 0;
}

const char *
tls_claimed(const struct tls_session *s)
{
	return s->claimed;
}

bool
tls_other_ca(const struct tls_session *s)
{
	return s->ended == TLS_FAILED && !s->over && (s->flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED);
}

const char *
tls_why(const struct tls_session *s)
{
	return s->why;
}
