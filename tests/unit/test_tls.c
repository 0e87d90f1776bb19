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

static int
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

static int
drop_fleet(void **state)
{
	(void)state;
	fleet_free(&ca);
	fleet_free(&other_ca);
	fleet_free(&server);
	fleet_free(&client);
	return 0;
}

static struct tls_context *
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

static struct tls_context *
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

static bool
again(enum tls_result r)
{
	return r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT;
}

/* Shakes hands until both are done or one has failed and the other can hear no more of it. Under TLS 1.3 a
 * client is done before the server has judged its certificate: it learns by reading. */
static void
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

static struct wire
connect_pair(struct tls_context *cc, struct tls_context *sc)
{
	struct wire w = {{-1, -1}, NULL, NULL, TLS_FAILED, TLS_FAILED};

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, w.fd) != 0 ||
	    tls_session_new(&w.c, cc, w.fd[0]) || tls_session_new(&w.s, sc, w.fd[1]))
		exit(1);
	shake(&w);
	return w;
}

static void
hang_up(struct wire *w)
{
	tls_session_free(w->c);
	tls_session_free(w->s);
	close(w->fd[0]);
	close(w->fd[1]);
}

/* Moves a few bytes each way, which both ends must see unchanged. */
static void
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

static void
assert_peer(const struct tls_session *s, const struct fleet_member *who)
{
	struct x509_cert cert;

	assert_int_equal(tls_peer_cert(s, &cert), ERR_OK);
	assert_int_equal(cert.len, who->cert.len);
	assert_memory_equal(cert.der, who->cert.der, cert.len);
}

static void
with_client_certificate(void **state)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(&client, &ca, "localhost");
	struct wire w = connect_pair(cc, sc);

	(void)state;
	assert_int_equal(w.client_result, TLS_OK);
	assert_int_equal(w.server_result, TLS_OK);
	assert_peer(w.s, &client);
	assert_peer(w.c, &server);
	assert_false(tls_resumed(w.s));
	assert_false(tls_resumed(w.c));
	talk(&w);
	assert_string_equal(tls_why(w.s), "");
	hang_up(&w);
	tls_context_free(cc);
	tls_context_free(sc);
}

static void
without_client_certificate(void **state)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(NULL, &ca, "localhost");
	struct x509_cert cert;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct wire w = connect_pair(cc, sc);
		assert_int_equal(w.client_result, TLS_OK);
		assert_int_equal(w.server_result, TLS_OK);
		assert_int_equal(tls_peer_cert(w.s, &cert), ERR_NOTFOUND);
		talk(&w);
		assert_int_equal(tls_resumed(w.s), i);
		hang_up(&w);
	}
	tls_context_free(cc);
	tls_context_free(sc);
}

/* The server refuses this client's certificate, tells it so, and does not let it resume either. */
static void
assert_refused(const struct fleet_member *who)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(who, &ca, "localhost");

	for (int i = 0; i < 2; i++) {
		struct wire w = connect_pair(cc, sc);
		struct x509_cert cert;
		assert_int_equal(w.server_result, TLS_FAILED);
		assert_int_equal(w.client_result, TLS_FAILED);
		assert_int_not_equal(strlen(tls_why(w.s)), 0);
		assert_non_null(strstr(tls_why(w.c), "alert"));
		assert_int_equal(tls_peer_cert(w.s, &cert), ERR_NOTFOUND);
		assert_int_equal(tls_handshake(w.s), TLS_FAILED);
		hang_up(&w);
	}
	tls_context_free(cc);
	tls_context_free(sc);
}

static void
foreign_client(void **state)
{
	struct fleet_member stranger = fleet_issue(&other_ca, X509_CLIENT, "device", -3600, 3600);

	(void)state;
	assert_refused(&stranger);
	fleet_free(&stranger);
}

