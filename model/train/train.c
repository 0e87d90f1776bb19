#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "clock.h"
#include "counts.h"
#include "dataset.h"
#include "draw.h"
#include "pieces.h"
#include "tensor.h"
#include "training.h"

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

#define TILE 4096 /* parameters looked at at a time */

/* One local training under way. */
struct run {
	struct stepper stepper;
	const struct dataset *data;
	const struct train_config *config;
	struct batch batch;
	struct pieces pieces;
	struct prng dropout;
	struct draw draw;
	struct net_update update;
	struct net_result sums; /* of all steps */
	double weight, velocity; /* what normaliser is made of, see weigh_step */
	bool partial;
};

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

static enum err
work_piece(struct run *r, const struct piece *p)
{
	const struct stepper *s = &r->stepper;
	bool weighs = r->update.parts > 1 && net_weighs(s->net);

	r->draw.step = r->pieces.steps;
	r->draw.micro_batch = p->number;
	struct stepper_piece piece = {.batch = batch_of(&r->batch, p->n, &r->draw),
	    .step = r->pieces.steps,
	    .number = p->number,
	    .share = weighs ? 1 : (float)p->share,
	    .count = p->count};
	piece.batch.whole = weighs ? r->pieces.weight : 0;
	batch_fill(&r->batch, r->data, r->config->data, &r->draw, r->pieces.order, p->first, p->n);
	enum err e = s->calls->batch(s->self, &r->update, &piece, &r->sums);
	return !e && p->folds ? s->calls->fold(s->self) : e;
}

static enum err
step(struct run *r)
{
	struct piece piece;
	enum err e = ERR_OK;

	while (!e && pieces_next(&r->pieces, &piece))
		e = work_piece(r, &piece);
	return e ? e : r->stepper.calls->step(r->stepper.self, &r->update);
}

static void
count_step(struct run *r)
{
	const struct train_config *c = r->config;

	weigh_step(r);
	pieces_made(&r->pieces);
	if (!r->pieces.done && c->stop && c->stop(c->context, r->pieces.steps, r->pieces.planned))
		r->partial = r->pieces.done = true;
}

/* Are all parameters finite? ERR_NUMERIC if not. */
static enum err
check_finite(const struct stepper *s)
{
	uint64_t all = net_tensors(s->net)->elements;
	float tile[TILE];
	enum err e = ERR_OK;

	for (uint64_t at = 0; !e && at < all; at += TILE) {
		size_t n = all - at < TILE ? (size_t)(all - at) : TILE;
		e = s->calls->parameters(s->self, at, n, tile, false);
		for (size_t i = 0; !e && i < n; i++)
			e = isfinite(tile[i]) ? ERR_OK : ERR_NUMERIC;
	}
	return e;
}

static enum err
finish(struct run *r, struct train_result *t, struct why *why)
{
	const struct net_result *sums = &r->sums;
	enum err e = check_finite(&r->stepper);

	if (e)
		return err_set(why, e,
		    e == ERR_NUMERIC ? "a weight is not finite after %llu steps"
				     : "the weights cannot be read after %llu steps",
		    (unsigned long long)r->pieces.steps);
	*t = (struct train_result){.examples = pieces_examples(&r->pieces, r->partial),
	    .steps = r->pieces.steps,
	    .loss = sums->weight > 0 ? sums->loss / sums->weight : 0,
	    .loss_count = sums->weight,
	    .accuracy = sums->labels > 0 ? (double)sums->right / (double)sums->labels : (double)NAN,
	    .labels = sums->labels,
	    .right = sums->right,
	    .partial = r->partial,
	    .normaliser = r->config->local->optimizer.type == OPTIMIZER_SGD
		? r->weight
		: (double)r->pieces.steps};
	return ERR_OK;
}

/* Also the plan of its pieces. */
struct net_update
train_update(const struct train_config *config, const struct dataset *data, struct pieces *pieces)
{
	const struct local_spec *local = config->local;
	const struct optimizer_spec *o = &local->optimizer;
	struct pieces own = {.net = NULL};
	struct pieces *p = pieces ? pieces : &own;

	pieces_plan(p, local, data);
	return (struct net_update){.type = o->type,
	    .rate = (float)training_rate(local, config->round),
	    .momentum = (float)o->momentum,
	    .weight_decay = (float)o->weight_decay,
	    .nesterov = o->nesterov,
	    .prox = (float)local->prox,
	    .clip = local->clip_norm,
	    .beta1 = o->beta1,
	    .beta2 = o->beta2,
	    .epsilon = o->epsilon,
	    .shift = config->shift,
	    .parts = p->parts,
	    .groups = p->groups};
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
	struct pieces pieces = {.net = NULL};
	const struct net_update how = train_update(config, data, &pieces);
	bool augments = config->data && recipe_augments(config->data);

	enum err e = net_prepare(net, &how, why);
	*bytes = net_bytes(net) + data->count * sizeof(*pieces.order) +
	    batch_bytes(net, data, pieces.size) + (augments ? data->features * sizeof(float) : 0);
	return e;
}

