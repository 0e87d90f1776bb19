#include "sgd.h"

#include "cpu.h"
#include "team.h"

struct sgd_target
sgd_begin(const struct sgd *s, size_t first)
{
	if (s->step)
		return (struct sgd_target){s->scratch, 1, s->add ? 1 : 0};
	if (s->gradient)
		return (struct sgd_target){
		    s->apart ? s->apart : s->gradient + first, s->share, s->add ? 1 : 0};
	if (s->velocity)
		return (struct sgd_target){s->velocity + first, 1, s->momentum};
	return (struct sgd_target){s->params + first, -s->rate, 1 - s->rate * s->weight_decay};
}

CPU_CLONES static void
move(float *w, float *v, size_t n, float rate, float decay)
{
	for (size_t i = 0; i < n; i++) {
		float x = v[i] + decay * w[i];
		v[i] = x;
		w[i] -= rate * x;
	}
}

/* Of a tensor. */
struct pass {
	const struct sgd *s;
	size_t first;
	const float *gradient; /* that is formed */
};

static void
end_some(void *arg, size_t at, size_t n, unsigned lane)
{
	const struct pass *c = arg;
	const struct sgd *s = c->s;
	size_t first = c->first + at;

	(void)lane;
	if (s->step)
		s->step(s->context, first, s->scratch + at, n);
	else
		move(s->params + first, s->velocity + first, n, s->rate, s->weight_decay);
}

void
sgd_end(const struct sgd *s, size_t first, size_t count)
{
	struct pass c = {s, first, NULL};

	if (!s->waits && (s->step || (!s->gradient && s->velocity)))
		team_elements(s->team, count, TEAM_MOVE, end_some, &c);
	if (!s->waits && s->complete)
		s->complete(s->context, first, count);
}

CPU_CLONES static void
blend(float *to, const float *from, size_t n, float alpha, float beta)
{
	if (beta == 0)
		for (size_t i = 0; i < n; i++)
			to[i] = alpha * from[i];
	else
		for (size_t i = 0; i < n; i++)
			to[i] = beta * to[i] + alpha * from[i];
}

static void
blend_some(void *arg, size_t at, size_t n, unsigned lane)
{
	const struct pass *c = arg;
	struct sgd_target t = sgd_begin(c->s, c->first);

	(void)lane;
	blend(t.to + at, c->gradient + at, n, t.alpha, t.beta);
}

void
sgd_apply(const struct sgd *s, size_t first, const float *gradient, size_t count)
{
	struct pass c = {s, first, gradient};

	team_elements(s->team, count, TEAM_MOVE, blend_some, &c);
	sgd_end(s, first, count);
}
