#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "clock.h"
#include "engine.h"
#include "messages.h"
#include "registry.h"

/* The parsed offer lives in x->state as long as the request: who is parked is not parsed again, and needs no text. */
static struct offer *
offer_of(struct exchange *x)
{
	struct offer *offer = x->state ? x->state : malloc(sizeof(*offer));
	struct why why = {""};

	if (x->state)
		return offer;
	if (!offer) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return NULL;
	}
	if (messages_offer_decode(offer, buf_str(&x->body), x->body.len, &why) != ERR_OK) {
		exchange_problem(x, "bad-message", "%s", why.text);
		free(offer);
		return NULL;
	}
	buf_deinit(&x->body);
	x->state = offer;
	return offer;
}

void
api_task_drop(struct exchange *x)
{
	messages_offer_deinit(x->state);
	free(x->state);
	x->state = NULL;
}

static void
answer(struct exchange *x, const struct task *t)
{
	struct buf out;

	buf_init(&out, 4u << 20);
	enum err e = messages_task_encode(&out, t);
	if (e)
		exchange_failed(x, e, NULL);
	else
		exchange_bytes(x, 200, "application/json", out.data, out.len);
	if (e == ERR_OK && t->wait)
		exchange_header(x, "Retry-After", "%llu", (unsigned long long)t->wait_s);
	buf_deinit(&out);
}

/* Long poll: without work the request stays parked until something changes or its time is over. */
void
api_task_ask(struct exchange *x)
{
	const struct offer *offer = offer_of(x);
	struct task task;

	if (!offer)
		return;
	engine_ask(x->services->engine, x->who.device, offer, &task);
	registry_touch(
	    x->services->registry, x->who.device, offer->agent, task.wait ? task.reason : "");
	if (x->until_ms == 0) {
		uint64_t max = x->services->config->long_poll_s;
		uint64_t wait = offer->wait_s < max ? offer->wait_s : max;
		x->until_ms = clock_ms() + wait * 1000;
		x->expired = x->expired || wait == 0;
	}
	x->parked = task.wait && !x->expired;
	if (!x->parked)
		answer(x, &task);
}

void
api_task_abort(struct exchange *x)
{
	struct abort_request a;
	struct why why = {""};

	if (messages_abort_decode(&a, buf_str(&x->body), x->body.len, &why) != ERR_OK) {
		exchange_problem(x, "bad-message", "%s", why.text);
		return;
	}
	registry_touch(x->services->registry, x->who.device, NULL, a.reason);
	enum err e = engine_abort(x->services->engine, x->who.device, x->param[0], a.reason);
	if (e)
		exchange_problem(x, "not-found", "this device holds no such task");
	else
		exchange_status(x, 204);
}
