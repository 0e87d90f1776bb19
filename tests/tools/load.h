#ifndef LOAD_H
#define LOAD_H
/* Devices for load: they join, keep their connections, ask for tasks, fetch and verify models, hash and sign deltas for real, train nothing,
 * and write nothing to disk. A program that uses this plays many of them; whatever goes wrong ends it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base64.h"
#include "buf.h"
#include "codec.h"
#include "file.h"
#include "hex.h"
#include "manifest.h"
#include "merkle.h"
#include "messages.h"
#include "sign.h"
#include "tls.h"
#include "x509.h"

#define PIECE ((size_t)256 << 10)
#define WAIT_MS 120000
#define HEAD_MAX 16384

struct device {
	struct key *key;
	uint8_t id[32];
	struct x509_cert cert;
	struct tls_context *tls;
	struct tls_session *session;
	int fd;
};

static const char *host, *port;
static struct x509_cert ca;
static struct token token;
static char token_text[TOKEN_TEXT_MAX];
static uint8_t *payload; /* shared: every device sends the same numbers, and hashes them itself */
static uint64_t payload_bytes;
static atomic_uint_least64_t bytes_up, bytes_down;

static inline void
die(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

static inline double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- a waiting HTTPS client, as small as it can be */

/* Waits for what the session asks for; dies on any end. */
static inline void
wait_for(struct device *d, enum tls_result r, const char *what)
{
	struct pollfd p = {.fd = d->fd, .events = r == TLS_AGAIN_IN ? POLLIN : POLLOUT};

	if (r != TLS_AGAIN_IN && r != TLS_AGAIN_OUT)
		die(what);
	if (poll(&p, 1, WAIT_MS) <= 0)
		die("timeout");
}

static inline void
connect_device(struct device *d, bool verified)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	int one = 1;

	d->fd = socket(AF_INET, SOCK_STREAM, 0);
	inet_pton(AF_INET, host, &a.sin_addr);
	if (d->fd < 0 || connect(d->fd, (struct sockaddr *)&a, sizeof(a)) != 0)
		die("cannot connect");
	setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	struct tls_config config = {.ca = &ca,
	    .cert = verified ? &d->cert : NULL,
	    .key = verified ? d->key : NULL,
	    .peer_name = host};
	struct why why = {""};
	if (tls_context_new(&d->tls, &config, &why) != ERR_OK ||
	    tls_session_new(&d->session, d->tls, d->fd) != ERR_OK)
		die(why.text);
	enum tls_result r;
	fcntl(d->fd, F_SETFL, O_NONBLOCK);
	while ((r = tls_handshake(d->session)) != TLS_OK)
		wait_for(d, r, tls_why(d->session));
}

static inline void
disconnect_device(struct device *d)
{
	tls_session_free(d->session);
	tls_context_free(d->tls);
	close(d->fd);
	d->session = NULL;
}

static inline void
send_all(struct device *d, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		size_t n = 0;
		enum tls_result r = tls_write(d->session, p, len, &n);
		if (r != TLS_OK)
			wait_for(d, r, "write failed");
		else
			p += n, len -= n;
	}
}

static inline size_t
receive(struct device *d, char *to, size_t room)
{
	enum tls_result r;
	size_t n = 0;

	while ((r = tls_read(d->session, to, room, &n)) != TLS_OK)
		wait_for(d, r, "read failed");
	return n;
}

/* Reads a response; the body goes to `body` (room bytes) and, when given, through the hash. Returns its status. */
static inline int
read_answer(struct device *d, char *body, size_t room, size_t *len, struct hash *hash)
{
	char head[HEAD_MAX];
	size_t have = 0;
	char *end = NULL;

	while (!end) {
		if (have + 1 >= sizeof(head))
			die("head too large");
		have += receive(d, head + have, sizeof(head) - 1 - have);
		head[have] = '\0';
		end = strstr(head, "\r\n\r\n");
	}
	int status = atoi(head + 9);
	const char *field = strcasestr(head, "\r\ncontent-length:");
	size_t want = field && field < end ? strtoull(field + 17, NULL, 10) : 0;
	size_t got = have - (size_t)(end + 4 - head);
	if (want > room || got > want)
		die("response too large");
	memcpy(body, end + 4, got);
	if (hash)
		hash_update(hash, body, got);
	while (got < want) {
		size_t n = receive(d, body + got, want - got < PIECE ? want - got : PIECE);
		if (hash)
			hash_update(hash, body + got, n);
		got += n;
	}
	*len = got;
	return status;
}

