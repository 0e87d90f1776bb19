#include "conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "hex.h"
#include "log.h"
#include "registry.h"
#include "routes.h"
#include "worker.h"

#define DRAIN_MS 2000
#define DRAIN_BYTES (1u << 20)
#define WRITE_PIECE \
	(1u << 20) /* of a file in one go, so that one reader does not starve the others */
#define READ_BUDGET (1u << 20)

enum conn_state {
	CONN_HANDSHAKE,
	CONN_HEAD, /* waiting for or reading a header block */
	CONN_BODY, /* collecting a whole body */
	CONN_BEGIN, /* stream_ops.begin is on a worker */
	CONN_STREAM, /* body pieces go to stream_ops.data */
	CONN_BUSY, /* a worker or the store has the exchange */
	CONN_PARKED, /* long poll */
	CONN_WRITE,
	CONN_DRAIN, /* answered and closing: waiting for the peer to stop */
	CONN_CLOSED,
};

struct conn {
	struct loop_source source;
	struct io *io;
	struct conn *prev, *next;
	struct tls_session *tls;
	bool handshaking;
	enum conn_state state;
	uint32_t interest;
	bool gone; /* closed while the exchange is elsewhere */
	struct buf in, out;
	size_t out_at;
	uint64_t file_at;
	uint64_t body_left;
	uint64_t deadline_ms;
	uint64_t slow_since_ms, slow_bytes; /* least-rate window of an upload */
	uint64_t drained;
	bool has_cert;
	struct x509_info cert;
	struct exchange x;
};

static bool advance(struct conn *c);

/* --- bytes */

static enum tls_result
plain_result(ssize_t n, enum tls_result again, size_t *done)
{
	if (n > 0) {
		*done = (size_t)n;
		return TLS_OK;
	}
	if (n == 0)
		return TLS_CLOSED;
	return errno == EAGAIN || errno == EINTR ? again : TLS_FAILED;
}

static enum tls_result
read_some(struct conn *c, void *p, size_t len, size_t *done)
{
	if (c->tls)
		return tls_read(c->tls, p, len, done);
	return plain_result(recv(c->source.fd, p, len, 0), TLS_AGAIN_IN, done);
}

static enum tls_result
write_some(struct conn *c, const void *p, size_t len, size_t *done)
{
	if (c->tls)
		return tls_write(c->tls, p, len, done);
	return plain_result(send(c->source.fd, p, len, MSG_NOSIGNAL), TLS_AGAIN_OUT, done);
}

static void
want(struct conn *c, uint32_t events)
{
	if (c->interest == events || c->state == CONN_CLOSED || c->gone)
		return;
	c->interest = events;
	if (loop_change(c->io->loop, &c->source, events) != ERR_OK)
		c->deadline_ms = 0;
}

/* Sets what to wait for after an unfinished transfer. Returns false: nothing more to do now. */
static bool
await(struct conn *c, enum tls_result r)
{
	want(c, r == TLS_AGAIN_OUT ? EPOLLOUT : EPOLLIN);
	return false;
}

/* --- life */

static uint64_t
now_plus(uint64_t seconds)
{
	return clock_ms() + seconds * 1000;
}

static void
change_state(struct conn *c, enum conn_state to)
{
	const struct config *cf = c->io->services->config;

	c->state = to;
	switch (to) {
	case CONN_HANDSHAKE:
		c->deadline_ms = now_plus(cf->header_timeout_s);
		break;
	case CONN_HEAD:
		c->deadline_ms = now_plus(c->in.len ? cf->header_timeout_s : cf->idle_timeout_s);
		break;
	case CONN_BODY:
	case CONN_STREAM:
		c->deadline_ms = UINT64_MAX;
		c->slow_since_ms = clock_ms();
		c->slow_bytes = 0;
		break;
	case CONN_WRITE:
		c->deadline_ms = now_plus(cf->idle_timeout_s);
		break;
	case CONN_DRAIN:
		c->deadline_ms = clock_ms() + DRAIN_MS;
		break;
	case CONN_PARKED:
	case CONN_BEGIN:
	case CONN_BUSY:
	case CONN_CLOSED:
		c->deadline_ms = UINT64_MAX;
		want(c, EPOLLRDHUP);
		break;
	}
}

static void
end_exchange(struct conn *c)
{
	if (c->x.route && c->x.route->stream)
		c->x.route->stream->drop(&c->x);
	exchange_reset(&c->x);
}

