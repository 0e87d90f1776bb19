/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fleet.h"
#include "rawtls.h"
#include "tls.h"

/* A peer that shook hands properly and then sends records without data. A server must not read them for ever: what it has
 * taken when it gives up is bounded, and one call of tls_read ends. */
#define PATIENCE 100000 /* records */
#define BOUND ((size_t)512 << 10) /* bytes */

struct pair {
	int fd[2];
	struct tls_context *context;
	struct tls_session *server;
	struct rawtls client;
	size_t sent;
};

static struct fleet_member ca, me;
static struct why why;

static int
make_fleet(void **state)
{
	(void)state;
	ca = fleet_ca("Rivulet CA");
	me = fleet_issue(&ca, X509_SERVER, "coordinator", -3600, 3600);
	print_message("%s\n", tls_backend());
	return 0;
}

static int
drop_fleet(void **state)
{
	(void)state;
	fleet_free(&ca);
	fleet_free(&me);
	return 0;
}

static int
setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct tls_config config = {
	    .server = true, .ca = &ca.cert, .cert = &me.cert, .key = me.key, .cache_entries = 10};
	int c = 1, large = 1 << 20;
	enum tls_result s = TLS_AGAIN_IN;

	assert_non_null(p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->fd), 0);
	setsockopt(p->fd[0], SOL_SOCKET, SO_SNDBUF, &large, sizeof(large));
	fleet_check(tls_context_new(&p->context, &config, &why), &why);
	assert_int_equal(tls_session_new(&p->server, p->context, p->fd[1]), ERR_OK);
	assert_true(rawtls_init(&p->client, p->fd[0]));
	for (int i = 0; i < 50 && (c != 0 || s != TLS_OK); i++) {
		c = rawtls_handshake(&p->client);
		s = tls_handshake(p->server);
	}
	assert_int_equal(c, 0);
	assert_int_equal(s, TLS_OK);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct pair *p = *state;

	rawtls_deinit(&p->client);
	tls_session_free(p->server);
	tls_context_free(p->context);
	close(p->fd[0]);
	close(p->fd[1]);
	free(p);
	return 0;
}

/* What the server answers (alerts) must not fill the client's side. */
static void
drop_answers(struct pair *p)
{
	char junk[4096];

	while (recv(p->fd[0], junk, sizeof(junk), 0) > 0)
		;
}

/* Sends records of `size` bytes until the server gives up or patience ends; the result of its last read. */
static enum tls_result
flood(struct pair *p, int type, const void *data, size_t size)
{
	enum tls_result r = TLS_AGAIN_IN;
	char got[64];
	size_t n;

	for (int i = 0; i < PATIENCE && r == TLS_AGAIN_IN; i++) {
		int rc = size == SIZE_MAX ? rawtls_hello(&p->client)
					  : rawtls_record(&p->client, type, data, size);
		assert_int_equal(rc, 0);
		p->sent += size == SIZE_MAX ? 76 : size + 29;
		r = tls_read(p->server, got, sizeof(got), &n);
		assert_int_equal(n, 0);
		drop_answers(p);
	}
	return r;
}

static void
data_passes(void **state)
{
	struct pair *p = *state;
	char got[16];
	size_t n;

	for (int i = 0; i < 5000; i++) {
		assert_int_equal(
		    rawtls_record(&p->client, MBEDTLS_SSL_MSG_APPLICATION_DATA, "x", 1), 0);
		assert_int_equal(tls_read(p->server, got, sizeof(got), &n), TLS_OK);
		assert_int_equal(n, 1);
	}
}

static void
empty_records(void **state)
{
	struct pair *p = *state;

	assert_int_equal(flood(p, MBEDTLS_SSL_MSG_APPLICATION_DATA, "", 0), TLS_FAILED);
	assert_true(p->sent < BOUND);
	assert_true(tls_why(p->server)[0]);
}

static void
warning_alerts(void **state)
{
	static const unsigned char canceled[2] = {1, 90};
	struct pair *p = *state;

	assert_int_equal(flood(p, MBEDTLS_SSL_MSG_ALERT, canceled, 2), TLS_FAILED);
	assert_true(p->sent < BOUND);
}

static void
renegotiations(void **state)
{
	struct pair *p = *state;

	assert_int_equal(flood(p, 0, NULL, SIZE_MAX), TLS_FAILED);
	assert_true(p->sent < BOUND);
}

/* All at once: one call of tls_read must end on its own. */
static void
alerts_in_one_read(void **state)
{
	static const unsigned char canceled[2] = {1, 90};
	struct pair *p = *state;
	char got[64];
	size_t n, sent = 0;

	while (rawtls_record(&p->client, MBEDTLS_SSL_MSG_ALERT, canceled, 2) == 0)
		sent++;
	assert_true(sent > 1000);
	assert_int_equal(tls_read(p->server, got, sizeof(got), &n), TLS_FAILED);
	assert_int_equal(n, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(data_passes),
	    TEST(empty_records),
	    TEST(warning_alerts),
	    TEST(renegotiations),
	    TEST(alerts_in_one_read),
	};

	return cmocka_run_group_tests(tests, make_fleet, drop_fleet);
}
