#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answers.h"
#include "clock.h"
#include "config.h"
#include "conn_inside.h"
#include "log.h"
#include "route.h"
#include "services.h"
#include "services_ca.h"
#include "shared.h"

#define DRAIN_MS 2000
#define HELD_MS 1000

static bool advance(struct conn *c);

/* --- bytes */

void
conn_count(atomic_uint_least64_t *at, uint64_t n)
{
	atomic_fetch_add_explicit(at, n, memory_order_relaxed);
}

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

enum tls_result
conn_read_some(struct conn *c, void *p, size_t len, size_t *done)
{
	enum tls_result r = c->tls
	    ? tls_read(c->tls, p, len, done)
	    : plain_result(recv(c->source.fd, p, len, 0), TLS_AGAIN_IN, done);

	if (r == TLS_OK)
		conn_count(&c->io->counts.received_bytes, *done);
	return r;
}

enum tls_result
conn_write_some(struct conn *c, const void *p, size_t len, size_t *done)
{
	enum tls_result r = c->tls
	    ? tls_write(c->tls, p, len, done)
	    : plain_result(send(c->source.fd, p, len, MSG_NOSIGNAL), TLS_AGAIN_OUT, done);

	if (r == TLS_OK)
		conn_count(&c->io->counts.sent_bytes, *done);
	return r;
}

void
conn_want(struct conn *c, uint32_t events)
{
	if (c->interest == events || c->state == CONN_CLOSED || c->gone)
		return;
	c->interest = events;
	if (loop_change(c->io->loop, &c->source, events))
		c->deadline_ms = 0;
}

/* Sets what to wait for after an unfinished transfer. Returns false: nothing more to do now. */
bool
conn_await(struct conn *c, enum tls_result r)
{
	conn_want(c, r == TLS_AGAIN_OUT ? EPOLLOUT : EPOLLIN);
	return false;
}

/* --- life */

void
conn_list(struct conn *c)
{
	struct io *io = c->io;

	c->prev = NULL;
	c->next = io->conns;
	if (c->next)
		c->next->prev = c;
	io->conns = c;
}

void
conn_unlist(struct conn *c)
{
	*(c->prev ? &c->prev->next : &c->io->conns) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->prev = c->next = NULL;
}

uint64_t
conn_deadline(uint64_t seconds)
{
	return clock_ms() + seconds * 1000;
}

void
conn_change_state(struct conn *c, enum conn_state to)
{
	const struct config *cf = conn_config(c->io);

	c->state = to;
	if (to == CONN_PARKED && c->x.route->reads)
		conn_enter_readers(c);
	else
		conn_leave_readers(c);
	switch (to) {
	case CONN_PROXY:
	case CONN_HANDSHAKE:
		c->deadline_ms = conn_deadline(cf->header_timeout_s);
		break;
	case CONN_HEAD:
		/* Who has shown no identity is not waited for. */
		c->deadline_ms = conn_deadline(
		    c->in.len || c->unauthenticated ? cf->header_timeout_s : cf->idle_timeout_s);
		break;
	case CONN_BODY:
	case CONN_STREAM:
		c->deadline_ms = UINT64_MAX;
		c->slow_since_ms = clock_ms();
		c->slow_bytes = 0;
		break;
	case CONN_WRITE:
		c->deadline_ms = conn_deadline(cf->idle_timeout_s);
		break;
	case CONN_DRAIN:
		c->deadline_ms = clock_ms() + DRAIN_MS;
		break;
	case CONN_HELD:
		c->deadline_ms = clock_ms() + HELD_MS;
		conn_want(c, EPOLLRDHUP);
		break;
	case CONN_PARKED:
	case CONN_BEGIN:
	case CONN_BUSY:
	case CONN_CLOSED:
		c->deadline_ms = UINT64_MAX;
		conn_want(c, EPOLLRDHUP);
		break;
	}
}

void
conn_end_exchange(struct conn *c)
{
	conn_tell(c);
	if (c->x.route && c->x.route->stream)
		c->x.route->stream->drop(&c->x);
	else if (c->x.route && c->x.route->drop && c->x.state)
		c->x.route->drop(&c->x);
	exchange_reset(&c->x);
	answers_drop(&c->kept);
	c->chunked = false;
	c->began_ms = 0;
	c->body_len = c->body_left;
}

/* Ends the counting of the connection as one in its handshake. Idempotent. */
void
conn_end_handshake(struct conn *c)
{
	if (!c->handshaking)
		return;
	peers_leave(c->io->peers, c->x.peer);
	c->handshaking = false;
	conn_join_unauthenticated(c, &c->io->strangers);
}

