#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "mbed.h"
#include "ossl.h"
#include "sessions.h"
#include "tls.h"

#define PEER_NAME_MAX 255
#define RECORD_MAX 16384
/* Read from the socket at once: several records. Given back when the connection rests. */
#define AHEAD_BYTES ((size_t)64 << 10)
/* Bytes without data, and handshake messages after the handshake (renegotiation, key updates), which OpenSSL would answer for ever. */
#define BARREN_BYTES (4 * AHEAD_BYTES)
#define LATE_MESSAGES_MAX 16

struct tls_context {
	SSL_CTX *ssl;
	bool server;
	char peer_name[PEER_NAME_MAX + 1]; /* client */
	bool address; /* client: peer_name is an IP address */
	bool resume;
	pthread_mutex_t lock;
	SSL_SESSION *latest; /* client: the session to offer, under the lock */
};

struct tls_session {
	SSL *ssl;
	struct tls_context *ctx;
	int fd;
	bool over; /* the handshake is done */
	bool dry; /* the last read took all there was */
	bool more; /* another record follows at once */
	size_t barren; /* bytes since the last data */
	unsigned late; /* handshake messages since the handshake */
	size_t unsent; /* size of the record that OpenSSL holds but could not send */
	enum tls_result ended; /* TLS_OK while reading may go on */
	char claimed[X509_COMMON_NAME];
	char why[192];
};

/* Process-wide, because OpenSSL numbers its method types and its application data so. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *socket_method;
static int birth_index = -1;

const char *
tls_backend(void)
{
	return OpenSSL_version(OPENSSL_VERSION);
}

/* --- The socket: OpenSSL's own socket BIO uses write(2), which raises SIGPIPE. */

static int
on_send(BIO *bio, const char *data, size_t len, size_t *done)
{
	const struct tls_session *s = BIO_get_data(bio);
	ssize_t n;

	do
		n = send(s->fd, data, len, MSG_NOSIGNAL | (s->more ? MSG_MORE : 0));
	while (n < 0 && errno == EINTR);
	BIO_clear_retry_flags(bio);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		BIO_set_retry_write(bio);
	*done = n > 0 ? (size_t)n : 0;
	return n > 0;
}

static bool
is_abusive(const struct tls_session *s)
{
	return s->barren > BARREN_BYTES || s->late > LATE_MESSAGES_MAX;
}

static int
on_recv(BIO *bio, char *data, size_t len, size_t *done)
{
	struct tls_session *s = BIO_get_data(bio);
	ssize_t n;

	*done = 0;
	if (is_abusive(s)) {
		BIO_clear_retry_flags(bio);
		return 0;
	}
	do
		n = recv(s->fd, data, len, 0);
	while (n < 0 && errno == EINTR);
	BIO_clear_retry_flags(bio);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		BIO_set_retry_read(bio);
	if (n == 0)
		BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
	*done = n > 0 ? (size_t)n : 0;
	s->barren += *done;
	return n > 0;
}

static long
on_control(BIO *bio, int command, long number, void *pointer)
{
	(void)number;
	(void)pointer;
	if (command == BIO_CTRL_EOF)
		return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
	return command == BIO_CTRL_FLUSH;
}

static void
set_up(void)
{
	birth_index = SSL_SESSION_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
	if (m && BIO_meth_set_write_ex(m, on_send) && BIO_meth_set_read_ex(m, on_recv) &&
	    BIO_meth_set_ctrl(m, on_control))
		socket_method = m;
}

/* --- Resumption */

/* Under TLS 1.3 each resumed connection gets a ticket whose hour begins afresh. The time of the full handshake is
 * kept beside the session, copied with it, and put back, so that a chain of tickets ends after that hour. */
static int
on_ticket(SSL *ssl, void *unused)
{
	SSL_SESSION *session = SSL_get_session(ssl);
	int64_t born = (int64_t)(intptr_t)SSL_SESSION_get_ex_data(session, birth_index);

	(void)unused;
	if (born == 0)
		return SSL_SESSION_set_ex_data(session, birth_index, (void *)(intptr_t)time(NULL));
	SSL_SESSION_set_time(session, born);
	return 1;
}

/* A context speaks to one peer under one identity, so its latest session is the one to offer. */
static int
on_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls_context *ctx = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	pthread_mutex_lock(&ctx->lock);
	SSL_SESSION *old = ctx->latest;
	ctx->latest = session;
	pthread_mutex_unlock(&ctx->lock);
	SSL_SESSION_free(old);
	return 1;
}

static void
offer_latest(struct tls_session *s)
{
	pthread_mutex_lock(&s->ctx->lock);
	if (s->ctx->latest)
		SSL_set_session(s->ssl, s->ctx->latest);
	pthread_mutex_unlock(&s->ctx->lock);
}

