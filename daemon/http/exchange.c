#include "exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "config.h"
#include "err.h"
#include "health.h"
#include "hex.h"
#include "json.h"
#include "key.h"
#include "loop.h"
#include "messages.h"
#include "models.h"
#include "num.h"
#include "services.h"
#include "shared.h"
#include "wait_reason.h"
#include "walks.h"

#define BODY_MAX (64u << 20)
#define PIECE (128u << 10) /* of a list; an item may be longer */
#define PIECE_ROWS 500 /* some milliseconds */
#define WALK_WAIT_S 1

static void
end_list(struct response_list *l)
{
	free(l->cursor);
	*l = (struct response_list){.fill = NULL};
}

static void
start(struct exchange *x, unsigned status)
{
	end_list(&x->response.list);
	buf_deinit(&x->response.body);
	buf_init(&x->response.body, BODY_MAX);
	x->response.status = status;
	x->response.type = NULL;
	x->response.printed = false;
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
	x->response.printed = true;
	if (json_print(&x->response.body, v, false) || buf_append(&x->response.body, "\n", 1))
		no_memory(x);
	json_free(v);
}

/* --- lists */

/* `{` and the members of `head`, which is freed. */
static enum err
print_head(struct buf *body, struct json *head)
{
	enum err e = head ? json_print(body, head, false) : buf_append(body, "{}", 2);

	json_free(head);
	if (e)
		return e;
	/* Its end comes after the list. */
	body->len--;
	return body->len > 1 ? buf_append(body, ",", 1) : ERR_OK;
}

static void
end_walk(struct exchange *x)
{
	if (x->walks)
		walks_leave(x->services->walks, x->walker);
	x->walks = false;
}

static enum err
fill_list(struct exchange *x, struct why *why)
{
	struct response_list *l = &x->response.list;

	l->e = ERR_OK;
	enum err e = l->fill(x, l->cursor, why);
	if (l->e)
		return l->e;
	if (e == ERR_AGAIN)
		return ERR_OK;
	l->fill = NULL;
	end_walk(x);
	return e ? e : buf_printf(&x->response.body, "]%s}\n", l->tail);
}

void
exchange_list(
    struct exchange *x, struct json *head, const char *name, exchange_fill *fill, void *cursor)
{
	struct why why = {""};

	start(x, 200);
	x->response.type = "application/json";
	x->response.printed = true;
	x->response.list = (struct response_list){.fill = fill, .cursor = cursor};
	enum err e = print_head(&x->response.body, head);
	if (!e)
		e = cursor ? buf_printf(&x->response.body, "\"%s\":[", name) : ERR_NOMEM;
	if (!e)
		e = fill_list(x, &why);
	if (e)
		exchange_failed(x, e, &why);
}

bool
exchange_list_full(const struct exchange *x)
{
	return x->response.body.len >= PIECE || x->looked >= PIECE_ROWS || x->response.list.e;
}

void
exchange_list_tail(struct exchange *x, const char *key, const uint64_t *value)
{
	struct response_list *l = &x->response.list;

	if (value)
		snprintf(l->tail, sizeof(l->tail), ",\"%s\":%llu", key, (unsigned long long)*value);
	else
		snprintf(l->tail, sizeof(l->tail), ",\"%s\":null", key);
}

void
exchange_list_tail_text(struct exchange *x, const char *key, const char *text)
{
	struct response_list *l = &x->response.list;

	if (text)
		snprintf(l->tail, sizeof(l->tail), ",\"%s\":\"%s\"", key, text);
	else
		exchange_list_tail(x, key, NULL);
}

void
exchange_list_add(struct exchange *x, struct json *item)
{
	struct response_list *l = &x->response.list;

	if (l->has_items && !l->e)
		l->e = buf_append(&x->response.body, ",", 1);
	if (!l->e)
		l->e = json_print(&x->response.body, item, false);
	l->has_items = true;
	json_free(item);
}

void
exchange_list_next(struct exchange *x)
{
	struct why why = {""};

	buf_reset(&x->response.body);
	enum err e = fill_list(x, &why);
	x->response.list.e = e;
	if (e)
		health_note(x->services->health, e, 0, why.text);
}

/* --- what it costs */

void
exchange_looked(struct exchange *x, uint64_t rows)
{
	x->looked += rows;
}

bool
exchange_walk(struct exchange *x)
{
	/* Whoever administers on this host is no identity. */
	if (x->walks || (!x->who.has_cert && !x->who.by_token))
		return true;
	x->walks = walks_enter(x->services->walks, x->who.owner);
	memcpy(x->walker, x->who.owner, sizeof(x->walker));
	if (x->walks)
		return true;
	x->retry_after_s = WALK_WAIT_S;
	exchange_problem(x, PROBLEM_TOO_MANY_REQUESTS,
	    "this identity is looking through many rows already: one such request at a time");
	return false;
}

