#ifndef REPLAY_H
#define REPLAY_H
#include "play.h"
#include "records.h"

/*
 * A job's rounds repeated from its records: the same devices train the same tasks on the data that the settings give them, and their deltas
 * are folded as the coordinator folded them. Every model must come out to the bit.
 */

/* Calls options->line for every round, with times of zero. ERR_CORRUPT: a model differs from the recorded one, `why` says in which round;
 * ERR_NOTFOUND: the fleet lacks a device. *out counts the rounds; the caller calls simulate_result_deinit in either case. */
ERR_MUST_USE enum err simulate_replay(struct simulate_result *out,
    const struct simulate_options *options, const struct simulate_records *records,
    const char *save, struct why *why);

#endif
