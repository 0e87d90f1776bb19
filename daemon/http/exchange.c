#include "exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit.h"
#include "health.h"
#include "hex.h"

#define BODY_MAX (64u << 20)

/* Every error word of the API: one place for status and title. */
static const struct {
	const char *word;
	unsigned status;
	const char *title;
} problems[] = {
    {"bad-request", 400, "The request is malformed"},
    {"bad-manifest", 400, "The manifest is malformed"},
    {"bad-report", 400, "The report is malformed or does not match the manifest"},
    {"bad-message", 400, "The message is malformed"},
    {"bad-csr", 400, "The certificate request is malformed or badly signed"},
    {"wrong-length", 400, "Content-Length does not match the manifest"},
    {"wrong-root", 400, "The leaves do not match the signed root"},
    {"wrong-chunk", 400, "A chunk does not match its leaf"},
    {"wrong-hash", 400, "The body does not match its hash"},
    {"not-finite", 400, "The delta holds NaN or infinity"},
    {"no-examples", 400, "The delta was trained on no examples"},
    {"no-normaliser", 400, "The delta does not say how much work is in it"},
    {"too-many-examples", 400, "The delta claims more examples than the job allows"},
    {"norm-too-large", 400, "The delta is larger than the job allows"},
    {"unknown-codec", 400, "The codec is not handled, or not the job's"},
    {"unsupported", 400, "The manifest asks for something this coordinator does not do"},
    {"bad-model", 400, "The model file is malformed"},
    {"no-certificate", 401, "This needs a client certificate"},
    {"bad-token", 401, "The token is unknown, spent, revoked or expired"},
    {"unknown-device", 403, "This certificate belongs to no device of this coordinator"},
    {"expired-certificate", 403, "The client certificate has expired; renew it"},
    {"device-suspended", 403, "The device is suspended"},
    {"device-revoked", 403, "The device is revoked"},
    {"device-left", 403, "The device has left; it may join again"},
    {"retired-ca", 403, "The certificate is of a CA that was replaced; join again"},
    {"key-rotated", 403, "The key was replaced by a newer one of the device"},
    {"forbidden", 403, "The role does not allow this"},
    {"wrong-device", 403, "The manifest names another device"},
    {"wrong-task", 403, "The task is not this device's"},
    {"bad-signature", 403, "The signature does not verify"},
    {"not-found", 404, "There is no such thing"},
    {"no-difference", 404, "There is no difference between these models"},
    {"unknown-job", 404, "There is no such job"},
    {"method-not-allowed", 405, "The method is not allowed here"},
    {"stale-round", 409, "The round is not the job's open round"},
    {"wrong-base", 409, "The delta was made from another base model"},
    {"wrong-offset", 409, "What is here of the delta ends elsewhere"},
    {"used-task", 409, "Another delta was accepted for this task"},
    {"round-closed", 409, "The round closed before the delta was durable"},
    {"wrong-state", 409, "The state of the job or device does not allow this"},
    {"key-in-use", 409, "The key belongs to another identity, or did"},
    {"length-required", 411, "A body needs Content-Length"},
    {"too-large", 413, "The body is larger than the limit"},
    {"path-too-long", 414, "The path is too long"},
    {"bad-range", 416, "The range lies outside the file"},
    {"expectation-failed", 417, "The expectation is unknown"},
    {"bad-job", 422, "The job document is wrong"},
    {"too-many-requests", 429, "This identity asks too often or has too many connections"},
    {"too-many-failures", 429, "Too many requests of this address have failed"},
    {"header-too-large", 431, "The header is larger than the limit"},
    {"internal", 500, "The coordinator failed"},
    {"unavailable", 503, "The coordinator can't do this now"},
    {"version", 505, "HTTP/1.1 is needed"},
    {"no-space", 507, "The coordinator is out of disk space"},
};

static void
start(struct exchange *x, unsigned status)
{
	buf_deinit(&x->response.body);
	buf_init(&x->response.body, BODY_MAX);
	x->response.status = status;
	x->response.type = NULL;
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
exchange_problem(struct exchange *x, const char *word, const char *fmt, ...)
{
	struct problem p = {.status = 500};
	va_list ap;

	snprintf(p.type, sizeof(p.type), "urn:rivulet:error:%s", word);
	for (size_t i = 0; i < sizeof(problems) / sizeof(*problems); i++) {
		if (strcmp(problems[i].word, word) != 0)
			continue;
		audit_refused(x->services->audit, problems[i].word);
		p.status = problems[i].status;
		snprintf(p.title, sizeof(p.title), "%s", problems[i].title);
	}
	va_start(ap, fmt);
	vsnprintf(p.detail, sizeof(p.detail), fmt, ap);
	va_end(ap);
	start(x, (unsigned)p.status);
	x->response.type = "application/problem+json";
	snprintf(x->response.why, sizeof(x->response.why), "%s: %s", word, p.detail);
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
		exchange_problem(x, "not-found", "%s", detail);
		break;
	case ERR_NOMEM:
	case ERR_CLOSED:
	case ERR_IO:
	case ERR_READONLY:
	case ERR_FILES:
	case ERR_TIMEOUT:
		exchange_problem(x, "unavailable", "%s", detail);
		break;
	case ERR_NOSPACE:
		exchange_problem(x, "no-space", "%s", detail);
		break;
	default:
		exchange_problem(x, "internal", "%s", detail);
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
