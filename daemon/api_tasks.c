#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "clock.h"
#include "engine.h"
#include "messages.h"
#include "registry.h"

/* A parsed offer lives in x->body once decoded: a parked request is not parsed again. */
static bool
read_offer(struct exchange *x, struct offer *offer)
{
	struct why why = {""};

	if (messages_offer_decode(offer, buf_str(&x->body), x->body.len, &why) == ERR_OK)
		return true;
	exchange_problem(x, "bad-message", "%s", why.text);
	return false;
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
	struct offer *offer = malloc(sizeof(*offer));
	struct task task;

	if (!offer) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return;
	}
	if (!read_offer(x, offer)) {
		free(offer);
		return;
	}
	engine_ask(x->services->engine, x->who.device, offer, &task);
	registry_touch(
	    x->services->registry, x->who.device, offer->agent, task.wait ? task.reason : "");
	if (x->until_ms == 0) {
		uint64_t max = x->services->config->long_poll_s;
		uint64_t wait = offer->wait_s < max ? offer->wait_s : max;
		x->until_ms = clock_ms() + wait * 1000;
		x->expired = wait == 0;
	}
	x->parked = task.wait && !x->expired;
	if (!x->parked)
		answer(x, &task);
	messages_offer_deinit(offer);
	free(offer);
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
