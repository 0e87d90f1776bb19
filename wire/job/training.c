#include "training.h"

#include "prng.h"
#include "schedule.h"

uint64_t
training_seed(uint64_t job_seed, uint64_t round, const uint8_t device[32])
{
	struct prng r;

	prng_seed2(&r, job_seed, round);
	for (size_t i = 0; i < 32; i += 8) {
		uint64_t word = 0;
		for (size_t k = 0; k < 8; k++)
			word |= (uint64_t)device[i + k] << (8 * k);
		prng_seed2(&r, prng_u64(&r), word);
	}
	return prng_u64(&r);
}

double
training_rate(const struct local_spec *local, uint64_t round)
{
	return schedule_rate(&local->schedule, local->optimizer.rate, round);
}

uint64_t
training_step(const struct local_spec *local, uint64_t examples)
{
	uint64_t batch = local->batch && local->batch < examples ? local->batch : examples;

	return batch * (local->accumulate > 1 ? local->accumulate : 1);
}

uint32_t
training_piece(const struct local_spec *local)
{
	bool cut =
	    local->micro_batch > 0 && (local->batch == 0 || local->micro_batch < local->batch);

	return cut ? local->micro_batch : local->batch;
}

bool
training_pieces(const struct local_spec *local)
{
	return local->accumulate > 1 || training_piece(local) != local->batch;
}

double
training_samples(const struct local_spec *local, uint64_t examples, uint64_t steps)
{
	return (double)training_step(local, examples) * (double)steps;
}

uint64_t
training_steps(const struct local_spec *local, uint64_t examples)
{
	uint64_t step = training_step(local, examples);
	double amount = local->amount;

	if (local->unit == LOCAL_SECONDS || step == 0)
		return 0;
	/* Who alone is too few for a piece waits for the next epoch. */
	uint64_t least = local->least > 1 ? local->least : 1;
	if (local->unit == LOCAL_EPOCHS)
		amount *= (double)(examples / step + (examples % step >= least));
	return amount >= 0x1p62 ? (uint64_t)1 << 62 : amount >= 1 ? (uint64_t)amount : 1;
}

uint64_t
training_share(const struct local_spec *local, uint64_t examples, uint64_t most)
{
	uint64_t steps = training_steps(local, examples);

	if (most == 0 || examples <= most)
		return examples;
	/* So few steps that they never see more. */
	if (steps > 0 && training_samples(local, examples, steps) <= (double)most)
		return examples;
	return most;
}
