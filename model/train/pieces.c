#include "pieces.h"

#include <stdlib.h>

#include "batch.h"
#include "clock.h"
#include "dataset.h"
#include "training.h"

static uint32_t
batch_size(const struct local_spec *local, const struct dataset *data)
{
	uint32_t count = (uint32_t)data->count;

	return local->batch > 0 && local->batch < count ? local->batch : count;
}

void
pieces_plan(struct pieces *p, const struct local_spec *local, const struct dataset *data)
{
	uint32_t batch = batch_size(local, data), micro = local->micro_batch;

	p->local = local;
	p->data = data;
	p->size = micro > 0 && micro < batch ? micro : batch;
	p->step_examples = (size_t)training_step(local, data->count);
	size_t parts = (p->step_examples + p->size - 1) / p->size;
	p->parts = parts < UINT32_MAX ? (uint32_t)parts : UINT32_MAX;
	p->groups = local->groups > 1 && p->parts > 1 ? local->groups : 1;
	p->planned = training_steps(local, data->count);
}

/* What examples [first, end) of the order weigh in the mean loss. */
static double
weigh(const struct pieces *p, size_t first, size_t end)
{
	const struct batch *b = p->batch;
	double sum = 0;

	if (!net_weighs(p->net))
		return (double)(end - first);
	for (size_t i = first; i < end; i++) {
		batch_labels(b, p->data, p->order[i], 0);
		for (size_t k = 0; k < b->label_width; k++)
			sum += net_label_weight(p->net, b->labels[k]);
	}
	return sum;
}

enum err
pieces_init(struct pieces *p, uint64_t seed, struct why *why)
{
	uint32_t count = (uint32_t)p->data->count;

	p->order = malloc(count * sizeof(*p->order));
	if (!p->order)
		return err_set(why, ERR_NOMEM, "no memory for a batch");
	for (uint32_t i = 0; i < count; i++)
		p->order[i] = i;
	prng_seed2(&p->shuffle, seed, PIECES_ORDER);
	p->next = count;
	if (p->size < p->local->least)
		return err_set(why, ERR_INVALID,
		    "one example at a time, of which a batch norm sees one value of each channel: "
		    "it has no variance");
	if (!(weigh(p, 0, count) > 0))
		return err_set(why, ERR_INVALID, "no label counts: the loss ignores all of them");
	return ERR_OK;
}

void
pieces_deinit(struct pieces *p)
{
	free(p->order);
	p->order = NULL;
}

/* Some steps of an epoch may have been none. */
static void
end_epoch(struct pieces *p)
{
	if (p->local->unit == LOCAL_EPOCHS && p->steps > 0 &&
	    (double)++p->epochs >= p->local->amount)
		p->done = true;
}

/* The end of a step's examples: without those that are too few for a piece. */
static size_t
step_end(const struct pieces *p)
{
	size_t left = p->data->count - p->first;
	size_t n = left < p->step_examples ? left : p->step_examples, rest = n % p->size;

	return p->first + (rest < p->local->least ? n - rest : n);
}

bool
pieces_step(struct pieces *p)
{
	do {
		if (!p->done && p->next >= p->data->count) {
			end_epoch(p);
			p->next = 0;
			if (!p->done)
				prng_shuffle(&p->shuffle, p->order, p->data->count);
		}
		if (p->done)
			return false;
		p->first = p->next;
		p->turn = 0;
		p->end = step_end(p);
		p->next += p->step_examples;
		p->weight = weigh(p, p->first, p->end);
	} while (!(p->weight > 0));
	return true;
}

uint32_t
pieces_run(const struct pieces *p)
{
	return (p->parts + p->groups - 1) / p->groups;
}

/* The number of the piece whose turn it is; `count` or more: there is none such. */
static uint64_t
number_of(const struct pieces *p)
{
	uint64_t runs = p->replicas, run = pieces_run(p), turns = runs * run;

	if (runs <= 1)
		return p->turn;
	uint64_t within = p->turn % turns;
	return (p->turn / turns * runs + (runs - 1 - within % runs)) * run + within / runs;
}

bool
pieces_next(struct pieces *p, struct piece *out)
{
	uint32_t count = (uint32_t)((p->end - p->first + p->size - 1) / p->size);
	uint64_t round = p->replicas > 1 ? (uint64_t)p->replicas * pieces_run(p) : 1;
	uint64_t turns = (count + round - 1) / round * round;

	while (p->turn < turns && number_of(p) >= count)
		p->turn++;
	if (p->turn >= turns)
		return false;
	uint32_t number = (uint32_t)number_of(p);
	size_t first = p->first + (size_t)number * p->size, left = p->end - first;
	uint32_t n = left < p->size ? (uint32_t)left : p->size;
	bool last_of_run = (number + 1) % pieces_run(p) == 0 || n == left;
	*out = (struct piece){.first = first,
	    .n = n,
	    .share = weigh(p, first, first + n) / p->weight,
	    .number = number,
	    .count = count,
	    .folds = p->groups > 1 && p->replicas <= 1 && last_of_run};
	p->turn++;
	return true;
}

static bool
time_over(const struct pieces *p)
{
	double took = clock_seconds() - p->began;

	return took + 0.5 * took / (double)p->steps >= p->local->seconds;
}

void
pieces_made(struct pieces *p)
{
	p->steps++;
	p->passed += p->end - p->first;
	p->done =
	    (p->planned > 0 && p->steps >= p->planned) || (p->local->seconds > 0 && time_over(p));
}

uint64_t
pieces_examples(const struct pieces *p, bool partial)
{
	uint64_t count = p->data->count;

	if (!partial || p->planned == 0)
		return p->passed < count ? p->passed : count;
	double planned = (double)p->planned, whole = planned * (double)p->step_examples;
	if (whole > (double)count)
		whole = (double)count;
	uint64_t n = (uint64_t)(whole * ((double)p->steps / planned));
	return n < 1 ? 1 : n < count ? n : count;
}