/* Closes the socket; memory goes in conn_sweep, or after the exchange comes back. Idempotent. */
static void
close_conn(struct conn *c)
{
	struct io *io = c->io;

	if (c->state == CONN_CLOSED)
		return;
	if (!c->gone) {
		loop_remove(io->loop, &c->source);
		if (c->handshaking)
			atomic_fetch_sub(io->handshakes, 1);
		c->handshaking = false;
		tls_session_free(c->tls);
		c->tls = NULL;
		close(c->source.fd);
		atomic_fetch_sub(&io->count, 1);
	}
	if (c->state == CONN_BEGIN || c->state == CONN_BUSY) {
		c->gone = true;
		return;
	}
	end_exchange(c);
	c->state = CONN_CLOSED;
	if (c->prev)
		c->prev->next = c->next;
	else
		io->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->next = io->freed;
	io->freed = c;
}

void
conn_sweep(struct io *io)
{
	while (io->freed) {
		struct conn *c = io->freed;
		io->freed = c->next;
		buf_deinit(&c->in);
		buf_deinit(&c->out);
		free(c);
	}
}

static void
drive(struct conn *c)
{
	while (c->state != CONN_CLOSED && !c->gone && advance(c))
		;
}

/* --- responses */

static void
log_response(const struct conn *c)
{
	const struct exchange *x = &c->x;
	enum log_level level = x->response.status >= 500 ? LOG_LEVEL_WARN
	    : x->response.status >= 400			 ? LOG_LEVEL_INFO
							 : LOG_LEVEL_DEBUG;
	char device[17] = "";

	if (x->who.has_cert)
		hex_encode(device, x->who.device, 8);
	log_event(level, "http.response", LOG_S("method", http_verb_name(x->request.method)),
	    LOG_S("path", x->request.path), LOG_U("status", x->response.status),
	    LOG_S("peer", x->peer), LOG_S("device", device), LOG_S("why", x->response.why));
}

/* Puts the response's head and body into the output; the file, if any, follows from its map. */
static void
respond(struct conn *c)
{
	struct exchange *x = &c->x;
	struct response *r = &x->response;

	log_response(c);
	if (c->body_left > 0 || !x->request.keep_alive || c->io->stopping)
		r->close = true;
	struct http_head head = {
	    r->status, r->type, r->file ? r->file_len : r->body.len, r->close, r->extra};
	bool bodyless = x->request.method == VERB_HEAD || r->status == 304;
	enum err e = http_head_print(&c->out, &head);
	if (e == ERR_OK && !bodyless && !r->file)
		e = buf_append(&c->out, r->body.data, r->body.len);
	if (bodyless)
		r->file_len = 0;
	c->file_at = 0;
	if (e) {
		close_conn(c);
		return;
	}
	change_state(c, CONN_WRITE);
}

static void
refuse(struct conn *c, const char *word, const char *detail)
{
	exchange_problem(&c->x, word, "%s", detail);
	respond(c);
}

/* Writes pending output: TLS_OK when all of it is out. */
static enum tls_result
flush(struct conn *c)
{
	while (c->out_at < c->out.len) {
		size_t done = 0;
		enum tls_result r =
		    write_some(c, c->out.data + c->out_at, c->out.len - c->out_at, &done);
		if (r != TLS_OK)
			return r;
		c->out_at += done;
	}
	buf_reset(&c->out);
	c->out_at = 0;
	return TLS_OK;
}

static enum tls_result
flush_file(struct conn *c)
{
	struct response *r = &c->x.response;
	size_t budget = WRITE_PIECE;

	while (r->file && c->file_at < r->file_len) {
		size_t done = 0, len = r->file_len - c->file_at;
		if (budget == 0)
			return TLS_AGAIN_OUT;
		if (len > budget)
			len = budget;
		enum tls_result t =
		    write_some(c, r->file->data + r->file_at + c->file_at, len, &done);
		if (t != TLS_OK)
			return t;
		c->file_at += done;
		budget -= done;
		c->deadline_ms = now_plus(c->io->services->config->idle_timeout_s);
	}
	return TLS_OK;
}

static bool
after_response(struct conn *c)
{
	bool closing = c->x.response.close;

	end_exchange(c);
	if (!closing) {
		change_state(c, CONN_HEAD);
		return true;
	}
	if (c->tls)
		tls_shutdown(c->tls);
	shutdown(c->source.fd, SHUT_WR);
	c->drained = 0;
	change_state(c, CONN_DRAIN);
	return true;
}

static bool
advance_write(struct conn *c)
{
	enum tls_result r = flush(c);

	if (r == TLS_OK)
		r = flush_file(c);
	if (r == TLS_OK)
		return after_response(c);
	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return await(c, r);
	close_conn(c);
	return false;
}

