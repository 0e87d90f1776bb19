/* stages: gcc openssl address thread */
/* Sessions that are resumed, bytes both ways, ends, garbage, threads. */
#include "tls_fixture.h"

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
