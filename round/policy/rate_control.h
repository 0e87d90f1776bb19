#ifndef RATE_CONTROL_H
#define RATE_CONTROL_H
#include "guard.h"
#include "late.h"
#include "scale.h"

/*
 * The state that a job's ended rounds have led to: its guard, the factor of its rate, the model that the next round starts from. The state
 * is not stored: it follows from the job's document and its rounds in order, so a restart, a backup and `rivulet verify` get the same one.
 * Pure.
 */
struct rate_control {
	struct guard guard;
	struct scale scale;
	uint64_t base_round; /* the round that made the next round's base; 0: the initial model */
	/* The next round's base, zero before the first round, and its state. */
	uint8_t base[32], base_state[32];
	uint64_t metric_round; /* the round that made the model measured last */
	struct late_bases bases; /* of a buffered job with a guard whose models devices measure */
};

/* A round that has ended. */
struct schedule_round {
	uint64_t round, reports;
	bool failed;
	const uint8_t *base, *model, *state; /* ids of 32 bytes; state: the state of `model` */
	bool evaluated;
	double loss, accuracy; /* of the model, or of the base if devices evaluate */
	double own; /* the monitor's own metric, of the base; NaN: not known */
	/* The round whose base devices have measured; 0: the round that has ended. */
	uint64_t measured;
	const uint8_t *measured_base; /* that round's base; not used if `measured` is 0 */
};

/* How it goes on after a round. */
struct rate_control_turn {
	enum guard_verdict verdict;
	bool back; /* the next base is not the round's model */
	uint64_t round; /* the round that made the next round's base */
	uint8_t base[32], state[32]; /* the next round's base, and the state that goes with it */
	double factor; /* by which the server's rate of this round is multiplied */
	char reason[128]; /* "" unless the guard acted */
};

/* Does the job need a struct rate_control? Without one each round starts from the model before, at the rate of the schedule. */
bool rate_control_matters(const struct job_spec *spec);
struct rate_control rate_control_start(void);
/* Must the model, or the state, be kept because the guard may go back to it, now or once it is measured? */
bool rate_control_holds_model(const struct rate_control *c, const uint8_t model[32]);
bool rate_control_holds(const struct rate_control *c, const uint8_t state[32]);
/* The id number i of the states that must be kept; NULL after the last. A zero id: none. */
uint8_t *rate_control_held(struct rate_control *c, uint32_t i);
void rate_control_step(struct rate_control *c, const struct job_spec *spec,
    const struct schedule_round *r, struct rate_control_turn *out);

#endif
