#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "contention.h"
#include "counts.h"
#include "cpu.h"
#include "kernel_choice.h"
#include "manifest.h"
#include "net.h"
#include "team.h"
#include "train.h"
#include "trainer.h"
#include "training.h"

#define BATCH_EVAL 64 /* room for evaluation when the training batch is smaller */

struct training {
	const struct trainer_in *in;
	struct team *team;
	struct contention contention; /* with other programs */
	struct net *net;
	float *shift; /* what is added to every gradient; NULL: nothing */
	double began, until; /* monotonic; until 0: no budget */
	uint64_t most_steps; /* the owner's limit of epochs; 0: none */
};

/* Pairs each parameter tensor of the net with the model's of the same name and shape. */
static enum err
match(const struct training *t, size_t i, const struct tensor **out, struct why *why)
{
	const struct tensor *own = &net_tensors(t->net)->items[i];
	const struct tensor *theirs = tensor_table_find(&t->in->work->table, own->name);

	if (!theirs || theirs->dtype != TENSOR_F32 || theirs->dims != own->dims ||
	    memcmp(theirs->shape, own->shape, own->dims * sizeof(own->shape[0])) != 0)
		return err_set(why, ERR_INVALID,
		    "the model has no tensor \"%.100s\" of the network's shape", own->name);
	*out = theirs;
	return ERR_OK;
}

static enum err
load_params(const struct training *t, struct why *why)
{
	const struct tensor_table *own = net_tensors(t->net);
	const struct tensor *theirs;
	uint8_t *params = (uint8_t *)net_params(t->net);

	for (size_t i = 0; i < own->count; i++) {
		enum err e = match(t, i, &theirs, why);
		if (e)
			return e;
		memcpy(params + own->items[i].begin, t->in->work->weights + theirs->begin,
		    (size_t)(theirs->end - theirs->begin));
	}
	return ERR_OK;
}

/* Until the network gives them back nobody else needs them, if it has them all. */
static void
drop_weights(const struct training *t)
{
	struct work *w = t->in->work;

	if (net_tensors(t->net)->bytes != w->table.bytes)
		return;
	free(w->weights);
	w->weights = NULL;
}

/* From the delta vector's order to the network's; tensors that are not in the delta are left alone. The work's own goes. */
static enum err
load_shift(struct training *t, struct why *why)
{
	const struct tensor_table *own = net_tensors(t->net);
	struct work *w = t->in->work;
	const struct tensor *theirs;

	if (!w->shift)
		return ERR_OK;
	t->shift = calloc((size_t)own->elements, sizeof(float));
	if (!t->shift)
		return err_set(why, ERR_NOMEM, "no memory for a variate");
	for (size_t i = 0; i < own->count; i++) {
		enum err e = match(t, i, &theirs, why);
		if (e)
			return e;
		if (theirs->in_delta)
			memcpy((uint8_t *)t->shift + own->items[i].begin, w->shift + theirs->first,
			    (size_t)(theirs->end - theirs->begin));
	}
	free(w->shift);
	w->shift = NULL;
	return ERR_OK;
}

static enum err
store_params(const struct training *t, struct why *why)
{
	const struct tensor_table *own = net_tensors(t->net);
	const struct tensor *theirs;
	struct work *w = t->in->work;

	net_shed(t->net);
	if (!w->weights)
		w->weights = malloc((size_t)w->table.bytes);
	if (!w->weights)
		return err_set(why, ERR_NOMEM, "no memory for the weights");
	const uint8_t *params = (const uint8_t *)net_params(t->net);
	for (size_t i = 0; i < own->count; i++) {
		enum err e = match(t, i, &theirs, why);
		if (e)
			return e;
		memcpy(w->weights + theirs->begin, params + own->items[i].begin,
		    (size_t)(theirs->end - theirs->begin));
	}
	return ERR_OK;
}

