#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "answers.h"
#include "clock.h"
#include "config.h"
#include "conn_inside.h"
#include "hex.h"
#include "log.h"
#include "models.h"
#include "registry.h"
#include "request_ids.h"
#include "services.h"
#include "spent.h"
#include "tls.h"

#define DRAIN_BYTES \
	(16u << 20) /* a peer that sends on without looking still gets to read the answer */
#define DRAIN_PIECE (1u << 20)
#define WRITE_PIECE \
	(1u << 20) /* of a file in one go, so that one reader does not starve the others */
#define OUT_KEPT (16u << 10) /* a connection that has sent more gives the memory back */
#define UNREAD_WAIT_S 5

static bool
reads(const struct exchange *x)
{
	return x->request.method == VERB_GET || x->request.method == VERB_HEAD;
}

/* Changes by people are worth a line each; what devices do all day is not. */
static enum log_level
weight_of(const struct exchange *x)
{
	/* A probe asks again and again; health.failed says once what it is told. */
	if (x->route && x->route->probe)
		return LOG_LEVEL_DEBUG;
	/* 505 is the peer's doing. */
	if (x->response.status >= 500 && x->response.status != 505)
		return LOG_LEVEL_WARN;
	if (x->response.status >= 400)
		return LOG_LEVEL_INFO;
	return !reads(x) && (x->who.roles & (ROLE_SUBMITTER | ROLE_ADMIN)) ? LOG_LEVEL_INFO
									   : LOG_LEVEL_DEBUG;
}

/* The weight, or more if the operator wants to see every request. */
static enum log_level
level_of(const struct conn *c)
{
	const enum log_level weight = weight_of(&c->x);
	const bool asked = conn_config(c->io)->log_requests && c->x.response.status < 400;

	return asked && weight > LOG_LEVEL_INFO ? LOG_LEVEL_INFO : weight;
}

/* May the response be logged? The log lines of an identity in a day are bounded, but not those of administrators or of level debug. */
static bool
may_log(const struct conn *c, enum log_level weight, size_t text)
{
	return weight == LOG_LEVEL_DEBUG || c->kind == CONN_LOCAL || !conn_is_known(c) ||
	    (c->x.who.roles & ROLE_ADMIN) ||
	    spent_log(c->io->services->spent, c->io->services->config, c->x.who.owner, text);
}

/* What follows on the first key that is NULL is not in the line. */
static void
log_response(const struct conn *c)
{
	const struct exchange *x = &c->x;
	const bool refused = x->response.status >= 400, known = exchange_is_device(x);
	char device[17] = "", actor[EXCHANGE_ACTOR_MAX];
	struct conn_claim claim = {.name = ""};

	if (known)
		hex_encode(device, x->who.device, 8);
	/* What others may cause as often as they like. */
	bool crowd = refused &&
	    (!conn_is_known(c) || (x->who.roles & ROLE_SUSPENDED) || x->response.status == 429);
	if ((crowd && !log_has_room(level_of(c))) ||
	    !may_log(c, weight_of(x), strlen(x->request.path) + strlen(x->response.why)))
		return;
	if (refused)
		conn_claim(c, &claim);
	const char *shown = known ? claim.name : claim.text;
	exchange_actor(x, actor);
	log_event(level_of(c), "http.response", LOG_S("method", http_verb_name(x->request.method)),
	    LOG_S("path", x->request.path), LOG_U("status", x->response.status),
	    LOG_S("route", x->asked ? x->asked->pattern : "none"),
	    LOG_U("ms", c->began_ms ? clock_ms() - c->began_ms : 0),
	    LOG_U("in", c->body_len - c->body_left), LOG_U("out", c->answered),
	    LOG_S("request", x->id), LOG_S("peer", x->peer), LOG_S("device", device),
	    LOG_S("by", actor), LOG_S("why", x->response.why),
	    LOG_S(!shown[0] ? NULL
		    : known ? "name"
			    : "claims",
		shown),
	    LOG_S(!known && claim.name[0] ? "claims_name" : NULL, claim.name));
}

void
conn_tell(struct conn *c)
{
	if (c->untold)
		log_response(c);
	c->untold = false;
}

static void
log_cut(const struct conn *c, const char *why)
{
	char actor[EXCHANGE_ACTOR_MAX];

	if (!may_log(c, LOG_LEVEL_INFO, strlen(c->x.request.path)))
		return;
	exchange_actor(&c->x, actor);
	log_event(LOG_LEVEL_INFO, "http.cut", LOG_S("path", c->x.request.path),
	    LOG_S("request", c->x.id), LOG_S("peer", c->x.peer), LOG_S("by", actor),
	    LOG_S("why", why));
}

/* For `device show`. */
static void
note_refusal(const struct conn *c)
{
	const struct exchange *x = &c->x;

	if (x->response.status >= 400 && x->who.has_cert)
		registry_note_refusal(
		    c->io->services->registry, x->who.device, x->response.problem);
}

/* Moves the body to the output; of a list that goes on, its first piece, as a chunk. */
static enum err
put_body(struct conn *c)
{
	struct buf *body = &c->x.response.body;
	enum err e = ERR_OK;

	if (c->chunked && body->len > 0)
		e = buf_printf(&c->out, "%zx\r\n", body->len);
	if (!e)
		e = buf_append(&c->out, body->data, body->len);
	if (!e && c->chunked && body->len > 0)
		e = buf_append(&c->out, "\r\n", 2);
	if (!e && c->chunked && !c->x.response.list.fill)
		e = buf_append(&c->out, "0\r\n\r\n", 5);
	buf_deinit(body);
	return e;
}