const struct config *
conn_config(struct io *io)
{
	if (!io->config)
		io->config = shared_take(io->services->config);
	return io->config;
}

/* Begins TLS with the certificate in use now, which is held as long as the session. */
static enum err
begin_tls(struct io *io, struct conn *c, int fd)
{
	c->shown = shared_take(io->services->tls);
	return tls_session_new(&c->tls, c->shown->context, fd);
}

/* Ends the TLS session and releases its certificate. Idempotent. */
static void
end_tls(struct io *io, struct conn *c)
{
	tls_session_free(c->tls);
	shared_give(io->services->tls, c->shown);
	c->tls = NULL;
	c->shown = NULL;
}

/* Closes the socket; memory goes in conn_sweep, or after the exchange comes back. Idempotent. */
void
conn_close(struct conn *c)
{
	struct io *io = c->io;

	if (c->state == CONN_CLOSED)
		return;
	conn_leave_readers(c);
	if (!c->gone) {
		loop_remove(io->loop, &c->source);
		conn_end_handshake(c);
		conn_join_unauthenticated(c, NULL);
		conn_leave_tally(c);
		end_tls(io, c);
		close(c->source.fd);
		atomic_fetch_sub(&io->count, 1);
	}
	if (c->state == CONN_BEGIN || c->state == CONN_BUSY) {
		c->gone = true;
		return;
	}
	conn_end_exchange(c);
	c->state = CONN_CLOSED;
	conn_unlist(c);
	c->next = io->freed;
	io->freed = c;
}

void
conn_sweep(struct io *io)
{
	struct conn *waiting = NULL;

	io->asked_ns = 0;
	if (io->config)
		shared_give(io->services->config, io->config);
	io->config = NULL;
	while (io->freed) {
		struct conn *c = io->freed;
		io->freed = c->next;
		if (c->again_posted) {
			c->next = waiting;
			waiting = c;
			continue;
		}
		buf_deinit(&c->in);
		buf_deinit(&c->out);
		free(c);
	}
	io->freed = waiting;
}

static void
step(struct conn *c)
{
	c->turns = 0;
	while (c->state != CONN_CLOSED && !c->gone && advance(c))
		;
}

void
conn_drive(struct conn *c)
{
	struct io *io = c->io;

	if (!io->pace || !c->unauthenticated) {
		step(c);
		return;
	}
	uint64_t shaken = io->shaken_ns, before = pace_cpu_ns();
	step(c);
	/* It may be on another thread by now. */
	shaken = io->shaken_ns - shaken;
	uint64_t asked = pace_cpu_ns() - before;
	asked = asked > shaken ? asked - shaken : 0;
	io->asked_ns += asked;
	pace_charge(&io->pace->handshakes, shaken);
	pace_charge(&io->pace->requests, asked);
}

/* One step; true if another may follow at once. */
static bool
advance(struct conn *c)
{
	switch (c->state) {
	case CONN_PROXY:
		return conn_advance_proxy(c);
	case CONN_HANDSHAKE:
		return conn_advance_handshake(c);
	case CONN_HEAD:
		return conn_advance_head(c);
	case CONN_BODY:
	case CONN_STREAM:
		return conn_advance_body(c);
	case CONN_WRITE:
		return conn_advance_write(c);
	case CONN_DRAIN:
		return conn_advance_drain(c);
	case CONN_BEGIN:
	case CONN_BUSY:
	case CONN_PARKED:
	case CONN_HELD:
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
	bool waiting = c->state == CONN_BEGIN || c->state == CONN_BUSY || c->state == CONN_PARKED ||
	    c->state == CONN_HELD;

	/* epoll tells again of what was left. */
	if ((c->state == CONN_HANDSHAKE || c->state == CONN_PROXY) && !conn_may_shake(c))
		return;
	bool over = (events & (EPOLLHUP | EPOLLERR)) && c->again_posted;
	if (over || (waiting && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))))
		conn_close(c);
	else
		conn_drive(c);
}

/* Releases what conn_open took over, when no connection could be made. */
static void
give_up(struct io *io, struct conn *c, int fd, enum conn_kind kind, const char *peer)
{
	if (kind == CONN_OVER_TLS)
		peers_leave(io->peers, peer);
	if (c)
		end_tls(io, c);
	free(c);
	close(fd);
}

