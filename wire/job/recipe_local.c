#include "codec.h"
#include "field.h"
#include "places.h"
#include "recipe.h"
#include "recipe_inside.h"

#include <string.h>

#define RATE_MAX 1e6
#define GAMMA_MAX 10.0
#define BETA_MAX 0.999999
#define CLIP_MAX 1e30
#define SIZED_MIN 20
#define SIZED_MAX 2000

static const char *const schedule_names[] = {[SCHEDULE_CONSTANT] = "constant",
    [SCHEDULE_STEP] = "step",
    [SCHEDULE_COSINE] = "cosine",
    [SCHEDULE_LINEAR] = "linear",
    [SCHEDULE_WSD] = "wsd",
    NULL};

static const char *const optimizer_names[] = {
    [OPTIMIZER_SGD] = "sgd", [OPTIMIZER_ADAM] = "adam", [OPTIMIZER_ADAMW] = "adamw"};

static const char *const arithmetic_names[] = {"exact", "fast", NULL};

static const char *const random_names[] = {
    [RANDOM_STREAM] = "stream", [RANDOM_COUNTER] = "counter", NULL};

static const char *const recompute_names[] = {
    [RECOMPUTE_NONE] = "none", [RECOMPUTE_BLOCKS] = "blocks", NULL};

/* "target_s" in the place of an amount: the coordinator says how many steps. */
static void
read_sized(struct local_spec *out, struct field *local)
{
	static const char *const others[] = {"epochs", "steps", "seconds"};

	out->unit = LOCAL_SIZED;
	out->target_s =
	    field_double(local, "target_s", 1e-3, RECIPE_SECONDS_MAX, FIELD_MUST_DOUBLE);
	out->max_steps = field_u64(local, "max_steps", 1, RECIPE_STEPS_MAX, SIZED_MAX);
	const uint64_t least = out->max_steps < SIZED_MIN ? out->max_steps : SIZED_MIN;
	out->min_steps = field_u64(local, "min_steps", 1, out->max_steps, least);
	out->amount = (double)out->min_steps;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (field_has(local, others[i]))
			field_fail(local, others[i], "not beside \"target_s\"");
}

static void
read_amount(struct local_spec *out, struct field *local)
{
	if (field_has(local, "target_s")) {
		read_sized(out, local);
		return;
	}
	if (field_has(local, "min_steps") || field_has(local, "max_steps"))
		field_fail(local, "target_s", "missing: \"min_steps\" and \"max_steps\" bound it");
	bool epochs = field_has(local, "epochs"), steps = field_has(local, "steps");
	bool seconds = field_has(local, "seconds");

	if (epochs && steps)
		field_fail(local, "steps", "only one of epochs and steps");
	out->unit = steps ? LOCAL_STEPS : seconds && !epochs ? LOCAL_SECONDS : LOCAL_EPOCHS;
	out->amount = steps ? (double)field_u64(local, "steps", 1, RECIPE_STEPS_MAX, 1)
			    : (double)field_u64(local, "epochs", 1, RECIPE_EPOCHS_MAX, 1);
	if (seconds)
		out->seconds = field_double(local, "seconds", 1e-3, RECIPE_SECONDS_MAX, 1);
}

/* Keys of other optimizers are refused: they would do nothing. */
static void
check_optimizer(const struct optimizer_spec *s, struct field *o, bool builtin)
{
	const char *const of_sgd[] = {"momentum", "nesterov"};
	const char *const of_adam[] = {"beta1", "beta2", "epsilon"};
	bool sgd = strcmp(s->name, "sgd") == 0;

	for (size_t i = 0; sgd && i < sizeof(of_adam) / sizeof(*of_adam); i++)
		if (field_has(o, of_adam[i]))
			field_fail(o, of_adam[i], "belongs to adam, adamw");
	for (size_t i = 0; builtin && !sgd && i < sizeof(of_sgd) / sizeof(*of_sgd); i++)
		if (field_has(o, of_sgd[i]))
			field_fail(o, of_sgd[i], "belongs to sgd; the others have beta1");
	if (s->nesterov && !(s->momentum > 0))
		field_fail(o, "nesterov", "needs \"momentum\"");
}

