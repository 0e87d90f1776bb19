#include "update.h"

#include <math.h>
#include <string.h>

#include "cpu.h"
#include "team.h"

/* Partial sums of a norm; part of the result's definition, so it never changes. */
#define LANES NET_NORM_LANES
/* As torch.nn.utils.clip_grad_norm_ adds it to the norm. */
#define CLIP_EPSILON 1e-6

static bool
adaptive(const struct net_update *how)
{
	return how->type != OPTIMIZER_SGD;
}

bool
update_collects(const struct net_update *how)
{
	return adaptive(how) || how->nesterov || how->prox != 0 || how->clip > 0 || how->shift;
}

bool
update_stores(const struct net_update *how)
{
	return how->clip > 0 || how->parts > 1;
}

size_t
update_vectors(const struct net_update *how)
{
	size_t n = update_stores(how) ? 1 : 0;

	if (how->groups > 1)
		n++;
	if (adaptive(how))
		n += 2;
	else if (how->momentum != 0)
		n++;
	return how->prox != 0 ? n + 1 : n;
}

float *
update_begin(
    struct update *u, const struct net_update *how, float *state, size_t stride, size_t count)
{
	bool momentum = adaptive(how) || how->momentum != 0;
	const struct {
		float **vector;
		bool needed;
	} all[] = {{&u->gradient, update_stores(how)}, {&u->total, how->groups > 1},
	    {&u->first, momentum}, {&u->second, adaptive(how)}, {&u->anchor, how->prox != 0}};
	float *next = state;

	*u = (struct update){.power1 = 1, .power2 = 1, .whole = update_stores(how)};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].needed) {
			next += stride;
			*all[i].vector = next;
			memset(next, 0, count * sizeof(*next));
		}
	if (u->anchor)
		memcpy(u->anchor, state, count * sizeof(*state));
	return next + stride;
}

bool
update_ready(const struct update *u, const struct net_update *how)
{
	return (u->gradient || !update_collects(how)) && (u->whole || !update_stores(how)) &&
	    (u->first || how->momentum == 0) && (u->second || !adaptive(how)) &&
	    (u->anchor || how->prox == 0);
}

CPU_CLONES static void
pull(float *restrict g, const float *restrict w, const float *restrict anchor, size_t n, float mu)
{
	for (size_t i = 0; i < n; i++)
		g[i] += mu * (w[i] - anchor[i]);
}

CPU_CLONES static void
add_scaled(float *restrict g, const float *restrict x, size_t n, float factor)
{
	for (size_t i = 0; i < n; i++)
		g[i] += factor * x[i];
}

CPU_CLONES static void
shrink(float *x, size_t n, float factor)
{
	for (size_t i = 0; i < n; i++)
		x[i] *= factor;
}

CPU_CLONES static void
gather_squares(double *restrict lane, const float *restrict x, size_t n)
{
	size_t whole = n - n % LANES;

	for (size_t i = 0; i < whole; i += LANES)
		for (size_t k = 0; k < LANES; k++)
			lane[k] += (double)x[i + k] * (double)x[i + k];
	for (size_t i = whole; i < n; i++)
		lane[i - whole] += (double)x[i] * (double)x[i];
}

CPU_CLONES static void
descend(float *restrict w, const float *restrict g, size_t n, float rate)
{
	for (size_t i = 0; i < n; i++)
		w[i] -= rate * g[i];
}

/* Leaves in g what the weights move by. */
CPU_CLONES static void
gain(float *restrict g, float *restrict v, size_t n, float momentum, bool nesterov)
{
	for (size_t i = 0; i < n; i++) {
		float x = momentum * v[i] + g[i];
		v[i] = x;
		g[i] = nesterov ? g[i] + momentum * x : x;
	}
}

CPU_CLONES static void
adapt(float *restrict w, const float *restrict g, float *restrict m, float *restrict v, size_t n,
    const struct adam *restrict a)
{
	for (size_t i = 0; i < n; i++) {
		float first = a->beta1 * m[i] + a->rest1 * g[i];
		float second = a->beta2 * v[i] + a->rest2 * (g[i] * g[i]);
		m[i] = first;
		v[i] = second;
		w[i] -= a->step * (first / (sqrtf(second) / a->root + a->epsilon));
	}
}

void
update_next(struct update *u, const struct net_update *how)
{
	if (!adaptive(how))
		return;
	u->steps++;
	u->power1 *= how->beta1;
	u->power2 *= how->beta2;
	u->adam = (struct adam){.beta1 = (float)how->beta1,
	    .rest1 = (float)(1 - how->beta1),
	    .beta2 = (float)how->beta2,
	    .rest2 = (float)(1 - how->beta2),
	    .step = (float)((double)how->rate / (1 - u->power1)),
	    .root = (float)sqrt(1 - u->power2),
	    .epsilon = (float)how->epsilon};
}