/* Would the next step, as long as those so far, end after the time? */
static bool
out_of_time(const struct training *t, uint64_t done)
{
	double now = backoff_now();

	return t->until > 0 && now + (now - t->began) / (double)done > t->until;
}

/* As many threads for what comes next as other programs leave processors. */
static void
set_threads(struct training *t)
{
	team_use(t->team, contention_threads(&t->contention, backoff_now()));
}

static bool
after_step(void *context, uint64_t done, uint64_t planned)
{
	struct training *t = context;

	(void)planned;
	set_threads(t);
	return (t->in->stop && t->in->stop(t->in->context)) || out_of_time(t, done) ||
	    (t->most_steps && done >= t->most_steps);
}

/* Wrong data is no failure of the trainer. */
static enum err
check_set(
    const struct training *t, const struct dataset *set, struct trainer_out *out, struct why *why)
{
	enum err e = set->count > 0 ? train_check(t->net, set, why) : ERR_OK;

	if (e)
		out->abort = ABORT_DATA_MISMATCH;
	return e;
}

/* For what the job asks to be counted. */
static enum err
make_counts(const struct training *t, struct trainer_out *out, struct why *why)
{
	const struct recipe *recipe = &t->in->work->task.recipe;

	return figure_set_any(&recipe->figures)
	    ? counts_new(&out->counts, &recipe->figures, recipe->data.class_count, why)
	    : ERR_OK;
}

static bool
after_batch(void *context, uint64_t done, uint64_t planned)
{
	(void)done;
	(void)planned;
	set_threads(context);
	return false;
}

static bool
has_counted(const struct train_score *score)
{
	return score->weight > 0 || score->labels > 0;
}

static enum err
nothing_counts(struct trainer_out *out, struct why *why)
{
	out->abort = ABORT_DATA_MISMATCH;
	return err_set(why, ERR_INVALID,
	    "no label counts: all are model.ignore_index, or of classes that weigh 0");
}

static void
report_score(struct trainer_out *out, const struct train_score *score)
{
	struct report *r = &out->report;

	out->has_report = r->has_evaluate = true;
	r->eval_examples = score->examples;
	r->eval_loss = score->loss;
	r->eval_accuracy = score->accuracy;
	r->evaluated = (struct report_counted){.told = true,
	    .loss_count = score->weight,
	    .has_labels = score->labels > 0,
	    .labels = score->labels,
	    .right = score->right};
}

/* The base of a round, before it is trained. */
static enum err
evaluate(struct training *t, struct trainer_out *out, struct why *why)
{
	struct train_score score;
	const struct recipe *recipe = &t->in->work->task.recipe;
	struct train_config config = {.data = &recipe->data, .stop = after_batch, .context = t};

	if (recipe->evaluate_by != EVALUATE_DEVICES || t->in->validation->count == 0)
		return ERR_OK;
	enum err e = make_counts(t, out, why);
	config.counts = out->counts;
	if (!e)
		e = train_evaluate_while(
		    stepper_net(t->net), t->in->validation, &config, &score, why);
	if (e || !has_counted(&score))
		return e;
	report_score(out, &score);
	out->report.counts = out->counts;
	return ERR_OK;
}

/* --- a task that evaluates */

static bool
is_broken_off(void *context, uint64_t done, uint64_t planned)
{
	struct training *t = context;

	(void)done;
	(void)planned;
	set_threads(t);
	return (t->in->stop && t->in->stop(t->in->context)) ||
	    (t->until > 0 && backoff_now() > t->until);
}

/* All examples of a job that keeps none for validation: nothing is trained on them here. */
static const struct dataset *
measured_set(const struct trainer_in *in)
{
	return in->work->task.recipe.data.validation > 0 ? in->validation : in->train;
}

