/* Prints what the crypto back end does on one core, as "name value unit" lines. Times are CPU seconds of the
 * thread that does the work. bench_crypto [SECONDS_EACH] */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit/fleet.h"
#include "hash.h"
#include "sign.h"
#include "speed.h"
#include "tls.h"

static double seconds = 1;
static struct fleet_member ca, server, client;
static struct why why;

static double
cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs step until its time is up; returns steps per CPU second. */
static double
rate(void (*step)(void *), void *arg)
{
	double start = cpu(), end = start;
	unsigned long n = 0;

	while (end - start < seconds) {
		step(arg);
		n++;
		end = cpu();
	}
	return (double)n / (end - start);
}

static void
print(const char *name, double value, const char *unit)
{
	printf("%s %.*f %s\n", name, value < 100 ? 2 : 0, value, unit);
	fflush(stdout);
}

static void
seal_records(void *suite)
{
	fleet_check(speed_seal(*(enum speed_suite *)suite, 16), &why);
}

static void
hash_chunk(void *arg)
{
	static uint8_t chunk[1 << 20];
	uint8_t out[HASH_LEN];

	hash_start(arg);
	hash_update(arg, chunk, sizeof(chunk));
	hash_finish(arg, out);
}

struct signature {
	uint8_t digest[HASH_LEN], sig[SIGN_LEN];
};

static void
sign_one(void *arg)
{
	struct signature *s = arg;

	fleet_check(sign_hash(client.key, s->digest, s->sig), &why);
}

static void
verify_one(void *arg)
{
	struct signature *s = arg;

	fleet_check(sign_verify(key_spki(client.key), s->digest, s->sig), &why);
}

static void
bench_plain(void)
{
	const double record_mb = 16.0 * SPEED_RECORD / 1e6;
	enum speed_suite suite = speed_preferred();
	struct hash *h = hash_new();
	struct signature s = {{1}, {0}};

	print("aead", rate(seal_records, &suite) * record_mb, "MB/s");
	suite = SPEED_CHACHA20_POLY1305;
	print("aead_chacha20_poly1305", rate(seal_records, &suite) * record_mb, "MB/s");
	suite = SPEED_AES_128_GCM;
	print("aead_aes_128_gcm", rate(seal_records, &suite) * record_mb, "MB/s");
	print("sha256", rate(hash_chunk, h) * (1 << 20) / 1e6, "MB/s");
	print("sign", rate(sign_one, &s), "/s");
	print("verify", rate(verify_one, &s), "/s");
	hash_free(h);
}

static void
wait_for(int fd, enum tls_result r)
{
	struct pollfd p = {.fd = fd, .events = r == TLS_AGAIN_IN ? POLLIN : POLLOUT};

	if ((r != TLS_AGAIN_IN && r != TLS_AGAIN_OUT) || poll(&p, 1, 10000) != 1) {
		fprintf(stderr, "bench_crypto: TLS result %d\n", (int)r);
		exit(1);
	}
}

static void
shake(struct tls_session *s, int fd)
{
	enum tls_result r;

	while ((r = tls_handshake(s)) != TLS_OK)
		wait_for(fd, r);
}

struct end {
	struct tls_context *ctx;
	int fd;
	uint64_t bytes; /* to write or read; 0: only the handshake */
	bool writes;
	double cpu; /* of the handshake, or of the transfer after it */
	bool resumed;
};

static void
transfer(struct end *e, struct tls_session *s)
{
	static uint8_t zeros[1 << 20];
	uint8_t *data = e->writes ? zeros : malloc(sizeof(zeros));
	uint64_t left = e->bytes;
	size_t n;

	while (left > 0) {
		size_t want = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);
		enum tls_result r =
		    e->writes ? tls_write(s, data, want, &n) : tls_read(s, data, want, &n);
		if (r != TLS_OK)
			wait_for(e->fd, r);
		left -= n;
	}
	if (!e->writes)
		free(data);
}

/* The end that is not the server also reads a byte, so that a TLS 1.3 ticket arrives. */
static void *
run_end(void *arg)
{
	struct end *e = arg;
	struct tls_session *s = NULL;
	double start = cpu();

	fleet_check(tls_session_new(&s, e->ctx, e->fd), &why);
	shake(s, e->fd);
	e->resumed = tls_resumed(s);
	if (e->bytes > 0) {
		start = cpu();
		transfer(e, s);
	}
	e->cpu = cpu() - start;
	tls_shutdown(s);
	if (e->bytes == 0) {
		uint8_t byte;
		size_t n;
		enum tls_result r;
		while ((r = tls_read(s, &byte, 1, &n)) == TLS_AGAIN_IN)
			wait_for(e->fd, r);
	}
	tls_session_free(s);
	return NULL;
}

static struct tls_context *
context(bool is_server)
{
	const struct fleet_member *me = is_server ? &server : &client;
	struct tls_context *ctx = NULL;
	struct tls_config config = {.server = is_server,
	    .ca = &ca.cert,
	    .cert = &me->cert,
	    .key = me->key,
	    .peer_name = "localhost",
	    .cache_entries = 100};

	fleet_check(tls_context_new(&ctx, &config, &why), &why);
	return ctx;
}

/* One connection over loopback sockets, each end in a thread. ends[0] is the server. */
static void
connection(struct end ends[2])
{
	pthread_t thread[2];
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) != 0)
		exit(1);
	for (int i = 0; i < 2; i++) {
		ends[i].fd = fd[i];
		if (pthread_create(&thread[i], NULL, run_end, &ends[i]) != 0)
			exit(1);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		close(fd[i]);
	}
}

static void
bench_transfer(const char *name, bool server_writes)
{
	const double rate_guess = 200e6;
	struct end ends[2] = {{.ctx = context(true), .writes = server_writes},
	    {.ctx = context(false), .writes = !server_writes}};

	ends[0].bytes = ends[1].bytes = (uint64_t)(seconds * rate_guess);
	connection(ends);
	print(name, (double)ends[0].bytes / 1e6 / ends[0].cpu, "MB/s");
	tls_context_free(ends[0].ctx);
	tls_context_free(ends[1].ctx);
}

static void
bench_handshake(const char *name, bool resume)
{
	struct end ends[2] = {{.ctx = context(true)}, {.ctx = context(false)}};
	double spent = 0;
	unsigned n = 0;

	connection(ends);
	while (spent < seconds) {
		if (!resume)
			tls_context_forget(ends[0].ctx);
		connection(ends);
		if (ends[0].resumed != resume) {
			fprintf(stderr, "bench_crypto: %s: wrong kind of handshake\n", name);
			exit(1);
		}
		spent += ends[0].cpu;
		n++;
	}
	print(name, n / spent, "/s");
	tls_context_free(ends[0].ctx);
	tls_context_free(ends[1].ctx);
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		seconds = strtod(argv[1], NULL);
	if (!(seconds > 0 && seconds < 1000)) {
		fprintf(stderr, "usage: bench_crypto [SECONDS_EACH]\n");
		return 2;
	}
	ca = fleet_ca("CA");
	server = fleet_issue(&ca, X509_SERVER, "coordinator", -3600, 86400);
	client = fleet_issue(&ca, X509_CLIENT, "device", -3600, 86400);
	printf("# %s\n", tls_backend());
	bench_plain();
	bench_transfer("tls_read", false);
	bench_transfer("tls_write", true);
	bench_handshake("tls_handshake", false);
	bench_handshake("tls_resume", true);
	fleet_free(&ca);
	fleet_free(&server);
	fleet_free(&client);
	return 0;
}
