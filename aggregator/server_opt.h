#ifndef SERVER_OPT_H
#define SERVER_OPT_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * How an update moves the weights: w <- w + rate * m with m <- momentum * m + update (server SGD; FedAvgM of
 * Hsu et al. 2019 when momentum > 0; FedAvg of McMahan et al. 2017 at rate 1, momentum 0).
 * Every product and sum is rounded to f32 once, elementwise: results do not depend on ranges or threads.
 * rate 1 with momentum 0 gives exactly w + update.
 */
struct server_opt_params {
	const char *name; /* "sgd" */
	float rate; /* > 0 */
	float momentum; /* 0 <= momentum < 1 */
};

struct server_opt {
	const char *name;
	/* f32 vectors of state per element that must be kept between rounds (0 if momentum is 0). */
	size_t (*state_vectors)(const struct server_opt_params *params);
	/* Moves w[0..n) by update[0..n). state: state_vectors() arrays of n floats, zero before the first round,
	 * NULL if none. ERR_NUMERIC if a result is not finite (w and state are then undefined: work on a copy),
	 * ERR_INVALID for params out of range. */
	enum err (*step)(const struct server_opt_params *params, float *w, const float *update,
	    float *state, size_t n);
};

/* NULL if there is no such optimizer. */
const struct server_opt *server_opt_find(const char *name);

#endif