/* A loss that is no number is a finding: the report then has no figures. */
static enum err
measure(struct training *t, struct trainer_out *out, struct why *why)
{
	struct train_score score;
	const struct dataset *set = measured_set(t->in);
	struct train_config config = {
	    .data = &t->in->work->task.recipe.data, .stop = is_broken_off, .context = t};
	enum err e = make_counts(t, out, why);

	if (e)
		return e;
	config.counts = out->counts;
	e = train_evaluate_while(stepper_net(t->net), set, &config, &score, why);
	if (e == ERR_CLOSED)
		out->abort =
		    t->in->stop && t->in->stop(t->in->context) ? ABORT_STOPPED : ABORT_DEADLINE;
	if (e && e != ERR_NUMERIC)
		return e;
	if (e)
		score = (struct train_score){.loss = NAN, .accuracy = NAN};
	else if (!has_counted(&score))
		return nothing_counts(out, why);
	report_score(out, &score);
	out->report.evaluated.told = !e;
	out->report.eval_examples = out->finish.examples = set->count;
	out->report.counts = e ? NULL : out->counts;
	return ERR_OK;
}

/* What a text says next has no names, unless the job gives them. */
static size_t
classes_of(const struct recipe *recipe, const struct dataset *set)
{
	if (!net_spec_labels(&recipe->net))
		return 0;
	return recipe->data.class_count || recipe->data.window ? recipe->data.class_count
							       : set->classes;
}

unsigned
trainer_builtin_threads(const struct settings *settings)
{
	uint64_t most = settings->threads > 0 ? settings->threads : cpu_count();

	return most < TEAM_MAX ? (unsigned)most : TEAM_MAX;
}

/* Each thread needs memory of its own, so fewer work if that is more than the owner allows; the bits do not hang on it. */
static enum err
make_whole(struct training *t, struct net_part *whole, struct why *why)
{
	const struct settings *settings = t->in->settings;
	unsigned threads = t->in->threads > 0 ? t->in->threads : trainer_builtin_threads(settings);

	if (whole->spec->arithmetic == ARITHMETIC_FAST)
		kernel_choice_ready(t->in->kernels);
	whole->max_bytes = settings->memory_bytes;
	for (;; threads /= 2) {
		enum err e = team_new(&t->team, threads);
		if (e)
			return err_set(why, e, "no memory for threads");
		whole->team = t->team;
		contention_begin(&t->contention, team_size(t->team), backoff_now());
		e = net_new_part(&t->net, whole, why);
		if (e != ERR_LIMIT || threads == 1)
			return e;
		team_free(t->team);
		t->team = NULL;
	}
}

static struct net_part
evaluating_part(const struct recipe *recipe, const struct dataset *set)
{
	return (struct net_part){.spec = &recipe->net,
	    .classes = classes_of(recipe, set),
	    .last = recipe->net.layer_count,
	    .max_batch = BATCH_EVAL,
	    .contexts = 1};
}

static enum err
evaluate_task(struct training *t, struct trainer_out *out, struct why *why)
{
	const struct trainer_in *in = t->in;
	const struct recipe *recipe = &in->work->task.recipe;
	const struct dataset *set = measured_set(in);

	if (set->count == 0) {
		out->abort = ABORT_NO_DATA;
		return err_set(why, ERR_NOTFOUND, "no examples to evaluate on");
	}
	if (in->seconds > 0)
		t->until = backoff_now() + in->seconds;
	struct net_part whole = evaluating_part(recipe, set);
	enum err e = make_whole(t, &whole, why);
	if (!e)
		e = check_set(t, set, out, why);
	if (!e)
		e = load_params(t, why);
	return e ? e : measure(t, out, why);
}

/* --- a task that trains */

static struct train_config
config_of(struct training *t)
{
	const struct task *task = &t->in->work->task;

	return (struct train_config){.local = &task->recipe.local,
	    .data = &task->recipe.data,
	    .round = task->round,
	    .shift = t->shift,
	    .seed = training_seed(task->seed, task->round, t->in->device),
	    .stop = after_step,
	    .context = t};
}

