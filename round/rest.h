#ifndef REST_H
#define REST_H
#include <stdint.h>

/*
 * How often one device may be in the buffers of a job whose rule bears hostile ones. Such a rule counts liars among the deltas of a
 * round; where rounds take what comes first, whoever is fast is in every one of them, and a few fast liars are more of each buffer than
 * of the fleet. So a device rests after a delta: of n devices that ask, each has a turn every n / goal buffers if all are alike, and
 * none more than three times as often. A fleet of less than three times the goal needs everybody, and rests nobody.
 */

/* Buffers that a device waits after the one that took its delta. */
uint64_t rest_rounds(uint64_t devices, uint32_t goal);

#endif