/* While the CA is replaced both count, and still no third. */
static void
clients_of_two_cas(void **state)
{
	struct fleet_member third = fleet_ca("Rivulet CA");
	struct fleet_member newer = fleet_issue(&other_ca, X509_CLIENT, "device", -3600, 3600);
	struct fleet_member stranger = fleet_issue(&third, X509_CLIENT, "device", -3600, 3600);
	const struct fleet_member *who[] = {&client, &newer, &stranger};
	struct tls_context *sc = NULL;
	struct tls_config config = {.server = true,
	    .ca = &ca.cert,
	    .other_ca = &other_ca.cert,
	    .cert = &server.cert,
	    .key = server.key,
	    .cache_entries = 10};

	(void)state;
	fleet_check(tls_context_new(&sc, &config, &why), &why);
	for (int i = 0; i < 3; i++) {
		struct tls_context *cc = client_context(who[i], &ca, "localhost");
		struct wire w = connect_pair(cc, sc);
		assert_int_equal(w.server_result, i < 2 ? TLS_OK : TLS_FAILED);
		if (i < 2)
			assert_peer(w.s, who[i]);
		hang_up(&w);
		tls_context_free(cc);
	}
	tls_context_free(sc);
	fleet_free(&third);
	fleet_free(&newer);
	fleet_free(&stranger);
}

/* A client that knows the old CA alone meets a server of the new one, which brings along what the old one said of the new. */
static void
server_of_a_new_ca(void **state)
{
	struct fleet_member newer = fleet_issue(&other_ca, X509_SERVER, "coordinator", -3600, 3600);
	struct x509_cert cross;
	struct x509_request r = {.use = X509_CA,
	    .common_name = "Rivulet CA",
	    .spki = key_spki(other_ca.key),
	    .not_before = time(NULL) - 3600,
	    .not_after = time(NULL) + 3600};

	(void)state;
	fleet_check(x509_issue(&cross, &r, &ca.cert, ca.key, &why), &why);
	for (int i = 0; i < 3; i++) {
		struct tls_context *sc = NULL;
		struct tls_config config = {.server = true,
		    .ca = &other_ca.cert,
		    .cert = &newer.cert,
		    .chain = i == 0 ? NULL : &cross,
		    .key = newer.key};
		fleet_check(tls_context_new(&sc, &config, &why), &why);
		struct tls_context *cc =
		    client_context(NULL, i == 2 ? &other_ca : &ca, "localhost");
		struct wire w = connect_pair(cc, sc);
		if (w.client_result != (i == 0 ? TLS_FAILED : TLS_OK))
			fail_msg("%d: %s", i, tls_why(w.c));
		hang_up(&w);
		tls_context_free(cc);
		tls_context_free(sc);
	}
	fleet_free(&newer);
}

static void
other_uses_are_no_clients(void **state)
{
	struct fleet_member signer = fleet_issue(&ca, X509_SIGNER, "signer", -3600, 3600);

	(void)state;
	assert_refused(&signer);
	assert_refused(&server);
	fleet_free(&signer);
}

static void
own_ca_is_no_client(void **state)
{
	struct fleet_member self = fleet_issue(NULL, X509_CA, "Rivulet CA", -3600, 3600);

	(void)state;
	assert_refused(&self);
	fleet_free(&self);
}

static void
client_dates_do_not_count(void **state)
{
	struct fleet_member old = fleet_issue(&ca, X509_CLIENT, "device", -7200, -3600);
	struct fleet_member early = fleet_issue(&ca, X509_CLIENT, "device", 3600, 7200);
	struct fleet_member *who[2] = {&old, &early};
	struct tls_context *sc = server_context(&server, 10);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct tls_context *cc = client_context(who[i & 1], &ca, "localhost");
		struct wire w = connect_pair(cc, sc);
		assert_int_equal(w.client_result, TLS_OK);
		assert_int_equal(w.server_result, TLS_OK);
		assert_peer(w.s, who[i & 1]);
		hang_up(&w);
		tls_context_free(cc);
	}
	tls_context_free(sc);
	fleet_free(&old);
	fleet_free(&early);
}