/* SSL_OP_NO_TICKET: sessions stay in the server's memory, with the peer's certificate, where they can be counted
 * and forgotten; under TLS 1.3 a ticket is then only their number. */
static void
set_resumption(struct tls_context *ctx, unsigned entries)
{
	ctx->resume = entries > 0;
	SSL_CTX_set_timeout(ctx->ssl, SESSIONS_LIFETIME);
	SSL_CTX_set_options(ctx->ssl, SSL_OP_NO_TICKET);
	if (!ctx->resume) {
		SSL_CTX_set_session_cache_mode(ctx->ssl, SSL_SESS_CACHE_OFF);
		SSL_CTX_set_num_tickets(ctx->ssl, 0);
	} else if (ctx->server) {
		SSL_CTX_set_session_cache_mode(ctx->ssl, SSL_SESS_CACHE_SERVER);
		SSL_CTX_sess_set_cache_size(ctx->ssl, entries);
		SSL_CTX_set_num_tickets(ctx->ssl, 1);
		SSL_CTX_set_session_ticket_cb(ctx->ssl, on_ticket, NULL, NULL);
	} else {
		SSL_CTX_set_session_cache_mode(
		    ctx->ssl, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
		SSL_CTX_sess_set_new_cb(ctx->ssl, on_new_session);
	}
}

void
tls_context_forget(struct tls_context *ctx)
{
	SSL_CTX_flush_sessions(ctx->ssl, 0);
	pthread_mutex_lock(&ctx->lock);
	SSL_SESSION_free(ctx->latest);
	ctx->latest = NULL;
	pthread_mutex_unlock(&ctx->lock);
}

/* --- Context */

static X509 *
read_cert(const struct x509_cert *cert)
{
	const unsigned char *p = cert->der;
	bool sane = cert->len > 0 && cert->len <= X509_DER_MAX;
	X509 *x = sane ? d2i_X509(NULL, &p, (long)cert->len) : NULL;

	if (x && p != cert->der + cert->len) {
		X509_free(x);
		return NULL;
	}
	return x;
}

static enum err
set_trust(SSL_CTX *ssl, const struct x509_cert *cert, bool server, struct why *why)
{
	X509 *ca = read_cert(cert);

	if (!ca)
		return err_set(why, ERR_INVALID, "malformed CA certificate");
	bool good = X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl), ca) &&
	    (!server || SSL_CTX_add_client_CA(ssl, ca));
	X509_free(ca);
	return good ? ERR_OK : err_set(why, ERR_NOMEM, "no memory for TLS");
}

static enum err
set_identity(SSL_CTX *ssl, const struct tls_config *config, struct why *why)
{
	if (!config->cert || !config->key)
		return config->server ? err_set(why, ERR_INVALID, "a server needs a certificate")
				      : ERR_OK;
	X509 *own = read_cert(config->cert);
	X509 *chain = config->chain ? read_cert(config->chain) : NULL;
	bool good = own && SSL_CTX_use_certificate(ssl, own) &&
	    (!config->chain || (chain && SSL_CTX_add1_chain_cert(ssl, chain)));
	X509_free(own);
	X509_free(chain);
	if (!good)
		return err_set(why, ERR_INVALID, "malformed certificate");
	if (!SSL_CTX_use_PrivateKey(ssl, config->key->native) || !SSL_CTX_check_private_key(ssl))
		return err_set(why, ERR_INVALID, "the certificate is not for this key");
	return ERR_OK;
}

static enum err
set_peer(struct tls_context *ctx, const char *name, struct why *why)
{
	uint8_t address[16];

	if (!name || !*name || strlen(name) > PEER_NAME_MAX)
		return err_set(why, ERR_INVALID, "a TLS client needs the name of its peer");
	snprintf(ctx->peer_name, sizeof(ctx->peer_name), "%s", name);
	ctx->address =
	    inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx->ssl);
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (!(ctx->address ? X509_VERIFY_PARAM_set1_ip_asc(param, name)
			   : X509_VERIFY_PARAM_set1_host(param, name, 0)))
		return err_set(why, ERR_INVALID, "\"%.80s\" cannot be a server's name", name);
	return ERR_OK;
}

/* Notes whose a client's certificate says it is, before it is judged as usual. */
static int
on_client_cert(X509_STORE_CTX *store, void *unused)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tls_session *s = SSL_get_app_data(ssl);
	const X509_NAME *subject = X509_get_subject_name(X509_STORE_CTX_get0_cert(store));
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

	(void)unused;
	if (at >= 0) {
		const ASN1_STRING *text =
		    X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
		(void)x509_copy_text(s->claimed, sizeof(s->claimed), ASN1_STRING_get0_data(text),
		    (size_t)ASN1_STRING_length(text));
	}
	return X509_verify_cert(store) > 0;
}