static void
read_optimizer(struct recipe *out, struct field *local)
{
	struct field o = field_object(local, "optimizer");
	struct optimizer_spec *s = &out->local.optimizer;
	bool known = false;

	field_string(&o, "name", FIELD_NAME, s->name, sizeof(s->name), "sgd");
	for (size_t i = 0; i < sizeof(optimizer_names) / sizeof(*optimizer_names); i++)
		if (strcmp(s->name, optimizer_names[i]) == 0) {
			s->type = (enum optimizer_type)i;
			known = true;
		}
	if (out->builtin && !known)
		field_fail(&o, "name", "the built-in trainer has \"sgd\", \"adam\" and \"adamw\"");
	s->rate = field_double(&o, "rate", 0, RATE_MAX, out->builtin ? FIELD_MUST_DOUBLE : 0);
	s->momentum = field_double(&o, "momentum", 0, RECIPE_SHARE_MAX, 0);
	s->nesterov = field_bool(&o, "nesterov", false);
	s->weight_decay = field_double(&o, "weight_decay", 0, RATE_MAX, 0);
	s->beta1 = field_double(&o, "beta1", 0, BETA_MAX, 0.9);
	s->beta2 = field_double(&o, "beta2", 0, BETA_MAX, 0.999);
	s->epsilon = field_double(&o, "epsilon", 1e-15, 1, 1e-8);
	check_optimizer(s, &o, out->builtin);
	field_end(&o);
}

static void
read_step(struct local_spec *out, struct field *local)
{
	out->batch = (uint32_t)field_u64(local, "batch", 0, RECIPE_BATCH_MAX, 10);
	out->accumulate = (uint32_t)field_u64(local, "accumulate", 1, RECIPE_ACCUMULATE_MAX, 1);
	if (out->accumulate > 1 && out->batch == 0)
		field_fail(local, "accumulate", "needs \"batch\": one of 0 is the whole share");
	out->clip_norm = field_double(local, "clip_norm", 0, CLIP_MAX, 0);
	out->random = (enum local_random)field_choice(local, "random", random_names, RANDOM_STREAM);
	out->recompute =
	    (enum local_recompute)field_choice(local, "recompute", recompute_names, RECOMPUTE_NONE);
	out->prox = field_double(local, "prox", 0, RATE_MAX, 0);
	/* Beyond it a step of the pull alone goes past the base. */
	if (out->optimizer.type == OPTIMIZER_SGD && out->prox * out->optimizer.rate > 1)
		field_fail(local, "prox", "times optimizer.rate must be at most 1");
}

/* The rate that prox was checked with is the largest of all rounds. */
static void
check_growth(const struct local_spec *l, struct field *local)
{
	if (l->optimizer.type == OPTIMIZER_SGD && l->prox > 0 && l->schedule.gamma > 1)
		field_fail(local, "schedule.gamma", "above 1 not with \"prox\"");
}

void
recipe_schedule_read(struct schedule_spec *out, struct field *parent)
{
	struct field o = field_object(parent, "schedule");

	out->type = (enum schedule_type)field_choice(&o, "type", schedule_names, SCHEDULE_CONSTANT);
	out->warmup = (uint32_t)field_u64(&o, "warmup", 0, RECIPE_ROUNDS_MAX, 0);
	out->gamma = 1;
	if (out->type == SCHEDULE_STEP) {
		out->every = (uint32_t)field_u64(&o, "every", 1, RECIPE_ROUNDS_MAX, FIELD_MUST_U64);
		out->gamma = field_double(&o, "gamma", 0, GAMMA_MAX, FIELD_MUST_DOUBLE);
	}
	if (out->type == SCHEDULE_WSD)
		out->stable =
		    (uint32_t)field_u64(&o, "stable", 0, RECIPE_ROUNDS_MAX, FIELD_MUST_U64);
	if (out->type == SCHEDULE_COSINE || out->type == SCHEDULE_LINEAR ||
	    out->type == SCHEDULE_WSD) {
		out->period =
		    (uint32_t)field_u64(&o, "period", 1, RECIPE_ROUNDS_MAX, FIELD_MUST_U64);
		out->floor = field_double(&o, "floor", 0, 1, 0);
	}
	field_end(&o);
}