static void
old_and_foreign_is_refused(void **state)
{
	struct fleet_member stranger = fleet_issue(&other_ca, X509_CLIENT, "device", -7200, -3600);

	(void)state;
	assert_refused(&stranger);
	fleet_free(&stranger);
}

/* What a client makes of a server. */
static enum tls_result
judge(const struct fleet_member *me, const struct fleet_member *trust, const char *name)
{
	struct tls_context *sc = server_context(me, 10);
	struct tls_context *cc = client_context(NULL, trust, name);
	struct wire w = connect_pair(cc, sc);
	enum tls_result r = w.client_result;

	if (r == TLS_FAILED)
		assert_int_not_equal(strlen(tls_why(w.c)), 0);
	assert_int_equal(w.server_result, r);
	hang_up(&w);
	tls_context_free(cc);
	tls_context_free(sc);
	return r;
}

static void
names_of_the_server(void **state)
{
	(void)state;
	assert_int_equal(judge(&server, &ca, "localhost"), TLS_OK);
	assert_int_equal(judge(&server, &ca, "Coordinator.Example"), TLS_OK);
	assert_int_equal(judge(&server, &ca, "127.0.0.1"), TLS_OK);
	assert_int_equal(judge(&server, &ca, "::1"), TLS_OK);
	assert_int_equal(judge(&server, &ca, "other.example"), TLS_FAILED);
	assert_int_equal(judge(&server, &ca, "coordinator"), TLS_FAILED);
	assert_int_equal(judge(&server, &ca, "example"), TLS_FAILED);
	assert_int_equal(judge(&server, &ca, "127.0.0.2"), TLS_FAILED);
	assert_int_equal(judge(&server, &ca, "::2"), TLS_FAILED);
}

static void
bad_servers(void **state)
{
	struct fleet_member old = fleet_issue(&ca, X509_SERVER, "coordinator", -7200, -3600);
	struct fleet_member early = fleet_issue(&ca, X509_SERVER, "coordinator", 3600, 7200);

	(void)state;
	assert_int_equal(judge(&server, &other_ca, "localhost"), TLS_FAILED);
	assert_int_equal(judge(&old, &ca, "localhost"), TLS_FAILED);
	assert_int_equal(judge(&early, &ca, "localhost"), TLS_FAILED);
	assert_int_equal(judge(&client, &ca, "device"), TLS_FAILED);
	fleet_free(&old);
	fleet_free(&early);
}

static void
assert_connects(struct tls_context *cc, struct tls_context *sc, bool resumed)
{
	struct wire w = connect_pair(cc, sc);

	assert_int_equal(w.client_result, TLS_OK);
	assert_int_equal(w.server_result, TLS_OK);
	assert_int_equal(tls_resumed(w.s), resumed);
	assert_int_equal(tls_resumed(w.c), resumed);
	assert_peer(w.s, &client);
	assert_peer(w.c, &server);
	talk(&w);
	tls_shutdown(w.c);
	tls_shutdown(w.s);
	hang_up(&w);
}

static void
resumption_and_forgetting(void **state)
{
	struct tls_context *sc = server_context(&server, 1000);
	struct tls_context *second = server_context(&server, 1000);
	struct tls_context *cc = client_context(&client, &ca, "localhost");

	(void)state;
	assert_connects(cc, sc, false);
	for (int i = 0; i < 5; i++)
		assert_connects(cc, sc, true);
	tls_context_forget(sc);
	assert_connects(cc, sc, false);
	assert_connects(cc, sc, true);
	tls_context_forget(cc);
	assert_connects(cc, sc, false);
	assert_connects(cc, second, false);
	assert_connects(cc, second, true);
	tls_context_free(cc);
	tls_context_free(sc);
	tls_context_free(second);
}

static void
no_cache_no_resumption(void **state)
{
	struct tls_context *sc = server_context(&server, 0);
	struct tls_context *cc = client_context(&client, &ca, "localhost");

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_connects(cc, sc, false);
	tls_context_free(cc);
	tls_context_free(sc);
}

