#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "buf.h"
#include "clock.h"
#include "config.h"
#include "fault.h"
#include "hex.h"
#include "job.h"
#include "log.h"
#include "messages.h"
#include "registry.h"
#include "services.h"
#include "shared.h"
#include "spent.h"
#include "store.h"
#include "tasks.h"

#define LOG_TAIL 512

/* A request for a task. It lives in x->state as long as the exchange, so that a parked request is not parsed again. */
struct ask {
	struct offer offer;
	/* Of the task, what is to be durable before it goes out. */
	bool is_sized, is_out;
	struct store_sized sized;
	struct store_out out;
};

static struct ask *
ask_of(struct exchange *x)
{
	struct ask *ask = x->state ? x->state : malloc(sizeof(*ask));
	struct why why = {""};

	if (x->state)
		return ask;
	if (!ask) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return NULL;
	}
	if (messages_offer_decode(&ask->offer, buf_str(&x->body), x->body.len, &why)) {
		exchange_problem(x, PROBLEM_BAD_MESSAGE, "%s", why.text);
		free(ask);
		return NULL;
	}
	buf_deinit(&x->body);
	x->state = ask;
	return ask;
}

void
api_task_drop(struct exchange *x)
{
	struct ask *ask = x->state;

	if (ask)
		messages_offer_deinit(&ask->offer);
	free(ask);
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
	if (!e && t->wait)
		exchange_header(x, "Retry-After", "%llu", (unsigned long long)t->wait_s);
	buf_deinit(&out);
}

/* Logs that a key is used on two machines: somebody copied a device, or its disk was moved. */
static void
log_clone(const struct exchange *x)
{
	struct registry_view view;
	char hex[65];

	if (registry_get(x->services->registry, x->who.device, &view))
		return;
	hex_encode(hex, x->who.device, 32);
	log_event(LOG_LEVEL_WARN, "device.cloned", LOG_S("device", hex),
	    LOG_S("name", view.row.name), LOG_S("peer", x->peer),
	    LOG_S("why", "its key is used on a second machine"));
}

static enum err
store_task(struct store_db *db, void *arg, struct why *why)
{
	const struct ask *ask = ((struct exchange *)arg)->state;
	enum err e = ask->is_sized ? store_sized_put(db, &ask->sized) : ERR_OK;

	(void)why;
	return !e && ask->is_out ? store_out_put(db, &ask->out) : e;
}

static void
task_stored(void *arg, enum err e, const struct why *why)
{
	struct exchange *x = arg;
	const struct ask *ask = x->state;

	FAULT("task.stored");
	if (e)
		exchange_failed(x, e, why);
	if (!e && ask->is_sized)
		tasks_size_stored(x->services->engine, &ask->sized);
	if (!e && ask->is_out)
		tasks_out_stored(x->services->engine, &ask->out);
	exchange_done(x);
}

/* Must the task's rows be written before the answer? Yes for a task sized by the device's speed, which must be the same whenever the device
 * asks again, and for a task that outlives its round, which takes a place until it is answered. */
static bool
must_store(struct exchange *x, struct ask *ask, const struct task *task)
{
	ask->is_sized = tasks_size_missing(x->services->engine, x->who.device, task, &ask->sized);
	ask->is_out = tasks_out_missing(x->services->engine, x->who.device, task, &ask->out);
	if (!ask->is_sized && !ask->is_out)
		return false;
	enum err e = store_submit(x->services->store, store_task, task_stored, x);
	if (e)
		exchange_failed(x, e, NULL);
	else
		x->given = true;
	return true;
}

/* Long poll: without work the request stays parked until something changes or its time is over. */
void
api_task_ask(struct exchange *x)
{
	struct ask *ask = ask_of(x);
	struct task task;

	if (!ask)
		return;
	const struct offer *offer = &ask->offer;
	if (x->until_ms == 0 && registry_note_offer(x->services->registry, x->who.device, offer))
		log_clone(x);
	tasks_ask(x->services->engine, x->who.device, offer, &task);
	task.renew = registry_wants_renewal(x->services->registry, x->who.device);
	registry_touch(
	    x->services->registry, x->who.device, offer->agent, task.wait ? task.reason : "");
	if (x->until_ms == 0) {
		const struct config *c = shared_take(x->services->config);
		uint64_t max = c->long_poll_s;
		shared_give(x->services->config, c);
		uint64_t wait = offer->wait_s < max ? offer->wait_s : max;
		x->until_ms = clock_ms() + wait * 1000;
		x->expired = x->expired || wait == 0;
	}
	x->parked = task.wait && !x->expired;
	if (!x->parked && !must_store(x, ask, &task))
		answer(x, &task);
	messages_task_deinit(&task);
}

/* Logs the end of a trainer's output, as far as a line of the log has room. */
static void
log_tail(const struct exchange *x, const struct abort_request *a)
{
	size_t len = strlen(a->log);
	char hex[17], tail[LOG_TAIL + 1];

	if (len == 0 ||
	    !spent_log(x->services->spent, x->services->config, x->who.device,
		len < LOG_TAIL ? len : LOG_TAIL))
		return;
	hex_encode(hex, x->who.device, 8);
	snprintf(tail, sizeof(tail), "%s", a->log + (len > LOG_TAIL ? len - LOG_TAIL : 0));
	for (char *p = tail; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = *p == '\n' ? '|' : '?';
	log_event(LOG_LEVEL_INFO, "task.log", LOG_S("device", hex), LOG_S("task", x->param[0]),
	    LOG_S("reason", a->cause.word), LOG_S("tail", tail));
}

void
api_task_abort(struct exchange *x)
{
	struct abort_request a;
	struct why why = {""};

	if (messages_abort_decode(&a, buf_str(&x->body), x->body.len, &why)) {
		exchange_problem(x, PROBLEM_BAD_MESSAGE, "%s", why.text);
		return;
	}
	/* Of a task that is not the device's nothing is kept and nothing said. */
	if (tasks_abort(x->services->engine, x->who.device, x->param[0], a.cause, a.log)) {
		exchange_problem(x, PROBLEM_NOT_FOUND, "this device holds no such task");
		return;
	}
	registry_touch(x->services->registry, x->who.device, NULL, a.cause.word);
	registry_note_abort(x->services->registry, x->who.device, a.cause.word);
	log_tail(x, &a);
	exchange_status(x, 204);
}
