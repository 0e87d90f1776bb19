#include "evalset.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "glyphs.h"
#include "net.h"
#include "source.h"

struct evalset {
	const struct config *config;
	pthread_mutex_t lock; /* held while a set is loaded */
	struct dataset sets[CONFIG_DATA_MAX];
	bool loaded[CONFIG_DATA_MAX];
};

enum err
evalset_new(struct evalset **out, const struct config *config)
{
	struct evalset *s = calloc(1, sizeof(*s));

	if (!s)
		return ERR_NOMEM;
	s->config = config;
	pthread_mutex_init(&s->lock, NULL);
	*out = s;
	return ERR_OK;
}

void
evalset_free(struct evalset *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < CONFIG_DATA_MAX; i++)
		if (s->loaded[i])
			dataset_deinit(&s->sets[i]);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Lock held. */
static enum err
load_locked(struct evalset *s, const char *name, struct dataset **out, struct why *why)
{
	const struct config_data *d = config_data_find(s->config, name);
	enum err e = ERR_OK;

	if (!d)
		return err_set(why, ERR_NOTFOUND,
		    "evaluate.data: the coordinator has no data set \"%s\"; add [data %s] to its "
		    "configuration",
		    name, name);
	size_t i = (size_t)(d - s->config->data);
	*out = &s->sets[i];
	if (s->loaded[i])
		return ERR_OK;
	memset(&s->sets[i], 0, sizeof(s->sets[i]));
	if (d->source.format == DATA_GLYPHS)
		e = glyphs_mixed(&s->sets[i], d->seed, d->first_hand, d->hands, d->count);
	else
		e = source_load(&s->sets[i], &d->source, NULL, why);
	if (e) {
		dataset_deinit(&s->sets[i]);
		return e;
	}
	s->loaded[i] = true;
	return ERR_OK;
}

static enum err
load(struct evalset *s, const char *name, struct dataset **out, struct why *why)
{
	pthread_mutex_lock(&s->lock);
	enum err e = load_locked(s, name, out, why);
	pthread_mutex_unlock(&s->lock);
	return e;
}

/* Of figures only. */
static enum err
plan_net(const struct recipe *r, uint64_t most, struct net **out, struct why *why)
{
	const struct net_part whole = {.spec = &r->net,
	    .classes = r->data.class_count,
	    .last = r->net.layer_count,
	    .max_batch = TRAIN_MEASURE_BATCH,
	    .contexts = 1,
	    .planned = 1,
	    .max_bytes = most};

	return net_new_part(out, &whole, why);
}

static enum err
check_cost(const struct config *c, const struct recipe *recipe, struct why *why)
{
	struct net *net = NULL;
	struct why detail = {""};

	enum err e = plan_net(recipe, c->evaluation_bytes, &net, &detail);
	if (e == ERR_LIMIT)
		return err_set(why, e,
		    "evaluate: a batch of %d examples needs more memory than the %llu bytes of the "
		    "coordinator's [limits] evaluation_bytes",
		    TRAIN_MEASURE_BATCH, (unsigned long long)c->evaluation_bytes);
	if (e)
		return err_set(why, e, "%s", detail.text);
	double work = TRAIN_MEASURE_BATCH * net_work(net);
	net_free(net);
	if (c->evaluation_work == 0 || work <= (double)c->evaluation_work)
		return ERR_OK;
	return err_set(why, ERR_LIMIT,
	    "evaluate: a batch of %d examples takes %.3g multiply-adds; the coordinator's [limits] "
	    "evaluation_work is %.3g",
	    TRAIN_MEASURE_BATCH, work, (double)c->evaluation_work);
}

/* The set as the job reads it: a text in windows of its length. Given back with give_back. */
static enum err
borrow(struct evalset *s, const struct recipe *recipe, struct dataset *out, struct why *why)
{
	struct dataset *all = NULL;
	struct why detail = {""};
	enum err e = load(s, recipe->evaluate_data, &all, why);

	if (e)
		return e;
	*out = *all;
	if (recipe->data.window == 0)
		return ERR_OK;
	pthread_mutex_lock(&s->lock);
	e = dataset_cut(out, all, recipe->data.window, &detail);
	pthread_mutex_unlock(&s->lock);
	if (e)
		err_set(why, e, "data set \"%s\" of the coordinator: %.150s", recipe->evaluate_data,
		    detail.text);
	return e;
}

/* Sets count who uses their rows. */
static void
give_back(struct evalset *s, const struct recipe *recipe, struct dataset *d)
{
	if (recipe->data.window == 0)
		return;
	pthread_mutex_lock(&s->lock);
	dataset_deinit(d);
	pthread_mutex_unlock(&s->lock);
}

enum err
evalset_check(struct evalset *s, const struct recipe *recipe, struct why *why)
{
	const struct data_spec *spec = &recipe->data;
	char here[DATASET_SHAPE_TEXT], there[DATASET_SHAPE_TEXT];
	struct dataset d;

	enum err e = borrow(s, recipe, &d, why);
	if (e)
		return e;
	if (dataset_shape_fits(&d, spec))
		e = check_cost(s->config, recipe, why);
	else
		e = err_set(why, ERR_INVALID,
		    "data set \"%s\" of the coordinator has examples of shape %s, data.shape is %s",
		    recipe->evaluate_data, dataset_shape_text(here, d.shape, d.dims),
		    dataset_shape_text(there, spec->shape, spec->dims));
	give_back(s, recipe, &d);
	return e;
}

uint64_t
evalset_net_bytes(const struct recipe *recipe)
{
	struct net *net = NULL;

	if (recipe->net.layer_count == 0 || plan_net(recipe, 0, &net, NULL))
		return 0;
	uint64_t bytes = net_bytes(net);
	net_free(net);
	return bytes;
}

/* How many nets there are at a time: as many as the configuration says, if so many fit into its limit and into the budget, at least one. A
 * job of before there was a limit has a net all the same. */
struct nets {
	unsigned threads;
	uint64_t taken; /* bytes, for all but the first */
};

static struct nets
take_nets(const struct config *c, const struct evalset_work *w)
{
	const uint64_t each = evalset_net_bytes(w->recipe);
	const uint64_t all = budget_all(w->budget, c->work_bytes);
	struct nets n = {.threads = 1};
	unsigned most = c->evaluation_threads > 0 ? (unsigned)c->evaluation_threads : w->threads;

	if (c->evaluation_bytes > 0 && each > 0 && c->evaluation_bytes / each < most)
		most = (unsigned)(c->evaluation_bytes / each);
	while (n.threads < most && budget_take(w->budget, all, each, false)) {
		n.threads++;
		n.taken += each;
	}
	return n;
}

enum err
evalset_run(
    struct evalset *s, const struct evalset_work *work, struct train_score *score, struct why *why)
{
	struct dataset d;

	enum err e = borrow(s, work->recipe, &d, why);
	if (e)
		return e;
	const struct nets nets = take_nets(s->config, work);
	const struct train_measure w = {.recipe = work->recipe,
	    .params = work->params,
	    .set = &d,
	    .counts = work->counts,
	    .threads = nets.threads,
	    .stop = work->stop,
	    .context = work->context};
	e = train_measure_run(&w, score, why);
	budget_give(work->budget, nets.taken, false);
	give_back(s, work->recipe, &d);
	return e;
}