/* A small cache forgets old sessions and still serves everybody. */
static void
cache_is_bounded(void **state)
{
	struct tls_context *sc = server_context(&server, 8);
	struct tls_context *cc[20];
	unsigned resumed = 0;

	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20; i++) {
			if (round == 0)
				cc[i] = client_context(&client, &ca, "localhost");
			struct wire w = connect_pair(cc[i], sc);
			assert_int_equal(w.server_result, TLS_OK);
			resumed += tls_resumed(w.s);
			tls_shutdown(w.c);
			tls_shutdown(w.s);
			hang_up(&w);
		}
	assert_in_range(resumed, 0, 8);
	for (int i = 0; i < 20; i++)
		tls_context_free(cc[i]);
	tls_context_free(sc);
}

enum { BULK = 1 << 20 };

/* One direction of a bulk transfer, each call as far as it goes without waiting. */
struct flow {
	struct tls_session *from, *to;
	uint8_t *data, *got;
	size_t sent, received, offered;
	struct prng rng;
};

static void
push_out(struct flow *f)
{
	size_t n = 0;

	while (f->sent < BULK) {
		size_t want = 1 + prng_below(&f->rng, BULK);
		if (want < f->offered)
			want = f->offered;
		if (want > BULK - f->sent)
			want = BULK - f->sent;
		/* Moved on every try: the contract is about the bytes, not their place. */
		uint8_t *copy = malloc(want);
		memcpy(copy, f->data + f->sent, want);
		enum tls_result r = tls_write(f->from, copy, want, &n);
		free(copy);
		f->sent += n;
		f->offered = want - n;
		if (r != TLS_OK) {
			assert_int_equal(r, TLS_AGAIN_OUT);
			assert_int_equal(n, 0);
			return;
		}
		assert_true(n > 0);
	}
}

static void
push(struct flow *f)
{
	size_t n, want = 1 + prng_below(&f->rng, 100000);

	push_out(f);
	if (want > BULK - f->received)
		want = BULK - f->received;
	if (want == 0)
		return;
	enum tls_result r = tls_read(f->to, f->got + f->received, want, &n);
	assert_true(r == TLS_OK || r == TLS_AGAIN_IN);
	f->received += n;
}

static void
bulk_both_ways(void **state)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(&client, &ca, "localhost");
	struct wire w = connect_pair(cc, sc);
	const uint64_t seed = (uint64_t)time(NULL);
	struct flow f[2] = {{.from = w.c, .to = w.s}, {.from = w.s, .to = w.c}};
	int small = 8192;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 2; i++) {
		setsockopt(w.fd[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
		prng_seed2(&f[i].rng, seed, (uint64_t)i);
		f[i].data = malloc(BULK);
		f[i].got = malloc(BULK);
		for (size_t k = 0; k < BULK; k++)
			f[i].data[k] = (uint8_t)prng_u64(&f[i].rng);
	}
	for (int i = 0; i < 200000 && (f[0].received < BULK || f[1].received < BULK); i++)
		push(&f[i & 1]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(f[i].received, BULK);
		assert_memory_equal(f[i].data, f[i].got, BULK);
		free(f[i].data);
		free(f[i].got);
	}
	talk(&w);
	hang_up(&w);
	tls_context_free(cc);
	tls_context_free(sc);
}

static void
closing(void **state)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(&client, &ca, "localhost");
	struct wire w = connect_pair(cc, sc);
	char got[8];
	size_t n;

	(void)state;
	assert_int_equal(tls_write(w.c, "last", 4, &n), TLS_OK);
	tls_shutdown(w.c);
	assert_int_equal(tls_read(w.s, got, sizeof(got), &n), TLS_OK);
	assert_int_equal(n, 4);
	assert_int_equal(tls_read(w.s, got, sizeof(got), &n), TLS_CLOSED);
	assert_int_equal(tls_read(w.s, got, sizeof(got), &n), TLS_CLOSED);
	tls_shutdown(w.s);
	hang_up(&w);

	/* The same without a close_notify is a failure: someone may have cut the stream. */
	w = connect_pair(cc, sc);
	assert_int_equal(w.server_result, TLS_OK);
	assert_int_equal(tls_write(w.c, "last", 4, &n), TLS_OK);
	shutdown(w.fd[0], SHUT_WR);
	assert_int_equal(tls_read(w.s, got, sizeof(got), &n), TLS_OK);
	assert_int_equal(n, 4);
	assert_int_equal(tls_read(w.s, got, sizeof(got), &n), TLS_FAILED);
	assert_int_not_equal(strlen(tls_why(w.s)), 0);
	hang_up(&w);
	tls_context_free(cc);
	tls_context_free(sc);
}

