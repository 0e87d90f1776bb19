#include "partition_time.h"

#include <math.h>

static double
later(double a, double b)
{
	return a > b ? a : b;
}

static double
transfer_s(const struct partition_in *in, double bytes)
{
	return bytes / in->bytes_per_s + ceil(bytes / LINK_BODY_MAX) * in->latency_s;
}

struct partition_shape
partition_time_shape(const struct partition_in *in, const struct layout *l)
{
	struct partition_shape s = {.in = in, .layout = *l};
	unsigned last = layout_last(l), others = l->replicas - 1;
	double input = transfer_s(in, (double)in->input);
	double answer = transfer_s(in, (double)in->answer);

	for (unsigned stage = 0; stage <= last; stage++)
		for (unsigned q = 0; q < l->replicas; q++)
			s.factors[stage] =
			    later(s.factors[stage], in->ranks[layout_rank(l, q, stage)].factor);
	/* Rank 0 sends at least what another replica's first rank receives. */
	s.feeds[0] = others * (input + answer);
	if (layout_rank(l, 0, last) != 0) {
		s.feeds[0] += answer;
		s.feeds[last] = answer;
	}
	return s;
}

void
partition_time_move(const struct partition_in *in, struct partition_point *at, size_t layer)
{
	bool inside = layer > 0 && layer < in->count;

	for (; at->layer < layer; at->layer++) {
		const struct partition_layer *l = &in->layers[at->layer];
		at->seconds += l->forward_s + l->back_s;
		at->gradient += (double)l->gradient;
		at->work += l->works;
	}
	at->bytes = inside ? in->layers[layer - 1].out : 0;
	at->cross_s = transfer_s(in, (double)at->bytes);
}

struct partition_load
partition_time_load(const struct partition_shape *s, unsigned stage,
    const struct partition_point *first, const struct partition_point *last)
{
	double compute_s = s->factors[stage] * (last->seconds - first->seconds);

	return (struct partition_load){
	    .compute_s = compute_s,
	    .link_s = first->cross_s + last->cross_s + s->feeds[stage],
	    .gradient = last->gradient - first->gradient,
	    .through_s = compute_s + 2 * first->cross_s,
	    .works = last->work > first->work,
	};
}

struct partition_load
partition_time_both(const struct partition_load *a, const struct partition_load *b)
{
	return (struct partition_load){
	    .compute_s = a->compute_s + b->compute_s,
	    .link_s = a->link_s + b->link_s,
	    .gradient = a->gradient + b->gradient,
	    .through_s = a->through_s + b->through_s,
	    .works = a->works && b->works,
	};
}

double
partition_time_period(const struct partition_load *load)
{
	return later(load->compute_s, load->link_s);
}

static double
exchange_s(const struct partition_shape *s, double gradient)
{
	unsigned r = s->layout.replicas;

	return r > 1 ? transfer_s(s->in, gradient * (r - 1) / r) : 0;
}

/* A wave but the first, of n batches. */
static double
wave_s(const struct partition_shape *s, uint32_t n, double period, double through_s)
{
	return s->layout.ring ? (n - 1) * period + through_s : n * period;
}

double
partition_time_step(
    const struct partition_shape *s, double period, double gradient, double through_s)
{
	const struct layout *l = &s->layout;
	uint32_t batches = layout_batches(l, 0, l->pieces);
	uint32_t waves = (batches + l->run - 1) / l->run;
	uint32_t first = batches < l->run ? batches : l->run, last = batches - (waves - 1) * l->run;
	double exchange = exchange_s(s, gradient);
	double step = (first - 1) * period + through_s + 2 * exchange;

	if (waves > 2)
		step += (waves - 2) * later(wave_s(s, l->run, period, through_s), exchange);
	if (waves > 1)
		step += later(wave_s(s, last, period, through_s), exchange);
	return step;
}

struct partition_range
partition_time_range(const struct partition_shape *s, unsigned replica, unsigned stage,
    size_t first, size_t last, size_t tail_first)
{
	const struct layout *l = &s->layout;

	return (struct partition_range){
	    .first = first,
	    .last = last,
	    .tail_first = tail_first,
	    .contexts = layout_contexts(l, stage),
	    .tail_contexts = tail_first ? layout_contexts(l, layout_last(l)) : 0,
	    .replicas = l->replicas,
	    .leads = replica == 0 && stage == 0,
	};
}

/* --- a division */

static uint64_t
most_bytes(const struct partition_shape *s, unsigned stage, const uint32_t *cut)
{
	const struct layout *l = &s->layout;
	bool two = l->ring && stage == 0;
	/* Only rank 0 differs from its replicas. */
	unsigned kinds = stage == 0 && l->replicas > 1 ? 2 : 1;
	uint64_t most = 0;

	if (l->ring && stage == layout_last(l))
		return 0;
	for (unsigned q = 0; q < kinds; q++) {
		struct partition_range range = partition_time_range(
		    s, q, stage, cut[stage], cut[stage + 1], two ? cut[layout_last(l)] : 0);
		uint64_t bytes = s->in->bytes(s->in->context, &range);
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* Seconds of a step that the busiest rank computes, if the ranks of factor 1 take so long for a piece. */
static double
busiest_s(const struct partition_shape *s, const double *seconds)
{
	const struct layout *l = &s->layout;
	double most = 0;

	for (unsigned rank = 0; rank < layout_ranks(l); rank++) {
		uint32_t batches = layout_batches(l, rank / l->pipeline, l->pieces);
		most =
		    later(most, batches * s->in->ranks[rank].factor * seconds[rank % l->pipeline]);
	}
	return most;
}

void
partition_time(const struct partition_in *in, const struct layout *l, struct partition *out)
{
	struct partition_shape s = partition_time_shape(in, l);
	struct partition_point from = {0}, to = {0};
	struct partition_load loads[LINK_RANKS_MAX + 1];
	double seconds[LINK_RANKS_MAX] = {0}, period = 0, gradient = 0, through_s = 0;

	*out = (struct partition){.layout = *l};
	for (unsigned stage = 0; stage <= layout_last(l); stage++, from = to) {
		partition_time_move(in, &to, l->cut[stage + 1]);
		loads[stage] = partition_time_load(&s, stage, &from, &to);
		seconds[stage % l->pipeline] += to.seconds - from.seconds;
		through_s += loads[stage].through_s;
		out->stages[stage] = (struct partition_stage){
		    .compute_s = loads[stage].compute_s,
		    .link_s = loads[stage].link_s,
		    .bytes = most_bytes(&s, stage, l->cut),
		    .contexts = layout_contexts(l, stage),
		};
	}
	if (l->ring)
		loads[0] = partition_time_both(&loads[0], &loads[l->pipeline]);
	for (unsigned rank = 0; rank < l->pipeline; rank++) {
		period = later(period, partition_time_period(&loads[rank]));
		gradient = later(gradient, loads[rank].gradient);
		out->link_bound |= loads[rank].link_s > loads[rank].compute_s;
	}
	out->link_bound |= exchange_s(&s, gradient) > wave_s(&s, l->run, period, through_s);
	out->step_s = partition_time_step(&s, period, gradient, through_s);
	if (out->step_s > 0)
		out->bubble = later(0, 1 - busiest_s(&s, seconds) / out->step_s);
}