static inline int
call(struct device *d, const char *verb, const char *path, const char *extra, const char *body,
    size_t body_len, char *answer, size_t room, size_t *len)
{
	char head[4096];
	int n = snprintf(head, sizeof(head),
	    "%s %s HTTP/1.1\r\nHost: bench\r\n%sContent-Length: %zu\r\n\r\n", verb, path, extra,
	    body_len);

	send_all(d, head, (size_t)n);
	send_all(d, body, body_len);
	return read_answer(d, answer, room, len, NULL);
}

/* --- joining */

static inline void
join_device(struct device *d)
{
	struct join_request *q = calloc(1, sizeof(*q));
	struct join_answer *a = calloc(1, sizeof(*a));
	struct why why = {""};
	char auth[TOKEN_TEXT_MAX + 64], answer[16384];
	struct buf out;
	size_t len = 0;

	q->csr_len = sizeof(q->csr);
	buf_init(&out, 65536);
	if (key_generate(&d->key, &why) != ERR_OK)
		die(why.text);
	key_id(d->id, key_spki(d->key));
	hex_encode(q->name, d->id, 16); /* a name is one device's */
	if (x509_csr_make(q->csr, &q->csr_len, d->key, "bench", &why) != ERR_OK ||
	    messages_join_encode(&out, q) != ERR_OK)
		die(why.text);
	snprintf(auth, sizeof(auth), "Authorization: Bearer %s\r\n", token_text);
	connect_device(d, false);
	int status =
	    call(d, "POST", "/v1/join", auth, out.data, out.len, answer, sizeof(answer), &len);
	disconnect_device(d);
	if (status != 201)
		die(len ? answer : "join failed");
	if (messages_joined_decode(a, answer, len, &why) != ERR_OK ||
	    x509_from_pem(&d->cert, a->certificate, &why) != ERR_OK)
		die(why.text);
	buf_deinit(&out);
	free(q);
	free(a);
}

/* --- one round of one device */

static inline void
ask(struct device *d, struct task *t, char *answer, size_t room)
{
	static const char offer[] =
	    "{\"agent\":\"bench\",\"protocol\":1,\"data\":[{\"name\":\"none\",\"examples\":1000}],"
	    "\"trainers\":[\"noop\"],\"codecs\":[\"f32\"],\"wait\":50}";
	struct why why = {""};
	size_t len = 0;

	for (;;) {
		int status =
		    call(d, "POST", "/v1/tasks", "", offer, sizeof(offer) - 1, answer, room, &len);
		if (status != 200 || messages_task_decode(t, answer, len, &why) != ERR_OK)
			die(why.text[0] ? why.text : "asking for a task failed");
		if (!t->wait)
			return;
		if (strcmp(t->reason, "no-job") == 0)
			die("the job is over");
		messages_task_deinit(t);
	}
}

static inline void
fetch(struct device *d, const struct task *t, char *answer, size_t room)
{
	uint8_t want[32], got[32];
	char head[256];
	struct hash *h = hash_new();
	size_t len = 0;
	int n = snprintf(
	    head, sizeof(head), "GET /v1/models/%s HTTP/1.1\r\nHost: bench\r\n\r\n", t->model);

	send_all(d, head, (size_t)n);
	hash_start(h);
	int status = read_answer(d, answer, room, &len, h);
	hash_finish(h, got);
	hash_free(h);
	if (status != 200 || !hex_decode(want, 32, t->model, 64) || memcmp(want, got, 32) != 0)
		die("the model does not match its id");
	atomic_fetch_add(&bytes_down, len);
}

