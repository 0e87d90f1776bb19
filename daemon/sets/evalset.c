#include "evalset.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "config.h"
#include "cut.h"
#include "err.h"
#include "glyphs.h"
#include "net.h"
#include "source.h"
#include "stamp.h"

struct held {
	bool loaded;
	struct dataset set;
	/* Of a set whose values stay in their file, which is mapped: */
	const char *path; /* of the configuration; NULL: they are in memory */
	struct stamp stamp; /* as it was read */
	unsigned long cuts; /* cut_count before that */
};

struct evalset {
	const struct config *config;
	pthread_mutex_t lock; /* held while a set is loaded */
	struct held sets[CONFIG_DATA_MAX];
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
		if (s->sets[i].loaded)
			dataset_deinit(&s->sets[i].set);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* --- files that somebody changes */

/* The file of a set that has its values in it. */
static const char *
mapped_path(const struct data_source *from)
{
	return from->format == DATA_IDX ? from->images
	    : from->format == DATA_NPY	? from->x
					: from->path;
}

/* Is a set's file as it was read? A removed file is: its bytes are there as long as it is mapped. */
static bool
is_as_read(const struct held *h)
{
	struct stamp now;

	if (!h->loaded || !h->path)
		return true;
	enum err e = stamp_of(h->path, &now, NULL);
	return (e == ERR_NOTFOUND || (!e && stamp_same(&now, &h->stamp))) &&
	    !cut_hit(h->set.rows->map.data, h->set.rows->map.len, h->cuts);
}

bool
evalset_stale(struct evalset *s, const char **name)
{
	bool stale = false;

	/* What is loaded just now is not old. */
	if (pthread_mutex_trylock(&s->lock) != 0)
		return false;
	for (size_t i = 0; i < CONFIG_DATA_MAX && !stale; i++) {
		stale = !is_as_read(&s->sets[i]);
		*name = s->config->data[i].name;
	}
	pthread_mutex_unlock(&s->lock);
	return stale;
}

/* Loads a set. Pages that cannot be read are zeros in the map, and must not be taken for values. */
static enum err
load_files(struct held *h, const struct data_source *from, struct why *why)
{
	const unsigned long cuts = cut_count();
	const char *path = mapped_path(from);
	struct stamp after;

	bool known = stamp_of(path, &h->stamp, NULL) == ERR_OK;
	enum err e = source_load(&h->set, from, NULL, why);
	if (e)
		return e;
	known = known && stamp_of(path, &after, NULL) == ERR_OK;
	if (!known || cut_count() != cuts || !stamp_same(&after, &h->stamp))
		e = err_set(
		    why, ERR_IO, "%.120s: changed while it was read, or its disk fails", path);
	if (e)
		return e;
	h->cuts = cuts;
	h->path = h->set.rows ? path : NULL;
	return ERR_OK;
}

/* Lock held. */
static enum err
load_locked(struct evalset *s, const char *name, const struct held **out, struct why *why)
{
	const struct config_data *d = config_data_find(s->config, name);
	enum err e = ERR_OK;

	if (!d)
		return err_set(why, ERR_NOTFOUND,
		    "evaluate.data: the coordinator has no data set \"%s\"; add [data %s] to its "
		    "configuration",
		    name, name);
	size_t i = (size_t)(d - s->config->data);
	struct held *h = &s->sets[i];
	*out = h;
	if (h->loaded)
		return ERR_OK;
	memset(h, 0, sizeof(*h));
	if (d->source.format == DATA_GLYPHS)
		e = glyphs_mixed(&h->set, d->seed, d->first_hand, d->hands, d->count);
	else
		e = load_files(h, &d->source, why);
	if (e)
		dataset_deinit(&h->set);
	h->loaded = !e;
	return e;
}

static enum err
load(struct evalset *s, const char *name, const struct held **out, struct why *why)
{
	pthread_mutex_lock(&s->lock);
	enum err e = load_locked(s, name, out, why);
	pthread_mutex_unlock(&s->lock);
	return e;
}

/* *out: the recipe's network, planned only, for its figures. */
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

/* Checks the set against the network before the first round; otherwise a figure would be missing after each round. */
static enum err
check_set(
    const struct net *net, const struct recipe *recipe, const struct dataset *d, struct why *why)
{
	struct why detail = {""};
	enum err e = train_check(net, d, &detail);

	return e ? err_set(why, e, "data set \"%s\" of the coordinator: %.150s",
		       recipe->evaluate_data, detail.text)
		 : ERR_OK;
}

static enum err
check_net(
    const struct config *c, const struct recipe *recipe, const struct dataset *d, struct why *why)
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
	e = check_set(net, recipe, d, why);
	net_free(net);
	if (e)
		return e;
	if (c->evaluation_work == 0 || work <= (double)c->evaluation_work)
		return ERR_OK;
	return err_set(why, ERR_LIMIT,
	    "evaluate: a batch of %d examples takes %.3g multiply-adds; the coordinator's [limits] "
	    "evaluation_work is %.3g",
	    TRAIN_MEASURE_BATCH, work, (double)c->evaluation_work);
}

/* *out: the set as the job reads it, a text in windows of the job's length, until give_back. */
static enum err
borrow(struct evalset *s, const struct recipe *recipe, struct dataset *out, const struct held **of,
    struct why *why)
{
	struct why detail = {""};
	enum err e = load(s, recipe->evaluate_data, of, why);

	if (e)
		return e;
	const struct dataset *all = &(*of)->set;
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

/* Ends borrow, with the lock held for windows, as a set counts the users of its rows. */
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
	const struct held *held = NULL;
	struct dataset d;

	enum err e = borrow(s, recipe, &d, &held, why);
	if (e)
		return e;
	if (dataset_shape_fits(&d, spec))
		e = check_net(s->config, recipe, &d, why);
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

/* How many nets an evaluation has at a time: as many as the configuration says, as far as its limit and the budget have room; at least one,
 * also for a job that was there before the limit. */
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
	const struct held *held = NULL;
	struct dataset d;

	enum err e = borrow(s, work->recipe, &d, &held, why);
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
	if (!e && !is_as_read(held))
		e = err_set(why, ERR_IO,
		    "%.120s: changed while the model was measured, or its disk fails", held->path);
	give_back(s, work->recipe, &d);
	return e;
}
