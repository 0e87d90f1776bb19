#include "partition.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "partition_time.h"

/*
 * A step's time grows with P, with the largest gradient of a rank and with S. Under given bounds of the first two a dynamic program finds
 * the least S. Branch and bound then looks for the bounds among the values that ranks can have: whatever lies within a box of bounds has
 * at least the S of the box's upper corner, and P and gradient of its lower one. Boxes that cannot be quicker than the best are left out.
 */
struct bounds {
	double period, gradient;
	bool lacks; /* memory is no bound: least is not S but what the rank lacks that lacks most */
	uint32_t end; /* where the last of the stages in a row ends */
};
#define IMPOSSIBLE (UINT64_MAX - 1) /* bytes that are lacking where no memory would do */

/* The best way on from a stage that begins at a point. */
struct rest {
	uint64_t round; /* of bounds that it holds for */
	double least; /* INFINITY: there is none */
	uint64_t crossing; /* bytes over cuts */
	uint32_t next; /* where the stage ends */
};

struct division {
	double least, period, gradient, step_s;
	uint64_t crossing;
	uint32_t at[LINK_RANKS_MAX + 2]; /* the points of its cuts */
};

/* Ascending, each once. */
struct values {
	double *items;
	size_t count;
};

struct search {
	struct partition_shape shape;
	struct partition_point *points;
	uint32_t count; /* of points, both ends included */
	struct rest *rest; /* by stage and point */
	uint64_t round;
	uint64_t
	    *lacks; /* 1 + bytes that are lacking, by stage and both points; 0: not counted yet */
	struct values periods, gradients;
	struct division best;
};

static bool
ring(const struct search *q)
{
	return q->shape.layout.ring;
}

static struct partition_load
load_of(const struct search *q, unsigned stage, uint32_t from, uint32_t to)
{
	return partition_time_load(&q->shape, stage, &q->points[from], &q->points[to]);
}

/* Of the first rank of a ring with layers up to a point, and from another on. */
static struct partition_load
load_of_both(const struct search *q, uint32_t to, uint32_t from)
{
	struct partition_load first = load_of(q, 0, 0, to);
	struct partition_load last = load_of(q, layout_last(&q->shape.layout), from, q->count - 1);

	return partition_time_both(&first, &last);
}

/* --- memory */

static uint64_t
count_lacks(const struct search *q, unsigned stage, uint32_t from, uint32_t to)
{
	const struct partition_in *in = q->shape.in;
	const struct layout *l = &q->shape.layout;
	bool both = ring(q) && stage == 0;
	size_t first = both ? 0 : q->points[from].layer;
	size_t last = q->points[both ? from : to].layer;
	uint64_t most = 0, bytes = 0;

	for (unsigned r = 0; r < l->replicas; r++) {
		struct partition_range range = partition_time_range(
		    &q->shape, r, stage, first, last, both ? q->points[to].layer : 0);
		uint64_t memory = in->ranks[layout_rank(l, r, stage)].memory;
		if (r == 0 || (r == 1 && stage == 0))
			bytes = in->bytes(in->context, &range);
		if (bytes == UINT64_MAX)
			return IMPOSSIBLE;
		if (memory && bytes > memory && bytes - memory > most)
			most = bytes - memory;
	}
	return most < IMPOSSIBLE ? most : IMPOSSIBLE;
}

/* What the rank of a stage lacks for the layers between two points; a ring's first rank for those before the first and behind the second. */
static double
lacks(struct search *q, unsigned stage, uint32_t from, uint32_t to)
{
	uint64_t *bytes = &q->lacks[((size_t)stage * q->count + from) * q->count + to];

	if (!*bytes)
		*bytes = 1 + count_lacks(q, stage, from, to);
	return *bytes > IMPOSSIBLE ? INFINITY : (double)(*bytes - 1);
}

/* --- the least under bounds */

static bool
within(const struct bounds *b, const struct partition_load *load)
{
	return load->works && partition_time_period(load) <= b->period &&
	    load->gradient <= b->gradient;
}

/* Of a rank and those after it. */
static double
join(const struct bounds *b, const struct partition_load *load, double lacking, double after)
{
	if (b->lacks)
		return fmax(lacking, after);
	return lacking > 0 ? INFINITY : load->through_s + after;
}

static bool
better(double least, uint64_t crossing, double than, uint64_t than_crossing)
{
	return least < than || (least == than && crossing < than_crossing);
}

