#include <string.h>

#include "clock.h"
#include "config.h"
#include "conn_inside.h"
#include "err.h"
#include "messages.h"
#include "registry.h"
#include "request_ids.h"
#include "route.h"
#include "services.h"
#include "worker.h"

static bool route_again(struct conn *c);

void
conn_on_done(struct exchange *x)
{
	struct conn *c = x->conn;

	if (c->gone) {
		c->state = CONN_WRITE;
		conn_close(c);
		return;
	}
	if (c->state == CONN_BEGIN && x->again && x->response.status == 0) {
		x->again = false;
		if (!route_again(c))
			return;
	} else if (c->state == CONN_BEGIN && x->wanted && x->response.status == 0) {
		conn_change_state(c, CONN_STREAM);
		if (!conn_continue(c))
			return;
	} else if (c->chunked) {
		conn_respond_on(c);
	} else if (x->given && x->response.status == 0) {
		conn_poll_again(c);
	} else {
		conn_respond(c);
	}
	conn_drive(c);
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
work_list(void *arg)
{
	struct exchange *x = arg;

	exchange_list_next(x);
	exchange_done(x);
}

static void
give_to_worker(struct conn *c, enum conn_state state, void (*fn)(void *arg))
{
	const struct services *s = c->io->services;
	const enum route_kind kind = c->x.route->kind;

	conn_change_state(c, state);
	struct worker_pool *own = kind == ROUTE_SLOW ? s->slow
	    : kind == ROUTE_ASIDE		     ? s->aside
						     : NULL;
	enum err e = own ? worker_submit_for(own, c->x.who.owner, fn, &c->x)
			 : worker_submit(s->pool, fn, &c->x);
	if (!e)
		return;
	conn_change_state(c, CONN_WRITE);
	conn_refuse(c, PROBLEM_UNAVAILABLE, "no memory");
}

void
conn_poll_again(struct conn *c)
{
	if (!conn_still_may(c))
		return;
	c->x.parked = c->x.given = false;
	c->x.expired = c->io->stopping || (c->x.until_ms > 0 && clock_ms() >= c->x.until_ms);
	c->x.route->handle(&c->x);
	/* Nobody hands it back before this thread comes to it. */
	if (c->x.given)
		conn_change_state(c, CONN_BUSY);
	else if (c->x.parked && !c->x.expired)
		conn_change_state(c, CONN_PARKED);
	else
		conn_respond(c);
}

/* Runs the handler once the body (if any) is complete. */
static void
dispatch(struct conn *c)
{
	switch (c->x.route->kind) {
	case ROUTE_NOW:
		c->x.route->handle(&c->x);
		conn_respond(c);
		break;
	case ROUTE_POLL:
		conn_poll_again(c);
		break;
	case ROUTE_WORK:
	case ROUTE_SLOW:
	case ROUTE_ASIDE:
		give_to_worker(c, CONN_BUSY, work_handle);
		break;
	case ROUTE_STREAM:
		break;
	}
}

/* Checks the declared body against what the route takes. */
static enum problem_type
check_body(const struct conn *c, const char **detail)
{
	const struct route *route = c->x.route;
	const struct http_request *q = &c->x.request;
	size_t max = conn_config(c->io)->json_bytes;

	if (route->body_max && route->body_max < max)
		max = route->body_max;

	*detail = "this request takes no body";
	if (!route->body && route->kind != ROUTE_STREAM)
		return q->length > 0 ? PROBLEM_TOO_LARGE : PROBLEM_NONE;
	*detail = "Content-Length is missing";
	if (!q->has_length && !route->bare)
		return PROBLEM_LENGTH_REQUIRED;
	*detail = "the body is larger than this request may have";
	return route->kind != ROUTE_STREAM && q->length > max ? PROBLEM_TOO_LARGE : PROBLEM_NONE;
}

static enum problem_type
check_role(struct conn *c)
{
	struct identity *who = &c->x.who;

	if (c->x.route->roles & who->roles)
		return PROBLEM_NONE;
	if (who->problem)
		return who->problem;
	return who->roles == ROLE_ANYONE && !who->has_cert ? PROBLEM_NO_CERTIFICATE
							   : PROBLEM_FORBIDDEN;
}

bool
conn_list_on(struct conn *c)
{
	conn_identify(c);
	if (!check_role(c)) {
		conn_change_state(c, CONN_BUSY);
		if (worker_submit(c->io->services->pool, work_list, &c->x) == ERR_OK)
			return false;
		c->state = CONN_WRITE;
	}
	conn_close(c);
	return false;
}

bool
conn_still_may(struct conn *c)
{
	conn_identify(c);
	enum problem_type problem = check_role(c);

	if (!problem)
		return true;
	c->x.response.close = true;
	conn_refuse(c, problem, "this identity may do that no more");
	return false;
}

bool
conn_is_known(const struct conn *c)
{
	return c->kind != CONN_PROBE && (c->x.who.roles & ~(unsigned)ROLE_ANYONE) != 0;
}

void
conn_identify(struct conn *c)
{
	struct identity *who = &c->x.who;
	struct token token;

	*who = (struct identity){.roles = ROLE_ANYONE, .has_cert = c->has_cert};
	if (c->kind == CONN_PROBE) {
		who->roles |= conn_config(c->io)->metrics_plain ? ROLE_METRICS : 0;
		return;
	}
	if (c->kind == CONN_LOCAL)
		who->roles |= ROLE_ADMIN;
	else if (c->has_cert)
		registry_identify(c->io->services->registry, &c->cert, clock_wall(), who);
	else if (exchange_bearer(&c->x, &token))
		registry_identify_token(c->io->services->registry, &token, clock_wall(), who);
	else if (c->x.request.authorization[0])
		who->problem = PROBLEM_BAD_TOKEN;
	if (who->by_token)
		registry_token_used(c->io->services->registry, who->token, c->x.peer);
	hash_wipe(&token, sizeof(token));
}

/* The sentence that tells a refused identity what to do. */
static const char *
advise(enum problem_type problem)
{
	static const struct {
		enum problem_type problem;
		const char *text;
	} table[] = {
	    {PROBLEM_UNKNOWN_DEVICE,
		"this coordinator does not know the device: \"rivulet join\" it again with a "
		"token; "
		"it keeps its key"},
	    {PROBLEM_RETIRED_CA,
		"the certificate is of a CA that was replaced: \"rivulet join\" it again with a "
		"token; it keeps its key"},
	    {PROBLEM_EXPIRED_CERTIFICATE,
		"by this coordinator's clock the certificate is over, or not valid yet: the device "
		"renews it"},
	    {PROBLEM_DEVICE_SUSPENDED,
		"the device is suspended: \"rivulet device resume\" lets it go on, or, where "
		"\"device "
		"list --contested\" names it, \"device rekey\""},
	    {PROBLEM_DEVICE_REVOKED, "the device was revoked for good"},
	    {PROBLEM_BAD_TOKEN,
		"the token is unknown, expired or revoked: \"rivulet token create\" makes another"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (problem == table[i].problem)
			return table[i].text;
	return "this identity may not do that";
}

/* Refuses an unknown name in the query: it may be misspelt, and the answer would not be what the client meant. Queries of devices are not
 * checked, since devices may be of any version. */
static enum problem_type
check_query(const struct conn *c, struct why *why, const char **detail)
{
	const struct exchange *x = &c->x;
	const char *known = x->route->query ? x->route->query : "";
	char unknown[HTTP_WORD_MAX];

	if ((x->route->roles & ROLE_ANYONE) || !(x->who.roles & ROLE_READERS) ||
	    http_query_knows(&x->request, known, unknown))
		return PROBLEM_NONE;
	err_set(why, ERR_INVALID, "unknown word \"%s\" in the query%s%s", unknown,
	    *known ? "; it may have: " : ", which this request has none of", known);
	*detail = why->text;
	return PROBLEM_BAD_REQUEST;
}

/* Finds the route. A problem: the request goes no further. */
static enum problem_type
find_route(struct conn *c, struct why *why, const char **detail)
{
	struct exchange *x = &c->x;
	bool path_known = false;

	x->route = c->io->routes->find(x->request.method, x->request.path, x->param, &path_known);
	x->asked = x->route;
	/* A claim is decided once per request; routed again, the request goes to its own route. */
	if (x->who.claims && x->route && x->retry_after_s == 0 && !c->claimed) {
		c->claimed = true;
		x->route = c->io->routes->find(VERB_POST, ROUTE_CLAIM, x->param, &path_known);
	}
	if (c->kind == CONN_PROBE && x->route &&
	    !(x->route->probe && (x->route->roles & x->who.roles)))
		x->route = x->asked = NULL;
	if (x->retry_after_s > 0) {
		*detail = c->counted ? "this identity has asked too often"
				     : "this identity has too many connections";
		return PROBLEM_TOO_MANY_REQUESTS;
	}
	if (!x->route) {
		*detail = path_known ? "another method may work here" : "no such path";
		return path_known ? PROBLEM_METHOD_NOT_ALLOWED : PROBLEM_NOT_FOUND;
	}
	enum problem_type problem = check_role(c);
	*detail = advise(problem);
	if (!problem)
		problem = check_query(c, why, detail);
	return problem ? problem : check_body(c, detail);
}

/* Notes the CA generation of the certificate, unless a device only tries out a new certificate, which it may lose again. */
static void
note_generation(const struct conn *c)
{
	const struct identity *who = &c->x.who;

	if (c->has_cert && !(c->x.route->trial && (who->roles & (ROLE_DEVICE | ROLE_SUSPENDED))))
		registry_note_generation(c->io->services->registry, who->device, who->generation);
}

/* Routes a request by identity, method and path. False: the connection is closed. */
static bool
route_request(struct conn *c)
{
	struct exchange *x = &c->x;
	const char *detail = "";
	struct why why = {""};

	enum problem_type problem = find_route(c, &why, &detail);
	/* A suspended device has no other way to show that it uses what it renewed. */
	if (!problem || (problem == PROBLEM_DEVICE_SUSPENDED && (x->who.roles & ROLE_SUSPENDED)))
		note_generation(c);
	if (problem)
		x->route = NULL;
	/* Who sends a body without a length may mean the next bytes by it. */
	if (problem == PROBLEM_LENGTH_REQUIRED)
		x->request.keep_alive = false;
	if (problem) {
		conn_refuse(c, problem, detail);
		return true;
	}
	if (x->route->kind == ROUTE_STREAM) {
		give_to_worker(c, CONN_BEGIN, work_begin);
		return true;
	}
	buf_init(&x->body, x->request.length + 1);
	if (c->body_left > 0 && !conn_continue(c))
		return false;
	conn_change_state(c, CONN_BODY);
	return true;
}

bool
conn_start_request(struct conn *c, size_t head_len)
{
	struct exchange *x = &c->x;
	unsigned status = 400;
	struct why why = {""};

	request_ids_next(x->id);
	c->began_ms = clock_ms();
	enum err e = http_request_parse(&x->request, c->in.data, head_len, &status, &why);
	buf_consume(&c->in, head_len);
	c->turns++;
	c->head_seen = 0;
	c->claimed = false;
	c->body_len = c->body_left = e ? 0 : x->request.length;
	conn_identify(c);
	x->retry_after_s = conn_charge(c);
	if (e) {
		x->request.keep_alive = false;
		conn_refuse(c,
		    status == 411	? PROBLEM_LENGTH_REQUIRED
			: status == 417 ? PROBLEM_EXPECTATION_FAILED
			: status == 414 ? PROBLEM_PATH_TOO_LONG
			: status == 431 ? PROBLEM_HEADER_TOO_LARGE
			: status == 503 ? PROBLEM_UNAVAILABLE
			: status == 505 ? PROBLEM_VERSION
					: PROBLEM_BAD_REQUEST,
		    why.text);
		return true;
	}
	return route_request(c);
}

/* Routes the request once more, because the registry now knows the client as another identity. */
static bool
route_again(struct conn *c)
{
	conn_change_state(c, CONN_HEAD);
	conn_identify(c);
	return route_request(c);
}

void
conn_body_complete(struct conn *c)
{
	if (c->x.route->kind == ROUTE_STREAM)
		give_to_worker(c, CONN_BUSY, work_finish);
	else if (conn_still_may(c)) /* the body may have taken its time */
		dispatch(c);
}
