#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "clock.h"
#include "counts.h"
#include "dataset.h"
#include "draw.h"
#include "prng.h"
#include "scoring.h"
#include "tensor.h"
#include "training.h"

/* Streams of a device's seed. */
enum { STREAM_ORDER, STREAM_DROPOUT };

static double
seconds_now(void)
{
	return clock_seconds();
}

/* A text, whose tokens are the input and, one later, the labels. */
static enum err
check_text(const struct net *net, const struct dataset *data, struct why *why)
{
	size_t vocabulary = net_vocabulary(net), labels = net_labels(net);

	if (vocabulary == 0 || (labels != 1 && labels != data->features))
		return err_set(why, ERR_INVALID,
		    "the data set is a text: it needs an embedding, and outputs for each step or "
		    "for "
		    "the last");
	size_t end = data->rows && data->rows->token_end ? data->rows->token_end : data->classes;
	if (end > vocabulary || end > net_outputs(net))
		return err_set(why, ERR_INVALID,
		    "the text has token %zu, the network takes %zu of them and gives %zu", end - 1,
		    vocabulary, net_outputs(net));
	return ERR_OK;
}

enum err
train_check(const struct net *net, const struct dataset *data, struct why *why)
{
	if (data->count == 0)
		return err_set(why, ERR_INVALID, "the data set is empty");
	if (data->count > UINT32_MAX)
		return err_set(why, ERR_LIMIT, "the data set is too large");
	if (data->features != net_inputs(net))
		return err_set(why, ERR_INVALID,
		    "examples have %zu values and the network takes %zu", data->features,
		    net_inputs(net));
	if (dataset_form(data) == DATASET_TOKENS)
		return check_text(net, data, why);
	if (net_labels(net) > 1 || (net_labels(net) == 1 && !data->labels) ||
	    (net_targets(net) > 0 && (!data->targets || data->target_width != net_targets(net))))
		return err_set(why, ERR_INVALID,
		    "the data set has no labels, or no targets of the network's width");
	for (size_t i = 0; net_labels(net) > 0 && i < data->count; i++)
		if (net_label_counts(net, data->labels[i]) &&
		    (data->labels[i] < 0 || (size_t)data->labels[i] >= net_outputs(net)))
			return err_set(why, ERR_INVALID,
			    "label %d does not fit the network's %zu outputs", data->labels[i],
			    net_outputs(net));
	return ERR_OK;
}

/* One local training under way. */
struct run {
	struct net *net;
	const struct dataset *data;
	const struct train_config *config;
	struct train_result *result;
	struct batch batch;
	size_t step_examples; /* of all batches of a step */
	uint32_t *order;
	struct prng shuffle, dropout;
	struct draw draw;
	struct net_update update;
	double weight, velocity; /* what normaliser is made of, see weigh_step */
	uint64_t planned; /* steps; 0 if only the clock decides */
	double began;
	uint64_t passed; /* examples that all steps took, the same one counted again */
	uint64_t epochs; /* done */
	double whole; /* net_batch.whole of the step's pieces */
	bool done;
};

static enum err
pass(struct run *r, size_t first, uint32_t n, double share)
{
	struct net_batch batch = batch_of(&r->batch, n, &r->draw);
	struct net_result got;

	batch.whole = r->whole;
	batch_fill(&r->batch, r->data, r->config->data, &r->draw, r->order, first, n);
	float part = r->whole > 0 ? 1 : (float)share;
	enum err e = r->update.parts > 1 ? net_add(r->net, &batch, part, &got)
					 : net_step(r->net, &batch, &r->update, &got);
	if (e)
		return e;
	r->result->loss += got.loss;
	r->result->loss_count += got.weight;
	r->result->right += got.right;
	r->result->labels += got.labels;
	return ERR_OK;
}

/* The weight of each step's gradient in the result is that of a run in which all gradients are 1 (FedNova, Wang et al. 2020):
 * their sum is how far that run gets, counted in rates. */
static void
weigh_step(struct run *r)
{
	const struct net_update *u = &r->update;
	double pull = (double)u->rate * (double)u->prox;
	double g = 1 - pull * r->weight;

	r->velocity = (double)u->momentum * r->velocity + g;
	r->weight += u->nesterov ? g + (double)u->momentum * r->velocity : r->velocity;
}

/* At the pace so far, would another step end further behind the end of the time than now is before it? Devices of any
 * speed then end within half a step of it. */
static bool
time_over(const struct run *r)
{
	double seconds = r->config->local->seconds, took = seconds_now() - r->began;

	return took + 0.5 * took / (double)r->result->steps >= seconds;
}

