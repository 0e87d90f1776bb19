#include "evalset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glyphs.h"
#include "net.h"
#include "source.h"
#include "worker.h"

struct evalset {
	const struct config *config;
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
	free(s);
}

static enum err
load_files(struct dataset *out, const struct config_data *d, struct why *why)
{
	const struct source from = {
	    .images = d->format == CONFIG_IDX ? d->images : NULL,
	    .labels = d->labels,
	    .path = d->path,
	    .csv = {.label = d->label[0] ? d->label : NULL, .regression = d->regression},
	};

	return source_load(out, &from, why);
}

static enum err
load(struct evalset *s, const char *name, struct dataset **out, struct why *why)
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
	if (d->format == CONFIG_GLYPHS)
		e = glyphs_mixed(&s->sets[i], d->seed, d->first_hand, d->hands, d->count);
	else
		e = load_files(&s->sets[i], d, why);
	if (e) {
		dataset_deinit(&s->sets[i]);
		return e;
	}
	s->loaded[i] = true;
	return ERR_OK;
}

enum err
evalset_check(struct evalset *s, const struct recipe *recipe, struct why *why)
{
	struct dataset *d = NULL;
	size_t features = 1;

	for (unsigned i = 0; i < recipe->data.dims; i++)
		features *= recipe->data.shape[i];

	enum err e = load(s, recipe->evaluate_data, &d, why);
	if (e)
		return e;
	if (d->features != features)
		return err_set(why, ERR_INVALID,
		    "data set \"%s\" of the coordinator has %zu values per example, data.shape has "
		    "%zu",
		    recipe->evaluate_data, d->features, features);
	return ERR_OK;
}

/* One thread's share of an evaluation. */
struct share {
	struct dataset part; /* a window into the set: its pointers are not its own */
	struct train_score score;
	enum err e;
	struct why why;
};

struct evaluation {
	const struct recipe *recipe;
	const float *params;
	struct share *shares;
};

static void
evaluate_share(void *arg, unsigned i)
{
	struct evaluation *v = arg;
	struct share *s = &v->shares[i];
	struct net *net = NULL;

	s->e = net_new(&net, &v->recipe->net, v->recipe->data.class_count, 32, false, 0, &s->why);
	if (s->e)
		return;
	memcpy(net_params(net), v->params, net_tensors(net)->bytes);
	s->e = train_evaluate(net, &s->part, &v->recipe->data, &s->score, &s->why);
	net_free(net);
}

static struct dataset
window(const struct dataset *d, size_t from, size_t count)
{
	struct dataset w = *d;

	w.count = count;
	w.bytes = d->bytes ? d->bytes + from * d->features : NULL;
	w.floats = d->floats ? d->floats + from * d->features : NULL;
	w.labels = d->labels ? d->labels + from : NULL;
	w.targets = d->targets ? d->targets + from * d->target_width : NULL;
	return w;
}

/* Sums the shares in order, so that the figures do not depend on the threads' timing. A loss that is no number in one of them
 * is none at all: that is a finding, which a guard must see, and no failure. */
static enum err
join(const struct evaluation *v, unsigned n, struct train_score *score, struct why *why)
{
	double loss = 0, right = 0;
	bool finite = true;

	score->examples = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct share *s = &v->shares[i];
		if (s->e && s->e != ERR_NUMERIC) {
			if (why)
				*why = s->why;
			return s->e;
		}
		finite = finite && s->e == ERR_OK;
		score->examples += s->part.count;
		loss += s->score.loss * (double)s->score.examples;
		right += s->score.accuracy * (double)s->score.examples;
	}
	if (score->examples == 0)
		return err_set(why, ERR_INVALID, "the data set is empty");
	score->loss = finite ? loss / (double)score->examples : (double)NAN;
	score->accuracy = finite       ? right / (double)score->examples
	    : v->shares[0].part.labels ? 0
				       : (double)NAN;
	return ERR_OK;
}

/* The set is cut into a fixed number of shares, whatever the number of threads: the sums keep their order. */
#define SHARES 16

enum err
evalset_run(struct evalset *s, const struct recipe *recipe, const float *params, unsigned threads,
    struct train_score *score, struct why *why)
{
	struct share shares[SHARES] = {0};
	struct evaluation v = {recipe, params, shares};
	struct dataset *d = NULL;

	enum err e = load(s, recipe->evaluate_data, &d, why);
	if (e)
		return e;
	unsigned n = d->count < SHARES ? 1 : SHARES;
	for (unsigned i = 0; i < n; i++) {
		size_t from = d->count * i / n, to = d->count * (i + 1) / n;
		shares[i].part = window(d, from, to - from);
	}
	worker_parallel(threads, n, evaluate_share, &v);
	return join(&v, n, score, why);
}
