#include <string.h>

#include "training.h"

enum feature {
	FEATURE_ACCUMULATE,
	FEATURE_ADAPTERS,
	FEATURE_ATTENTION_DROPOUT,
	FEATURE_AUGMENT,
	FEATURE_BATCH_NORMS,
	FEATURE_BUDGET,
	FEATURE_BUFFERED,
	FEATURE_CLIP,
	FEATURE_EVALUATE_TASK,
	FEATURE_FEEDBACK,
	FEATURE_FIGURES,
	FEATURE_GROUPS,
	FEATURE_INIT_TORCH,
	FEATURE_MAX_EXAMPLES,
	FEATURE_MICRO_BATCH,
	FEATURE_NETWORKS,
	FEATURE_OPTIMIZERS,
	FEATURE_PROX,
	FEATURE_RANDOM_COUNTER,
	FEATURE_RECOMPUTE,
	FEATURE_SCHEDULES,
	FEATURE_SIZED,
	FEATURE_TIED_PIECES,
	FEATURE_TRAINER_VARIATES,
	FEATURE_VARIATES,
	FEATURE_WEIGHTED_PIECES,
	FEATURE_WINDOW,
	FEATURES
};

static const char *const names[] = {[FEATURE_ACCUMULATE] = "accumulate",
    [FEATURE_ADAPTERS] = "adapters",
    [FEATURE_ATTENTION_DROPOUT] = "attention-dropout",
    [FEATURE_AUGMENT] = "augment",
    [FEATURE_BATCH_NORMS] = "batch-norms",
    [FEATURE_BUDGET] = "budget",
    [FEATURE_BUFFERED] = RECIPE_FEATURE_BUFFERED,
    [FEATURE_CLIP] = "clip",
    [FEATURE_EVALUATE_TASK] = RECIPE_FEATURE_EVALUATE,
    [FEATURE_FEEDBACK] = "feedback",
    [FEATURE_FIGURES] = RECIPE_FEATURE_FIGURES,
    [FEATURE_GROUPS] = "groups",
    [FEATURE_INIT_TORCH] = "init-torch",
    [FEATURE_MAX_EXAMPLES] = RECIPE_FEATURE_MAX_EXAMPLES,
    [FEATURE_MICRO_BATCH] = "micro-batch",
    [FEATURE_NETWORKS] = "networks",
    [FEATURE_OPTIMIZERS] = "optimizers",
    [FEATURE_PROX] = "prox",
    [FEATURE_RANDOM_COUNTER] = "random-counter",
    [FEATURE_RECOMPUTE] = "recompute",
    [FEATURE_SCHEDULES] = "schedules",
    [FEATURE_SIZED] = "sized",
    [FEATURE_TIED_PIECES] = "tied-pieces",
    [FEATURE_TRAINER_VARIATES] = RECIPE_FEATURE_TRAINER_VARIATES,
    [FEATURE_VARIATES] = "variates",
    [FEATURE_WEIGHTED_PIECES] = "weighted-pieces",
    [FEATURE_WINDOW] = "window",
    [FEATURES] = NULL};

const char *const *
recipe_feature_names(void)
{
	return names;
}

enum feature_actor
recipe_feature_actor(const char *name)
{
	static const enum feature_actor actors[FEATURES] = {[FEATURE_ADAPTERS] = FEATURE_BY_DEVICE,
	    [FEATURE_BUFFERED] = FEATURE_BY_DEVICE,
	    [FEATURE_EVALUATE_TASK] = FEATURE_BY_DEVICE,
	    [FEATURE_FEEDBACK] = FEATURE_BY_DEVICE,
	    [FEATURE_FIGURES] = FEATURE_BY_BOTH,
	    [FEATURE_INIT_TORCH] = FEATURE_BY_DEVICE,
	    [FEATURE_MAX_EXAMPLES] = FEATURE_BY_DEVICE,
	    [FEATURE_NETWORKS] = FEATURE_BY_DEVICE,
	    [FEATURE_SIZED] = FEATURE_BY_DEVICE,
	    [FEATURE_TRAINER_VARIATES] = FEATURE_BY_DEVICE,
	    [FEATURE_VARIATES] = FEATURE_BY_BOTH,
	    [FEATURE_WINDOW] = FEATURE_BY_DEVICE};

	for (size_t f = 0; f < FEATURES; f++)
		if (strcmp(name, names[f]) == 0)
			return actors[f];
	return FEATURE_BY_TRAINER;
}

bool
recipe_augments(const struct data_spec *d)
{
	const struct augment_spec *a = &d->augment;

	return a->flip || a->crop > 0 || a->noise > 0 || a->cutout > 0;
}

/* An older agent normalises a single value to nothing, and takes what a batch norm counts for weights that decay where a step gathers its
 * gradient first. */
