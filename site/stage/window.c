#include "window.h"

#include <stdlib.h>
#include <string.h>

#include "orders.h"

enum err
window_init(
    struct window *w, struct world *world, const struct layout *layout, const struct net *whole)
{
	*w = (struct window){
	    .world = world, .layout = layout, .values = malloc(ORDER_ELEMENTS * sizeof(float))};
	for (unsigned s = 0; s <= layout_last(layout) + 1; s++)
		w->stage_first[s] = net_elements_before(whole, layout->cut[s]);
	return w->values ? ERR_OK : ERR_NOMEM;
}

void
window_deinit(struct window *w)
{
	free(w->values);
	w->values = NULL;
}

/* The stage that has an element of the whole network. */
static unsigned
stage_of(const struct window *w, uint64_t element)
{
	unsigned s = layout_last(w->layout);

	while (s > 0 && element < w->stage_first[s])
		s--;
	return s;
}

static bool
is_own(const struct window *w, unsigned stage)
{
	return stage % w->layout->pipeline == 0;
}

static struct order
order_of(const struct window *w, enum order_kind kind)
{
	return (struct order){
	    .kind = kind, .stage = w->stage, .first = w->first, .n = (uint32_t)w->n};
}

/* What was set goes to the stage in every replica. */
static enum err
flush(struct window *w)
{
	const struct layout *y = w->layout;
	const struct order o = order_of(w, ORDER_WRITE);
	size_t bytes = w->n * sizeof(float);
	enum err e = ERR_OK;

	for (unsigned q = 0; !e && w->written && q < y->replicas; q++) {
		unsigned rank = layout_rank(y, q, w->stage);
		if (rank == 0) {
			memcpy(rank_parameters(w->own, w->stage) + w->first, w->values, bytes);
			continue;
		}
		e = world_order(w->world, rank, &o);
		if (!e)
			e = world_send(w->world, rank, PARCEL_PARAMETERS, w->values, bytes);
	}
	w->written = false;
	w->n = 0;
	return e;
}

/* Some elements from this one on, of one stage. */
static enum err
look_up(struct window *w, unsigned stage, uint64_t first, uint64_t end)
{
	enum err e = flush(w);

	w->stage = stage;
	w->first = first;
	w->n = (size_t)(end - first < ORDER_ELEMENTS ? end - first : ORDER_ELEMENTS);
	const struct order o = order_of(w, ORDER_READ);
	if (!e)
		e = world_order(w->world, stage % w->layout->pipeline, &o);
	if (!e)
		e = world_receive(w->world, stage % w->layout->pipeline, PARCEL_PARAMETERS, 0,
		    w->values, w->n * sizeof(float));
	if (e)
		w->n = 0;
	return e;
}

static bool
holds(const struct window *w, unsigned stage, uint64_t element)
{
	return w->n > 0 && w->stage == stage && element >= w->first && element - w->first < w->n;
}

/* Elements of one stage. */
static enum err
get(struct window *w, unsigned stage, uint64_t first, uint64_t end, size_t n, float *values)
{
	enum err e = ERR_OK;

	if (is_own(w, stage)) {
		e = w->written ? flush(w) : ERR_OK;
		memcpy(values, rank_parameters(w->own, stage) + first, n * sizeof(*values));
		return e;
	}
	for (size_t at = 0, some; !e && at < n; at += some) {
		if (w->written || !holds(w, stage, first + at))
			e = look_up(w, stage, first + at, end);
		if (e)
			break;
		size_t skip = (size_t)(first + at - w->first);
		some = n - at < w->n - skip ? n - at : w->n - skip;
		memcpy(values + at, w->values + skip, some * sizeof(*values));
	}
	return e;
}

static enum err
set(struct window *w, unsigned stage, uint64_t first, size_t n, const float *values)
{
	enum err e = ERR_OK;

	for (size_t at = 0, some; !e && at < n; at += some) {
		bool follows = w->written && w->stage == stage && w->first + w->n == first + at &&
		    w->n < ORDER_ELEMENTS;
		if (!follows) {
			e = flush(w);
			w->stage = stage;
			w->first = first + at;
			w->written = true;
		}
		some = n - at < ORDER_ELEMENTS - w->n ? n - at : ORDER_ELEMENTS - w->n;
		memcpy(w->values + w->n, values + at, some * sizeof(*values));
		w->n += some;
	}
	return e;
}

static enum err
each_stage(struct window *w, uint64_t first, size_t n, float *values, bool sets)
{
	enum err e = ERR_OK;

	for (size_t at = 0, some; !e && at < n; at += some) {
		unsigned stage = stage_of(w, first + at);
		uint64_t begin = w->stage_first[stage], end = w->stage_first[stage + 1];
		some = n - at < end - (first + at) ? n - at : (size_t)(end - (first + at));
		e = sets ? set(w, stage, first + at - begin, some, values + at)
			 : get(w, stage, first + at - begin, end - begin, some, values + at);
	}
	return e;
}

enum err
window_get(struct window *w, uint64_t first, size_t n, float *values)
{
	return each_stage(w, first, n, values, false);
}

enum err
window_set(struct window *w, uint64_t first, size_t n, const float *values)
{
	return each_stage(w, first, n, (float *)(uintptr_t)values, true);
}

enum err
window_forget(struct window *w)
{
	enum err e = flush(w);

	w->n = 0;
	return e;
}
