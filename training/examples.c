#include "examples.h"

#include <stdlib.h>
#include <string.h>

#include "allowance.h"
#include "messages.h"
#include "shard.h"

enum err
examples_cut(struct dataset *set, uint32_t window, struct why *why)
{
	struct dataset cut;

	if (window == 0 || set->features == window)
		return ERR_OK;
	enum err e = dataset_cut(&cut, set, window, why);
	if (e)
		return e;
	dataset_deinit(set);
	*set = cut;
	return ERR_OK;
}

enum err
examples_split(struct dataset *train, struct dataset *validation, const struct dataset *from,
    double share, uint64_t seed)
{
	uint32_t *order = NULL;
	size_t n = from->count, held = 0;

	memset(train, 0, sizeof(*train));
	memset(validation, 0, sizeof(*validation));
	enum err e = shard_hold(&order, &held, n, share, seed);
	if (!e && held)
		e = dataset_subset(validation, from, order, held);
	if (!e)
		e = dataset_subset(train, from, order + held, n - held);
	if (e)
		dataset_deinit(validation);
	free(order);
	return e;
}

/* Of one that only a trainer reads nothing is known but the count. */
static enum err
draw(struct dataset *out, const struct dataset *from, uint64_t most, uint64_t seed)
{
	uint32_t *keep = NULL;
	size_t kept = 0;
	enum err e = shard_share(&keep, &kept, from->count, most, seed);

	if (!e && from->dims == 0)
		*out = (struct dataset){.count = kept};
	else if (!e)
		e = dataset_subset(out, from, keep, kept);
	free(keep);
	return e;
}

enum err
examples_task_init(struct examples_task *out, const struct task *task, const uint8_t device[32],
    const struct dataset *train, const struct dataset *validation)
{
	bool evaluates = task->kind == TASK_EVALUATE;
	const struct allowance a = allowance_of(
	    &task->recipe, evaluates, train->count, validation->count, task->max_examples);
	enum err e = ERR_OK;

	*out = (struct examples_task){
	    .train = train, .validation = validation, .all = train->count + validation->count};
	if (a.train < train->count) {
		e = draw(&out->own_train, train, a.train,
		    allowance_seed(task->seed, task->round, device, !evaluates));
		out->train = &out->own_train;
		out->drawn = true;
	}
	if (!e && a.validation < validation->count) {
		e = draw(&out->own_validation, validation, a.validation,
		    allowance_seed(task->seed, task->round, device, false));
		out->validation = &out->own_validation;
		out->drawn = true;
	}
	return e;
}

void
examples_task_deinit(struct examples_task *h)
{
	dataset_deinit(&h->own_train);
	dataset_deinit(&h->own_validation);
	*h = (struct examples_task){.drawn = false};
}
