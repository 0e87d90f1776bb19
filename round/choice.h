#ifndef CHOICE_H
#define CHOICE_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * The two choices among devices that follow from ids alone (wire/FORMAT.md, Ids): who knows the job and the ids comes to the same.
 */

/* Where a job's `select.percent` finds the device: from 0 to below 100, the same in all rounds. */
double choice_percent(const uint8_t job[16], const uint8_t device[32]);
/* Sorts ids by SHA-256(seed || round || id): the first k are those that a draw of k takes. ERR_NOMEM: nothing has moved. */
ERR_MUST_USE enum err choice_draw(
    uint8_t (*devices)[32], size_t count, uint64_t seed, uint64_t round);

#endif