static bool
counts_otherwise(const struct recipe *r)
{
	const struct local_spec *l = &r->local;
	bool gathers = l->clip_norm > 0 || training_pieces(l);
	bool pulls = l->optimizer.weight_decay > 0 || l->prox > 0 || l->variates > 0;

	return l->least > 1 || (net_spec_has(&r->net, LAYER_BATCHNORM) && gathers && pulls);
}

/* An older agent does not say how many labels it counted, and those that are right by top-k do not show it. */
static bool
hides_labels(const struct recipe *r)
{
	const struct figure_set *f = &r->figures;

	return r->evaluate_by == EVALUATE_DEVICES && f->skips && f->top_count > 0 && !f->classes &&
	    !f->confusion && !f->auc;
}

/* What the built-in trainer alone acts on; others get the recipe and judge for themselves. */
static void
of_builtin(bool *needs, const struct recipe *r)
{
	const struct local_spec *l = &r->local;

	needs[FEATURE_AUGMENT] = recipe_augments(&r->data);
	needs[FEATURE_ATTENTION_DROPOUT] = net_spec_drops_weights(&r->net);
	needs[FEATURE_ACCUMULATE] = l->accumulate > 1;
	needs[FEATURE_BUDGET] = l->seconds > 0 && l->unit != LOCAL_SECONDS;
	needs[FEATURE_CLIP] = l->clip_norm > 0;
	needs[FEATURE_GROUPS] = l->groups > 1;
	needs[FEATURE_MICRO_BATCH] = l->micro_batch > 0;
	needs[FEATURE_OPTIMIZERS] = l->optimizer.type != OPTIMIZER_SGD || l->optimizer.nesterov;
	needs[FEATURE_PROX] = l->prox > 0;
	needs[FEATURE_RANDOM_COUNTER] = l->random == RANDOM_COUNTER;
	/* The bits are the same without, but the memory may not be there. */
	needs[FEATURE_RECOMPUTE] = l->recompute != RECOMPUTE_NONE;
	needs[FEATURE_SCHEDULES] =
	    l->schedule.type == SCHEDULE_LINEAR || l->schedule.type == SCHEDULE_WSD;
	needs[FEATURE_VARIATES] = l->variates > 0;
	/* An older agent takes each piece for its share of the examples. */
	needs[FEATURE_WEIGHTED_PIECES] =
	    (net_spec_weighs(&r->net) && training_pieces(l)) || hides_labels(r);
	needs[FEATURE_BATCH_NORMS] = counts_otherwise(r);
	/* An older agent adds up the gradients of a shared weight in another order. */
	needs[FEATURE_TIED_PIECES] =
	    net_spec_ties(&r->net) && training_pieces(l) && r->net.arithmetic != ARITHMETIC_FAST;
}

/* Nothing for a device to do, but an old one refuses the word. */
static bool
has_init(const struct net_spec *net, enum layer_init init)
{
	for (size_t i = 0; i < net->layer_count; i++)
		if (net->layers[i].init == init)
			return true;
	return false;
}

const char *
recipe_feature_missing(const struct recipe *r, const struct codec *codec,
    const char (*offered)[RECIPE_NAME_MAX], size_t count)
{
	bool needs[FEATURES] = {false};

	/* Without it the key is one that a device refuses. */
	needs[FEATURE_EVALUATE_TASK] =
	    r->evaluate_by == EVALUATE_DEVICES && r->evaluate_deadline_s > 0;
	needs[FEATURE_FEEDBACK] = recipe_upload_feedback(&r->upload, codec);
	/* Also of another trainer: its report may be longer than an old device sends. */
	needs[FEATURE_FIGURES] = r->evaluate_by == EVALUATE_DEVICES && figure_set_any(&r->figures);
	needs[FEATURE_INIT_TORCH] = has_init(&r->net, INIT_TORCH);
	/* Of the built-in network, whoever trains it: devices read the description. */
	needs[FEATURE_ADAPTERS] = net_spec_adapted(&r->net);
	needs[FEATURE_NETWORKS] = net_spec_widened(&r->net);
	needs[FEATURE_TRAINER_VARIATES] = !r->builtin && r->local.variates > 0;
	needs[FEATURE_WINDOW] = r->data.window > 0;
	/* Also of another trainer: an old device would not know how much is wanted. */
	needs[FEATURE_SIZED] = r->local.unit == LOCAL_SIZED;
	if (r->builtin)
		of_builtin(needs, r);
	for (size_t i = 0; i < count; i++)
		for (size_t f = 0; f < FEATURES; f++)
			if (strcmp(offered[i], names[f]) == 0)
				needs[f] = false;
	for (size_t f = 0; f < FEATURES; f++)
		if (needs[f])
			return names[f];
	return NULL;
}
