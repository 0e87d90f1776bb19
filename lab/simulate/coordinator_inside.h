#ifndef COORDINATOR_INSIDE_H
#define COORDINATOR_INSIDE_H
#include "coordinator.h"

/* For the files of coordinator_*.c. */

struct simulate_model_parts {
	uint64_t round; /* that makes it */
	const uint8_t *from; /* the base of that round; NULL: it is the initial one */
	uint8_t *data; /* taken over, also on failure */
	float *state; /* likewise; NULL: none */
};
ERR_MUST_USE enum err simulate_model_new(struct simulate_model **out,
    struct simulate_coordinator *c, const struct simulate_model_parts *parts, struct why *why);
/* Holds it as long as it is the base or a guard may go back to it; drops those that are neither. */
ERR_MUST_USE enum err simulate_model_keep(struct simulate_coordinator *c, struct simulate_model *m);
/* The coordinator's figures of the new model; the devices' of the base, or of that of a buffer's deltas which has its quorum now. */
/* Are new models measured here? */
bool simulate_coordinator_has_test(const struct simulate_coordinator *c);
ERR_MUST_USE enum err simulate_coordinator_evaluate(struct simulate_coordinator *c,
    const struct simulate_model *m, struct simulate_round *out, struct why *why);
ERR_MUST_USE enum err simulate_coordinator_devices(struct simulate_coordinator *c,
    struct simulate_round *out, const struct simulate_reports *in, bool buffered, struct why *why);

#endif
