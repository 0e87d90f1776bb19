#ifndef REPLAY_H
#define REPLAY_H
#include "play.h"
#include "records.h"

/*
 * A job's rounds repeated from its records: the same devices train the same tasks on the data that the settings give them, and what they
 * make is folded as the coordinator folded it. Every model must come out to the bit.
 */

/* options->line is told of every round; times are zero. ERR_CORRUPT: a model comes out different, `why` says in which round; ERR_NOTFOUND:
 * the fleet lacks a device. *out counts the rounds and is to be deinited in either case. */
ERR_MUST_USE enum err simulate_replay(struct simulate_result *out,
    const struct simulate_options *options, const struct simulate_records *records,
    const char *save, struct why *why);

#endif
