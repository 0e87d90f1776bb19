#include "trainer.h"

#include <stdlib.h>
#include <string.h>

#include "builtin.h"
#include "counts.h"
#include "dataset.h"
#include "events.h"
#include "examples.h"
#include "settings.h"
#include "training.h"

static bool
fits_builtin(const struct settings *settings, const struct recipe *recipe)
{
	(void)settings;
	return recipe->builtin;
}

/* The first that fits does the job: an owner's [trainer builtin] stands before the one that is built in. */
static const struct trainer trainers[] = {
    {"external", trainer_external_fits, trainer_external_run},
    {"builtin", fits_builtin, trainer_builtin_run},
};

const struct trainer *
trainer_find(const struct settings *settings, const struct recipe *recipe)
{
	for (size_t i = 0; i < sizeof(trainers) / sizeof(*trainers); i++)
		if (trainers[i].fits(settings, recipe))
			return &trainers[i];
	return NULL;
}

bool
trainer_is_builtin(const struct settings *settings, const struct recipe *recipe)
{
	const struct trainer *t = trainer_find(settings, recipe);

	return t && t->run == trainer_builtin_run;
}

/* --- what is built in */

/* A tensor that was not trained is read to where it stands. */
static enum err
read_weights(void *work, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	const struct work *w = work;

	memmove(out, w->weights + t->begin + at, len);
	return ERR_OK;
}

static void
drop_weights(void *work)
{
	struct work *w = work;

	free(w->weights);
	w->weights = NULL;
}

static enum err
read_shift(void *work, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	const struct work *w = work;

	memcpy(out, (const uint8_t *)(w->shift + t->first) + at, len);
	return ERR_OK;
}

static void
drop_shift(void *work)
{
	struct work *w = work;

	free(w->shift);
	w->shift = NULL;
}

static enum err
take_weights(void *work, const struct training_source *after, struct why *why)
{
	struct work *w = work;
	enum err e = ERR_OK;

	if (!w->weights)
		w->weights = malloc((size_t)w->table.bytes);
	if (!w->weights)
		return err_set(why, ERR_NOMEM, "no memory for the weights");
	for (size_t i = 0; !e && i < w->table.count; i++) {
		const struct tensor *t = &w->table.items[i];
		e = after->read(
		    after->context, t, 0, (size_t)(t->end - t->begin), w->weights + t->begin);
	}
	return e ? err_set(why, e, "the trained weights cannot be read") : ERR_OK;
}

enum err
trainer_builtin_run(const struct trainer_in *in, struct trainer_out *out, struct why *why)
{
	struct work *w = in->work;
	const struct training_source shift = {read_shift, drop_shift, w};
	const struct training_in training = {.recipe = &w->task.recipe,
	    .kind = w->task.kind,
	    .seed = w->task.seed,
	    .round = w->task.round,
	    .device = in->device,
	    .table = &w->table,
	    .base = {read_weights, drop_weights, w},
	    .shift = w->shift ? &shift : NULL,
	    .train = in->train,
	    .validation = in->validation,
	    .threads = in->threads ? in->threads : in->settings->threads,
	    .memory_bytes = in->settings->memory_bytes,
	    .kernels = in->kernels,
	    .epochs = in->settings->epochs,
	    .seconds = in->seconds,
	    .stop = in->stop,
	    .context = in->context,
	    .take = take_weights,
	    .taker = w};
	struct training_out got;
	enum err e = training_run(&training, &got, why);
	const struct train_result *r = &got.result;

	memset(out, 0, sizeof(*out));
	out->finish = (struct finish){.examples = r->examples,
	    .steps = r->steps,
	    .loss = r->loss,
	    .accuracy = r->accuracy,
	    .normaliser = r->normaliser,
	    .optimizer = got.optimizer,
	    .partial = r->partial};
	out->report = got.report;
	out->has_report = got.has_report;
	out->counts = got.counts;
	out->abort = got.abort;
	return e;
}

/* --- what goes in and comes out */

void
trainer_in_give(struct trainer_in *in, const struct examples_task *hand, char *examples_id)
{
	in->train = hand->train;
	in->validation = hand->validation;
	in->all = hand->drawn ? hand->all : 0;
	/* What is drawn for one round is in no file that a later one would find. */
	in->examples_id = hand->drawn ? NULL : examples_id;
}

void
trainer_out_deinit(struct trainer_out *out)
{
	counts_free(out->counts);
	out->counts = NULL;
	out->report.counts = NULL;
}

static void
tell_lost(const struct why *why, const struct events *events, const char *job)
{
	if (*why->text)
		events_emit(events, EVENTS_ERROR, "kept.lost",
		    EVENTS_PAIRS(EVENTS_S("job", job), EVENTS_S("reason", why->text)));
}

void
trainer_out_tell(const struct trainer_out *out, const struct events *events, const char *job)
{
	tell_lost(&out->lost, events, job);
	tell_lost(&out->unkept, events, job);
}

void
trainer_out_done(const struct trainer_out *out, const struct events *events,
    const struct task *task, double seconds)
{
	const struct finish *f = &out->finish;

	if (task->kind == TASK_EVALUATE)
		events_emit(events, EVENTS_INFO, "evaluated",
		    EVENTS_PAIRS(EVENTS_S("job", task->job), EVENTS_U("round", task->round),
			EVENTS_U("examples", f->examples), EVENTS_D("loss", out->report.eval_loss),
			EVENTS_D("accuracy", out->report.eval_accuracy),
			EVENTS_D("seconds", seconds)));
	else
		events_emit(events, EVENTS_INFO, "trained",
		    EVENTS_PAIRS(EVENTS_S("job", task->job), EVENTS_U("round", task->round),
			EVENTS_U("examples", f->examples), EVENTS_U("steps", f->steps),
			EVENTS_D("loss", messages_report_loss(&out->report.trained, f->loss)),
			EVENTS_D("accuracy", f->accuracy), EVENTS_D("seconds", seconds)));
}

bool
trainer_too_little(const struct trainer_in *in, const struct finish *finish, struct why *why)
{
	const struct task *task = &in->work->task;
	uint64_t planned = training_steps(&task->recipe.local, in->train->count);

	if (task->kind != TASK_TRAIN || !finish->partial || finish->steps >= (planned + 9) / 10)
		return false;
	err_set(why, ERR_CLOSED, "stopped after %llu of %llu steps",
	    (unsigned long long)finish->steps, (unsigned long long)planned);
	return true;
}
