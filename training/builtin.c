#include "builtin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "contention.h"
#include "counts.h"
#include "dataset.h"
#include "kernel_choice.h"
#include "manifest.h"
#include "planned.h"
#include "team.h"
#include "tensor.h"
#include "training.h"

#define TILE 4096 /* parameters that go to the stepper at a time */

struct training {
	const struct training_in *in;
	struct stepper stepper;
	struct net *own; /* the network in this process's memory; NULL: there is none */
	struct team *team; /* of that */
	struct contention contention; /* with other programs */
	float *shift; /* what is added to every gradient; NULL: nothing */
	double began, until; /* monotonic; until 0: no budget */
	uint64_t most_steps; /* the limit of epochs; 0: none */
};

/* --- tensors */

/* Pairs each parameter tensor of the net with the model's of the same name and shape. */
static enum err
match(const struct training *t, size_t i, const struct tensor **out, struct why *why)
{
	const struct tensor *own = &net_tensors(t->stepper.net)->items[i];
	const struct tensor *theirs = tensor_table_find(t->in->table, own->name);

	if (!theirs || theirs->dtype != TENSOR_F32 || theirs->dims != own->dims ||
	    memcmp(theirs->shape, own->shape, own->dims * sizeof(own->shape[0])) != 0)
		return err_set(why, ERR_INVALID,
		    "the model has no tensor \"%.100s\" of the network's shape", own->name);
	*out = theirs;
	return ERR_OK;
}

static enum err
load_tensor(const struct training *t, const struct tensor *own, const struct tensor *theirs)
{
	const struct training_source *base = &t->in->base;
	const struct stepper *s = &t->stepper;
	uint64_t first = own->begin / sizeof(float);
	float tile[TILE];
	enum err e = ERR_OK;

	for (uint64_t at = 0; !e && at < own->elements; at += TILE) {
		size_t n = own->elements - at < TILE ? (size_t)(own->elements - at) : TILE;
		e = base->read(base->context, theirs, at * sizeof(*tile), n * sizeof(*tile), tile);
		if (!e)
			e = s->calls->parameters(s->self, first + at, n, tile, true);
	}
	return e;
}

static enum err
load_params(const struct training *t, struct why *why)
{
	const struct tensor_table *own = net_tensors(t->stepper.net);
	const struct tensor *theirs;

	for (size_t i = 0; i < own->count; i++) {
		enum err e = match(t, i, &theirs, why);
		if (e)
			return e;
		e = load_tensor(t, &own->items[i], theirs);
		if (e)
			return err_set(why, e, "the model cannot be read");
	}
	return ERR_OK;
}

/* Until the network gives them back nobody else needs the weights, if it has them all. */
static void
spend_base(const struct training *t)
{
	const struct training_source *base = &t->in->base;

	if (base->spent && net_tensors(t->stepper.net)->bytes == t->in->table->bytes)
		base->spent(base->context);
}

/* From the delta's tensors to the network's order; tensors that are not in the delta are left alone. */
static enum err
load_shift(struct training *t, struct why *why)
{
	const struct tensor_table *own = net_tensors(t->stepper.net);
	const struct training_source *from = t->in->shift;
	const struct tensor *theirs;

	if (!from)
		return ERR_OK;
	t->shift = calloc((size_t)own->elements, sizeof(float));
	if (!t->shift)
		return err_set(why, ERR_NOMEM, "no memory for a variate");
	for (size_t i = 0; i < own->count; i++) {
		enum err e = match(t, i, &theirs, why);
		if (!e && theirs->in_delta &&
		    (e = from->read(from->context, theirs, 0, (size_t)(theirs->end - theirs->begin),
			 (uint8_t *)t->shift + own->items[i].begin)))
			err_set(why, e, "a variate cannot be read");
		if (e)
			return e;
	}
	if (from->spent)
		from->spent(from->context);
	return ERR_OK;
}

/* A tensor as it is after the training. */
static enum err
read_after(void *context, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	const struct training *w = context;
	const struct training_source *base = &w->in->base;
	const struct tensor *own = tensor_table_find(net_tensors(w->stepper.net), t->name);

	return own ? w->stepper.calls->parameters(w->stepper.self,
			 (own->begin + at) / sizeof(float), len / sizeof(float), out, false)
		   : base->read(base->context, t, at, len, out);
}

