#ifndef SCHEDULE_STATE_H
#define SCHEDULE_STATE_H
#include "guard.h"
#include "late.h"
#include "scale.h"

/*
 * What a job's rounds have led to, beyond the newest one: where its guard stands, the factor of its rate, the model that the next
 * round starts from. Nothing of it is stored: it follows from the job's document and its rounds in order, so a restart, a backup
 * and `rivulet verify` come to the same. Pure.
 */
struct schedule_state {
	struct guard guard;
	struct scale scale;
	uint64_t base_round; /* that made the base of the next round; 0: the initial model */
	uint8_t base[32], base_state[32]; /* that base, zero before the first round; its state */
	uint64_t metric_round; /* that made the model measured last */
	struct late_bases bases; /* buffered, where a guard goes back by what devices measure */
};

/* A round that has ended. */
struct schedule_round {
	uint64_t round, reports;
	bool failed;
	const uint8_t *base, *model, *state; /* ids of 32 bytes; state: that of model */
	bool evaluated;
	double loss, accuracy; /* of the model, or of the base if devices evaluate */
	double own; /* of the base by the monitor's own metric; NaN: not known */
	/* Devices have measured the base of this round; 0: of the one that has ended. */
	uint64_t measured;
	const uint8_t *measured_base; /* unless that is 0 */
};

/* How it goes on after a round. */
struct schedule_turn {
	enum guard_verdict verdict;
	bool back; /* the next base is not the round's model */
	uint64_t round; /* that made the base of the next round */
	uint8_t base[32], state[32]; /* the next round's base, and the state that goes with it */
	double factor; /* of the rate in this round */
	char reason[128]; /* "" unless the guard acted */
};

/* Does the job need one? Without it each round starts from the model before, at the rate of the schedule. */
bool schedule_state_matters(const struct job_spec *spec);
struct schedule_state schedule_state_start(void);
/* Models of which this is not known: may they be gone back to, now or once they are measured? */
bool schedule_state_holds_model(const struct schedule_state *c, const uint8_t model[32]);
bool schedule_state_holds(const struct schedule_state *c, const uint8_t state[32]);
/* The states that are held, one by one; NULL behind the last. Some are zero: none. */
uint8_t *schedule_state_held(struct schedule_state *c, uint32_t i);
void schedule_state_step(struct schedule_state *c, const struct job_spec *spec,
    const struct schedule_round *r, struct schedule_turn *out);

#endif