/* What the clip does not see yet. */
static void
pull_tensor(const struct update_fused *f, size_t first, float *g, size_t count)
{
	if (f->how->prox != 0)
		pull(g, f->params + first, f->update->anchor + first, count, f->how->prox);
}

static void
move_tensor(const struct update_fused *f, size_t first, float *g, size_t count)
{
	const struct net_update *how = f->how;
	const struct update *u = f->update;
	float *w = f->params + first;

	if (how->shift)
		add_scaled(g, how->shift + first, count, 1);
	if (how->type == OPTIMIZER_ADAMW)
		shrink(w, count, (float)(1 - (double)how->rate * (double)how->weight_decay));
	else if (how->weight_decay != 0)
		add_scaled(g, w, count, how->weight_decay);
	if (adaptive(how)) {
		adapt(w, g, u->first + first, u->second + first, count, &u->adam);
		return;
	}
	if (how->momentum != 0)
		gain(g, u->first + first, count, how->momentum, how->nesterov);
	descend(w, g, count, how->rate);
}

void
update_tensor(const void *fused, size_t first, float *gradient, size_t count)
{
	pull_tensor(fused, first, gradient, count);
	move_tensor(fused, first, gradient, count);
}

/* Over a whole gradient, tensor by tensor. */
struct sweep {
	const struct update_fused *f;
	float *gradient;
	size_t first; /* of a tensor */
	float factor;
	void (*fn)(const struct sweep *s, size_t first, float *g, size_t count);
};

static void
sweep_some(void *arg, size_t at, size_t count, unsigned lane)
{
	const struct sweep *s = arg;
	size_t first = s->first + at;

	(void)lane;
	s->fn(s, first, s->gradient + first, count);
}

static void
sweep(struct sweep *s, const struct update_ranges *r,
    void (*fn)(const struct sweep *s, size_t first, float *g, size_t count))
{
	s->fn = fn;
	for (size_t i = 0; i < r->count; i++) {
		s->first = r->items[i].first;
		team_elements(s->f->update->team, r->items[i].count, TEAM_MOVE, sweep_some, s);
	}
}

static void
pull_some(const struct sweep *s, size_t first, float *g, size_t count)
{
	pull_tensor(s->f, first, g, count);
}

static void
shrink_some(const struct sweep *s, size_t first, float *g, size_t count)
{
	(void)first;
	shrink(g, count, s->factor);
}

static void
move_some(const struct sweep *s, size_t first, float *g, size_t count)
{
	move_tensor(s->f, first, g, count);
}

static void
fold_some(void *arg, size_t at, size_t count, unsigned lane)
{
	const struct update *u = arg;

	(void)lane;
	if (u->summed)
		add_scaled(u->total + at, u->gradient + at, count, 1);
	else
		memcpy(u->total + at, u->gradient + at, count * sizeof(*u->total));
}

void
update_fold(struct update *u, size_t count)
{
	team_elements(u->team, count, TEAM_MOVE, fold_some, u);
	u->summed = true;
}

/* Of two vectors. */
struct sum {
	float *to;
	const float *from;
};

static void
add_some(void *arg, size_t at, size_t count, unsigned lane)
{
	const struct sum *s = arg;

	(void)lane;
	add_scaled(s->to + at, s->from + at, count, 1);
}

void
update_add(const struct update *u, float *to, const float *from, size_t count)
{
	struct sum s = {to, from};

	team_elements(u->team, count, TEAM_MOVE, add_some, &s);
}

static struct sweep
sweep_of(const struct update_fused *f)
{
	const struct update *u = f->update;

	return (struct sweep){.f = f, .gradient = u->total ? u->total : u->gradient};
}

void
update_norm(struct update *u, const struct net_update *how, float *params,
    const struct update_ranges *ranges, double lanes[NET_NORM_LANES])
{
	const struct update_fused f = {u, how, params};
	struct sweep s = sweep_of(&f);

	if (how->prox != 0)
		sweep(&s, ranges, pull_some);
	u->pulled = true;
	for (size_t i = 0; i < ranges->count; i++)
		gather_squares(lanes, s.gradient + ranges->items[i].first, ranges->items[i].count);
}

/* What torch's clip_grad_norm_ multiplies with. */
float
update_factor(const struct net_update *how, const double lanes[NET_NORM_LANES])
{
	double sum = 0;

	for (size_t k = 0; k < LANES; k++)
		sum += lanes[k];
	double factor = how->clip / (sqrt(sum) + CLIP_EPSILON);
	return factor < 1 ? (float)factor : 1;
}

void
update_move(struct update *u, const struct net_update *how, float *params,
    const struct update_ranges *ranges, float factor)
{
	const struct update_fused f = {u, how, params};
	struct sweep s = sweep_of(&f);

	s.factor = factor;
	update_next(u, how);
	if (how->prox != 0 && !u->pulled)
		sweep(&s, ranges, pull_some);
	if (factor < 1)
		sweep(&s, ranges, shrink_some);
	sweep(&s, ranges, move_some);
	u->summed = u->pulled = false;
}
