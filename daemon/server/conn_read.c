#include "clock.h"
#include "conn_inside.h"
#include "log.h"
#include "route.h"

#define READ_BUDGET (1u << 20)
#define TURNS 2 /* requests of one connection before the others have their turn */

bool
conn_advance_head(struct conn *c)
{
	if (!conn_may_ask(c) || (c->in.len > 0 && c->turns >= TURNS))
		return conn_yield(c);
	size_t head = c->in.len ? http_head_length(c->in.data, c->in.len, &c->head_seen) : 0;
	size_t room = c->in.max - c->in.len, done = 0;

	if (head > 0)
		return conn_start_request(c, head);
	if (c->io->stopping) {
		conn_close(c);
		return false;
	}
	if (room == 0) {
		conn_identify(c);
		c->x.request.keep_alive = false;
		conn_refuse(
		    c, PROBLEM_HEADER_TOO_LARGE, "the header block is larger than the limit");
		return true;
	}
	bool first = c->in.len == 0;
	enum tls_result r =
	    conn_read_some(c, c->io->scratch, room < CONN_SCRATCH ? room : CONN_SCRATCH, &done);
	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return conn_await(c, r);
	if (r != TLS_OK || buf_append(&c->in, c->io->scratch, done)) {
		conn_close(c);
		return false;
	}
	if (first)
		if (c->has_cert && c->io->inner) {
			conn_move(c, c->io->inner(c->io));
			return false;
		}
	conn_change_state(c, CONN_HEAD);
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
		exchange_problem(&c->x, PROBLEM_UNAVAILABLE, "no memory for the body");
	}
	c->x.response.close = true;
	conn_respond(c);
	return false;
}

bool
conn_advance_body(struct conn *c)
{
	size_t budget = READ_BUDGET, done = 0;
	enum tls_result r = conn_flush(c);

	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return conn_await(c, r);
	if (r == TLS_OK && c->in.len > 0 && c->body_left > 0) {
		size_t n = c->in.len < c->body_left ? c->in.len : (size_t)c->body_left;
		bool taken = take_body(c, c->in.data, n);
		buf_consume(&c->in, n);
		return taken || c->state == CONN_WRITE;
	}
	while (r == TLS_OK && c->body_left > 0) {
		if (budget == 0 && !(c->tls && tls_pending(c->tls)))
			return conn_await(c, TLS_AGAIN_IN);
		size_t n = c->body_left < CONN_SCRATCH ? (size_t)c->body_left : CONN_SCRATCH;
		r = conn_read_some(c, c->io->scratch, n, &done);
		if (r == TLS_OK && !take_body(c, c->io->scratch, done))
			return c->state == CONN_WRITE;
		budget = done < budget ? budget - done : 0;
	}
	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return conn_await(c, r);
	if (r != TLS_OK) {
		conn_close(c);
		return false;
	}
	conn_body_complete(c);
	return true;
}

/* What follows on the first key that is NULL is not in the line. */
static void
log_failed(const struct conn *c, bool heard)
{
	enum log_level level = heard ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG;
	struct conn_claim claim;

	if (!log_has_room(level))
		return;
	conn_claim(c, &claim);
	log_event(level, "tls.failed", LOG_S("peer", c->x.peer), LOG_S("why", tls_why(c->tls)),
	    LOG_S(claim.text[0] ? "claims" : NULL, claim.text),
	    LOG_S(claim.name[0] ? "claims_name" : NULL, claim.name));
}

bool
conn_advance_handshake(struct conn *c)
{
	struct x509_cert cert;

	uint64_t before = c->door ? pace_cpu_ns() : 0;
	enum tls_result r = tls_handshake(c->tls);
	if (c->door) {
		uint64_t took = pace_cpu_ns() - before;
		c->door_ns += took;
		c->io->shaken_ns += took;
	}
	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return conn_await(c, r);
	if (r != TLS_OK) {
		const bool heard = tls_heard(c->tls);
		conn_count_handshake(c,
		    tls_other_ca(c->tls) ? HANDSHAKE_OTHER_CA
			: heard		 ? HANDSHAKE_FAILED
					 : HANDSHAKE_SILENT);
		log_failed(c, heard);
		conn_close(c);
		return false;
	}
	conn_end_handshake(c);
	c->has_cert =
	    tls_peer_cert(c->tls, &cert) == ERR_OK && x509_parse(&c->cert, &cert, NULL) == ERR_OK;
	conn_count_handshake(c,
	    c->has_cert && (double)c->cert.not_after < clock_wall() ? HANDSHAKE_EXPIRED
		: tls_resumed(c->tls)				    ? HANDSHAKE_RESUMED
								    : HANDSHAKE_FULL);
	conn_change_state(c, CONN_HEAD);
	return true;
}