/* Bytes after the answer are read only so that the peer sees it instead of a reset. */
static bool
advance_drain(struct conn *c)
{
	char sink[4096];

	for (;;) {
		ssize_t n = recv(c->source.fd, sink, sizeof(sink), 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			want(c, EPOLLIN);
			return false;
		}
		if (n > 0)
			c->drained += (uint64_t)n;
		if (n <= 0 || c->drained > DRAIN_BYTES) {
			close_conn(c);
			return false;
		}
	}
}

/* --- dispatch */

static void
on_done(struct exchange *x)
{
	struct conn *c = x->conn;

	if (c->gone) {
		c->state = CONN_WRITE;
		close_conn(c);
		return;
	}
	if (c->state == CONN_BEGIN && x->wanted && x->response.status == 0) {
		change_state(c, CONN_STREAM);
		if (x->request.expect_continue && c->in.len == 0 &&
		    buf_printf(&c->out, "HTTP/1.1 100 Continue\r\n\r\n") != ERR_OK) {
			close_conn(c);
			return;
		}
	} else {
		respond(c);
	}
	drive(c);
}

static void
work_handle(void *arg)
{
	struct exchange *x = arg;

	x->route->handle(x);
	exchange_done(x);
}

static void
work_begin(void *arg)
{
	struct exchange *x = arg;

	x->route->stream->begin(x);
	exchange_done(x);
}

static void
work_finish(void *arg)
{
	struct exchange *x = arg;

	x->route->stream->finish(x);
}

static void
give_to_worker(struct conn *c, enum conn_state state, void (*fn)(void *arg))
{
	change_state(c, state);
	if (worker_submit(c->io->services->pool, fn, &c->x) == ERR_OK)
		return;
	change_state(c, CONN_WRITE);
	refuse(c, "unavailable", "no memory");
}

static void
poll_again(struct conn *c)
{
	c->x.parked = false;
	c->x.expired = c->x.until_ms > 0 && (clock_ms() >= c->x.until_ms || c->io->stopping);
	c->x.route->handle(&c->x);
	if (c->x.parked && !c->x.expired)
		change_state(c, CONN_PARKED);
	else
		respond(c);
}

/* Runs the handler once the body (if any) is complete. */
static void
dispatch(struct conn *c)
{
	switch (c->x.route->kind) {
	case ROUTE_NOW:
		c->x.route->handle(&c->x);
		respond(c);
		break;
	case ROUTE_POLL:
		poll_again(c);
		break;
	case ROUTE_WORK:
		give_to_worker(c, CONN_BUSY, work_handle);
		break;
	case ROUTE_STREAM:
		break;
	}
}

/* Checks the declared body against what the route takes; NULL if it may come. */
static const char *
check_body(const struct conn *c, const char **detail)
{
	const struct route *route = c->x.route;
	const struct http_request *q = &c->x.request;
	size_t max = route->body_max ? route->body_max : c->io->services->config->json_bytes;

	*detail = "this request takes no body";
	if (!route->body && route->kind != ROUTE_STREAM)
		return q->length > 0 ? "too-large" : NULL;
	*detail = "Content-Length is missing";
	if (!q->has_length)
		return "length-required";
	*detail = "the body is larger than this request may have";
	return route->kind != ROUTE_STREAM && q->length > max ? "too-large" : NULL;
}

static const char *
check_role(struct conn *c)
{
	struct identity *who = &c->x.who;

	if (c->x.route->roles & who->roles)
		return NULL;
	if (who->problem)
		return who->problem;
	return who->roles == ROLE_ANYONE && !who->has_cert ? "no-certificate" : "forbidden";
}

static void
identify(struct conn *c)
{
	struct identity *who = &c->x.who;

	*who = (struct identity){.roles = ROLE_ANYONE, .has_cert = c->has_cert};
	if (!c->tls)
		who->roles |= ROLE_ADMIN;
	else if (c->has_cert)
		registry_identify(c->io->services->registry, &c->cert, clock_wall(), who);
}

