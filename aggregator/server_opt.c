#include "server_opt.h"

#include <string.h>

#include "cpu.h"
#include "vec.h"

static size_t
sgd_state_vectors(const struct server_opt_params *params)
{
	return params->momentum > 0 ? 1 : 0;
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

static enum err
sgd_step(
    const struct server_opt_params *params, float *w, const float *update, float *state, size_t n)
{
	/* Written so that NaN fails too. */
	if (!(params->rate > 0) || !(params->momentum >= 0 && params->momentum < 1))
		return ERR_INVALID;
	if (params->momentum > 0 && !state)
		return ERR_INVALID;
	if (params->momentum > 0)
		sgd_momentum(params->rate, params->momentum, w, update, state, n);
	else
		sgd_plain(params->rate, w, update, n);
	/* A momentum that is not finite shows in its weight, whatever the rate. */
	return vec_all_finite(w, n) ? ERR_OK : ERR_NUMERIC;
}

static const struct server_opt optimizers[] = {
    {"sgd", sgd_state_vectors, sgd_step},
};

const struct server_opt *
server_opt_find(const char *name)
{
	for (size_t i = 0; i < sizeof(optimizers) / sizeof(optimizers[0]); i++)
		if (strcmp(optimizers[i].name, name) == 0)
			return &optimizers[i];
	return NULL;
}