/* SIGPIPE has its default action here: raising it would end this program. */
static void
writing_to_nobody(void **state)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(&client, &ca, "localhost");
	struct wire w = connect_pair(cc, sc);
	static char data[100000];
	enum tls_result r = TLS_OK;
	size_t n;

	(void)state;
	shutdown(w.fd[0], SHUT_RDWR);
	for (int i = 0; i < 10 && r == TLS_OK; i++)
		r = tls_write(w.s, data, sizeof(data), &n);
	assert_int_equal(r, TLS_FAILED);
	assert_int_equal(tls_write(w.s, data, sizeof(data), &n), TLS_FAILED);
	tls_shutdown(w.s);
	tls_shutdown(w.c);
	hang_up(&w);
	tls_context_free(cc);
	tls_context_free(sc);
}

/* A load balancer's check: it is told from one who speaks and fails. */
static void
nothing_instead_of_a_handshake(void **state)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_session *s = NULL;
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	assert_int_equal(tls_session_new(&s, sc, fd[1]), ERR_OK);
	close(fd[0]);
	assert_int_equal(tls_handshake(s), TLS_FAILED);
	assert_false(tls_heard(s));
	tls_session_free(s);
	close(fd[1]);
	tls_context_free(sc);
}

static void
garbage_instead_of_a_handshake(void **state)
{
	static const char *const junk[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	    "\x16\x03\x01\xff\xff\x01zzzzzzzzzzzzzzzzzzz", "\x15\x03\x03\x01\x02\x02\x28",
	    "\x80\x2e\x01\x03\x01\x01\x15\x01\x01\x20zzzzzzzzzzzz",
	    "\xff\xff\xff\xff\xff\xff\xff\xff"};
	struct tls_context *sc = server_context(&server, 10);

	(void)state;
	for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
		struct tls_session *s = NULL;
		int fd[2];
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
		assert_int_equal(tls_session_new(&s, sc, fd[1]), ERR_OK);
		assert_int_equal(tls_handshake(s), TLS_AGAIN_IN);
		assert_true(write(fd[0], junk[i], strlen(junk[i])) > 0);
		shutdown(fd[0], SHUT_WR);
		enum tls_result r = TLS_AGAIN_IN;
		for (int k = 0; k < 10 && again(r); k++)
			r = tls_handshake(s);
		assert_int_equal(r, TLS_FAILED);
		assert_int_not_equal(strlen(tls_why(s)), 0);
		assert_true(tls_heard(s));
		tls_session_free(s);
		close(fd[0]);
		close(fd[1]);
	}
	tls_context_free(sc);
}

static void
garbage_inside_a_session(void **state)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(&client, &ca, "localhost");
	struct wire w = connect_pair(cc, sc);
	const uint8_t record[] = {0x17, 0x03, 0x03, 0, 32, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
	    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
	char got[16];
	size_t n;

	(void)state;
	assert_int_equal(tls_write(w.c, "good", 4, &n), TLS_OK);
	assert_int_equal(write(w.fd[0], record, sizeof(record)), sizeof(record));
	assert_int_equal(tls_read(w.s, got, sizeof(got), &n), TLS_OK);
	assert_int_equal(n, 4);
	assert_int_equal(tls_read(w.s, got, sizeof(got), &n), TLS_FAILED);
	assert_int_equal(tls_read(w.s, got, sizeof(got), &n), TLS_FAILED);
	assert_int_equal(tls_write(w.s, "x", 1, &n), TLS_FAILED);
	hang_up(&w);
	tls_context_free(cc);
	tls_context_free(sc);
}