static bool
start_request(struct conn *c, size_t head_len)
{
	struct exchange *x = &c->x;
	unsigned status = 400;
	struct why why = {""};
	bool path_known = false;
	const char *detail = "";

	enum err e = http_request_parse(&x->request, c->in.data, head_len, &status, &why);
	buf_consume(&c->in, head_len);
	c->body_left = e ? 0 : x->request.length;
	if (e) {
		x->request.keep_alive = false;
		refuse(c,
		    status == 411	? "length-required"
			: status == 417 ? "expectation-failed"
			: status == 414 ? "path-too-long"
			: status == 431 ? "header-too-large"
			: status == 503 ? "unavailable"
			: status == 505 ? "version"
					: "bad-request",
		    why.text);
		return true;
	}
	identify(c);
	x->route = routes_find(x->request.method, x->request.path, x->param, &path_known);
	const char *word = NULL;
	if (!x->route) {
		word = path_known ? "method-not-allowed" : "not-found";
		detail = path_known ? "another method may work here" : "no such path";
	} else if ((word = check_role(c))) {
		detail = "this identity may not do that";
		x->route = NULL;
	} else if ((word = check_body(c, &detail))) {
		x->route = NULL;
	}
	if (word) {
		refuse(c, word, detail);
		return true;
	}
	if (x->route->kind == ROUTE_STREAM) {
		give_to_worker(c, CONN_BEGIN, work_begin);
		return true;
	}
	buf_init(&x->body, x->request.length + 1);
	if (x->request.expect_continue && c->body_left > 0 && c->in.len == 0 &&
	    buf_printf(&c->out, "HTTP/1.1 100 Continue\r\n\r\n") != ERR_OK) {
		close_conn(c);
		return false;
	}
	change_state(c, CONN_BODY);
	return true;
}

/* --- reading */

static bool
advance_head(struct conn *c)
{
	size_t head = c->in.len ? http_head_length(c->in.data, c->in.len) : 0;
	size_t max = c->io->services->config->header_bytes;
	size_t done = 0;

	if (head > 0)
		return start_request(c, head);
	if (c->io->stopping) {
		close_conn(c);
		return false;
	}
	if (c->in.len >= max) {
		c->x.request.keep_alive = false;
		refuse(c, "header-too-large", "the header block is larger than the limit");
		return true;
	}
	bool first = c->in.len == 0;
	enum tls_result r = read_some(c, c->io->scratch, max - c->in.len, &done);
	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return await(c, r);
	if (r != TLS_OK || buf_append(&c->in, c->io->scratch, done) != ERR_OK) {
		close_conn(c);
		return false;
	}
	if (first)
		change_state(c, CONN_HEAD);
	return true;
}

/* Hands body bytes on; false if the request was refused (a response is set). */
static bool
take_body(struct conn *c, const char *p, size_t len)
{
	c->body_left -= len;
	c->slow_bytes += len;
	if (c->x.route->kind == ROUTE_STREAM) {
		if (c->x.route->stream->data(&c->x, p, len) == ERR_OK)
			return true;
	} else if (buf_append(&c->x.body, p, len) == ERR_OK) {
		return true;
	} else {
		exchange_problem(&c->x, "unavailable", "no memory for the body");
	}
	c->x.response.close = true;
	respond(c);
	return false;
}

static void
body_complete(struct conn *c)
{
	if (c->x.route->kind == ROUTE_STREAM)
		give_to_worker(c, CONN_BUSY, work_finish);
	else
		dispatch(c);
}

static bool
advance_body(struct conn *c)
{
	size_t budget = READ_BUDGET, done = 0;
	enum tls_result r = flush(c);

	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return await(c, r);
	if (r == TLS_OK && c->in.len > 0 && c->body_left > 0) {
		size_t n = c->in.len < c->body_left ? c->in.len : (size_t)c->body_left;
		bool taken = take_body(c, c->in.data, n);
		buf_consume(&c->in, n);
		return taken || c->state == CONN_WRITE;
	}
	while (r == TLS_OK && c->body_left > 0) {
		if (budget == 0 && !(c->tls && tls_pending(c->tls)))
			return await(c, TLS_AGAIN_IN);
		size_t n = c->body_left < CONN_SCRATCH ? (size_t)c->body_left : CONN_SCRATCH;
		r = read_some(c, c->io->scratch, n, &done);
		if (r == TLS_OK && !take_body(c, c->io->scratch, done))
			return c->state == CONN_WRITE;
		budget = done < budget ? budget - done : 0;
	}
	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return await(c, r);
	if (r != TLS_OK) {
		close_conn(c);
		return false;
	}
	body_complete(c);
	return true;
}

static bool
advance_handshake(struct conn *c)
{
	struct x509_cert cert;

	enum tls_result r = tls_handshake(c->tls);
	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return await(c, r);
	if (r != TLS_OK) {
		log_event(LOG_LEVEL_INFO, "tls.failed", LOG_S("peer", c->x.peer),
		    LOG_S("why", tls_why(c->tls)));
		close_conn(c);
		return false;
	}
	atomic_fetch_sub(c->io->handshakes, 1);
	c->handshaking = false;
	c->has_cert =
	    tls_peer_cert(c->tls, &cert) == ERR_OK && x509_parse(&c->cert, &cert, NULL) == ERR_OK;
	change_state(c, CONN_HEAD);
	return true;
}

