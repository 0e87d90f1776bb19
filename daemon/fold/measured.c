#include "measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void
add_owned(struct fold *w, const struct report *r, double examples)
{
	const struct monitor_spec *m = &w->f->spec->monitor;

	for (size_t i = 0; m->metric == MONITOR_OWN && i < r->metric_count; i++)
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
	w->measured[w->measured_count++] =
	    (struct metric_report){(double)most, r.eval_loss, r.eval_accuracy};
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

/* The newest round before `below` whose task a delta of this buffer answers; 0: none that is not measured yet. */
static uint64_t
next_round(const struct fold *w, uint64_t below)
{
	uint64_t found = 0;

	for (size_t i = 0; i < w->count; i++)
		if (w->inputs[i].round < below && w->inputs[i].round > found)
			found = w->inputs[i].round;
	return found > w->f->measured ? found : 0;
}

enum err
measured_choose(struct fold *w, struct store_db *db)
{
	const bool devices = w->f->spec->recipe.evaluate_by == EVALUATE_DEVICES;
	const uint8_t *job = w->f->job_id;

	if (!devices && w->f->spec->monitor.metric != MONITOR_OWN)
		return ERR_OK;
	for (uint64_t b = UINT64_MAX; (b = next_round(w, b)) > 0;) {
		struct answers all = {.w = w};
		enum err e = store_accept_answers(db, job, b, see_answer, &all);
		if (e || all.count < w->f->spec->round.quorum) {
			if (e)
				return e;
			continue;
		}
		all.takes = true;
		w->out.row.measured = b;
		return store_accept_answers(db, job, b, see_answer, &all);
	}
	return ERR_OK;
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
		all[w->measured_count++] = (struct metric_report){weight, NAN, NAN};
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
