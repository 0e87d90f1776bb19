#include "measure.h"

#include <math.h>
#include <string.h>

#include "counts.h"
#include "dataset.h"
#include "tensor.h"
#include "train.h"
#include "worker.h"

#define SHARES 16

/* One thread's share of an evaluation. */
struct share {
	struct dataset part; /* a window into the set: its pointers are not its own */
	struct train_score score;
	struct counts *counts;
	enum err e;
	struct why why;
};

struct evaluation {
	const struct train_measure *work;
	struct share *shares;
};

static void
evaluate_share(void *arg, unsigned i)
{
	struct evaluation *v = arg;
	struct share *s = &v->shares[i];
	struct net *net = NULL;

	const struct train_measure *w = v->work;
	struct train_config config = {
	    .data = &w->recipe->data, .stop = w->stop, .context = w->context};

	s->e = net_new(&net, &w->recipe->net, w->recipe->data.class_count, TRAIN_MEASURE_BATCH,
	    false, 0, &s->why);
	if (!s->e && w->counts)
		s->e = counts_new(
		    &s->counts, &w->recipe->figures, w->recipe->data.class_count, &s->why);
	if (s->e) {
		net_free(net);
		return;
	}
	config.counts = s->counts;
	memcpy(net_params(net), w->params, net_tensors(net)->bytes);
	s->e = train_evaluate_while(stepper_net(net), &s->part, &config, &s->score, &s->why);
	net_free(net);
}

/* Sums the shares in order, so that the figures do not depend on the threads' timing. A loss that is no number in one of them
 * is none at all: that is a finding, which a guard must see, and no failure. */
static enum err
join(const struct evaluation *v, unsigned n, struct train_score *score, struct why *why)
{
	double loss = 0, weight = 0;
	uint64_t labels = 0, right = 0;
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
		loss += s->score.weight > 0 ? s->score.loss * s->score.weight : 0;
		weight += s->score.weight;
		right += s->score.right;
		labels += s->score.labels;
		if (s->counts)
			counts_add(v->work->counts, s->counts);
	}
	if (score->examples == 0)
		return err_set(why, ERR_INVALID, "the data set is empty");
	/* Something counted in a share whose loss is no number. */
	score->weight = finite || weight > 0 ? weight : 1;
	score->labels = labels;
	score->right = right;
	score->loss = finite && weight > 0 ? loss / weight : (double)NAN;
	bool labelled = net_spec_labels(&v->work->recipe->net);
	/* A model whose loss is no number is right about nothing. */
	score->accuracy = labelled && !finite ? 0
	    : labels > 0		      ? (double)right / (double)labels
					      : (double)NAN;
	return ERR_OK;
}

enum err
train_measure_run(const struct train_measure *w, struct train_score *score, struct why *why)
{
	struct share shares[SHARES] = {0};
	struct evaluation v = {w, shares};
	const struct dataset *d = w->set;
	unsigned n = d->count < SHARES ? 1 : SHARES;

	for (unsigned i = 0; i < n; i++) {
		size_t from = d->count * i / n, to = d->count * (i + 1) / n;
		shares[i].part = dataset_window(d, from, to - from);
	}
	worker_parallel(w->threads, n, evaluate_share, &v);
	enum err e = join(&v, n, score, why);
	for (unsigned i = 0; i < n; i++)
		counts_free(shares[i].counts);
	return e;
}
