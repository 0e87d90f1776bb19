#include "measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "late.h"
#include "metric.h"
#include "row.h"
#include "store.h"

static void
add_owned(struct fold *w, const struct report *r, double examples)
{
	const struct monitor_spec *m = &w->f->spec->monitor;

	if (m->metric != MONITOR_OWN || !job_measures_base(w->f->spec, true))
		return;
	for (size_t i = 0; i < r->metric_count; i++)
		if (strcmp(r->metrics[i].name, m->name) == 0)
			w->owned[w->owned_count++] =
			    (struct metric_value){examples, r->metrics[i].value};
}

/* All sums, however many examples a device trained on. What there is no memory for is left out; what was accepted has been read once. */
static void
add_counts(struct fold *w, const char *text)
{
	const struct recipe *r = &w->f->spec->recipe;
	struct counts *one = NULL;

	if (r->evaluate_by != EVALUATE_DEVICES ||
	    messages_report_counts(
		&one, &r->figures, r->data.class_count, text, strlen(text), NULL) ||
	    !one)
		return;
	if (w->counts || counts_new(&w->counts, &r->figures, r->data.class_count, NULL) == ERR_OK)
		counts_add(w->counts, one);
	counts_free(one);
}

/* Room for one more of both. A report names each of its metrics once. */
static enum err
grow(struct fold *w)
{
	const size_t used = w->owned_count > w->measured_count ? w->owned_count : w->measured_count;

	if (used < w->measured_room)
		return ERR_OK;
	const size_t room = w->measured_room ? w->measured_room * 2 : 64;
	struct metric_value *owned = realloc(w->owned, room * sizeof(*owned));
	if (owned)
		w->owned = owned;
	struct metric_report *measured = realloc(w->measured, room * sizeof(*measured));
	if (measured)
		w->measured = measured;
	if (!owned || !measured)
		return ERR_NOMEM;
	w->measured_room = room;
	return ERR_OK;
}

enum err
measured_add(struct fold *w, const struct store_accept *a, uint64_t examples)
{
	struct report r;

	if (!a->report || messages_report_decode(&r, a->report, strlen(a->report), NULL))
		return ERR_OK;
	enum err e = grow(w);
	if (e)
		return e;
	add_owned(w, &r, (double)examples);
	if (!r.has_evaluate)
		return ERR_OK;
	add_counts(w, a->report);
	/* Of as many examples as it trained on, at most. */
	const uint64_t most = r.eval_examples < examples ? r.eval_examples : examples;
	if (most == 0)
		return ERR_OK;
	w->measured[w->measured_count++] = (struct metric_report){.weight = (double)most,
	    .loss = r.eval_loss,
	    .accuracy = r.eval_accuracy,
	    .most = metric_evaluated_most(w->f->spec, most),
	    .says = r.evaluated};
	w->measured_examples += most;
	return ERR_OK;
}

/* --- of a buffered job */

/* The answers to the tasks of one round. */
struct answers {
	struct fold *w;
	bool takes; /* else it only counts */
	uint64_t count;
};

static enum err
see_answer(void *ctx, const struct store_accept *a)
{
	struct answers *s = ctx;
	struct manifest m;

	if (a->folded > s->w->f->row.round)
		return ERR_OK;
	s->count++;
	if (!s->takes)
		return ERR_OK;
	enum err e = manifest_decode(&m, a->manifest, sizeof(a->manifest), NULL);
	if (e)
		return e;
	memcpy(s->w->out.measured_base, m.base, sizeof(m.base));
	return measured_add(s->w, a, m.examples);
}

static bool
has_round(const struct late_answers *all, size_t count, uint64_t round)
{
	for (size_t i = 0; i < count; i++)
		if (all[i].round == round)
			return true;
	return false;
}

/* How many have answered the rounds whose tasks the buffer's deltas are of: no other has more than before. */
static enum err
count_answers(struct fold *w, struct store_db *db, struct late_answers *all, size_t *count)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < w->count && !e; i++) {
		struct answers one = {.w = w};
		if (has_round(all, *count, w->inputs[i].round))
			continue;
		e = store_accept_answers(db, w->f->job_id, w->inputs[i].round, see_answer, &one);
		all[(*count)++] = (struct late_answers){w->inputs[i].round, one.count};
	}
	return e;
}

static enum err
choose(struct fold *w, struct store_db *db, uint64_t *round)
{
	struct late_answers *all = calloc(w->count + 1, sizeof(*all));
	size_t count = 0;
	enum err e = all ? count_answers(w, db, all, &count) : ERR_NOMEM;

	if (!e)
		*round = late_measured(all, count, w->f->measured, w->f->quorum);
	free(all);
	return e;
}

enum err
measured_choose(struct fold *w, struct store_db *db)
{
	struct answers all = {.w = w, .takes = true};
	/* Those who gave up have measured its own base. */
	uint64_t round = w->f->no_numbers > 0 ? w->f->row.round : 0;
	enum err e = ERR_OK;

	if (!job_measures_base(w->f->spec, w->f->spec->monitor.metric == MONITOR_OWN))
		return ERR_OK;
	if (round == 0)
		e = choose(w, db, &round);
	if (e || round == 0)
		return e;
	w->out.row.measured = round;
	memcpy(w->out.measured_base, w->f->row.base, 32);
	return store_accept_answers(db, w->f->job_id, round, see_answer, &all);
}

/* --- the figure */

/* Who gave up because the base gave no numbers has measured it, too, on as much as the others, for all that is known. */
static enum err
add_silent(struct fold *w)
{
	size_t count = w->measured_count, none = w->f->no_numbers;
	double weight = count > 0 ? (double)w->measured_examples / (double)count : 1;
	struct metric_report *all = realloc(w->measured, (count + none) * sizeof(*all));

	if (!all)
		return ERR_NOMEM;
	w->measured = all;
	for (size_t i = 0; i < none; i++)
		all[w->measured_count++] =
		    (struct metric_report){.weight = weight, .loss = NAN, .accuracy = NAN};
	return ERR_OK;
}

enum err
measured_end(struct fold *w, struct why *why)
{
	struct metric m = {.known = false};
	enum err e = ERR_OK;

	bool lacks = w->f->lacks && w->f->row.state == OUTCOME_EVALUATING;

	if (!lacks)
		w->out.row.eval_own = metric_own(w->f->spec, w->owned, w->owned_count);
	if (w->f->spec->recipe.evaluate_by != EVALUATE_DEVICES || lacks)
		return ERR_OK;
	if (w->f->no_numbers > 0)
		e = add_silent(w);
	if (!e)
		e = metric_of(&m, w->f->spec, w->measured, w->measured_count);
	if (e)
		return err_set(why, e, "no memory for the devices' figures");
	if (m.known)
		w->out.row.evaluate =
		    (struct store_metric){true, w->measured_examples, m.loss, m.accuracy};
	return ERR_OK;
}