/* One step; true if another may follow at once. */
static bool
advance(struct conn *c)
{
	switch (c->state) {
	case CONN_HANDSHAKE:
		return advance_handshake(c);
	case CONN_HEAD:
		return advance_head(c);
	case CONN_BODY:
	case CONN_STREAM:
		return advance_body(c);
	case CONN_WRITE:
		return advance_write(c);
	case CONN_DRAIN:
		return advance_drain(c);
	case CONN_BEGIN:
	case CONN_BUSY:
	case CONN_PARKED:
	case CONN_CLOSED:
		return false;
	}
	return false;
}

/* --- events */

static void
on_ready(struct loop_source *s, uint32_t events)
{
	struct conn *c = (struct conn *)s;
	bool waiting = c->state == CONN_BEGIN || c->state == CONN_BUSY || c->state == CONN_PARKED;

	if (waiting && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		close_conn(c);
	else
		drive(c);
}

void
conn_open(struct io *io, int fd, struct tls_context *tls, const char *peer)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c || (tls && tls_session_new(&c->tls, tls, fd) != ERR_OK)) {
		free(c);
		close(fd);
		return;
	}
	c->source = (struct loop_source){on_ready, fd};
	c->io = io;
	c->interest = EPOLLIN;
	buf_init(&c->in, io->services->config->header_bytes);
	buf_init(&c->out, (size_t)80 << 20);
	c->x.loop = io->loop;
	c->x.done = on_done;
	c->x.conn = c;
	c->x.services = io->services;
	snprintf(c->x.peer, sizeof(c->x.peer), "%s", peer);
	if (loop_add(io->loop, &c->source, EPOLLIN) != ERR_OK) {
		tls_session_free(c->tls);
		free(c);
		close(fd);
		return;
	}
	c->next = io->conns;
	if (c->next)
		c->next->prev = c;
	io->conns = c;
	atomic_fetch_add(&io->count, 1);
	c->handshaking = tls != NULL;
	if (c->handshaking)
		atomic_fetch_add(io->handshakes, 1);
	change_state(c, tls ? CONN_HANDSHAKE : CONN_HEAD);
	drive(c);
}

unsigned
conn_handshakes_from(const struct io *io, const char *peer)
{
	unsigned n = 0;

	for (const struct conn *c = io->conns; c; c = c->next)
		n += c->handshaking && strcmp(c->x.peer, peer) == 0;
	return n;
}

static bool
too_slow(struct conn *c, uint64_t now_ms)
{
	const struct config *cf = c->io->services->config;
	uint64_t window = (uint64_t)cf->slow_upload_s * 1000;

	if ((c->state != CONN_BODY && c->state != CONN_STREAM) ||
	    now_ms < c->slow_since_ms + window)
		return false;
	bool slow = c->slow_bytes < (uint64_t)cf->slow_upload_bytes * cf->slow_upload_s;
	c->slow_since_ms = now_ms;
	c->slow_bytes = 0;
	return slow;
}

void
conn_tick(struct io *io, uint64_t now_ms)
{
	for (struct conn *c = io->conns, *next; c; c = next) {
		next = c->next;
		if (c->gone)
			continue;
		if (c->state == CONN_PARKED && now_ms >= c->x.until_ms) {
			poll_again(c);
			drive(c);
		} else if (now_ms >= c->deadline_ms || too_slow(c, now_ms)) {
			log_event(LOG_LEVEL_DEBUG, "conn.timeout", LOG_S("peer", c->x.peer));
			close_conn(c);
		}
	}
}

void
conn_wake_parked(struct io *io)
{
	for (struct conn *c = io->conns, *next; c; c = next) {
		next = c->next;
		if (c->state != CONN_PARKED)
			continue;
		poll_again(c);
		drive(c);
	}
}

void
conn_stop(struct io *io)
{
	io->stopping = true;
	conn_wake_parked(io);
	for (struct conn *c = io->conns, *next; c; c = next) {
		next = c->next;
		if (c->state == CONN_HANDSHAKE || (c->state == CONN_HEAD && c->in.len == 0))
			close_conn(c);
	}
}

void
conn_close_all(struct io *io)
{
	while (io->conns) {
		if (io->conns->state == CONN_BEGIN || io->conns->state == CONN_BUSY)
			io->conns->state = CONN_WRITE;
		close_conn(io->conns);
	}
	conn_sweep(io);
}
