#include "server_opt.h"

#include <math.h>
#include <string.h>

#include "cpu.h"
#include "vec.h"

/* --- sgd */

static size_t
sgd_state_vectors(const struct server_opt_params *params)
{
	return params->momentum > 0 ? 1 : 0;
}

static float
sgd_state_start(const struct server_opt_params *params, size_t vector)
{
	(void)params;
	(void)vector;
	return 0;
}

CPU_CLONES static void
sgd_plain(float rate, float *restrict w, const float *restrict update, size_t n)
{
	for (size_t i = 0; i < n; i++)
		w[i] += rate * update[i];
}

CPU_CLONES static void
sgd_momentum(float rate, float momentum, float *restrict w, const float *restrict update,
    float *restrict m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		m[i] = momentum * m[i] + update[i];
		w[i] += rate * m[i];
	}
}

CPU_CLONES static void
sgd_nesterov(float rate, float momentum, float *restrict w, const float *restrict update,
    float *restrict m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		m[i] = momentum * m[i] + update[i];
		w[i] += rate * (update[i] + momentum * m[i]);
	}
}

static enum err
sgd_step(const struct server_opt_params *params, float *w, const float *update, float *const *state,
    size_t n)
{
	/* Written so that NaN fails too. */
	if (!(params->rate >= 0) || !(params->momentum >= 0 && params->momentum < 1))
		return ERR_INVALID;
	if (params->momentum > 0 && (!state || !state[0]))
		return ERR_INVALID;
	if (!(params->momentum > 0))
		sgd_plain(params->rate, w, update, n);
	else if (params->nesterov)
		sgd_nesterov(params->rate, params->momentum, w, update, state[0], n);
	else
		sgd_momentum(params->rate, params->momentum, w, update, state[0], n);
	/* A momentum that is not finite shows in its weight, whatever the rate. */
	return vec_all_finite(w, n) ? ERR_OK : ERR_NUMERIC;
}

/* --- adagrad, yogi, adam */

static size_t
adaptive_state_vectors(const struct server_opt_params *params)
{
	(void)params;
	return 2;
}

static float
adaptive_state_start(const struct server_opt_params *params, size_t vector)
{
	return vector == 0 ? 0 : params->tau * params->tau;
}

CPU_CLONES static void
adagrad_moment(float beta2, float *restrict v, const float *restrict update, size_t n)
{
	(void)beta2;
	for (size_t i = 0; i < n; i++)
		v[i] += update[i] * update[i];
}

CPU_CLONES static void
yogi_moment(float beta2, float *restrict v, const float *restrict update, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float square = update[i] * update[i];
		float part = (1 - beta2) * square;
		v[i] = v[i] > square ? v[i] - part : v[i] < square ? v[i] + part : v[i];
	}
}

CPU_CLONES static void
adam_moment(float beta2, float *restrict v, const float *restrict update, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = beta2 * v[i] + (1 - beta2) * (update[i] * update[i]);
}

CPU_CLONES static void
adaptive_move(const struct server_opt_params *p, float *restrict w, const float *restrict update,
    float *restrict m, const float *restrict v, size_t n)
{
	float rate = p->rate, beta1 = p->beta1, tau = p->tau;

	for (size_t i = 0; i < n; i++) {
		m[i] = beta1 * m[i] + (1 - beta1) * update[i];
		w[i] += rate * (m[i] / (sqrtf(v[i]) + tau));
	}
}

static enum err
adaptive_step(const struct server_opt_params *p,
    void (*moment)(float beta2, float *restrict v, const float *restrict update, size_t n),
    float *w, const float *update, float *const *state, size_t n)
{
	if (!(p->rate >= 0) || !(p->beta1 >= 0 && p->beta1 < 1) ||
	    !(p->beta2 >= 0 && p->beta2 < 1) || !(p->tau > 0) || !state || !state[0] || !state[1])
		return ERR_INVALID;
	moment(p->beta2, state[1], update, n);
	adaptive_move(p, w, update, state[0], state[1], n);
	/* Where v is infinite the weight stands still, and would for ever. */
	return vec_all_finite(w, n) && vec_all_finite(state[1], n) ? ERR_OK : ERR_NUMERIC;
}

static enum err
adagrad_step(const struct server_opt_params *params, float *w, const float *update,
    float *const *state, size_t n)
{
	return adaptive_step(params, adagrad_moment, w, update, state, n);
}

static enum err
yogi_step(const struct server_opt_params *params, float *w, const float *update,
    float *const *state, size_t n)
{
	return adaptive_step(params, yogi_moment, w, update, state, n);
}

static enum err
adam_step(const struct server_opt_params *params, float *w, const float *update,
    float *const *state, size_t n)
{
	return adaptive_step(params, adam_moment, w, update, state, n);
}

static const struct server_opt optimizers[] = {
    {"sgd", sgd_state_vectors, sgd_state_start, sgd_step},
    {"adagrad", adaptive_state_vectors, adaptive_state_start, adagrad_step},
    {"yogi", adaptive_state_vectors, adaptive_state_start, yogi_step},
    {"adam", adaptive_state_vectors, adaptive_state_start, adam_step},
};

const struct server_opt *
server_opt_find(const char *name)
{
	for (size_t i = 0; i < sizeof(optimizers) / sizeof(optimizers[0]); i++)
		if (strcmp(optimizers[i].name, name) == 0)
			return &optimizers[i];
	return NULL;
}
