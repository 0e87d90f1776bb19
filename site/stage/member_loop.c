#include "member_loop.h"

#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "counts_pack.h"
#include "json.h"
#include "orders.h"
#include "recipe.h"
#include "recipe_text.h"
#include "timing.h"

struct member {
	struct courier *courier;
	uint64_t orders; /* so far */
	struct order order;
	struct recipe recipe;
	bool has_recipe;
	struct net_part whole;
	struct rank *rank;
};

static enum err
receive(struct member *m, enum parcel_kind kind, void *data, size_t bytes)
{
	struct parcel p = {.head = {.kind = kind, .step = m->orders}, .data = data, .bytes = bytes};

	courier_post(m->courier, &p);
	enum err e = courier_wait(m->courier, &p);
	return e ? e : p.got == bytes ? ERR_OK : ERR_CORRUPT;
}

static enum err
reply(struct member *m, enum parcel_kind kind, uint32_t part, const void *data, size_t bytes)
{
	struct parcel p = {.sends = true,
	    .head = {.kind = kind, .step = m->orders, .batch = part},
	    .data = (void *)(uintptr_t)data,
	    .bytes = bytes};

	courier_post(m->courier, &p);
	return courier_wait(m->courier, &p);
}

static enum err
answer(struct member *m, enum err failed, const struct why *why)
{
	struct answer a = {.failed = (int32_t)failed};

	if (failed)
		memcpy(a.text, why->text, sizeof(a.text));
	return reply(m, PARCEL_REPORT, 0, &a, sizeof(a));
}

static void
leave(struct member *m)
{
	rank_free(m->rank);
	m->rank = NULL;
	if (m->has_recipe)
		recipe_deinit(&m->recipe);
	m->has_recipe = false;
}

static enum err
parse(struct member *m, const char *text, struct why *why)
{
	struct json *doc = NULL;
	enum err e = json_parse(&doc, text, (size_t)m->order.text, why);

	if (!e)
		e = recipe_parse(&m->recipe, doc, false, why);
	m->has_recipe = !e;
	json_free(doc);
	return e;
}

static struct net_part
whole_of(const struct member *m)
{
	const struct order *o = &m->order;

	return (struct net_part){.spec = &m->recipe.net,
	    .classes = o->classes,
	    .last = m->recipe.net.layer_count,
	    .max_batch = o->max_batch,
	    .contexts = 1,
	    .train = o->train,
	    .rules = m->recipe.rules,
	    .rule_count = m->recipe.rule_count,
	    .recompute = o->recompute,
	    .max_bytes = o->max_bytes};
}

static enum err
make_rank(struct member *m, struct why *why)
{
	const struct order *o = &m->order;

	m->whole = whole_of(m);
	const struct rank_task task = {
	    &m->whole, &o->layout, o->threads, o->train ? &o->how : NULL};
	enum err e = rank_new(&m->rank, m->courier, &task, why);
	return !e && o->train ? rank_begin(m->rank, &o->how, why) : e;
}

/* The recipe that an order is about. */
static enum err
take_text(struct member *m, enum err *failed, struct why *why)
{
	char *text = m->order.text <= RECIPE_TEXT_MAX ? malloc((size_t)m->order.text + 1) : NULL;

	leave(m);
	if (!text)
		return ERR_NOMEM;
	enum err e = receive(m, PARCEL_TEXT, text, (size_t)m->order.text);
	text[m->order.text] = '\0';
	*failed = e ? ERR_OK : parse(m, text, why);
	free(text);
	return e;
}

static enum err
take_task(struct member *m)
{
	struct why why = {""};
	enum err failed, e = take_text(m, &failed, &why);

	if (e)
		return e;
	if (!failed)
		failed = make_rank(m, &why);
	return answer(m, failed, &why);
}

static enum err
measure(struct member *m)
{
	const struct order *o = &m->order;
	struct timing_passes passes[NET_RANGES] = {{0, 0}};
	struct why why = {""};
	enum err failed, e = take_text(m, &failed, &why);

	if (e)
		return e;
	m->whole = whole_of(m);
	const struct timing t = {.whole = &m->whole,
	    .threads = o->threads,
	    .rank = courier_rank(m->courier),
	    .first = (size_t)o->first,
	    .last = (size_t)o->last,
	    .tail_first = (size_t)o->tail_first};
	if (!failed && t.last > t.first)
		failed = timing_take(&t, passes, &why);
	const struct order_measured measured = {.seconds = passes[0].forward_s + passes[0].back_s +
		passes[1].forward_s + passes[1].back_s,
	    .memory = timing_memory(courier_ranks(m->courier), courier_threads(m->courier))};
	e = answer(m, failed, &why);
	return e ? e : reply(m, PARCEL_REPORT, 1, &measured, sizeof(measured));
}

