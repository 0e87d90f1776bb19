#ifndef SERVER_OPT_H
#define SERVER_OPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * How an update moves the weights. Every product and sum is rounded to f32 once, elementwise: results do not depend on ranges
 * or threads.
 *
 * sgd       w <- w + rate * m with m <- momentum * m + update: server SGD, FedAvgM with momentum (Hsu et al. 2019), FedAvg at
 *           rate 1 and momentum 0, which is exactly w + update. nesterov: w <- w + rate * (update + momentum * m), DiLoCo's
 *           outer step (Douillard et al. 2023).
 * adagrad   v <- v + update^2
 * yogi      v <- v - (1 - beta2) * update^2 * sign(v - update^2)
 * adam      v <- beta2 * v + (1 - beta2) * update^2; all three (Reddi et al. 2021) with m <- beta1 * m + (1 - beta1) * update,
 *           w <- w + rate * m / (sqrt(v) + tau), v = tau^2 at first, and no bias correction.
 */
struct server_opt_params {
	float rate; /* >= 0: a schedule may end at 0, which moves the state alone */
	float momentum; /* sgd: 0 <= momentum < 1 */
	bool nesterov; /* sgd */
	float beta1, beta2; /* the others: 0 <= beta < 1 */
	float tau; /* the others: > 0 */
};

#define SERVER_OPT_VECTORS 2

struct server_opt {
	const char *name;
	/* f32 vectors of state per element that must be kept between rounds, at most SERVER_OPT_VECTORS. */
	size_t (*state_vectors)(const struct server_opt_params *params);
	/* What a vector of state holds before the first round. */
	float (*state_start)(const struct server_opt_params *params, size_t vector);
	/* Moves w[0..n) by update[0..n). state: state_vectors() pointers to n floats each. ERR_NUMERIC if a result is not finite
	 * (w and state are then undefined: work on a copy), ERR_INVALID for params out of range. */
	enum err (*step)(const struct server_opt_params *params, float *w, const float *update,
	    float *const *state, size_t n);
};

/* NULL if there is no such optimizer. */
const struct server_opt *server_opt_find(const char *name);

#endif