/* --- what the query says */

bool
exchange_number(struct exchange *x, const char *name, uint64_t max, uint64_t *out)
{
	char text[24];

	if (!http_query(&x->request, name, text, sizeof(text)) || num_u64(text, max, out))
		return true;
	exchange_problem(x, PROBLEM_BAD_REQUEST, "%s must be a number up to %llu", name,
	    (unsigned long long)max);
	return false;
}

bool
exchange_flag(struct exchange *x, const char *name, bool *out)
{
	char text[8];

	*out = http_query(&x->request, name, text, sizeof(text));
	if (!*out || strcmp(text, "1") == 0)
		return true;
	exchange_problem(x, PROBLEM_BAD_REQUEST, "%s must be 1, or be left out", name);
	return false;
}

void
exchange_header(struct exchange *x, const char *name, const char *fmt, ...)
{
	char value[256];
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	size_t used = strlen(x->response.extra), room = sizeof(x->response.extra) - used;
	int n = snprintf(x->response.extra + used, room, "%s: %s\r\n", name, value);
	if ((size_t)len < sizeof(value) && (size_t)n < room)
		return;
	x->response.extra[used] = '\0';
	x->response.unfit = name;
}

void
exchange_finish(struct exchange *x)
{
	const char *name = x->response.unfit;

	if (!name)
		return;
	models_map_release(x->response.file);
	x->response.file = NULL;
	x->response.extra[0] = '\0';
	x->response.unfit = NULL;
	exchange_problem(x, PROBLEM_INTERNAL, "the answer's header %s is too long", name);
}

/* For who is suspended; and for what cannot be taken or answered now, which waits longer than who is without work. */
static void
retry_later(struct exchange *x, bool suspended)
{
	const struct config *c = shared_take(x->services->config);

	exchange_header(
	    x, "Retry-After", "%u", suspended ? c->retry_after_suspended_s : 2 * c->retry_after_s);
	shared_give(x->services->config, c);
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
	if (p.status == 503 || p.status == 507 || type == PROBLEM_DEVICE_SUSPENDED)
		retry_later(x, type == PROBLEM_DEVICE_SUSPENDED);
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
		exchange_problem(
		    x, PROBLEM_NO_SPACE, "%s; %s", detail, health_remedy(WAIT_DISK_FULL));
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

bool
exchange_is_device(const struct exchange *x)
{
	static const uint8_t nobody[HASH_LEN];

	return x->who.has_cert && memcmp(x->who.device, nobody, sizeof(nobody)) != 0;
}

void
exchange_actor(const struct exchange *x, char out[EXCHANGE_ACTOR_MAX])
{
	char hex[2 * HASH_LEN + 1];
	uint8_t id[HASH_LEN];

	if (x->who.by_token) {
		hex_encode(hex, x->who.token, sizeof(x->who.token));
		snprintf(out, EXCHANGE_ACTOR_MAX, "token:%s%s%s", hex,
		    x->who.owner_name[0] ? " owner:" : "", x->who.owner_name);
	} else if (exchange_is_device(x)) {
		hex_encode(hex, x->who.device, sizeof(x->who.device));
		snprintf(out, EXCHANGE_ACTOR_MAX, "device:%s", hex);
	} else if (x->who.has_cert) {
		key_id(id, x->who.spki);
		hex_encode(hex, id, sizeof(id));
		snprintf(out, EXCHANGE_ACTOR_MAX, "key:%s", hex);
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
	/* Before its answer is on the way: who has that may ask again. */
	if (!x->response.list.fill)
		end_walk(x);
	x->post.fn = on_post;
	loop_post(x->loop, &x->post);
}

void
exchange_reset(struct exchange *x)
{
	http_request_deinit(&x->request);
	buf_deinit(&x->body);
	buf_deinit(&x->response.body);
	end_list(&x->response.list);
	models_map_release(x->response.file);
	end_walk(x);
	x->looked = 0;
	x->request = (struct http_request){.keep_alive = false};
	x->response = (struct response){.status = 0};
	x->route = x->asked = NULL;
	x->id[0] = '\0';
	x->state = NULL;
	x->wanted = x->again = x->parked = x->given = x->expired = false;
	x->until_ms = 0;
	x->retry_after_s = 0;
	memset(&x->who, 0, sizeof(x->who));
	memset(x->param, 0, sizeof(x->param));
}
