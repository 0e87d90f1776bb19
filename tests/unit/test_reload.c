/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "file.h"
#include "keys.h"
#include "log.h"
#include "server.h"
#include "services.h"
#include "setup.h"
#include "shared.h"
#include "store.h"
#include "tls.h"

/* A coordinator that is told to read its configuration again, far more often than any table of old ones would have had places for. */

#define RELOADS 300
#define CERTIFICATES 70
#define GROWTH ((size_t)4 << 20) /* 300 configurations kept would be 60 MB */

struct bench {
	char dir[64];
	struct config config;
	struct setup *setup;
	struct why why;
};

static void
must(struct bench *b, enum err e)
{
	if (e)
		fail_msg("%s: %s", err_name(e), b->why.text);
}

static void
renew_certificate(struct bench *b)
{
	static const char *const names[] = {"localhost"};
	bool fresh;

	must(b, keys_init(b->dir, names, 1, &fresh, &b->why));
}

static int
setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	char path[96];

	assert_non_null(b);
	log_set_level(LOG_LEVEL_ERROR);
	strcpy(b->dir, "/tmp/test_reload.XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	config_defaults(&b->config);
	b->config.listen[0] = (struct config_listen){"127.0.0.1", 0};
	b->config.listen_count = 1;
	b->config.io_threads = 2;
	b->config.worker_threads = 2;
	b->config.header_timeout_s = 600; /* a stranger may be silent meanwhile */
	b->config.admin_socket[0] = '\0';
	snprintf(b->config.state_dir, sizeof(b->config.state_dir), "%s", b->dir);
	renew_certificate(b);
	snprintf(path, sizeof(path), "%s/rivulet.db", b->dir);
	must(b, store_create(path, NULL, NULL, &b->why));
	must(b, setup_new(&b->setup, &b->config, NULL, &b->why));
	must(b, setup_start(b->setup, &b->why));
	*state = b;
	return 0;
}

static int
teardown(void **state)
{
	struct bench *b = *state;
	char command[96];

	setup_free(b->setup);
	snprintf(command, sizeof(command), "rm -rf %s", b->dir);
	assert_int_equal(system(command), 0);
	free(b);
	return 0;
}

/* --- a client */

struct client {
	int fd;
	struct tls_context *context;
	struct tls_session *tls;
};

static void
wait_for(const struct client *c, enum tls_result r)
{
	struct pollfd p = {c->fd, r == TLS_AGAIN_IN ? POLLIN : POLLOUT, 0};

	assert_true(r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT);
	assert_int_equal(poll(&p, 1, 10000), 1);
}

static void
client_open(struct bench *b, struct client *c)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	    .sin_port = htons(server_port(setup_services(b->setup)->server)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct x509_cert ca;
	enum tls_result r;

	must(b, keys_load_cert(b->dir, "ca.crt", &ca, &b->why));
	struct tls_config config = {.ca = &ca, .peer_name = "localhost"};
	must(b, tls_context_new(&c->context, &config, &b->why));
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(c->fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
	must(b, tls_session_new(&c->tls, c->context, c->fd));
	while ((r = tls_handshake(c->tls)) != TLS_OK)
		wait_for(c, r);
}

/* True if this connection is answered. */
static bool
client_asks(struct client *c)
{
	static const char q[] = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
	char answer[2048] = "";
	size_t n;
	enum tls_result r;

	while ((r = tls_write(c->tls, q, sizeof(q) - 1, &n)) != TLS_OK)
		wait_for(c, r);
	assert_int_equal(n, sizeof(q) - 1);
	while ((r = tls_read(c->tls, answer, sizeof(answer) - 1, &n)) == TLS_AGAIN_IN)
		wait_for(c, r);
	return r == TLS_OK && strncmp(answer, "HTTP/1.1 ", 9) == 0;
}

static void
client_close(struct client *c)
{
	tls_session_free(c->tls);
	tls_context_free(c->context);
	close(c->fd);
}

/* --- tests */

static void
reload(struct bench *b, int times, bool certificate)
{
	for (int i = 0; i < times; i++) {
		if (certificate)
			renew_certificate(b);
		b->config.retry_after_s = 5 + (unsigned)i % 10;
		must(b, setup_reload(b->setup, &b->config, &b->why));
	}
}

static void
memory_stays_the_same(void **state)
{
	struct bench *b = *state;

	reload(b, 10, true);
	size_t before = mallinfo2().uordblks;
	reload(b, CERTIFICATES, true);
	reload(b, RELOADS, false);
	assert_in_range(mallinfo2().uordblks, 0, before + GROWTH);
}

/* Also one whose certificate has been replaced many times since. */
static void
a_live_connection_goes_on(void **state)
{
	struct bench *b = *state;
	struct client first, last;

	client_open(b, &first);
	assert_true(client_asks(&first));
	reload(b, CERTIFICATES, true);
	assert_true(client_asks(&first));
	client_open(b, &last);
	assert_true(client_asks(&last));
	client_close(&first);
	reload(b, 1, true);
	assert_true(client_asks(&last));
	client_close(&last);
}

static void
the_new_values_count(void **state)
{
	struct bench *b = *state;
	const struct services *s = setup_services(b->setup);

	b->config.retry_after_s = 17;
	b->config.spool_quota = 12345;
	must(b, setup_reload(b->setup, &b->config, &b->why));
	const struct config *now = shared_take(s->config);
	assert_int_equal(now->retry_after_s, 17);
	shared_give(s->config, now);
	assert_int_equal(s->fixed->spool_quota, 0);
}

/* A certificate that is not for its key changes nothing, the configuration included. */
static void
a_faulty_file_changes_nothing(void **state)
{
	struct bench *b = *state;
	const struct services *s = setup_services(b->setup);
	char path[128];

	const struct config *before = shared_take(s->config);
	const struct services_tls *shown = shared_take(s->tls);
	snprintf(path, sizeof(path), "%s/keys/server.crt", b->dir);
	assert_int_equal(file_write(path, "junk", 4, 0600, &b->why), ERR_OK);
	assert_int_not_equal(setup_reload(b->setup, &b->config, &b->why), ERR_OK);
	const struct config *after = shared_take(s->config);
	const struct services_tls *still = shared_take(s->tls);
	assert_ptr_equal(before, after);
	assert_ptr_equal(shown, still);
	shared_give(s->config, before);
	shared_give(s->config, after);
	shared_give(s->tls, shown);
	shared_give(s->tls, still);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(memory_stays_the_same),
	    TEST(a_live_connection_goes_on),
	    TEST(the_new_values_count),
	    TEST(a_faulty_file_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