/* AES first: with OpenSSL and AES instructions it moves 1.7 times the bytes of ChaCha20-Poly1305. */
static bool
set_policy(SSL_CTX *ssl, bool server)
{
	static const unsigned char id[] = "rivulet";

	SSL_CTX_set_options(
	    ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	/* A link that breaks is told by the socket; as an error of TLS it would also cost the session. */
	SSL_CTX_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ssl,
	    SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
		SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(ssl, 1);
	SSL_CTX_set_default_read_buffer_len(ssl, AHEAD_BYTES);
	SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	if (server) {
		X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ssl), X509_V_FLAG_NO_CHECK_TIME);
		SSL_CTX_set_cert_verify_callback(ssl, on_client_cert, NULL);
	}
	return SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) &&
	    SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) &&
	    SSL_CTX_set_cipher_list(
		ssl, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305") &&
	    SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") &&
	    SSL_CTX_set1_groups_list(ssl, "X25519:P-256") &&
	    SSL_CTX_set1_sigalgs_list(ssl, "ECDSA+SHA256") &&
	    SSL_CTX_set_session_id_context(ssl, id, sizeof(id) - 1);
}

static enum err
configure(struct tls_context *ctx, const struct tls_config *config, struct why *why)
{
	pthread_once(&once, set_up);
	ctx->ssl = SSL_CTX_new(config->server ? TLS_server_method() : TLS_client_method());
	if (!ctx->ssl || !socket_method || birth_index < 0 || !set_policy(ctx->ssl, config->server))
		return err_set(why, ERR_NOMEM, "OpenSSL refuses the settings for TLS");
	SSL_CTX_set_app_data(ctx->ssl, ctx);
	set_resumption(ctx, config->cache_entries);
	enum err e = set_trust(ctx->ssl, config->ca, config->server, why);
	if (!e && config->other_ca)
		e = set_trust(ctx->ssl, config->other_ca, config->server, why);
	if (!e)
		e = set_identity(ctx->ssl, config, why);
	if (!e && !config->server)
		e = set_peer(ctx, config->peer_name, why);
	return e;
}

enum err
tls_context_new(struct tls_context **out, const struct tls_config *config, struct why *why)
{
	struct tls_context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx || pthread_mutex_init(&ctx->lock, NULL) != 0) {
		free(ctx);
		return err_set(why, ERR_NOMEM, "no memory for TLS");
	}
	ctx->server = config->server;
	ERR_clear_error();
	enum err e = configure(ctx, config, why);
	ERR_clear_error();
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
	SSL_SESSION_free(ctx->latest);
	SSL_CTX_free(ctx->ssl);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

/* --- Session */

/* Counts what OpenSSL takes for a new handshake. */
static void
on_message(int sent, int version, int type, const void *data, size_t len, SSL *ssl, void *unused)
{
	struct tls_session *s = SSL_get_app_data(ssl);

	(void)version, (void)data, (void)len, (void)unused;
	if (s && s->over && !sent && type == SSL3_RT_HANDSHAKE)
		s->late++;
}

static bool
attach_socket(struct tls_session *s)
{
	BIO *bio = BIO_new(socket_method);

	if (!bio)
		return false;
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(s->ssl, bio, bio);
	return true;
}

enum err
tls_session_new(struct tls_session **out, struct tls_context *ctx, int fd)
{
	struct tls_session *s = calloc(1, sizeof(*s));

	if (!s)
		return ERR_NOMEM;
	s->ctx = ctx;
	s->fd = fd;
	s->ssl = SSL_new(ctx->ssl);
	if (!s->ssl || !attach_socket(s) ||
	    (!ctx->server && !ctx->address && !SSL_set_tlsext_host_name(s->ssl, ctx->peer_name))) {
		ERR_clear_error();
		tls_session_free(s);
		return ERR_NOMEM;
	}
	SSL_set_app_data(s->ssl, s);
	if (ctx->server) {
		SSL_set_msg_callback(s->ssl, on_message);
		SSL_set_accept_state(s->ssl);
	} else {
		SSL_set_connect_state(s->ssl);
	}
	if (!ctx->server && ctx->resume)
		offer_latest(s);
	*out = s;
	return ERR_OK;
}