static inline void
report(struct device *d, const struct task *t, char *answer, size_t room)
{
	uint64_t chunks = manifest_chunks(payload_bytes);
	uint8_t *leaves = malloc(chunks * HASH_LEN);
	uint8_t raw[MANIFEST_LEN], digest[HASH_LEN];
	char text[BASE64_LEN(MANIFEST_LEN) + 1], head[2048];
	struct manifest m = {.round = t->round,
	    .examples = 1,
	    .steps = 1,
	    .elements = payload_bytes / 4,
	    .payload_bytes = payload_bytes,
	    .normaliser = 1,
	    .accuracy = 0.5f};
	size_t len = 0;

	for (uint64_t i = 0; i < chunks; i++) {
		uint64_t at = i * MANIFEST_CHUNK, left = payload_bytes - at;
		merkle_leaf(leaves + i * HASH_LEN, payload + at,
		    left < MANIFEST_CHUNK ? left : MANIFEST_CHUNK);
	}
	merkle_root(m.root, leaves, chunks);
	hex_decode(m.job, 16, t->job, 32);
	hex_decode(m.base, 32, t->model, 64);
	hex_decode(m.task, 16, t->task, 32);
	memcpy(m.device, d->id, 32);
	manifest_encode(raw, &m);
	hash_sha256(digest, raw, MANIFEST_SIGNED);
	if (sign_hash(d->key, digest, raw + MANIFEST_SIGNED) != ERR_OK)
		die("signing failed");
	base64_encode(text, raw, sizeof(raw));
	int n = snprintf(head, sizeof(head),
	    "PUT /v1/deltas/%s HTTP/1.1\r\nHost: bench\r\nRivulet-Manifest: :%s:\r\n"
	    "Content-Length: %llu\r\n\r\n",
	    t->task, text, (unsigned long long)manifest_body_bytes(payload_bytes));
	send_all(d, head, (size_t)n);
	send_all(d, leaves, chunks * HASH_LEN);
	send_all(d, payload, payload_bytes);
	free(leaves);
	int status = read_answer(d, answer, room, &len, NULL);
	if (status != 201 || len != RECEIPT_LEN) {
		fprintf(stderr, "%.*s\n", (int)(len < 400 ? len : 400), answer);
		die("the delta was refused");
	}
	atomic_fetch_add(&bytes_up, manifest_body_bytes(payload_bytes));
}

static inline void
read_ca(void)
{
	size_t len = 0;
	uint8_t digest[HASH_LEN];

	char *pem = NULL;
	const char *path = getenv("BENCH_CA");
	if (!path || file_read(path, 8192, &pem, &len, NULL) != ERR_OK ||
	    x509_from_pem(&ca, pem, NULL) != ERR_OK)
		die("BENCH_CA must name the CA certificate");
	free(pem);
	hash_sha256(digest, ca.der, ca.len);
	if (memcmp(digest, token.ca_hash, HASH_LEN) != 0)
		die("the token belongs to another CA");
}

/* Takes the coordinator's place, and the token in the first line of a file. */
static inline void
load_begin(const char *at_host, const char *at_port, const char *token_file)
{
	char *text = NULL;
	size_t len = 0;

	host = at_host;
	port = at_port;
	if (file_read(token_file, 1u << 20, &text, &len, NULL) != ERR_OK)
		die("cannot read the token");
	text[strcspn(text, "\n")] = '\0';
	snprintf(token_text, sizeof(token_text), "%s", text);
	free(text);
	if (messages_token_parse(&token, token_text) != ERR_OK)
		die("bad token");
	read_ca();
}

/* What all deltas say. */
static inline void
make_payload(uint64_t elements)
{
	payload_bytes = elements * 4;
	payload = malloc(payload_bytes);
	if (!payload)
		die("no memory");
	for (uint64_t i = 0; i < elements; i++) {
		float v = 1e-6f * (float)(i % 97);
		memcpy(payload + 4 * i, &v, 4);
	}
}

#endif
