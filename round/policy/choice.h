#ifndef CHOICE_H
#define CHOICE_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * The two choices among devices that follow from ids alone (wire/FORMAT.md, Ids): whoever knows the job and the ids gets the same result.
 */

/* The device's place for a job's `select.percent`: from 0 to below 100, the same in all rounds. */
double choice_percent(const uint8_t job[16], const uint8_t device[32]);
/* The number by which a device is drawn in a round: SHA-256(seed || round || id). A draw of k takes the k least. */
struct choice_ticket {
	uint8_t number[32];
	uint8_t device[32];
};
void choice_ticket(
    struct choice_ticket *out, const uint8_t device[32], uint64_t seed, uint64_t round);
/* Sorts device ids by their ticket numbers. ERR_NOMEM: nothing has moved. */
ERR_MUST_USE enum err choice_draw(
    uint8_t (*devices)[32], size_t count, uint64_t seed, uint64_t round);

#endif