/* Of the stages in a row from this one on. Bytes are counted last, and only of what would be better. */
static const struct rest *
rest_of(struct search *q, const struct bounds *b, unsigned stage, uint32_t from)
{
	static const struct rest none = {0};
	bool ends = stage + 1 == q->shape.layout.pipeline;
	struct rest *r = &q->rest[(size_t)stage * q->count + from];

	if (r->round == q->round)
		return r;
	*r = (struct rest){.round = q->round, .least = INFINITY};
	for (uint32_t to = ends ? b->end : from + 1; to <= b->end; to++) {
		struct partition_load load = load_of(q, stage, from, to);
		if (load.compute_s > b->period || load.gradient > b->gradient)
			break;
		if (!within(b, &load))
			continue;
		const struct rest *after = ends ? &none : rest_of(q, b, stage + 1, to);
		uint64_t crossing = q->points[from].bytes + after->crossing;
		if (!better(join(b, &load, 0, after->least), crossing, r->least, r->crossing))
			continue;
		double least = join(b, &load, lacks(q, stage, from, to), after->least);
		if (better(least, crossing, r->least, r->crossing))
			*r = (struct rest){q->round, least, crossing, to};
	}
	return r;
}

static bool
earlier(const struct division *a, const struct division *b)
{
	for (size_t i = 0; i < LINK_RANKS_MAX + 2; i++)
		if (a->at[i] != b->at[i])
			return a->at[i] < b->at[i];
	return false;
}

/* The cuts of stages in a row that begin at a point, and the figures of all. */
static struct division
trace(const struct search *q, uint32_t from, uint32_t end)
{
	unsigned pipeline = q->shape.layout.pipeline;
	struct division d = {0};
	struct partition_load load = ring(q) ? load_of_both(q, from, end) : load_of(q, 0, 0, 0);

	d.period = partition_time_period(&load);
	d.gradient = load.gradient;
	for (unsigned stage = ring(q); stage < pipeline; stage++) {
		d.at[stage] = from;
		d.at[stage + 1] = q->rest[(size_t)stage * q->count + from].next;
		load = load_of(q, stage, from, d.at[stage + 1]);
		d.period = fmax(d.period, partition_time_period(&load));
		d.gradient = fmax(d.gradient, load.gradient);
		from = d.at[stage + 1];
	}
	if (ring(q))
		d.at[pipeline + 1] = q->count - 1;
	return d;
}

/* *out: the best so far. The stages in a row begin at a point. */
static void
consider(struct search *q, const struct bounds *b, uint32_t from, struct division *out)
{
	struct partition_load both = {0};
	uint64_t crossing = 0;

	if (ring(q)) {
		both = load_of_both(q, from, b->end);
		crossing = q->points[b->end].bytes;
		if (!within(b, &both))
			return;
	}
	const struct rest *r = rest_of(q, b, ring(q), from);
	double least = join(b, &both, 0, r->least);
	crossing += r->crossing;
	if (ring(q) && !better(out->least, out->crossing, least, crossing))
		least = join(b, &both, lacks(q, 0, from, b->end), r->least);
	if (isinf(least) || better(out->least, out->crossing, least, crossing))
		return;
	struct division d = trace(q, from, b->end);
	d.least = least;
	d.crossing = crossing;
	d.step_s = partition_time_step(&q->shape, d.period, d.gradient, least);
	if (better(least, crossing, out->least, out->crossing) || earlier(&d, out))
		*out = d;
}

static bool
solve(struct search *q, struct bounds b, struct division *out)
{
	const struct partition_in *in = q->shape.in;

	*out = (struct division){.least = INFINITY};
	b.end = ring(q) ? 2 : q->count - 1;
	for (; b.end < q->count; b.end++) {
		q->round++;
		if (!ring(q)) {
			consider(q, &b, 0, out);
			continue;
		}
		if (q->points[b.end].layer > in->first_sharer)
			break;
		for (uint32_t from = 1; from < b.end; from++)
			if (q->points[from].layer > in->lender)
				consider(q, &b, from, out);
	}
	return !isinf(out->least);
}

/* --- the bounds */

static bool
solve_at(struct search *q, size_t period, size_t gradient, struct division *out)
{
	struct bounds b = {
	    .period = q->periods.items[period], .gradient = q->gradients.items[gradient]};

	return solve(q, b, out);
}

static double
step_at(const struct search *q, size_t period, size_t gradient, double through_s)
{
	return partition_time_step(
	    &q->shape, q->periods.items[period], q->gradients.items[gradient], through_s);
}

static void
offer(struct search *q, const struct division *d)
{
	const struct division *best = &q->best;

	if (d->step_s < best->step_s ||
	    (d->step_s == best->step_s &&
		(d->crossing < best->crossing ||
		    (d->crossing == best->crossing && earlier(d, best)))))
		q->best = *d;
}

