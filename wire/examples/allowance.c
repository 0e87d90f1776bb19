#include "allowance.h"

#include <stdlib.h>

#include "shard.h"
#include "training.h"

static uint64_t
at_most(uint64_t examples, uint64_t most)
{
	return most > 0 && examples > most ? most : examples;
}

struct allowance
allowance_of(
    const struct recipe *r, bool evaluates, uint64_t train, uint64_t validation, uint64_t most)
{
	bool measures = evaluates || r->evaluate_by == EVALUATE_DEVICES;

	return (struct allowance){
	    .train = evaluates ? at_most(train, most) : training_share(&r->local, train, most),
	    .validation = measures ? at_most(validation, most) : validation};
}

uint64_t
allowance_examples(const struct data_spec *job, uint64_t examples, uint64_t tokens)
{
	if (job->window == 0 || tokens == 0)
		return examples;
	return tokens > job->window ? (tokens - 1) / job->window : 1;
}

bool
allowance_cuts(const struct recipe *r, bool evaluates, uint64_t examples, uint64_t most)
{
	uint64_t held = shard_held((size_t)examples, r->data.validation);
	struct allowance a = allowance_of(r, evaluates, examples - held, held, most);
	/* Nobody trains in a task that evaluates. */
	bool reads_train = !evaluates || held == 0;

	return a.validation < held || (reads_train && a.train < examples - held);
}

uint64_t
allowance_seed(uint64_t job_seed, uint64_t round, const uint8_t device[32], bool to_train_on)
{
	return training_seed(job_seed, to_train_on ? round : 0, device);
}

struct allowance
allowance_count(const struct allowance_want *want)
{
	uint64_t held = shard_held((size_t)want->examples, want->recipe->data.validation);

	return allowance_of(want->recipe, want->evaluates, want->examples - held, held, want->most);
}

enum err
allowance_draw(
    uint32_t **indices, size_t *count, const struct allowance_want *want, bool to_train_on)
{
	uint32_t *order = NULL;
	size_t held = 0, all = (size_t)want->examples;
	const struct allowance a = allowance_count(want);
	/* Round 0 stands for "in every round": the validation share of a job never changes. */
	enum err e = want->examples > UINT32_MAX
	    ? ERR_LIMIT
	    : shard_hold(&order, &held, all, want->recipe->data.validation,
		  training_seed(want->job_seed, 0, want->device));

	if (!e)
		e = shard_share(indices, count, to_train_on ? all - held : held,
		    to_train_on ? a.train : a.validation,
		    allowance_seed(want->job_seed, want->round, want->device,
			to_train_on && !want->evaluates));
	for (size_t i = 0; !e && i < *count; i++)
		(*indices)[i] = order[(to_train_on ? held : 0) + (*indices)[i]];
	free(order);
	return e;
}
