#ifndef ATTACK_H
#define ATTACK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* What hostile devices of a simulated fleet do. Pure. */

enum fleet_attack {
	FLEET_HONEST,
	FLEET_SIGN, /* sends -strength x its own delta */
	FLEET_SCALE, /* sends strength x its own delta */
	FLEET_GAUSS, /* sends noise, each coordinate with standard deviation `strength` */
	/* Mean - z x deviation of the honest deltas, z from the numbers of devices (Baruch et al. 2019) or `strength`. */
	FLEET_ALIE,
	FLEET_IPM, /* -strength x mean of the honest deltas (Xie et al. 2020) */
	FLEET_MIMIC, /* the delta of one honest device (Karimireddy et al. 2022) */
	FLEET_LABELS, /* trains on the labels in reverse order */
	/* Half of its examples have a trigger and label 0; the delta times `strength` (Bagdasaryan et al. 2020). */
	FLEET_BACKDOOR,
	FLEET_LIES, /* sends NaN, infinity, too few bytes, or claims 2^31 examples */
	FLEET_ATTACKS
};

/* Ended by NULL, in the order of the enum. */
extern const char *const fleet_attack_names[];
double fleet_attack_strength(enum fleet_attack attack); /* the default */
/* Does the attack need the deltas of the honest devices of its round? */
bool fleet_attack_agreed(enum fleet_attack attack);

/* One delta of a round, before it is encoded. */
struct fleet_attack_delta {
	float *values;
	uint64_t examples;
	enum fleet_attack attack; /* of the delta's device */
	double strength;
	unsigned number; /* of the device, from 0 */
	bool done; /* a hostile device's delta that was changed already */
};

/* Changes the deltas of the hostile devices of a round, `elements` values each. All deltas of the honest devices are there, and the
 * attackers know all of them. ERR_NOMEM. */
ERR_MUST_USE enum err fleet_attack_round(
    struct fleet_attack_delta *deltas, size_t count, uint64_t elements, uint64_t round);
/* Damages the payload of a device with FLEET_LIES; others stay. */
void fleet_attack_payload(
    enum fleet_attack attack, unsigned number, uint8_t *payload, uint64_t *len);
/* The z of ALIE for n devices, f of them hostile. */
double fleet_attack_z(size_t n, size_t f);

#endif
