#include "trainer.h"

#include "counts.h"
#include "events.h"
#include "training.h"

/* The first that fits does the job: an owner's [trainer builtin] stands before the one that is built in. */
static const struct trainer trainers[] = {
    {"external", trainer_external_fits, trainer_external_run},
    {"builtin", trainer_builtin_fits, trainer_builtin_run},
};

const struct trainer *
trainer_find(const struct settings *settings, const struct recipe *recipe)
{
	for (size_t i = 0; i < sizeof(trainers) / sizeof(*trainers); i++)
		if (trainers[i].fits(settings, recipe))
			return &trainers[i];
	return NULL;
}

void
trainer_in_give(struct trainer_in *in, const struct data_hand *hand, char *examples_id)
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