static enum err
ping(struct member *m)
{
	size_t bytes = (size_t)m->order.first;
	void *data = bytes <= ORDER_PING_MAX ? malloc(bytes + 1) : NULL;
	enum err e = data ? ERR_OK : ERR_NOMEM;

	for (uint32_t i = 0; !e && i < m->order.n; i++) {
		e = receive(m, PARCEL_TEXT, data, bytes);
		if (!e)
			e = reply(m, PARCEL_TEXT, 0, data, bytes);
	}
	free(data);
	return e;
}

static enum err
begin(struct member *m)
{
	struct why why = {""};
	enum err failed = rank_begin(m->rank, &m->order.how, &why);

	return answer(m, failed, &why);
}

/* Its own batches' figures go beside the answer. */
static enum err
report(struct member *m)
{
	const struct net_result *results = rank_results(m->rank);
	uint32_t n = results ? rank_batches(m->rank) : 0;
	struct answer a = {.failed = (int32_t)rank_failure(m->rank), .batches = n};
	enum err e = reply(m, PARCEL_REPORT, 0, &a, sizeof(a));

	return e || n == 0 ? e : reply(m, PARCEL_REPORT, 1, results, n * sizeof(*results));
}

static enum err
step(struct member *m)
{
	enum err e = rank_step(m->rank, &m->order.step);

	if (!e)
		e = rank_work(m->rank, UINT32_MAX);
	if (!e)
		e = rank_move(m->rank);
	return e ? e : report(m);
}

static enum err
send_counts(struct member *m, const struct counts *counts)
{
	size_t bytes = counts_pack_bytes(counts);
	void *packed = malloc(bytes);

	if (!packed)
		return ERR_NOMEM;
	counts_pack(counts, packed);
	enum err e = reply(m, PARCEL_REPORT, 2, packed, bytes);
	free(packed);
	return e;
}

static enum err
look(struct member *m)
{
	struct counts *counts = NULL;
	enum err e = m->order.counts
	    ? counts_new(&counts, &m->recipe.figures, m->recipe.data.class_count, NULL)
	    : ERR_OK;

	m->order.step.counts = counts;
	if (!e)
		e = rank_step(m->rank, &m->order.step);
	if (!e)
		e = rank_work(m->rank, UINT32_MAX);
	if (!e)
		e = report(m);
	if (!e && counts && rank_results(m->rank) && rank_batches(m->rank) > 0)
		e = send_counts(m, counts);
	counts_free(counts);
	return e;
}

static enum err
obey(struct member *m)
{
	const struct order *o = &m->order;

	switch (o->kind) {
	case ORDER_TASK:
		return take_task(m);
	case ORDER_BEGIN:
		return begin(m);
	case ORDER_STEP:
		return step(m);
	case ORDER_LOOK:
		return look(m);
	case ORDER_READ:
		return reply(m, PARCEL_PARAMETERS, 0, rank_parameters(m->rank, o->stage) + o->first,
		    o->n * sizeof(float));
	case ORDER_WRITE:
		return receive(m, PARCEL_PARAMETERS, rank_parameters(m->rank, o->stage) + o->first,
		    o->n * sizeof(float));
	case ORDER_MEASURE:
		return measure(m);
	case ORDER_PING:
		return ping(m);
	case ORDER_LEAVE:
		leave(m);
		break;
	case ORDER_END:
		break;
	}
	return ERR_OK;
}

enum err
member_loop_run(struct courier *c)
{
	struct member m = {.courier = c};
	enum err e = ERR_OK;

	do {
		m.orders++;
		e = receive(&m, PARCEL_ORDER, &m.order, sizeof(m.order));
		if (!e)
			e = obey(&m);
	} while (!e && m.order.kind != ORDER_END);
	if (e)
		courier_abort(c);
	leave(&m);
	return e;
}
