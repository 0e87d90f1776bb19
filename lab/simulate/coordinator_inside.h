#ifndef COORDINATOR_INSIDE_H
#define COORDINATOR_INSIDE_H
#include "coordinator.h"

/* For the files of coordinator_*.c. */

struct simulate_model_parts {
	uint64_t round; /* the round that makes the model */
	const uint8_t *from; /* the base of that round; NULL: this is the initial model */
	uint8_t *data; /* taken over, also on failure */
	float *state; /* taken over, also on failure; NULL: none */
};
ERR_MUST_USE enum err simulate_model_new(struct simulate_model **out,
    struct simulate_coordinator *c, const struct simulate_model_parts *parts, struct why *why);
/* Adds m to c->kept, which holds a model as long as it is the base or the guard may go back to it; drops models that are neither. */
ERR_MUST_USE enum err simulate_model_keep(struct simulate_coordinator *c, struct simulate_model *m);
/* Measuring: the coordinator's figures of the new model; the devices' figures of the base, or, of a buffered job, of the base that a quorum
 * of devices has measured now. */
/* Does the simulated coordinator measure new models? */
bool simulate_coordinator_has_test(const struct simulate_coordinator *c);
ERR_MUST_USE enum err simulate_coordinator_evaluate(struct simulate_coordinator *c,
    const struct simulate_model *m, struct simulate_round *out, struct why *why);
ERR_MUST_USE enum err simulate_coordinator_devices(struct simulate_coordinator *c,
    struct simulate_round *out, const struct simulate_reports *in, bool buffered, struct why *why);

#endif
