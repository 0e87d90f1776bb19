#ifndef HTTPS_H
#define HTTPS_H
/*
 * A small HTTPS client whose calls block, for test programs that must see what a well-behaved client hides: every byte sent, an
 * answer that comes early, and how the connection ends. Ends the program if the machine itself does not play along.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "file.h"
#include "tls.h"

#define HTTPS_ANSWER_MAX ((size_t)64 << 20)
#define HTTPS_WAIT_MS 60000
#define HTTPS_OPEN_MS 300 /* a connection on which nothing happens for so long is open */

/* Who connects: DIR/ca.pem is trusted; DIR/cert.pem and key.pem are shown if there is a cert.pem. */
struct https_home {
	struct x509_cert ca, cert;
	struct key *key;
	bool has_cert;
};

struct https {
	int fd;
	struct tls_context *tls;
	struct tls_session *session;
	enum tls_result last; /* of reading */
	char data[65536]; /* read and not yet taken */
	size_t have;
};

struct https_answer {
	int status; /* 0: none came */
	bool close; /* it said Connection: close */
	char *body; /* with a zero byte after it; owned */
	size_t len;
};

static _Noreturn inline void
https_die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(2);
}

static inline bool
https_pem(struct x509_cert *out, const char *dir, const char *name)
{
	char path[1024], *pem = NULL;
	size_t len = 0;
	struct why why = {""};

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (file_read(path, 65536, &pem, &len, &why) != ERR_OK)
		return false;
	if (x509_from_pem(out, pem, &why) != ERR_OK)
		https_die(path, why.text);
	free(pem);
	return true;
}

static inline void
https_load(struct https_home *h, const char *dir)
{
	char path[1024];
	struct why why = {""};

	if (!https_pem(&h->ca, dir, "ca.pem"))
		https_die(dir, "no ca.pem");
	h->has_cert = https_pem(&h->cert, dir, "cert.pem");
	snprintf(path, sizeof(path), "%s/key.pem", dir);
	enum err e = key_load(&h->key, path, &why);
	if (e && (e != ERR_NOTFOUND || h->has_cert))
		https_die(path, why.text);
}

/* Waits as the result asks; false if it is no request to wait, or nothing came of it. */
static inline bool
https_waited(const struct https *c, enum tls_result r)
{
	struct pollfd p = {.fd = c->fd, .events = r == TLS_AGAIN_IN ? POLLIN : POLLOUT};

	return (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT) && poll(&p, 1, HTTPS_WAIT_MS) == 1;
}

/* False if TLS refused us: tls_why says why. */
static inline bool
https_open(struct https *c, const struct https_home *h, const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)atoi(port)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct tls_config config = {.ca = &h->ca,
	    .cert = h->has_cert ? &h->cert : NULL,
	    .key = h->has_cert ? h->key : NULL,
	    .peer_name = "localhost"};
	struct why why = {""};

	*c = (struct https){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	/* HTTPS_SOURCE: an address of this machine to come from. */
	struct sockaddr_in from = {.sin_family = AF_INET};
	const char *source = getenv("HTTPS_SOURCE");
	if (source && inet_pton(AF_INET, source, &from.sin_addr) == 1 &&
	    bind(c->fd, (struct sockaddr *)&from, sizeof(from)) != 0)
		https_die("bind", source);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		https_die("connect", "refused");
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0)
		https_die("connect", "cannot make it non-blocking");
	if (tls_context_new(&c->tls, &config, &why) != ERR_OK ||
	    tls_session_new(&c->session, c->tls, c->fd) != ERR_OK)
		https_die("tls", why.text);
	enum tls_result r;
	do
		r = tls_handshake(c->session);
	while (https_waited(c, r));
	return r == TLS_OK;
}

/* Ends the connection without a word, as a power failure would. */
static inline void
https_cut(struct https *c)
{
	close(c->fd);
	tls_session_free(c->session);
	tls_context_free(c->tls);
	c->session = NULL;
}

/* Is there something to read within ms? */
static inline bool
https_ready(const struct https *c, int ms)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	return c->have > 0 || tls_pending(c->session) || poll(&p, 1, ms) == 1;
}

/* Writes until all is out, the peer stopped taking it or, when `look`, an answer has come. Returns the bytes written. */
static inline uint64_t
https_write(struct https *c, const void *data, uint64_t len, bool look)
{
	const char *p = data;
	uint64_t at = 0;

	while (at < len && !(look && https_ready(c, 0))) {
		size_t n = len - at < 16384 ? (size_t)(len - at) : 16384, done = 0;
		enum tls_result r = tls_write(c->session, p + at, n, &done);
		at += done;
		if (r != TLS_OK && !https_waited(c, r))
			break;
	}
	return at;
}

/* Reads on; false at the end of the connection, whatever its cause (c->last). */
static inline bool
https_fill(struct https *c)
{
	size_t n = 0;

	if (c->have == sizeof(c->data))
		https_die("https", "answer head too large");
	do
		c->last = tls_read(c->session, c->data + c->have, sizeof(c->data) - c->have, &n);
	while (https_waited(c, c->last));
	if (c->last != TLS_OK)
		return false;
	c->have += n;
	return true;
}

/* Length of a complete head at the beginning of the data, waiting for it; 0 if the connection ended. */
static inline size_t
https_head(struct https *c)
{
	const char *end;

	while (!(end = memmem(c->data, c->have, "\r\n\r\n", 4)))
		if (!https_fill(c))
			return 0;
	return (size_t)(end - c->data) + 4;
}

static inline void
https_take(struct https *c, size_t n)
{
	memmove(c->data, c->data + n, c->have - n);
	c->have -= n;
}

/* One answer; head_only for the answer to HEAD. status 0 if the connection ended before it. */
static inline void
https_read(struct https *c, struct https_answer *a)
{
	char head[65536];
	size_t len = https_head(c);

	*a = (struct https_answer){.status = 0};
	if (len == 0)
		return;
	memcpy(head, c->data, len);
	head[len - 1] = '\0';
	https_take(c, len);
	a->status = atoi(head + 9);
	a->close = strcasestr(head, "\r\nconnection: close") != NULL;
	const char *field = strcasestr(head, "\r\ncontent-length:");
	size_t want = field ? strtoull(field + 17, NULL, 10) : 0;
	if (want > HTTPS_ANSWER_MAX || !(a->body = calloc(1, want + 1)))
		https_die("https", "answer too large");
	while (a->len < want && (c->have > 0 || https_fill(c))) {
		size_t n = c->have < want - a->len ? c->have : want - a->len;
		memcpy(a->body + a->len, c->data, n);
		https_take(c, n);
		a->len += n;
	}
	if (a->len < want)
		a->status = 0;
}

static inline void
https_answer_free(struct https_answer *a)
{
	free(a->body);
	a->body = NULL;
}

/* "open", "closed" as TLS wants it, or "reset"; "more" if bytes came that nobody asked for. What the answer said is waited for. */
static inline const char *
https_end(struct https *c, const struct https_answer *a)
{
	if (!https_ready(c, a->close || a->status == 0 ? HTTPS_WAIT_MS : HTTPS_OPEN_MS))
		return "open";
	if (c->have > 0 || https_fill(c))
		return "more";
	return c->last == TLS_CLOSED ? "closed" : "reset";
}

#endif