static enum err
start(struct run *r, uint64_t seed, struct why *why)
{
	const struct train_config *c = r->config;
	const struct net *net = r->stepper.net;

	r->update = train_update(c, r->data, &r->pieces);
	r->pieces.net = net;
	r->pieces.replicas = r->stepper.replicas;
	r->pieces.batch = &r->batch;
	if (r->pieces.size > net_max_batch(net))
		return err_set(why, ERR_LIMIT, "batches of %u examples for a network built for %u",
		    r->pieces.size, net_max_batch(net));
	if (batch_init(&r->batch, net, r->data, r->pieces.size))
		return err_set(why, ERR_NOMEM, "no memory for a batch");
	if (c->data && recipe_augments(c->data) &&
	    !(r->batch.scratch = malloc(r->data->features * sizeof(float))))
		return err_set(why, ERR_NOMEM, "no memory for an example");
	prng_seed2(&r->dropout, seed, PIECES_DROPOUT);
	r->draw = (struct draw){
	    .stream = c->local->random == RANDOM_STREAM ? &r->dropout : NULL, .seed = seed};
	enum err e = pieces_init(&r->pieces, seed, why);
	if (!e)
		e = r->stepper.calls->begin(r->stepper.self, &r->update, why);
	r->pieces.began = clock_seconds();
	return e;
}

static void
say_failed(const struct run *r, enum err e, struct why *why)
{
	unsigned long long number = r->pieces.steps + 1;
	size_t vocabulary = net_vocabulary(r->stepper.net);

	if (e == ERR_INVALID && vocabulary > 0)
		err_set(
		    why, e, "step %llu: a value is no whole number below %zu", number, vocabulary);
	else
		err_set(why, e,
		    e == ERR_NUMERIC ? "the loss is not finite at step %llu" : "step %llu failed",
		    number);
}

enum err
train_run(struct stepper stepper, const struct dataset *data, const struct train_config *config,
    struct train_result *result, struct why *why)
{
	struct run r = {.stepper = stepper, .data = data, .config = config};
	enum err e = train_check(stepper.net, data, why);

	*result = (struct train_result){0};
	if (!e)
		e = start(&r, config->seed, why);
	while (!e && pieces_step(&r.pieces)) {
		e = step(&r);
		if (e)
			say_failed(&r, e, why);
		else
			count_step(&r);
	}
	if (!e)
		e = finish(&r, result, why);
	batch_deinit(&r.batch);
	pieces_deinit(&r.pieces);
	return e;
}

static enum err
score_batches(struct stepper s, const struct dataset *data, const struct train_config *config,
    struct batch *b, struct train_score *score)
{
	uint64_t batches = (data->count + b->size - 1) / b->size;
	struct net_result sums = {0};
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < data->count; i += b->size) {
		size_t left = data->count - i;
		uint32_t n = left < b->size ? (uint32_t)left : b->size;
		if (config->stop && config->stop(config->context, i / b->size, batches))
			return ERR_CLOSED;
		batch_fill(b, data, config->data, NULL, NULL, i, n);
		const struct net_batch batch = batch_of(b, n, NULL);
		e = s.calls->evaluate(s.self, &batch, batches, &sums, config->counts);
	}
	if (!e)
		e = s.calls->evaluate(s.self, NULL, batches, &sums, config->counts);
	if (e)
		return e;
	*score = (struct train_score){.examples = data->count,
	    .labels = sums.labels,
	    .right = sums.right,
	    .weight = sums.weight,
	    .loss = sums.weight > 0 ? sums.loss / sums.weight : (double)NAN,
	    .accuracy = sums.labels > 0 ? (double)sums.right / (double)sums.labels : (double)NAN};
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
train_evaluate(struct stepper stepper, const struct dataset *data, const struct data_spec *spec,
    struct train_score *score, struct why *why)
{
	const struct train_config config = {.data = spec};

	return train_evaluate_while(stepper, data, &config, score, why);
}

enum err
train_evaluate_while(struct stepper stepper, const struct dataset *data,
    const struct train_config *config, struct train_score *score, struct why *why)
{
	const struct net *net = stepper.net;
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
		e = score_batches(stepper, data, config, &b, score);
	if (e)
		err_set(why, e, "%s",
		    e == ERR_NUMERIC	  ? "the loss is not finite"
			: e == ERR_NOMEM  ? "no memory for a batch"
			: e == ERR_CLOSED ? "broken off"
					  : "the evaluation failed");
	batch_deinit(&b);
	return e;
}