/* Runs of equal length: so many pieces has a step. */
static void
check_groups(const struct local_spec *l, struct field *parallel)
{
	if (l->groups == 1)
		return;
	if (l->micro_batch == 0 || l->batch == 0) {
		field_fail(parallel, "groups", "needs \"micro_batch\" and a local.batch above 0");
		return;
	}
	uint64_t examples = (uint64_t)l->batch * l->accumulate;
	uint64_t size = l->micro_batch < l->batch ? l->micro_batch : l->batch;
	if ((examples + size - 1) / size % l->groups != 0)
		field_fail(parallel, "groups",
		    "must divide the pieces of a step, local.batch x accumulate / micro_batch");
}

/* "parallel": how a step is cut up, which decides the order of its sums. */
static void
read_parallel(struct recipe *out, struct field *doc)
{
	out->local.groups = 1;
	if (!field_has(doc, "parallel"))
		return;
	struct field o = field_object(doc, "parallel");
	out->local.micro_batch = (uint32_t)field_u64(&o, "micro_batch", 1, RECIPE_BATCH_MAX, 0);
	out->local.groups = (uint32_t)field_u64(&o, "groups", 1, RECIPE_GROUPS_MAX, 1);
	check_groups(&out->local, &o);
	field_end(&o);
}

/* Of the network's products, wherever they are made. */
static void
read_arithmetic(struct net_spec *out, struct field *local)
{
	if (field_has(local, "arithmetic"))
		out->arithmetic = (enum net_arithmetic)(
		    ARITHMETIC_EXACT + field_choice(local, "arithmetic", arithmetic_names, 0));
}

static void
read_variates(struct recipe *out, struct field *local)
{
	struct field o = field_object(local, "control_variates");

	if (field_has(local, "control_variates"))
		out->local.variates =
		    (uint32_t)field_u64(&o, "devices", 1, RECIPE_VARIATES_MAX, FIELD_MUST_U64);
	field_end(&o);
}

/* A device finds its variate from the weights' way, which is a sum of gradients times rates only for plain SGD. */
static void
check_variates(const struct recipe *r, struct field *at)
{
	if (r->local.variates == 0)
		return;
	if (strcmp(r->local.optimizer.name, "sgd") != 0 || r->local.optimizer.momentum > 0)
		field_fail(at, "control_variates", "needs plain sgd, without momentum");
	if (!(r->local.optimizer.rate > 0))
		field_fail(at, "control_variates", "needs a learning rate above 0");
	for (size_t i = 0; i < r->upload.codec_count; i++) {
		const struct codec *codec = codec_find_name(r->upload.codecs[i]);
		if (codec && !codec->fixed_size)
			field_fail(at, "control_variates", "needs a codec of fixed size, not %s",
			    codec->name);
	}
	if (r->upload.feedback)
		field_fail(at, "control_variates", "not with upload.feedback");
}

/* The way back draws the weights of an attention that were dropped once more. */
static void
check_random(const struct recipe *r, struct field *at)
{
	if (net_spec_drops_weights(&r->net) && r->local.random != RANDOM_COUNTER)
		field_fail(at, "random", "must be \"counter\" with \"dropout\" of an attention");
}

void
recipe_local_check(const struct recipe *r, struct field *doc)
{
	struct field at = field_object(doc, "local");

	check_variates(r, &at);
	if (r->builtin)
		check_random(r, &at);
}

void
recipe_local_read(struct recipe *out, struct field *doc)
{
	struct field local = field_object(doc, "local");

	read_amount(&out->local, &local);
	read_optimizer(out, &local);
	read_step(&out->local, &local);
	recipe_schedule_read(&out->local.schedule, &local);
	check_growth(&out->local, &local);
	read_arithmetic(&out->net, &local);
	read_parallel(out, doc);
	read_variates(out, &local);
	if (!doc->reader->err)
		out->local.least = out->builtin && net_places_single(&out->net) ? 2 : 1;
	field_end(&local);
}
