#include "room.h"

#include "allowance.h"
#include "device.h"
#include "footprint.h"
#include "json.h"
#include "planned.h"
#include "shard.h"
#include "trainer.h"

enum abort_reason
room_find(struct rivulet *r, struct data_sets_item *item, struct work *w, unsigned *threads,
    struct why *why)
{
	const struct recipe *recipe = &w->task.recipe;
	const struct settings *settings = device_settings(r);
	const struct dataset *all;
	struct footprint f;

	*threads = 0;
	/* A program needs no weights in the agent's memory. */
	w->streams = trainer_external_fits(settings, recipe);
	if (!trainer_is_builtin(settings, recipe))
		return ABORT_NONE;
	enum err e = data_sets_whole(item, &recipe->data, &all);
	struct dataset train = {.count = 0};
	if (!e)
		train = *all;
	uint64_t held = shard_held(train.count, recipe->data.validation);
	bool evaluates = w->task.kind == TASK_EVALUATE;
	const struct allowance a = allowance_of(recipe, evaluates,
	    evaluates ? train.count : train.count - held, held, w->task.max_examples);
	train.count = (size_t)a.train;
	held = a.validation;
	/* What is wrong with the network is said by what trains. */
	if (e || train.count == 0)
		return ABORT_NONE;
	if (!planned_suits(recipe, all, why))
		return ABORT_DATA_MISMATCH;
	const struct footprint_want want = {.recipe = recipe,
	    .kind = w->task.kind,
	    .model_bytes = w->task.model_bytes,
	    .threads = settings->threads,
	    .train = &train,
	    .validation = held,
	    .examples_bytes = footprint_examples(&item->all, recipe),
	    .most = device_memory(r)};
	e = footprint_of(&f, &want, why);
	if (e && e != ERR_LIMIT)
		return ABORT_NONE;
	uint64_t peak = e ? JSON_INT_MAX : f.peak;
	if (want.most == 0 || peak <= want.most) {
		*threads = f.threads;
		return ABORT_NONE;
	}
	w->needed_bytes = peak < JSON_INT_MAX ? peak : JSON_INT_MAX;
	w->memory_bytes = want.most < JSON_INT_MAX ? want.most : JSON_INT_MAX;
	err_set(why, ERR_LIMIT, "a task takes %llu bytes of memory, and %llu are allowed here",
	    (unsigned long long)peak, (unsigned long long)want.most);
	return ABORT_OUT_OF_MEMORY;
}