void
tls_session_free(struct tls_session *s)
{
	if (!s)
		return;
	/* A connection that just broke may be resumed: OpenSSL would drop its session unless told it was closed. */
	if (s->over)
		SSL_set_shutdown(s->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(s->ssl);
	free(s);
}

static enum tls_result
fail(struct tls_session *s, const char *why)
{
	snprintf(s->why, sizeof(s->why), "%s", why);
	return s->ended = TLS_FAILED;
}

static void
explain(struct tls_session *s)
{
	long verdict = SSL_get_verify_result(s->ssl);
	const char *text = ERR_reason_error_string(ERR_peek_last_error());

	if (!s->over && verdict != X509_V_OK)
		snprintf(s->why, sizeof(s->why), "the peer's certificate: %s",
		    X509_verify_cert_error_string(verdict));
	else
		snprintf(s->why, sizeof(s->why), "%s: %s", s->over ? "TLS" : "TLS handshake",
		    text ? text : "the connection was reset");
}

/* Turns OpenSSL's verdict on a call that did not succeed into one of the five results; an end is remembered. */
static enum tls_result
settle(struct tls_session *s, int result)
{
	int kind = SSL_get_error(s->ssl, result);

	if (kind == SSL_ERROR_WANT_READ)
		return TLS_AGAIN_IN;
	if (kind == SSL_ERROR_WANT_WRITE)
		return TLS_AGAIN_OUT;
	if (is_abusive(s)) {
		ERR_clear_error();
		return fail(s, "too many records without data");
	}
	if (BIO_test_flags(SSL_get_rbio(s->ssl), BIO_FLAGS_IN_EOF))
		return fail(s, "the connection ended without a close_notify");
	if (kind == SSL_ERROR_ZERO_RETURN && s->over)
		return s->ended = TLS_CLOSED;
	explain(s);
	ERR_clear_error();
	return s->ended = TLS_FAILED;
}

enum tls_result
tls_handshake(struct tls_session *s)
{
	if (s->ended != TLS_OK)
		return s->ended;
	if (s->over)
		return TLS_OK;
	ERR_clear_error();
	int result = SSL_do_handshake(s->ssl);
	if (result != 1)
		return settle(s, result);
	s->over = true;
	return TLS_OK;
}

enum tls_result
tls_read(struct tls_session *s, void *data, size_t len, size_t *done)
{
	char *p = data;

	*done = 0;
	if (s->ended != TLS_OK)
		return s->ended;
	ERR_clear_error();
	s->dry = false;
	while (*done < len) {
		size_t n = 0;
		int result = SSL_read_ex(s->ssl, p + *done, len - *done, &n);
		if (result != 1) {
			enum tls_result r = settle(s, result);
			s->dry = r == TLS_AGAIN_IN;
			return *done > 0 ? TLS_OK : r;
		}
		*done += n;
		s->barren = 0;
	}
	return TLS_OK;
}

enum tls_result
tls_write(struct tls_session *s, const void *data, size_t len, size_t *done)
{
	const char *p = data;

	*done = 0;
	if (s->ended == TLS_FAILED)
		return TLS_FAILED;
	ERR_clear_error();
	while (*done < len) {
		size_t n = 0;
		if (s->unsent > len - *done)
			return fail(s, "a write was repeated with fewer bytes");
		s->more = *done + RECORD_MAX < len;
		int result = SSL_write_ex(s->ssl, p + *done, len - *done, &n);
		s->more = false;
		if (result != 1) {
			enum tls_result r = settle(s, result);
			s->unsent = len - *done < RECORD_MAX ? len - *done : RECORD_MAX;
			return *done > 0 && r != TLS_FAILED ? TLS_OK : r;
		}
		s->unsent = 0;
		*done += n;
	}
	return TLS_OK;
}

/* Reading ahead can leave part of a record behind, which OpenSSL counts as pending though nothing can be read. */
bool
tls_pending(const struct tls_session *s)
{
	return !s->dry && s->ended == TLS_OK && SSL_has_pending(s->ssl);
}

void
tls_shutdown(struct tls_session *s)
{
	if (s->over && s->ended != TLS_FAILED)
		(void)SSL_shutdown(s->ssl);
	ERR_clear_error();
}

enum err
tls_peer_cert(const struct tls_session *s, struct x509_cert *out)
{
	X509 *cert = s->over ? SSL_get0_peer_certificate(s->ssl) : NULL;
	unsigned char *p = out->der;

	if (!cert)
		return ERR_NOTFOUND;
	int len = i2d_X509(cert, NULL);
	if (len <= 0 || (size_t)len > sizeof(out->der))
		return ERR_LIMIT;
	out->len = (size_t)i2d_X509(cert, &p);
	return ERR_OK;
}

bool
tls_resumed(const struct tls_session *s)
{
	return s->over && SSL_session_reused(s->ssl);
}

bool
tls_heard(const struct tls_session *s)
{
	return BIO_number_read(SSL_get_rbio(s->ssl)) > 0;
}

const char *
tls_claimed(const struct tls_session *s)
{
	return s->claimed;
}

bool
tls_other_ca(const struct tls_session *s)
{
	return s->ended == TLS_FAILED && !s->over && ossl_other_ca(SSL_get_verify_result(s->ssl));
}

const char *
tls_why(const struct tls_session *s)
{
	return s->why;
}