void
conn_open(struct io *io, int fd, enum conn_kind kind, const char *peer)
{
	bool tls = kind == CONN_OVER_TLS || kind == CONN_PROXIED;
	struct conn *c = calloc(1, sizeof(*c));

	if (!c || (tls && begin_tls(io, c, fd))) {
		give_up(io, c, fd, kind, peer);
		return;
	}
	c->source = (struct loop_source){on_ready, fd};
	c->io = io;
	c->kind = kind;
	c->interest = EPOLLIN;
	buf_init(&c->in, conn_config(io)->header_bytes);
	buf_init(&c->out, (size_t)80 << 20);
	c->door = io->pace ? &io->pace->handshakes : NULL;
	c->x.loop = io->loop;
	c->x.done = conn_on_done;
	c->x.conn = c;
	c->x.services = io->services;
	snprintf(c->x.peer, sizeof(c->x.peer), "%s", peer);
	if (loop_add(io->loop, &c->source, EPOLLIN)) {
		give_up(io, c, fd, kind, peer);
		return;
	}
	conn_list(c);
	atomic_fetch_add(&io->count, 1);
	conn_count(&io->counts.connections, 1);
	c->handshaking = kind == CONN_OVER_TLS;
	conn_join_unauthenticated(c,
	    tls			     ? &io->handshakes
		: kind == CONN_PROBE ? &io->strangers
				     : NULL);
	conn_change_state(c, kind == CONN_PROXIED ? CONN_PROXY : tls ? CONN_HANDSHAKE : CONN_HEAD);
	if (!tls)
		conn_drive(c);
}

static bool
too_slow(struct conn *c, uint64_t now_ms)
{
	const struct config *cf = conn_config(c->io);
	uint64_t window = (uint64_t)cf->slow_upload_s * 1000;

	if ((c->state != CONN_BODY && c->state != CONN_STREAM) ||
	    now_ms < c->slow_since_ms + window)
		return false;
	bool slow = c->slow_bytes < (uint64_t)cf->slow_upload_bytes * cf->slow_upload_s;
	c->slow_since_ms = now_ms;
	c->slow_bytes = 0;
	return slow;
}

static void
log_timeout(const struct conn *c)
{
	struct conn_claim claim;

	conn_claim(c, &claim);
	log_event(LOG_LEVEL_DEBUG, "conn.timeout", LOG_S("peer", c->x.peer),
	    LOG_S(claim.text[0] ? "claims" : NULL, claim.text),
	    LOG_S(claim.name[0] ? "claims_name" : NULL, claim.name));
}

void
conn_tick(struct io *io, uint64_t now_ms)
{
	for (struct conn *c = io->conns, *next; c; c = next) {
		next = c->next;
		if (c->gone)
			continue;
		if (c->state == CONN_PARKED && now_ms >= c->x.until_ms) {
			conn_poll_again(c);
			conn_drive(c);
		} else if (c->state == CONN_HELD && now_ms >= c->deadline_ms) {
			conn_change_state(c, CONN_HEAD);
			conn_want(c, EPOLLIN);
			conn_drive(c);
		} else if (now_ms >= c->deadline_ms || too_slow(c, now_ms)) {
			log_timeout(c);
			conn_close(c);
		}
	}
}

void
conn_wake_parked(struct io *io)
{
	for (struct conn *c = io->conns, *next; c; c = next) {
		next = c->next;
		if (c->state == CONN_PARKED && !c->reader_at)
			conn_poll_again(c);
		else if ((c->state != CONN_STREAM && c->state != CONN_BODY) || conn_still_may(c))
			continue;
		conn_drive(c);
	}
}

void
conn_stop(struct io *io)
{
	io->stopping = true;
	conn_wake_parked(io);
	while (io->readers) {
		struct conn *c = io->readers;
		conn_poll_again(c);
		conn_drive(c);
	}
	for (struct conn *c = io->conns, *next; c; c = next) {
		next = c->next;
		if (c->state == CONN_PROXY || c->state == CONN_HANDSHAKE || c->state == CONN_HELD ||
		    (c->state == CONN_HEAD && c->in.len == 0))
			conn_close(c);
	}
}

void
conn_close_all(struct io *io)
{
	conn_forget_line(io);
	while (io->conns) {
		if (io->conns->state == CONN_BEGIN || io->conns->state == CONN_BUSY)
			io->conns->state = CONN_WRITE;
		io->conns->again_posted = false;
		conn_close(io->conns);
	}
	conn_sweep(io);
}