/* What the steps keep beside the weights is there before these are, which would have to be copied else. */
static enum err
make_vectors(struct training *t, struct why *why)
{
	const struct train_config config = config_of(t);
	uint64_t bytes;

	return train_bytes(t->net, &config, t->in->train, &bytes, why);
}

static enum err
train(struct training *t, struct trainer_out *out, struct why *why)
{
	static const uint16_t ids[] = {[OPTIMIZER_SGD] = MANIFEST_SGD,
	    [OPTIMIZER_ADAM] = MANIFEST_ADAM,
	    [OPTIMIZER_ADAMW] = MANIFEST_ADAMW};
	const struct recipe *recipe = &t->in->work->task.recipe;
	const struct train_config config = config_of(t);
	struct train_result result;

	t->began = backoff_now();
	enum err e = train_run(stepper_net(t->net), t->in->train, &config, &result, why);
	if (e)
		return e;
	out->finish = (struct finish){.examples = result.examples,
	    .steps = result.steps,
	    .loss = result.loss,
	    .accuracy = result.accuracy,
	    .normaliser = result.normaliser,
	    .optimizer = ids[recipe->local.optimizer.type],
	    .partial = result.partial};
	out->has_report = true;
	out->report.trained = (struct report_counted){.told = true,
	    .loss_count = result.loss_count,
	    .has_labels = net_labels(t->net) > 0,
	    .labels = result.labels,
	    .right = result.right};
	return ERR_OK;
}

static enum abort_reason
abort_reason(enum err e)
{
	if (e == ERR_NUMERIC)
		return ABORT_NOT_FINITE;
	if (e == ERR_NOMEM || e == ERR_LIMIT)
		return ABORT_OUT_OF_MEMORY;
	return abort_reason_of_disk(e) ? abort_reason_of_disk(e) : ABORT_TRAINER_FAILED;
}

static uint64_t
batch_of(const struct recipe *recipe, const struct dataset *train)
{
	uint64_t batch = recipe->local.batch ? recipe->local.batch : train->count;

	return batch < train->count ? batch : train->count;
}

static struct net_part
training_part(const struct recipe *recipe, const struct dataset *train, uint64_t validation)
{
	uint64_t batch = batch_of(recipe, train), micro = recipe->local.micro_batch;

	batch = micro > 0 && micro < batch ? micro : batch;
	/* A job that cuts its batches has its reason. */
	if (batch < BATCH_EVAL && validation > 0 && micro == 0)
		batch = BATCH_EVAL;
	return (struct net_part){.spec = &recipe->net,
	    .classes = classes_of(recipe, train),
	    .last = recipe->net.layer_count,
	    .max_batch = (uint32_t)batch,
	    .contexts = 1,
	    .train = true,
	    .rules = recipe->rules,
	    .rule_count = recipe->rule_count,
	    .recompute = recipe->local.recompute == RECOMPUTE_BLOCKS};
}

/* The owner's limits. */
static void
set_limits(struct training *t)
{
	const struct trainer_in *in = t->in;
	const struct recipe *recipe = &in->work->task.recipe;
	uint64_t step = batch_of(recipe, in->train) * recipe->local.accumulate;

	if (in->settings->epochs)
		t->most_steps = in->settings->epochs * ((in->train->count + step - 1) / step);
	if (in->seconds > 0)
		t->until = backoff_now() + in->seconds;
}

enum err
trainer_builtin_plan(
    struct net **out, const struct trainer_plan *plan, uint64_t *data, struct why *why)
{
	const struct recipe *recipe = plan->recipe;
	const struct train_config config = {
	    .local = &recipe->local, .data = &recipe->data, .round = 1};
	const struct dataset *train = plan->train;
	bool trains = plan->kind != TASK_EVALUATE;
	uint64_t training = 0;

