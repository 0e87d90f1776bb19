#include "site.h"

#include <string.h>

#include "dataset.h"
#include "divide.h"
#include "kernel_choice.h"
#include "local_world.h"
#include "pieces.h"
#include "planned.h"
#include "training.h"

static bool
drops(const struct net_spec *net)
{
	return net_spec_has(net, LAYER_DROPOUT) || net_spec_has(net, LAYER_DROPOUT2D) ||
	    net_spec_drops_weights(net);
}

enum err
site_suits(const struct site *s, const struct training_in *in, struct why *why)
{
	const struct recipe *r = in->recipe;
	bool counts = r->local.random == RANDOM_COUNTER;

	if (in->kind == TASK_EVALUATE)
		return ERR_OK;
	if (r->local.variates > 0 || in->shift)
		return err_set(why, ERR_UNSUPPORTED,
		    "local.control_variates: ranks of a site do not add them to their gradients");
	if (!counts && drops(&r->net))
		return err_set(why, ERR_UNSUPPORTED,
		    "local.random: dropout in ranks of a site is drawn by \"counter\" only");
	if (!counts && recipe_augments(&r->data))
		return err_set(why, ERR_UNSUPPORTED,
		    "local.random: data.augment in a site is drawn by \"counter\" only");
	/* That is what the job says, not what few examples come to. */
	if (s->ranks > 1 && !training_pieces(&r->local))
		return err_set(why, ERR_UNSUPPORTED,
		    "parallel.micro_batch: steps of one batch cannot be divided among ranks");
	return ERR_OK;
}

struct leader_task
site_task(const struct site *s, const struct training_in *in, struct pieces *pieces)
{
	bool trains = in->kind != TASK_EVALUATE;
	const struct train_config config = {
	    .local = &in->recipe->local, .data = &in->recipe->data, .round = in->round};
	struct leader_task t = {.recipe = in->recipe,
	    .whole = trains ? planned_training(in->recipe, in->train, in->validation->count)
			    : planned_evaluating(in->recipe,
				  in->recipe->data.validation > 0 ? in->validation : in->train),
	    .seed = training_seed(in->seed, in->round, in->device),
	    .threads = s->threads > 0 ? s->threads : planned_threads(in->threads) / s->ranks};

	if (t.threads == 0)
		t.threads = 1;
	if (trains)
		t.how = train_update(&config, in->train, pieces);
	return t;
}

static enum err
run_task(struct world *world, const struct leader_task *task, const struct training_in *in,
    struct training_out *out, struct why *why)
{
	struct training_in own = *in;
	struct leader *leader;
	enum err e = leader_new(&leader, world, task, why);

	if (e)
		return e;
	const struct stepper stepper = leader_stepper(leader);
	own.stepper = &stepper;
	e = training_run(&own, out, why);
	leader_free(leader);
	return e;
}

/* The world may have more ranks than the task is divided among. */
static enum err
run_in(const struct site *s, struct world *world, const struct training_in *in,
    struct training_out *out, struct why *why)
{
	struct pieces pieces = {.parts = 1, .groups = 1};
	struct leader_task task = site_task(s, in, &pieces);
	struct divided divided = {.best = {.step_s = 0}};
	enum err e = divide_task(s, world, &task, &pieces, &divided, why);
	if (!e) {
		divide_print(stderr, &divided, &task);
		e = run_task(world, &task, in, out, why);
	}
	divide_deinit(&divided);
	return e;
}

static enum err
run(const struct site *s, const struct training_in *in, struct training_out *out, struct why *why)
{
	struct local_world *local = NULL;
	enum err e = ERR_OK;

	if (in->recipe->net.arithmetic == ARITHMETIC_FAST)
		kernel_choice_ready(in->kernels);
	if (!s->world)
		e = local_world_new(&local, s->ranks, why);
	if (!e)
		e = run_in(s, s->world ? s->world : local_world_leader(local), in, out, why);
	local_world_free(local);
	return e;
}

static enum abort_reason
reason_of(enum err e)
{
	switch (e) {
	case ERR_UNSUPPORTED:
		return ABORT_UNSUPPORTED;
	case ERR_LIMIT:
	case ERR_NOMEM:
		return ABORT_OUT_OF_MEMORY;
	default:
		return ABORT_TRAINER_FAILED;
	}
}

enum err
site_run(const struct site *site, const struct training_in *in, struct training_out *out,
    struct why *why)
{
	memset(out, 0, sizeof(*out));
	/* Without examples the reason is that of one device. */
	if (in->kind != TASK_EVALUATE && in->train->count == 0)
		return training_run(in, out, why);
	enum err e = site_suits(site, in, why);
	if (!e)
		e = run(site, in, out, why);
	if (e && !out->abort)
		out->abort = reason_of(e);
	return e;
}
