#include "sgd.h"

#include "cpu.h"

struct sgd_target
sgd_begin(const struct sgd *s, size_t first)
{
	if (s->step)
		return (struct sgd_target){s->scratch, 1, 0};
	if (s->gradient)
		return (struct sgd_target){s->gradient + first, s->share, s->add ? 1 : 0};
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

void
sgd_end(const struct sgd *s, size_t first, size_t count)
{
	if (s->step)
		s->step(s->context, first, s->scratch, count);
	else if (!s->gradient && s->velocity)
		move(s->params + first, s->velocity + first, count, s->rate, s->weight_decay);
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

void
sgd_apply(const struct sgd *s, size_t first, const float *gradient, size_t count)
{
	struct sgd_target t = sgd_begin(s, first);

	blend(t.to, gradient, count, t.alpha, t.beta);
	sgd_end(s, first, count);
}