	if (train->count == 0 || train->count > DATASET_EXAMPLES_MAX)
		return err_set(why, train->count > 0 ? ERR_LIMIT : ERR_INVALID,
		    "%zu examples are %s", train->count,
		    train->count > 0 ? "more than a data set may have" : "too few to work on");
	struct net_part whole = trains ? training_part(recipe, train, plan->validation)
				       : evaluating_part(recipe, train);
	whole.planned = plan->threads;
	enum err e = net_new_part(out, &whole, why);
	if (!e && trains)
		e = train_bytes(*out, &config, train, &training, why);
	uint64_t rated = trains ? plan->validation : train->count;
	uint64_t measuring = !e && rated > 0 ? train_evaluate_bytes(*out, train, rated) : 0;
	if (e) {
		net_free(*out);
		*out = NULL;
	} else if (data) {
		training -= trains ? net_bytes(*out) : 0;
		*data = training > measuring ? training : measuring;
	}
	return e;
}

bool
trainer_builtin_suits(const struct recipe *recipe, const struct dataset *set, struct why *why)
{
	struct net *net = NULL;
	struct net_part whole = evaluating_part(recipe, set);
	enum err e = ERR_OK;

	whole.planned = 1;
	/* What else is wrong is said when the task is there. */
	if (set->count > 0 && !net_new_part(&net, &whole, NULL))
		e = train_check(net, set, why);
	net_free(net);
	return !e;
}

bool
trainer_builtin_fits(const struct settings *settings, const struct recipe *recipe)
{
	(void)settings;
	return recipe->builtin;
}

/* Are there as many as a batch norm needs for a variance, and does the job put so many together? */
static enum err
check_examples(const struct trainer_in *in, struct trainer_out *out, struct why *why)
{
	const struct local_spec *local = &in->work->task.recipe.local;
	uint32_t piece = training_piece(local);

	out->abort = ABORT_NO_DATA;
	if (in->train->count == 0)
		return err_set(why, ERR_NOTFOUND, "no examples to train on");
	if (in->train->count < local->least)
		return err_set(why, ERR_NOTFOUND,
		    "%zu example to train on: a batch norm of the network needs %u for a variance",
		    in->train->count, local->least);
	out->abort = ABORT_UNSUPPORTED;
	if (piece > 0 && piece < local->least)
		return err_set(why, ERR_UNSUPPORTED,
		    "batches of %u example: a batch norm of the network needs %u for a variance",
		    piece, local->least);
	out->abort = ABORT_NONE;
	return ERR_OK;
}

static enum err
train_task(struct training *t, struct trainer_out *out, struct why *why)
{
	const struct trainer_in *in = t->in;
	enum err lacks = check_examples(in, out, why);
	if (lacks)
		return lacks;
	set_limits(t);
	struct net_part whole =
	    training_part(&in->work->task.recipe, in->train, in->validation->count);
	enum err e = make_whole(t, &whole, why);
	if (!e && !train_counts(t->net, in->train))
		e = nothing_counts(out, why);
	if (!e)
		e = check_set(t, in->train, out, why);
	if (!e)
		e = check_set(t, in->validation, out, why);
	if (!e)
		e = make_vectors(t, why);
	if (!e)
		e = load_params(t, why);
	if (!e)
		drop_weights(t);
	if (!e)
		e = load_shift(t, why);
	if (!e)
		e = evaluate(t, out, why);
	if (!e)
		e = train(t, out, why);
	return e ? e : store_params(t, why);
}

enum err
trainer_builtin_run(const struct trainer_in *in, struct trainer_out *out, struct why *why)
{
	struct training t = {.in = in};

	memset(out, 0, sizeof(*out));
	enum err e = in->work->task.kind == TASK_EVALUATE ? evaluate_task(&t, out, why)
							  : train_task(&t, out, why);
	if (e && !out->abort)
		out->abort = abort_reason(e);
	free(t.shift);
	net_free(t.net);
	team_free(t.team);
	return e;
}
