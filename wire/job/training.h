#ifndef TRAINING_H
#define TRAINING_H
#include "recipe.h"

/* What everybody who does or repeats a device's work of a round must draw and compute alike. Pure functions. */

/* Seed of one device's work in one round: mixes job seed, round and the device id's bytes. */
uint64_t training_seed(uint64_t job_seed, uint64_t round, const uint8_t device[32]);
/* Learning rate of a round (from 1), after warm-up and schedule. */
double training_rate(const struct local_spec *local, uint64_t round);
/* Examples of a step of a device that trains on so many. */
uint64_t training_step(const struct local_spec *local, uint64_t examples);
/* Optimizer steps that the job plans for a device that trains on so many examples, at least 1; 0 if only the clock decides. */
uint64_t training_steps(const struct local_spec *local, uint64_t examples);
/* How many of its `examples` a device may train on where it may claim `most` (0: any number): all, unless the training would see more than
 * `most` different ones. allowance.h draws which. */
uint64_t training_share(const struct local_spec *local, uint64_t examples, uint64_t most);
/* Does a step consist of several pieces (batches, or parts of a batch) whose gradients are added up? */
bool training_pieces(const struct local_spec *local);
/* Examples of a whole piece, which is computed at once; 0: all examples that a device has. */
uint32_t training_piece(const struct local_spec *local);
/* How many examples so many steps take in on a device with so many examples; an example taken twice counts twice. */
double training_samples(const struct local_spec *local, uint64_t examples, uint64_t steps);

#endif
