#include "planned.h"

#include "cpu.h"
#include "dataset.h"
#include "team.h"
#include "train.h"

#define BATCH_EVAL 64 /* room for evaluation when the training batch is smaller */

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
planned_threads(uint64_t most)
{
	if (most == 0)
		most = cpu_count();
	return most < TEAM_MAX ? (unsigned)most : TEAM_MAX;
}

struct net_part
planned_evaluating(const struct recipe *recipe, const struct dataset *set)
{
	return (struct net_part){.spec = &recipe->net,
	    .classes = classes_of(recipe, set),
	    .last = recipe->net.layer_count,
	    .max_batch = BATCH_EVAL,
	    .contexts = 1};
}

struct net_part
planned_training(const struct recipe *recipe, const struct dataset *train, uint64_t validation)
{
	uint64_t batch = recipe->local.batch, micro = recipe->local.micro_batch;

	if (batch == 0 || batch > train->count)
		batch = train->count;
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

enum err
planned_net(struct net **out, const struct planned_task *plan, uint64_t *data, struct why *why)
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
	struct net_part whole = trains ? planned_training(recipe, train, plan->validation)
				       : planned_evaluating(recipe, train);
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
planned_suits(const struct recipe *recipe, const struct dataset *set, struct why *why)
{
	struct net *net = NULL;
	struct net_part whole = planned_evaluating(recipe, set);
	enum err e = ERR_OK;

	whole.planned = 1;
	/* What else is wrong is said when the task is there. */
	if (set->count > 0 && !net_new_part(&net, &whole, NULL))
		e = train_check(net, set, why);
	net_free(net);
	return !e;
}