/* Also decides whether that was the last step. */
static void
count_step(struct run *r, size_t examples)
{
	struct train_result *t = r->result;

	weigh_step(r);
	t->steps++;
	r->passed += examples;
	r->done = (r->planned > 0 && t->steps >= r->planned) ||
	    (r->config->local->seconds > 0 && time_over(r));
	if (!r->done && r->config->stop &&
	    r->config->stop(r->config->context, t->steps, r->planned)) {
		t->partial = true;
		r->done = true;
	}
}

/* What examples [first, end) of the order weigh in the mean loss. */
static double
weigh(struct run *r, size_t first, size_t end)
{
	const struct batch *b = &r->batch;
	double sum = 0;

	if (!net_weighs(r->net))
		return (double)(end - first);
	for (size_t i = first; i < end; i++) {
		batch_labels(b, r->data, r->order[i], 0);
		for (size_t k = 0; k < b->label_width; k++)
			sum += net_label_weight(r->net, b->labels[k]);
	}
	return sum;
}

/* The end of a step's examples: without those that are too few for a piece, which wait for the next epoch. */
static size_t
step_end(const struct run *r, size_t first)
{
	size_t left = r->data->count - first;
	size_t n = left < r->step_examples ? left : r->step_examples, rest = n % r->batch.size;

	return first + (rest < r->config->local->least ? n - rest : n);
}

/* A step takes `parts` batches, fewer at the end of an epoch. There is none where nothing counts. */
static enum err
step(struct run *r, size_t first)
{
	size_t end = step_end(r, first);
	double all = weigh(r, first, end);

	if (!(all > 0))
		return ERR_OK;
	r->whole = r->update.parts > 1 && net_weighs(r->net) ? all : 0;
	/* Batches of a run, whose gradients are one term of the sum. */
	uint32_t groups = r->update.groups, run = (r->update.parts + groups - 1) / groups;

	r->draw.step = r->result->steps;
	r->draw.micro_batch = 0;
	for (size_t at = first; at < end; at += r->batch.size, r->draw.micro_batch++) {
		uint32_t n = end - at < r->batch.size ? (uint32_t)(end - at) : r->batch.size;
		enum err e = pass(r, at, n, weigh(r, at, at + n) / all);
		if (e)
			return e;
		if (groups > 1 && ((r->draw.micro_batch + 1) % run == 0 || at + n == end))
			net_fold(r->net);
	}
	if (r->update.parts > 1)
		net_move(r->net, &r->update);
	count_step(r, end - first);
	return ERR_OK;
}

static enum err
epoch(struct run *r)
{
	enum err e = ERR_OK;

	prng_shuffle(&r->shuffle, r->order, r->data->count);
	for (size_t i = 0; !e && !r->done && i < r->data->count; i += r->step_examples)
		e = step(r, i);
	/* Some of its steps may have been none. */
	if (r->config->local->unit == LOCAL_EPOCHS && r->result->steps > 0 &&
	    (double)++r->epochs >= r->config->local->amount)
		r->done = true;
	return e;
}