/* Indexes, first and last. */
struct box {
	size_t period[2], gradient[2];
};

/* The dimension whose bounds are further apart, in seconds of a step. */
static size_t *
widest(const struct search *q, struct box *b, double through_s)
{
	double low = step_at(q, b->period[0], b->gradient[0], through_s);
	double period = step_at(q, b->period[1], b->gradient[0], through_s) - low;
	double gradient = step_at(q, b->period[0], b->gradient[1], through_s) - low;

	if (b->gradient[0] == b->gradient[1])
		return b->period;
	return b->period[0] == b->period[1] || gradient > period ? b->gradient : b->period;
}

/* All that is in the box has at least this S. */
static void
narrow(struct search *q, struct box b, double through_s)
{
	struct division d;

	while (step_at(q, b.period[0], b.gradient[0], through_s) <= q->best.step_s) {
		if (b.period[0] == b.period[1] && b.gradient[0] == b.gradient[1])
			return;
		struct box lower = b;
		bool of_period = widest(q, &b, through_s) == b.period;
		size_t *upper = of_period ? b.period : b.gradient;
		size_t middle = upper[0] + (upper[1] - upper[0]) / 2;
		(of_period ? lower.period : lower.gradient)[1] = middle;
		if (solve_at(q, lower.period[1], lower.gradient[1], &d)) {
			offer(q, &d);
			narrow(q, lower, d.least);
		}
		upper[0] = middle + 1;
	}
}