static void
refuse_to_hold(struct conn *c)
{
	c->x.retry_after_s = UNREAD_WAIT_S;
	exchange_problem(&c->x, PROBLEM_TOO_MANY_REQUESTS,
	    "this identity has too many answers to read on its other connections");
}

/* For tests, see answers.h. */
static void
keep_answer(struct conn *c)
{
	struct answers *answers = c->io->services->answers;

	if (answers)
		answers_keep(answers, &c->kept, &c->x);
}

/* Puts the response's head and body into the output; the file, if any, follows from its map. The answer to a request that has changed
 * something is sent in any case. */
void
conn_respond(struct conn *c)
{
	struct exchange *x = &c->x;
	struct response *r = &x->response;

	exchange_finish(x);
	if (!conn_hold(c, r->body.len) && reads(x))
		refuse_to_hold(c);
	if (!*x->id)
		request_ids_next(x->id);
	bool bodyless = x->request.method == VERB_HEAD || r->status == 304;
	c->chunked = r->list.fill != NULL;
	c->answered = bodyless ? 0 : r->file ? r->file_len : r->body.len;
	c->untold = true;
	/* Before the peer has it, so that who asks finds the line. Of a list that goes on it is not known yet how long it will be. */
	if (!c->chunked || bodyless)
		conn_tell(c);
	conn_count_response(c);
	conn_count_body(c);
	conn_count_answer(c, reads(x) ? r->body.len : 0);
	note_refusal(c);
	keep_answer(c);
	if (c->body_left > 0 || !x->request.keep_alive || c->io->stopping)
		r->close = true;
	struct http_head head = {r->status, r->type, r->file ? r->file_len : r->body.len, r->close,
	    r->extra, x->id, (int64_t)clock_wall(), c->chunked};
	enum err e = http_head_print(&c->out, &head);
	if (bodyless) {
		r->file_len = 0;
		r->list.fill = NULL;
	} else if (!e && !r->file) {
		e = put_body(c);
	}
	buf_deinit(&x->body);
	c->file_at = 0;
	if (e) {
		conn_close(c);
		return;
	}
	conn_change_state(c, CONN_WRITE);
}

/* Sends the list's next piece. The answer has begun, so after an error the connection is closed. */
void
conn_respond_on(struct conn *c)
{
	struct response *r = &c->x.response;

	conn_change_state(c, CONN_WRITE);
	conn_count_answer(c, r->body.len);
	c->answered += r->body.len;
	if (!r->list.fill && !r->list.e)
		conn_tell(c);
	if (!r->list.e)
		keep_answer(c);
	if (r->list.e || !conn_hold(c, r->body.len) || put_body(c)) {
		log_cut(c, r->list.e ? err_name(r->list.e) : "too much is unread");
		conn_close(c);
	}
}

bool
conn_continue(struct conn *c)
{
	const struct http_head head = {.status = 100, .request = c->x.id};

	if (!c->x.request.expect_continue || c->in.len > 0 ||
	    http_head_print(&c->out, &head) == ERR_OK)
		return true;
	conn_close(c);
	return false;
}

void
conn_refuse(struct conn *c, enum problem_type type, const char *detail)
{
	exchange_problem(&c->x, type, "%s", detail);
	conn_respond(c);
}

/* Writes pending output: TLS_OK when all of it is out. */
enum tls_result
conn_flush(struct conn *c)
{
	while (c->out_at < c->out.len) {
		size_t done = 0;
		enum tls_result r =
		    conn_write_some(c, c->out.data + c->out_at, c->out.len - c->out_at, &done);
		if (r != TLS_OK)
			return r;
		c->out_at += done;
	}
	if (c->out.room > OUT_KEPT)
		buf_deinit(&c->out);
	else
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
		if (!models_map_reads(r->file, r->file_at + c->file_at, len)) {
			log_cut(c, "a file cannot be read whole");
			return TLS_FAILED;
		}
		enum tls_result t =
		    conn_write_some(c, r->file->data + r->file_at + c->file_at, len, &done);
		if (t != TLS_OK)
			return t;
		c->file_at += done;
		budget -= done;
		c->deadline_ms = conn_deadline(conn_config(c->io)->idle_timeout_s);
	}
	return TLS_OK;
}

static bool
after_response(struct conn *c)
{
	bool closing = c->x.response.close, hold = c->x.response.status == 429;

	(void)conn_hold(c, 0);
	conn_end_exchange(c);
	if (!closing) {
		conn_change_state(c, hold ? CONN_HELD : CONN_HEAD);
		return true;
	}
	if (c->tls)
		tls_shutdown(c->tls);
	shutdown(c->source.fd, SHUT_WR);
	c->drained = 0;
	conn_change_state(c, CONN_DRAIN);
	return true;
}

bool
conn_advance_write(struct conn *c)
{
	enum tls_result r = conn_flush(c);

	if (r == TLS_OK)
		r = flush_file(c);
	if (r == TLS_OK && c->x.response.list.fill)
		return conn_list_on(c);
	if (r == TLS_OK)
		return after_response(c);
	if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
		return conn_await(c, r);
	conn_close(c);
	return false;
}

/* Bytes after the answer are read only so that the peer sees it instead of a reset. */
bool
conn_advance_drain(struct conn *c)
{
	for (size_t piece = 0; piece < DRAIN_PIECE;) {
		ssize_t n = recv(c->source.fd, c->io->scratch, CONN_SCRATCH, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n > 0)
			c->drained += (uint64_t)n;
		if (n <= 0 || c->drained > DRAIN_BYTES) {
			conn_close(c);
			return false;
		}
		piece += (size_t)n;
	}
	conn_want(c, EPOLLIN);
	return false;
}