static enum err
hand_over(struct training *t, struct training_out *out, struct why *why)
{
	const struct training_source after = {.read = read_after, .context = t};

	if (t->own)
		net_shed(t->own);
	enum err e = t->in->take(t->in->taker, &after, why);
	if (e && e != ERR_NOMEM)
		out->abort = ABORT_TRAINER_FAILED;
	return e;
}

/* Would the next step, as long as those so far, end after the time? */
static bool
out_of_time(const struct training *t, uint64_t done)
{
	double now = clock_seconds();

	return t->until > 0 && now + (now - t->began) / (double)done > t->until;
}

/* As many threads for what comes next as other programs leave processors. */
static void
set_threads(struct training *t)
{
	if (t->team)
		team_use(t->team, contention_threads(&t->contention, clock_seconds()));
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
    const struct training *t, const struct dataset *set, struct training_out *out, struct why *why)
{
	enum err e = set->count > 0 ? train_check(t->stepper.net, set, why) : ERR_OK;

	if (e)
		out->abort = ABORT_DATA_MISMATCH;
	return e;
}

/* For what the job asks to be counted. */
static enum err
make_counts(const struct training *t, struct training_out *out, struct why *why)
{
	const struct recipe *recipe = t->in->recipe;

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
nothing_counts(struct training_out *out, struct why *why)
{
	out->abort = ABORT_DATA_MISMATCH;
	return err_set(why, ERR_INVALID,
	    "no label counts: all are model.ignore_index, or of classes that weigh 0");
}

static void
report_score(struct training_out *out, const struct train_score *score)
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
evaluate(struct training *t, struct training_out *out, struct why *why)
{
	struct train_score score;
	const struct recipe *recipe = t->in->recipe;
	struct train_config config = {.data = &recipe->data, .stop = after_batch, .context = t};

	if (recipe->evaluate_by != EVALUATE_DEVICES || t->in->validation->count == 0)
		return ERR_OK;
	enum err e = make_counts(t, out, why);
	config.counts = out->counts;
	if (!e)
		e = train_evaluate_while(t->stepper, t->in->validation, &config, &score, why);
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
	    (t->until > 0 && clock_seconds() > t->until);
}

/* All examples of a job that keeps none for validation: nothing is trained on them here. */
static const struct dataset *
measured_set(const struct training_in *in)
{
	return in->recipe->data.validation > 0 ? in->validation : in->train;
}

/* A loss that is no number is a finding: the report then has no figures. */
static enum err
measure(struct training *t, struct training_out *out, struct why *why)
{
	struct train_score score;
	const struct dataset *set = measured_set(t->in);
	struct train_config config = {
	    .data = &t->in->recipe->data, .stop = is_broken_off, .context = t};
	enum err e = make_counts(t, out, why);

	if (e)
		return e;
	config.counts = out->counts;
	e = train_evaluate_while(t->stepper, set, &config, &score, why);
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
	out->report.eval_examples = out->result.examples = set->count;
	out->report.counts = e ? NULL : out->counts;
	return ERR_OK;
}

/* --- the network */

/* Each thread needs memory of its own, so fewer work if that is more than may be taken; the bits do not hang on it. */
static enum err
make_own(struct training *t, struct net_part *whole, struct why *why)
{
	unsigned threads = planned_threads(t->in->threads);

	if (whole->spec->arithmetic == ARITHMETIC_FAST)
		kernel_choice_ready(t->in->kernels);
	whole->max_bytes = t->in->memory_bytes;
	for (;; threads /= 2) {
		enum err e = team_new(&t->team, threads);
		if (e)
			return err_set(why, e, "no memory for threads");
		whole->team = t->team;
		contention_begin(&t->contention, team_size(t->team), clock_seconds());
		e = net_new_part(&t->own, whole, why);
		if (e != ERR_LIMIT || threads == 1)
			return e;
		team_free(t->team);
		t->team = NULL;
	}
}

static enum err
find_stepper(struct training *t, struct net_part whole, struct why *why)
{
	if (t->in->stepper) {
		t->stepper = *t->in->stepper;
		return ERR_OK;
	}
	enum err e = make_own(t, &whole, why);
	if (!e)
		t->stepper = stepper_net(t->own);
	return e;
}

static enum err
evaluate_task(struct training *t, struct training_out *out, struct why *why)
{
	const struct training_in *in = t->in;
	const struct dataset *set = measured_set(in);

	if (set->count == 0) {
		out->abort = ABORT_NO_DATA;
		return err_set(why, ERR_NOTFOUND, "no examples to evaluate on");
	}
	if (in->seconds > 0)
		t->until = clock_seconds() + in->seconds;
	enum err e = find_stepper(t, planned_evaluating(in->recipe, set), why);
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
	const struct training_in *in = t->in;

	return (struct train_config){.local = &in->recipe->local,
	    .data = &in->recipe->data,
	    .round = in->round,
	    .shift = t->shift,
	    .seed = training_seed(in->seed, in->round, in->device),
	    .stop = after_step,
	    .context = t};
}

/* What the own network's steps keep beside the weights is there before these are, which would have to be copied else. */
static enum err
make_vectors(struct training *t, struct why *why)
{
	const struct train_config config = config_of(t);
	uint64_t bytes;

	return !t->own ? ERR_OK : train_bytes(t->own, &config, t->in->train, &bytes, why);
}

static enum err
train(struct training *t, struct training_out *out, struct why *why)
{
	static const uint16_t ids[] = {[OPTIMIZER_SGD] = MANIFEST_SGD,
	    [OPTIMIZER_ADAM] = MANIFEST_ADAM,
	    [OPTIMIZER_ADAMW] = MANIFEST_ADAMW};
	const struct train_config config = config_of(t);

	t->began = clock_seconds();
	enum err e = train_run(t->stepper, t->in->train, &config, &out->result, why);
	if (e)
		return e;
	out->optimizer = ids[t->in->recipe->local.optimizer.type];
	out->has_report = true;
	out->report.trained = (struct report_counted){.told = true,
	    .loss_count = out->result.loss_count,
	    .has_labels = net_labels(t->stepper.net) > 0,
	    .labels = out->result.labels,
	    .right = out->result.right};
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

/* What ends a training early. */
static void
set_limits(struct training *t)
{
	const struct training_in *in = t->in;
	uint64_t step = training_step(&in->recipe->local, in->train->count);

	if (in->epochs)
		t->most_steps = in->epochs * ((in->train->count + step - 1) / step);
	if (in->seconds > 0)
		t->until = clock_seconds() + in->seconds;
}

/* Are there as many as a batch norm needs for a variance, and does the job put so many together? */
static enum err
check_examples(const struct training_in *in, struct training_out *out, struct why *why)
{
	const struct local_spec *local = &in->recipe->local;
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
train_task(struct training *t, struct training_out *out, struct why *why)
{
	const struct training_in *in = t->in;
	enum err lacks = check_examples(in, out, why);
	if (lacks)
		return lacks;
	set_limits(t);
	enum err e =
	    find_stepper(t, planned_training(in->recipe, in->train, in->validation->count), why);
	if (!e && !train_counts(t->stepper.net, in->train))
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
		spend_base(t);
	if (!e)
		e = load_shift(t, why);
	if (!e)
		e = evaluate(t, out, why);
	if (!e)
		e = train(t, out, why);
	return e ? e : hand_over(t, out, why);
}

enum err
training_run(const struct training_in *in, struct training_out *out, struct why *why)
{
	struct training t = {.in = in};

	memset(out, 0, sizeof(*out));
	enum err e =
	    in->kind == TASK_EVALUATE ? evaluate_task(&t, out, why) : train_task(&t, out, why);
	if (e && !out->abort)
		out->abort = abort_reason(e);
	free(t.shift);
	net_free(t.own);
	team_free(t.team);
	return e;
}

void
training_out_deinit(struct training_out *out)
{
	counts_free(out->counts);
	out->counts = NULL;
	out->report.counts = NULL;
}