/* The first value that is not below one, but for rounding; the last if all are. */
static size_t
first_from(const struct values *v, double least)
{
	size_t low = 0, high = v->count - 1;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (v->items[middle] >= least * (1 - 1e-9))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* What no division is below: all ranks compute, and move, as much as they can at once; *through_s: S. */
static struct box
limits(const struct search *q, double *through_s)
{
	const struct layout *l = &q->shape.layout;
	const struct partition_point *end = &q->points[q->count - 1];
	double speeds = 0, factor = INFINITY, cross_s = INFINITY;

	for (unsigned rank = 0; rank < l->pipeline; rank++) {
		speeds += 1 / q->shape.factors[rank];
		factor = fmin(factor, q->shape.factors[rank]);
	}
	for (uint32_t i = 1; i + 1 < q->count; i++)
		cross_s = fmin(cross_s, q->points[i].cross_s);
	*through_s = factor * end->seconds * (1 - 1e-9);
	if (layout_last(l) > 0 && !isinf(cross_s))
		*through_s += 2 * layout_last(l) * cross_s * (1 - 1e-9);
	return (struct box){{first_from(&q->periods, end->seconds / speeds), q->periods.count - 1},
	    {first_from(&q->gradients, end->gradient / l->pipeline), q->gradients.count - 1}};
}

/* The last index from `low` on whose step, at least, is not longer than the best one. */
static size_t
most(const struct search *q, const struct box *low, bool of_period, double through_s)
{
	size_t first = of_period ? low->period[0] : low->gradient[0];
	size_t last = (of_period ? q->periods.count : q->gradients.count) - 1;

	while (first < last) {
		size_t middle = last - (last - first) / 2;
		size_t period = of_period ? middle : low->period[0];
		size_t gradient = of_period ? low->gradient[0] : middle;
		if (step_at(q, period, gradient, through_s) <= q->best.step_s)
			first = middle;
		else
			last = middle - 1;
	}
	return first;
}

/* Tight bounds come first: under them few ranges are in question, and bytes are counted for few. */
static bool
search(struct search *q)
{
	double through_s;
	struct box b = limits(q, &through_s);
	struct division d;
	size_t step = 1;

	for (size_t at = b.period[0]; !solve_at(q, at, b.gradient[1], &d); step *= 2) {
		if (at == b.period[1])
			return false;
		b.period[0] = at + 1;
		at = b.period[1] - at > step ? at + step : b.period[1];
	}
	q->best = d;
	b = (struct box){{b.period[0], most(q, &b, true, through_s)},
	    {b.gradient[0], most(q, &b, false, through_s)}};
	if (solve_at(q, b.period[1], b.gradient[1], &d)) {
		offer(q, &d);
		narrow(q, b, d.least);
	}
	return true;
}

/* The least that the rank lacks which lacks most. */
static uint64_t
shortage(struct search *q)
{
	struct bounds b = {.period = INFINITY, .gradient = INFINITY, .lacks = true};
	struct division d;

	return solve(q, b, &d) ? (uint64_t)d.least : UINT64_MAX;
}

/* --- what values the bounds can have */

static void
add(struct search *q, const struct partition_load *load)
{
	if (!load->works)
		return;
	if (q->periods.items) {
		q->periods.items[q->periods.count] = partition_time_period(load);
		q->gradients.items[q->gradients.count] = load->gradient;
	}
	q->periods.count++;
	q->gradients.count++;
}

static bool
alike(const struct search *q, unsigned a, unsigned b)
{
	if (a == 0)
		return false;
	return q->shape.factors[a] == q->shape.factors[b] && q->shape.feeds[a] == q->shape.feeds[b];
}

/* Counts the values of all ranks, or collects them. */
static void
visit(struct search *q)
{
	unsigned pipeline = q->shape.layout.pipeline;
	struct partition_load load;

	q->periods.count = q->gradients.count = 0;
	for (uint32_t to = 1; ring(q) && to < q->count; to++)
		for (uint32_t from = to + 1; from < q->count; from++) {
			load = load_of_both(q, to, from);
			add(q, &load);
		}
	for (unsigned stage = ring(q); stage < pipeline; stage++) {
		uint32_t begins = stage == 0 ? 1 : q->count;
		bool ends = !ring(q) && stage + 1 == pipeline;
		if (!ends && stage > ring(q) && alike(q, stage - 1, stage))
			continue;
		for (uint32_t from = 0; from < begins; from++)
			for (uint32_t to = ends ? q->count - 1 : from + 1; to < q->count; to++) {
				load = load_of(q, stage, from, to);
				add(q, &load);
			}
	}
}

static int
ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
sort(struct values *v)
{
	size_t n = 0;

	qsort(v->items, v->count, sizeof(*v->items), ascending);
	for (size_t i = 0; i < v->count; i++)
		if (n == 0 || v->items[i] != v->items[n - 1])
			v->items[n++] = v->items[i];
	v->count = n;
}

/* A bound that nothing depends on is none. */
static void
set(struct values *v, bool matters)
{
	if (matters && v->count > 0) {
		sort(v);
	} else {
		v->items[0] = DBL_MAX;
		v->count = 1;
	}
}

/* --- a search */

static bool
start(struct search *q, const struct partition_in *in, const struct layout *l)
{
	struct partition_point at = {0};
	size_t count = 2;

	q->shape = partition_time_shape(in, l);
	for (size_t i = 1; i < in->count; i++)
		count += in->layers[i].cut;
	q->points = calloc(count, sizeof(*q->points));
	q->rest = calloc(l->pipeline * count, sizeof(*q->rest));
	q->lacks = calloc(l->pipeline * count * count, sizeof(*q->lacks));
	if (!q->points || !q->rest || !q->lacks)
		return false;
	for (size_t i = 1; i <= in->count; i++)
		if (i == in->count || in->layers[i].cut) {
			partition_time_move(in, &at, i);
			q->points[++q->count] = at;
		}
	q->count++;
	visit(q);
	q->periods.items = calloc(q->periods.count + 1, sizeof(double));
	q->gradients.items = calloc(q->gradients.count + 1, sizeof(double));
	if (!q->periods.items || !q->gradients.items)
		return false;
	visit(q);
	set(&q->periods, partition_time_step(&q->shape, 1, 0, 0) > 0);
	set(&q->gradients, l->replicas > 1);
	return true;
}

static void
stop(struct search *q)
{
	free(q->points);
	free(q->rest);
	free(q->lacks);
	free(q->periods.items);
	free(q->gradients.items);
}

bool
partition_best(const struct partition_in *in, unsigned pipeline, unsigned replicas,
    struct partition *out, uint64_t *lacking)
{
	struct layout l = {.pipeline = pipeline,
	    .replicas = replicas,
	    .ring = in->first_sharer > 0 && pipeline > 1,
	    .pieces = in->pieces,
	    .run = (in->pieces + in->groups - 1) / in->groups};
	struct search q = {0};
	bool found = false;

	*lacking = UINT64_MAX;
	if (pipeline == 0 || replicas == 0 || layout_ranks(&l) > in->rank_count)
		return false;
	if (start(&q, in, &l)) {
		found = search(&q);
		*lacking = found ? 0 : shortage(&q);
	}
	for (unsigned i = 0; found && i <= layout_last(&l) + 1; i++)
		l.cut[i] = (uint32_t)q.points[q.best.at[i]].layer;
	if (found)
		partition_time(in, &l, out);
	stop(&q);
	return found;
}