static void
bad_configuration(void **state)
{
	struct x509_cert broken = {.len = 10};
	struct tls_context *ctx = NULL;
	struct tls_config good = {
	    .server = true, .ca = &ca.cert, .cert = &server.cert, .key = server.key};
	struct tls_config c = good;

	(void)state;
	c.cert = NULL;
	assert_int_equal(tls_context_new(&ctx, &c, &why), ERR_INVALID);
	c = good;
	c.key = client.key;
	assert_int_equal(tls_context_new(&ctx, &c, &why), ERR_INVALID);
	c = good;
	c.ca = &broken;
	assert_int_equal(tls_context_new(&ctx, &c, &why), ERR_INVALID);
	c = good;
	c.cert = &broken;
	assert_int_equal(tls_context_new(&ctx, &c, &why), ERR_INVALID);
	c = (struct tls_config){.ca = &ca.cert};
	assert_int_equal(tls_context_new(&ctx, &c, &why), ERR_INVALID);
	c.peer_name = "";
	assert_int_equal(tls_context_new(&ctx, &c, &why), ERR_INVALID);
	assert_null(ctx);
	tls_context_free(NULL);
	tls_session_free(NULL);
}

struct crowd {
	struct tls_context *cc, *sc;
	unsigned good;
};

static void *
one_of_many(void *arg)
{
	struct crowd *crowd = arg;

	for (int i = 0; i < 8; i++) {
		struct wire w = connect_pair(crowd->cc, crowd->sc);
		struct x509_cert cert;
		crowd->good += w.client_result == TLS_OK && w.server_result == TLS_OK &&
		    tls_peer_cert(w.s, &cert) == ERR_OK && cert.len == client.cert.len;
		if (i == 4)
			tls_context_forget(crowd->sc);
		hang_up(&w);
	}
	return NULL;
}

/* The contexts are shared by all threads: nothing in them may be written without a lock. */
static void
many_threads_one_context(void **state)
{
	struct tls_context *sc = server_context(&server, 100);
	struct tls_context *cc = client_context(&client, &ca, "localhost");
	struct crowd crowd[4];
	pthread_t thread[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		crowd[i] = (struct crowd){cc, sc, 0};
		assert_int_equal(pthread_create(&thread[i], NULL, one_of_many, &crowd[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_int_equal(crowd[i].good, 8);
	}
	tls_context_free(cc);
	tls_context_free(sc);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(with_client_certificate),
	    cmocka_unit_test(without_client_certificate),
	    cmocka_unit_test(foreign_client),
	    cmocka_unit_test(clients_of_two_cas),
	    cmocka_unit_test(server_of_a_new_ca),
	    cmocka_unit_test(other_uses_are_no_clients),
	    cmocka_unit_test(own_ca_is_no_client),
	    cmocka_unit_test(client_dates_do_not_count),
	    cmocka_unit_test(old_and_foreign_is_refused),
	    cmocka_unit_test(names_of_the_server),
	    cmocka_unit_test(bad_servers),
	    cmocka_unit_test(resumption_and_forgetting),
	    cmocka_unit_test(no_cache_no_resumption),
	    cmocka_unit_test(cache_is_bounded),
	    cmocka_unit_test(bulk_both_ways),
	    cmocka_unit_test(closing),
	    cmocka_unit_test(writing_to_nobody),
	    cmocka_unit_test(nothing_instead_of_a_handshake),
	    cmocka_unit_test(garbage_instead_of_a_handshake),
	    cmocka_unit_test(garbage_inside_a_session),
	    cmocka_unit_test(bad_configuration),
	    cmocka_unit_test(many_threads_one_context),
	};

	return cmocka_run_group_tests(tests, make_fleet, drop_fleet);
}
