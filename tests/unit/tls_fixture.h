#ifndef TLS_FIXTURE_H
#define TLS_FIXTURE_H
/* Certificates of a small fleet, and two ends of one connection that a test drives. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fleet.h"
#include "prng.h"
#include "tls.h"

static struct fleet_member ca, other_ca, server, client;
static struct why why;

/* Two ends of one connection, both driven by the test. */
struct wire {
	int fd[2];
	struct tls_session *c, *s;
	enum tls_result client_result, server_result;
};

static inline int
make_fleet(void **state)
{
	(void)state;
	ca = fleet_ca("Rivulet CA");
	other_ca = fleet_ca("Rivulet CA");
	server = fleet_issue(&ca, X509_SERVER, "coordinator", -3600, 3600);
	client = fleet_issue(&ca, X509_CLIENT, "device", -3600, 3600);
	print_message("%s\n", tls_backend());
	return 0;
}

static inline int
drop_fleet(void **state)
{
	(void)state;
	fleet_free(&ca);
	fleet_free(&other_ca);
	fleet_free(&server);
	fleet_free(&client);
	return 0;
}

static inline struct tls_context *
server_context(const struct fleet_member *me, unsigned cache)
{
	struct tls_context *ctx = NULL;
	struct tls_config config = {.server = true,
	    .ca = &ca.cert,
	    .cert = &me->cert,
	    .key = me->key,
	    .cache_entries = cache};

	fleet_check(tls_context_new(&ctx, &config, &why), &why);
	return ctx;
}

static inline struct tls_context *
client_context(const struct fleet_member *me, const struct fleet_member *trust, const char *name)
{
	struct tls_context *ctx = NULL;
	struct tls_config config = {.ca = &trust->cert,
	    .cert = me ? &me->cert : NULL,
	    .key = me ? me->key : NULL,
	    .peer_name = name,
	    .cache_entries = 1};

	fleet_check(tls_context_new(&ctx, &config, &why), &why);
	return ctx;
}

static inline bool
again(enum tls_result r)
{
	return r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT;
}

/* Shakes hands until both are done or one has failed and the other can hear no more of it. Under TLS 1.3 a
 * client is done before the server has judged its certificate: it learns by reading. */
static inline void
shake(struct wire *w)
{
	char byte;
	size_t n;

	w->client_result = w->server_result = TLS_AGAIN_IN;
	for (int i = 0; i < 50; i++) {
		if (again(w->client_result))
			w->client_result = tls_handshake(w->c);
		if (again(w->server_result))
			w->server_result = tls_handshake(w->s);
	}
	if (w->client_result == TLS_OK) {
		enum tls_result r = tls_read(w->c, &byte, 1, &n);
		if (!again(r))
			w->client_result = r;
	}
}

static inline struct wire
connect_pair(struct tls_context *cc, struct tls_context *sc)
{
	struct wire w = {{-1, -1}, NULL, NULL, TLS_FAILED, TLS_FAILED};

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, w.fd) != 0 ||
	    tls_session_new(&w.c, cc, w.fd[0]) || tls_session_new(&w.s, sc, w.fd[1]))
		exit(1);
	shake(&w);
	return w;
}

static inline void
hang_up(struct wire *w)
{
	tls_session_free(w->c);
	tls_session_free(w->s);
	close(w->fd[0]);
	close(w->fd[1]);
}

/* Moves a few bytes each way, which both ends must see unchanged. */
static inline void
talk(struct wire *w)
{
	char got[16];
	size_t n;

	assert_int_equal(tls_write(w->c, "ping", 4, &n), TLS_OK);
	assert_int_equal(n, 4);
	assert_int_equal(tls_read(w->s, got, sizeof(got), &n), TLS_OK);
	assert_int_equal(n, 4);
	assert_memory_equal(got, "ping", 4);
	assert_int_equal(tls_write(w->s, "pong", 4, &n), TLS_OK);
	assert_int_equal(tls_read(w->c, got, 2, &n), TLS_OK);
	assert_int_equal(n, 2);
	assert_true(tls_pending(w->c));
	assert_int_equal(tls_read(w->c, got + 2, 2, &n), TLS_OK);
	assert_memory_equal(got, "pong", 4);
	assert_false(tls_pending(w->c));
	assert_int_equal(tls_read(w->c, got, 1, &n), TLS_AGAIN_IN);
	assert_int_equal(n, 0);
}

static inline void
assert_peer(const struct tls_session *s, const struct fleet_member *who)
{
	struct x509_cert cert;

	assert_int_equal(tls_peer_cert(s, &cert), ERR_OK);
	assert_int_equal(cert.len, who->cert.len);
	assert_memory_equal(cert.der, who->cert.der, cert.len);
}

#endif
