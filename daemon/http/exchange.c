#include "exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit.h"
#include "health.h"
#include "hex.h"

#define BODY_MAX (64u << 20)

static void
start(struct exchange *x, unsigned status)
{
	buf_deinit(&x->response.body);
	buf_init(&x->response.body, BODY_MAX);
	x->response.status = status;
	x->response.type = NULL;
	x->response.problem = PROBLEM_NONE;
}

void
exchange_status(struct exchange *x, unsigned status)
{
	start(x, status);
}

/* Out of memory while answering: a response that needs none. */
static void
no_memory(struct exchange *x)
{
	start(x, 503);
	exchange_header(x, "Retry-After", "10");
}

void
exchange_bytes(struct exchange *x, unsigned status, const char *type, const void *data, size_t len)
{
	start(x, status);
	x->response.type = type;
	if (buf_append(&x->response.body, data, len))
		no_memory(x);
}

void
exchange_json(struct exchange *x, unsigned status, struct json *v)
{
	start(x, status);
	x->response.type = "application/json";
	if (json_print(&x->response.body, v, false) || buf_append(&x->response.body, "\n", 1))
		no_memory(x);
	json_free(v);
}

void
exchange_header(struct exchange *x, const char *name, const char *fmt, ...)
{
	char value[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	size_t used = strlen(x->response.extra);
	size_t need = strlen(name) + strlen(value) + 4;
	if (used + need < sizeof(x->response.extra))
		snprintf(x->response.extra + used, sizeof(x->response.extra) - used, "%s: %s\r\n",
		    name, value);
}

void
exchange_problem(struct exchange *x, enum problem_type type, const char *fmt, ...)
{
	struct problem p = {.status = problem_status(type)};
	va_list ap;

	audit_refused(x->services->audit, type);
	snprintf(p.type, sizeof(p.type), "urn:rivulet:error:%s", problem_word(type));
	snprintf(p.title, sizeof(p.title), "%s", problem_title(type));
	va_start(ap, fmt);
	vsnprintf(p.detail, sizeof(p.detail), fmt, ap);
	va_end(ap);
	start(x, (unsigned)p.status);
	x->response.type = "application/problem+json";
	x->response.problem = type;
	snprintf(x->response.why, sizeof(x->response.why), "%s: %s", problem_word(type), p.detail);
	if (p.status == 503 || p.status == 507)
		exchange_header(x, "Retry-After", "10");
	if (p.status == 429)
		exchange_header(x, "Retry-After", "%u", x->retry_after_s ? x->retry_after_s : 60);
	if (messages_problem_encode(&x->response.body, &p))
		no_memory(x);
}

void
exchange_failed(struct exchange *x, enum err e, const struct why *why)
{
	const char *detail = why && why->text[0] ? why->text : err_name(e);

	if (x->services)
		health_note(x->services->health, e, x->request.length, detail);
	switch (e) {
	case ERR_NOTFOUND:
		exchange_problem(x, PROBLEM_NOT_FOUND, "%s", detail);
		break;
	case ERR_NOMEM:
	case ERR_CLOSED:
	case ERR_IO:
	case ERR_READONLY:
	case ERR_FILES:
	case ERR_TIMEOUT:
		exchange_problem(x, PROBLEM_UNAVAILABLE, "%s", detail);
		break;
	case ERR_NOSPACE:
		exchange_problem(x, PROBLEM_NO_SPACE, "%s", detail);
		break;
	default:
		exchange_problem(x, PROBLEM_INTERNAL, "%s", detail);
	}
}

bool
exchange_bearer(const struct exchange *x, struct token *out)
{
	static const char scheme[] = "Bearer ";
	const char *text = x->request.authorization;

	return strncmp(text, scheme, sizeof(scheme) - 1) == 0 &&
	    messages_token_parse(out, text + sizeof(scheme) - 1) == ERR_OK;
}

void
exchange_actor(const struct exchange *x, char out[EXCHANGE_ACTOR_MAX])
{
	char hex[2 * HASH_LEN + 1];

	if (x->who.by_token) {
		hex_encode(hex, x->who.token, sizeof(x->who.token));
		snprintf(out, EXCHANGE_ACTOR_MAX, "token:%s", hex);
	} else if (x->who.has_cert) {
		hex_encode(hex, x->who.device, sizeof(x->who.device));
		snprintf(out, EXCHANGE_ACTOR_MAX, "device:%s", hex);
	} else {
		snprintf(out, EXCHANGE_ACTOR_MAX, "%s", x->peer);
	}
}

static void
on_post(struct loop_post *p)
{
	struct exchange *x = (struct exchange *)((char *)p - offsetof(struct exchange, post));

	x->done(x);
}

void
exchange_done(struct exchange *x)
{
	x->post.fn = on_post;
	loop_post(x->loop, &x->post);
}

void
exchange_reset(struct exchange *x)
{
	http_request_deinit(&x->request);
	buf_deinit(&x->body);
	buf_deinit(&x->response.body);
	models_map_release(x->response.file);
	x->request = (struct http_request){.keep_alive = false};
	x->response = (struct response){.status = 0};
	x->route = NULL;
	x->state = NULL;
	x->wanted = x->parked = x->expired = false;
	x->until_ms = 0;
	x->retry_after_s = 0;
	memset(&x->who, 0, sizeof(x->who));
	memset(x->param, 0, sizeof(x->param));
}