static bool
all_finite(const float *x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

/* Different examples that the work took. Of work that was broken off, the same share of those that all of it would have taken
 * as steps were done: three of ten epochs count as three tenths of the examples. */
static uint64_t
counted(const struct run *r)
{
	const struct train_result *t = r->result;
	uint64_t count = r->data->count;

	if (!t->partial || r->planned == 0)
		return r->passed < count ? r->passed : count;
	double planned = (double)r->planned, whole = planned * (double)r->step_examples;
	if (whole > (double)count)
		whole = (double)count;
	uint64_t n = (uint64_t)(whole * ((double)t->steps / planned));
	return n < 1 ? 1 : n < count ? n : count;
}

static enum err
finish(struct run *r, struct why *why)
{
	struct train_result *t = r->result;

	if (!all_finite(net_params(r->net), net_tensors(r->net)->elements))
		return err_set(why, ERR_NUMERIC, "a weight is not finite after %llu steps",
		    (unsigned long long)t->steps);
	t->examples = counted(r);
	t->loss = t->loss_count > 0 ? t->loss / t->loss_count : 0;
	t->accuracy = t->labels > 0 ? (double)t->right / (double)t->labels : (double)NAN;
	t->normaliser =
	    r->config->local->optimizer.type == OPTIMIZER_SGD ? r->weight : (double)t->steps;
	return ERR_OK;
}

static uint32_t
batch_size(const struct local_spec *local, const struct dataset *data)
{
	uint32_t count = (uint32_t)data->count;

	return local->batch > 0 && local->batch < count ? local->batch : count;
}

/* What one pass takes. */
static uint32_t
pass_size(const struct local_spec *local, const struct dataset *data)
{
	uint32_t batch = batch_size(local, data);

	return local->micro_batch > 0 && local->micro_batch < batch ? local->micro_batch : batch;
}

/* Examples of a step. */
static size_t
step_size(const struct local_spec *local, const struct dataset *data)
{
	return (size_t)batch_size(local, data) * (local->accumulate > 1 ? local->accumulate : 1);
}

static uint32_t
parts_of(const struct local_spec *local, const struct dataset *data)
{
	size_t size = pass_size(local, data), parts = (step_size(local, data) + size - 1) / size;

	return parts < UINT32_MAX ? (uint32_t)parts : UINT32_MAX;
}

static void
set_update(struct run *r)
{
	const struct local_spec *local = r->config->local;
	const struct optimizer_spec *o = &local->optimizer;

	r->update = (struct net_update){.type = o->type,
	    .rate = (float)training_rate(local, r->config->round),
	    .momentum = (float)o->momentum,
	    .weight_decay = (float)o->weight_decay,
	    .nesterov = o->nesterov,
	    .prox = (float)local->prox,
	    .clip = local->clip_norm,
	    .beta1 = o->beta1,
	    .beta2 = o->beta2,
	    .epsilon = o->epsilon,
	    .shift = r->config->shift,
	    .parts = parts_of(local, r->data),
	    .groups = 1};
	if (local->groups > 1 && r->update.parts > 1)
		r->update.groups = local->groups;
}

static uint64_t
batch_bytes(const struct net *net, const struct dataset *data, uint64_t examples)
{
	uint64_t targets =
	    data->targets ? data->target_width * sizeof(float) : net_labels(net) * sizeof(int32_t);

	return examples * (data->features * sizeof(float) + targets);
}

uint64_t
train_evaluate_bytes(const struct net *net, const struct dataset *data, uint64_t examples)
{
	uint64_t most = net_max_batch(net);

	return batch_bytes(net, data, examples < most ? examples : most);
}

enum err
train_bytes(struct net *net, const struct train_config *config, const struct dataset *data,
    uint64_t *bytes, struct why *why)
{
	struct run r = {.net = net, .data = data, .config = config};
	uint64_t size = pass_size(config->local, data);
	bool augments = config->data && recipe_augments(config->data);

	set_update(&r);
	enum err e = net_prepare(net, &r.update, why);
	*bytes = net_bytes(net) + data->count * sizeof(*r.order) + batch_bytes(net, data, size) +
	    (augments ? data->features * sizeof(float) : 0);
	return e;
}

/* Is there something to make a step of? */
static enum err
check_work(struct run *r, struct why *why)
{
	if (r->batch.size < r->config->local->least)
		return err_set(why, ERR_INVALID,
		    "one example at a time, of which a batch norm sees one value of each channel: "
		    "it has no variance");
	if (!(weigh(r, 0, r->data->count) > 0))
		return err_set(why, ERR_INVALID, "no label counts: the loss ignores all of them");
	return ERR_OK;
}

static enum err
start(struct run *r, struct why *why)
{
	const struct local_spec *local = r->config->local;
	uint32_t count = (uint32_t)r->data->count, size = pass_size(local, r->data);

	if (size > net_max_batch(r->net))
		return err_set(why, ERR_LIMIT, "batches of %u examples for a network built for %u",
		    size, net_max_batch(r->net));
	r->order = malloc(count * sizeof(*r->order));
	if (!r->order || batch_init(&r->batch, r->net, r->data, size))
		return err_set(why, ERR_NOMEM, "no memory for a batch");
	if (r->config->data && recipe_augments(r->config->data) &&
	    !(r->batch.scratch = malloc(r->data->features * sizeof(float))))
		return err_set(why, ERR_NOMEM, "no memory for an example");
	for (uint32_t i = 0; i < count; i++)
		r->order[i] = i;
	prng_seed2(&r->shuffle, r->config->seed, STREAM_ORDER);
	prng_seed2(&r->dropout, r->config->seed, STREAM_DROPOUT);
	r->draw = (struct draw){
	    .stream = local->random == RANDOM_STREAM ? &r->dropout : NULL, .seed = r->config->seed};
	r->step_examples = step_size(local, r->data);
	set_update(r);
	enum err e = check_work(r, why);
	if (!e)
		e = net_prepare(r->net, &r->update, why);
	r->began = seconds_now();
	r->planned = training_steps(local, r->data->count);
	return e;
}

static void
say_failed(const struct run *r, enum err e, struct why *why)
{
	unsigned long long step = r->result->steps + 1;
	size_t vocabulary = net_vocabulary(r->net);

	if (e == ERR_INVALID && vocabulary > 0)
		err_set(
		    why, e, "step %llu: a value is no whole number below %zu", step, vocabulary);
	else
		err_set(why, e,
		    e == ERR_NUMERIC ? "the loss is not finite at step %llu" : "step %llu failed",
		    step);
}

enum err
train_run(struct net *net, const struct dataset *data, const struct train_config *config,
    struct train_result *result, struct why *why)
{
	struct run r = {.net = net, .data = data, .config = config, .result = result};
	enum err e = train_check(net, data, why);

	*result = (struct train_result){0};
	if (!e)
		e = start(&r, why);
	while (!e && !r.done) {
		e = epoch(&r);
		if (e)
			say_failed(&r, e, why);
	}
	if (!e)
		e = finish(&r, why);
	batch_deinit(&r.batch);
	free(r.order);
	return e;
}

static void
count_batch(struct counts *to, const struct net *net, const struct net_batch *b)
{
	size_t width = net_outputs(net);

	for (size_t i = 0; to && b->labels && i < b->n * net_labels(net); i++)
		if (net_label_counts(net, b->labels[i]))
			scoring_classes(to, net_output(net) + i * width, b->labels + i, 1, width);
	/* Without labels and targets the input is what is to come out. */
	const float *targets = b->targets || b->labels ? b->targets : b->x;
	if (to && targets)
		scoring_values(to, net_output(net), targets, b->n, net_outputs(net));
}

static enum err
score_batches(struct net *net, const struct dataset *data, const struct train_config *config,
    struct batch *b, struct train_score *score)
{
	uint64_t right = 0, labels = 0, batches = (data->count + b->size - 1) / b->size;

	for (size_t i = 0; i < data->count; i += b->size) {
		size_t left = data->count - i;
		uint32_t n = left < b->size ? (uint32_t)left : b->size;
		struct net_result got;
		if (config->stop && config->stop(config->context, i / b->size, batches))
			return ERR_CLOSED;
		batch_fill(b, data, config->data, NULL, NULL, i, n);
		const struct net_batch batch = batch_of(b, n, NULL);
		enum err e = net_eval(net, &batch, &got);
		if (e)
			return e;
		count_batch(config->counts, net, &batch);
		score->loss += got.loss;
		score->weight += got.weight;
		right += got.right;
		labels += got.labels;
	}
	score->examples = data->count;
	score->labels = labels;
	score->right = right;
	score->loss = score->weight > 0 ? score->loss / score->weight : (double)NAN;
	score->accuracy = labels > 0 ? (double)right / (double)labels : (double)NAN;
	return ERR_OK;
}

/* What a text says next need not have names: then no figure asks for classes. */
static size_t
scored_classes(const struct net *net, const struct train_config *config)
{
	bool unnamed = net_vocabulary(net) > 0 && config->counts->class_count == 0;

	return net_labels(net) > 0 && !unnamed ? net_outputs(net) : 0;
}

enum err
train_evaluate(struct net *net, const struct dataset *data, const struct data_spec *spec,
    struct train_score *score, struct why *why)
{
	const struct train_config config = {.data = spec};

	return train_evaluate_while(net, data, &config, score, why);
}

enum err
train_evaluate_while(struct net *net, const struct dataset *data, const struct train_config *config,
    struct train_score *score, struct why *why)
{
	struct batch b;
	enum err e = train_check(net, data, why);

	*score = (struct train_score){0};
	if (!e && config->counts && config->counts->class_count != scored_classes(net, config))
		e = err_set(why, ERR_INVALID, "figures of %zu classes, and the network has %zu",
		    config->counts->class_count, scored_classes(net, config));
	if (e)
		return e;
	uint32_t size = net_max_batch(net);
	e = batch_init(&b, net, data, data->count < size ? (uint32_t)data->count : size);
	if (!e)
		e = score_batches(net, data, config, &b, score);
	if (e)
		err_set(why, e, "%s",
		    e == ERR_NUMERIC	  ? "the loss is not finite"
			: e == ERR_NOMEM  ? "no memory for a batch"
			: e == ERR_CLOSED ? "broken off"
					  : "the evaluation failed");
	batch_deinit(&b);
	return e;
}
