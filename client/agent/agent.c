#include "agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "backoff.h"
#include "clock.h"
#include "companions.h"
#include "data_sets.h"
#include "device.h"
#include "document.h"
#include "events.h"
#include "examples.h"
#include "fault.h"
#include "figures_file.h"
#include "gate.h"
#include "owner_check.h"
#include "program.h"
#include "room.h"
#include "spawner_pool.h"
#include "task_directory.h"
#include "trainer.h"
#include "trainer_offer.h"
#include "training.h"

#define JOBS_KNOWN 16

struct agent {
	const struct agent_options *options;
	struct rivulet *r;
	struct data_sets data_sets;
	struct document jobs[JOBS_KNOWN]; /* a ring: of jobs that a gate was asked about */
	size_t next_job;
	struct spawner_pool *pool;
	struct spawner spawner;
	struct companions companions;
	struct owner_check check;
	struct spawner checker; /* of its own: a trainer may be at work */
	struct trainer_out out; /* of the task in hand */
	unsigned threads; /* that it is to be done with; 0: as the settings say */
	char resting[160]; /* why, as it was told last; "": it works */
	enum wait_reason stopped; /* why its training was ended by the owner's rules */
	struct figures_file figures;
	uint64_t rounds; /* that were done and sent at once, for options->rounds */
};

/* *out: the job's document, fetched once. */
static enum err
find_document(struct agent *a, const char *job, const struct document **out, struct why *why)
{
	struct document d;

	for (size_t i = 0; i < JOBS_KNOWN; i++)
		if (strcmp(a->jobs[i].job, job) == 0) {
			*out = &a->jobs[i];
			return ERR_OK;
		}
	enum err e = document_fetch(&d, device_session(a->r), job, why);
	if (e)
		return e;
	*out = &a->jobs[a->next_job];
	document_deinit(&a->jobs[a->next_job]);
	a->jobs[a->next_job] = d;
	a->next_job = (a->next_job + 1) % JOBS_KNOWN;
	return ERR_OK;
}

/* Does the owner let only some jobs use the data set or the trainer that the recipe names? */
static bool
is_gated(struct agent *a, const struct recipe *recipe)
{
	const struct data_sets_item *item = data_sets_find(&a->data_sets, recipe->data.name);
	const struct settings_trainer *program =
	    settings_find_trainer(device_settings(a->r), recipe->trainer);

	return (item && gate_used(&item->settings->gate)) || (program && gate_used(&program->gate));
}

/* If the owner lets only some jobs in, replaces the task's recipe by the one in the job's document. */
static enum abort_reason
check_document(struct agent *a, struct work *w, struct why *why)
{
	const struct document *document = NULL;
	struct why said = {""};

	if (!is_gated(a, &w->task.recipe))
		return ABORT_NONE;
	enum err e = find_document(a, w->task.job, &document, &said);
	if (!e)
		e = document_apply(document, w, &said);
	if (!e)
		return ABORT_NONE;
	err_set(why, e, "allow_jobs and deny_jobs need the job's document: %.180s",
	    said.text[0] ? said.text : err_name(e));
	return e == ERR_NOMEM ? ABORT_OUT_OF_MEMORY : ABORT_REFUSED;
}

/* Does the gate let the job in? check_document has fetched the document for each gate in use. */
static bool
admitted(struct agent *a, const struct gate *gate, const char *job)
{
	const struct document *document = NULL;

	return !gate_used(gate) ||
	    (find_document(a, job, &document, NULL) == ERR_OK &&
		gate_admits(gate, job, document->name));
}

static enum abort_reason
consider_trainer(struct agent *a, const struct work *w, struct why *why)
{
	const struct recipe *recipe = &w->task.recipe;
	const struct settings_trainer *program =
	    settings_find_trainer(device_settings(a->r), recipe->trainer);

	if (!trainer_find(device_settings(a->r), recipe)) {
		err_set(why, ERR_NOTFOUND, "no trainer \"%s\" here", recipe->trainer);
		return ABORT_NO_TRAINER;
	}
	if (program && !settings_trainer_does(program, task_kind_name(w->task.kind))) {
		err_set(why, ERR_DENIED, "the owner does not give trainer %s tasks of kind %s",
		    program->name, task_kind_name(w->task.kind));
		return ABORT_UNKNOWN_KIND;
	}
	if (program && !admitted(a, &program->gate, w->task.job)) {
		err_set(why, ERR_DENIED, "the owner does not let this job use trainer %s",
		    program->name);
		return ABORT_REFUSED;
	}
	return ABORT_NONE;
}

/* Before anything is downloaded: may and can this device do the task? */
static enum abort_reason
consider(void *agent, struct work *w, struct why *why)
{
	struct agent *a = agent;
	enum abort_reason reason = check_document(a, w, why);

	if (reason)
		return reason;
	const struct recipe *recipe = &w->task.recipe;
	struct data_sets_item *item = data_sets_find(&a->data_sets, recipe->data.name);
	if (!item || data_sets_count(item, &recipe->data) < recipe->data.min_examples) {
		err_set(why, ERR_NOTFOUND, "no data set \"%s\" here, or too few examples of it",
		    recipe->data.name);
		return ABORT_NO_DATA;
	}
	if (!admitted(a, &item->settings->gate, w->task.job)) {
		err_set(why, ERR_DENIED, "the owner does not let this job use data %s",
		    item->settings->name);
		return ABORT_REFUSED;
	}
	if (data_fits(&item->all, item->settings, recipe, why))
		return ABORT_DATA_MISMATCH;
	reason = consider_trainer(a, w, why);
	return reason ? reason : room_find(a->r, item, w, &a->threads, why);
}

static enum err
run_trainer(struct agent *a, const struct trainer_in *in, struct why *why)
{
	const struct trainer *trainer = trainer_find(in->settings, &in->work->task.recipe);

	events_emit(device_events(a->r), EVENTS_DEBUG, "training",
	    EVENTS_PAIRS(EVENTS_S("trainer", trainer->name)));
	return trainer->run(in, &a->out, why);
}

/* Should the training stop? Called during a training; also tends to persistent programs that wait for a task. */
static bool
stop_training(void *agent)
{
	struct agent *a = agent;
	struct why why;

	companions_tend(&a->companions);
	figures_file_tick(&a->figures, a->r);
	if (!a->stopped && (a->stopped = device_stops(a->r, &why)))
		events_emit(device_events(a->r), EVENTS_INFO, "training.stopped",
		    EVENTS_PAIRS(EVENTS_S("reason", wait_reason_name(a->stopped)),
			EVENTS_S("why", why.text)));
	return a->stopped || device_cancelled(a->r);
}

static enum err
train(struct agent *a, struct why *why)
{
	struct work *w = device_task(a->r);
	const struct settings *settings = device_settings(a->r);
	struct data_sets_item *item = data_sets_find(&a->data_sets, w->task.recipe.data.name);
	struct trainer_in in = {.work = w,
	    .settings = settings,
	    .home = device_home(a->r),
	    .kernels = device_home(a->r),
	    .apart = a->pool->apart,
	    .device = session_device(device_session(a->r)),
	    .spawner = &a->spawner,
	    .seconds = work_budget(w, settings->seconds_per_round),
	    .threads = a->threads,
	    .companions = &a->companions,
	    .stop = stop_training,
	    .context = a};
	struct examples_task hand = {.drawn = false};

	a->out.abort = ABORT_NO_DATA;
	if (!item)
		return err_set(why, ERR_NOTFOUND, "the data set is gone");
	in.data = item->settings;
	enum err e = data_sets_give(item, &w->task, in.device, &hand);
	if (e) {
		a->out.abort = ABORT_OUT_OF_MEMORY;
		examples_task_deinit(&hand);
		return err_set(why, e, "the data set cannot be divided");
	}
	trainer_in_give(&in, &hand, data_sets_examples(item, &w->task.recipe.data));
	a->stopped = WAIT_NONE;
	e = run_trainer(a, &in, why);
	trainer_out_tell(&a->out, device_events(a->r), w->task.job);
	examples_task_deinit(&hand);
	if (!e && a->stopped && trainer_too_little(&in, &a->out.finish, why)) {
		a->out.abort = abort_reason_of_owner(a->stopped);
		e = ERR_CLOSED;
	}
	return e;
}

/* Why a delta could not be made. */
static enum abort_reason
submit_reason(const struct rivulet *r, int rc)
{
	if (rc == RIVULET_NUMERIC)
		return ABORT_NOT_FINITE;
	if (rc == RIVULET_NOMEM)
		return ABORT_OUT_OF_MEMORY;
	return rc == RIVULET_IO ? device_disk(r) : ABORT_TRAINER_FAILED;
}

/* Why the task is given back. If the trainer was told to end and did not do so well, the cause is why it was told. */
static struct abort_cause
abort_cause(const struct agent *a)
{
	const struct trainer_out *out = &a->out;

	if (a->stopped && (out->abort == ABORT_DEADLINE || out->abort == ABORT_STOPPED))
		return abort_reason_cause(abort_reason_of_owner(a->stopped));
	if (out->abort == ABORT_UNKNOWN)
		return abort_reason_parse(out->word);
	return abort_reason_cause(out->abort ? out->abort : ABORT_TRAINER_FAILED);
}

/* Gives the task back with the sentence and as much of the end of the trainer's output as fits. */
static int
give_back(struct agent *a, const struct why *why)
{
	char text[TRAINER_LOG_MAX + sizeof(why->text)];
	const char *log = a->out.log;
	size_t all = strlen(why->text) + 1 + strlen(log);

	if (all >= TRAINER_LOG_MAX)
		log += all + 1 - TRAINER_LOG_MAX;
	snprintf(text, sizeof(text), "%s%s%s", why->text, *log ? "\n" : "", log);
	return device_abort(a->r, abort_cause(a), text);
}

static int
train_and_submit(struct agent *a)
{
	struct rivulet *r = a->r;
	const struct task *task = &device_task(r)->task;
	struct why why = {""};
	double began = backoff_now();
	enum err e = train(a, &why);

	if (e) {
		int rc = give_back(a, &why);
		return rc == RIVULET_STOPPED ? rc : RIVULET_INVALID;
	}
	trainer_out_done(&a->out, device_events(r), task, backoff_now() - began);
	FAULT("client.trained");
	a->out.finish.report = a->out.has_report ? &a->out.report : NULL;
	int rc = finish_submit(r, &a->out.finish);
	if (device_task(r)) {
		snprintf(why.text, sizeof(why.text), "%s", rivulet_why(r));
		(void)device_abort(r, abort_reason_cause(submit_reason(r, rc)), why.text);
	}
	return rc;
}

static int
work_on(struct agent *a)
{
	int rc = train_and_submit(a);

	trainer_out_deinit(&a->out);
	return rc;
}

static void
tell_status(struct agent *a, const char *what)
{
	figures_file_tick(&a->figures, a->r);
	if (a->options->status)
		a->options->status(a->options->rivulet.context, what);
}

static bool
reload_wanted(const struct agent *a)
{
	return a->options->reload && *a->options->reload;
}

/* Tells the service manager why the device waits. */
static void
tell_rest(struct agent *a)
{
	const char *rest = device_unready(a->r), *word = *rest ? rest : device_shortage(a->r);
	char line[sizeof(a->resting) + 16] = "waiting for work";

	if (strcmp(word, a->resting) == 0)
		return;
	if (*word)
		snprintf(line, sizeof(line), "%s: %s", *rest ? "resting" : "waiting", word);
	snprintf(a->resting, sizeof(a->resting), "%s", word);
	tell_status(a, line);
}

/* Called while the device waits. True: the settings are to be read again. */
static bool
interrupt(void *agent)
{
	struct agent *a = agent;

	companions_tend(&a->companions);
	figures_file_tick(&a->figures, a->r);
	tell_rest(a);
	return reload_wanted(a);
}

/* Waits for a task, however long that takes, and does it. RIVULET_TIMEOUT only if the settings are to be read again before there is one. */
static int
one_task(struct agent *a)
{
	const struct rivulet_task *task;
	char line[160];
	int rc = RIVULET_TIMEOUT;

	tell_status(a, "waiting for work");
	a->resting[0] = '\0';
	while (rc == RIVULET_TIMEOUT) {
		if (reload_wanted(a))
			return rc;
		if (data_sets_refresh(&a->data_sets, device_events(a->r)))
			data_sets_offer(&a->data_sets, device_offer(a->r));
		bool all = device_offer(a->r)->data_count == a->data_sets.count;
		rc = rivulet_next(a->r, all ? -1 : 60, &task);
	}
	if (rc != RIVULET_OK) {
		if (rc != RIVULET_STOPPED)
			events_emit(device_events(a->r), EVENTS_ERROR, "task.failed",
			    EVENTS_PAIRS(EVENTS_S("reason", rivulet_why(a->r))));
		return rc;
	}
	snprintf(line, sizeof(line), "%s round %llu of job %.8s",
	    device_task(a->r)->task.kind == TASK_EVALUATE ? "evaluating" : "training",
	    (unsigned long long)task->round, task->job);
	tell_status(a, line);
	return work_on(a);
}

static bool
told_to_end(void *agent)
{
	const struct rivulet_options *o = &((struct agent *)agent)->options->rivulet;

	return o->cancel && o->cancel(o->context) != 0;
}

static int
loop(struct agent *a)
{
	for (;;) {
		int rc = one_task(a);
		if (rc == RIVULET_TIMEOUT && reload_wanted(a))
			return rc;
		if (rc == RIVULET_STOPPED || told_to_end(a))
			return RIVULET_OK;
		if (a->options->once)
			return rc;
		if (rc == RIVULET_OK && ++a->rounds == a->options->rounds)
			return RIVULET_OK;
		/* A delta refused once is likely to be refused again: that waits like any failure. */
		if (rc == RIVULET_OK)
			continue;
		figures_file_tick(&a->figures, a->r);
		if (!device_wait(a->r))
			return RIVULET_OK;
	}
}

/* Warns the owner if programs cannot be confined to a sandbox. */
static void
say_unconfined(struct agent *a)
{
	if (device_settings(a->r)->trainer_count > 0 && program_unconfined())
		events_emit(device_events(a->r), EVENTS_WARN, "trainers.unconfined",
		    EVENTS_PAIRS(EVENTS_S("reason", program_unconfined())));
}

/* Sets the owner's check, if the settings have one, and makes its spawner. */
static enum err
set_check(struct agent *a, struct why *why)
{
	const struct settings *s = device_settings(a->r);

	if (!*s->eligibility.check)
		return ERR_OK;
	enum err e = a->checker.fd < 0 ? spawner_pool_spawner(a->pool, &a->checker, why) : ERR_OK;
	a->check = (struct owner_check){.settings = s,
	    .home = device_home(a->r),
	    .apart = a->pool->apart,
	    .spawner = &a->checker,
	    .stop = told_to_end,
	    .context = a};
	device_check_with(a->r, owner_check_ask, &a->check);
	return e;
}

/* The device, its data sets and what it offers, by the settings as they are now. */
static int
open_device(struct agent *a, char *why, size_t why_size)
{
	struct why inner = {""};
	int rc = device_open(&a->r, &a->options->rivulet, a->options->log, &inner);

	if (rc != RIVULET_OK) {
		snprintf(why, why_size, "%s", inner.text);
		return rc;
	}
	enum err e = apart_check_home(a->pool->apart, device_home(a->r), &inner);
	if (e || set_check(a, &inner)) {
		snprintf(why, why_size, "%s", inner.text);
		rivulet_close(a->r);
		return e ? RIVULET_DENIED : RIVULET_IO;
	}
	device_consider(a->r, consider, a);
	device_interrupt(a->r, interrupt, a);
	task_directory_clean(device_home(a->r), a->pool->apart);
	companions_init(&a->companions,
	    &(struct companion_place){.settings = device_settings(a->r),
		.home = device_home(a->r),
		.apart = a->pool->apart,
		.pool = a->pool,
		.events = device_events(a->r)});
	data_sets_init(&a->data_sets, device_settings(a->r));
	data_sets_refresh(&a->data_sets, device_events(a->r));
	data_sets_offer(&a->data_sets, device_offer(a->r));
	say_unconfined(a);
	trainer_offer_put(device_offer(a->r),
	    &(struct trainer_offer){.settings = device_settings(a->r),
		.events = device_events(a->r),
		.home = device_home(a->r),
		.apart = a->pool->apart,
		.spawner = &a->spawner,
		.stop = device_cancelled,
		.context = a->r});
	return RIVULET_OK;
}

static void
close_device(struct agent *a)
{
	companions_deinit(&a->companions);
	data_sets_deinit(&a->data_sets);
	rivulet_close(a->r);
	a->r = NULL;
}

/* Nothing of the old settings is left over, as after a restart; but no task was in hand, and the process stays. */
static int
reload(struct agent *a, char *why, size_t why_size)
{
	struct settings *fresh = NULL;
	struct why reason = {""};

	*a->options->reload = 0;
	enum err e = settings_load(&fresh, device_home(a->r), a->options->rivulet.config, &reason);
	settings_free(fresh);
	if (e) {
		events_emit(device_events(a->r), EVENTS_ERROR, "reload.failed",
		    EVENTS_PAIRS(EVENTS_S("reason", reason.text)));
		return RIVULET_OK;
	}
	close_device(a);
	int rc = open_device(a, why, why_size);
	if (rc == RIVULET_OK)
		events_emit(device_events(a->r), EVENTS_INFO, "reload.done",
		    EVENTS_PAIRS(EVENTS_U("data", device_offer(a->r)->data_count),
			EVENTS_U("trainers", device_offer(a->r)->trainer_count)));
	return rc;
}

/* Until it is told to stop, or cannot go on. */
static int
work(struct agent *a, char *why, size_t why_size)
{
	int rc;

	while ((rc = loop(a)) == RIVULET_TIMEOUT) {
		rc = reload(a, why, why_size);
		if (rc != RIVULET_OK)
			return rc;
	}
	if (rc != RIVULET_OK && why && why_size)
		snprintf(why, why_size, "%s", rivulet_why(a->r));
	events_emit(device_events(a->r), EVENTS_INFO, "stopped",
	    EVENTS_PAIRS(EVENTS_U("code", (unsigned)rc)));
	close_device(a);
	return rc;
}

static int
serve(struct agent *a, char *why, size_t why_size)
{
	int rc = open_device(a, why, why_size);

	if (rc != RIVULET_OK)
		return rc;
	events_emit(device_events(a->r), EVENTS_INFO, "started",
	    EVENTS_PAIRS(EVENTS_S("device", rivulet_device(a->r)),
		EVENTS_S("name", rivulet_name(a->r)),
		EVENTS_S("coordinator", session_url(device_session(a->r))),
		EVENTS_U("data", device_offer(a->r)->data_count)));
	if (a->options->ready)
		a->options->ready(a->options->rivulet.context);
	return work(a, why, why_size);
}

static int
run(const struct agent_options *options, struct spawner_pool *pool, char *why, size_t why_size)
{
	struct agent *a = calloc(1, sizeof(*a));
	struct why inner = {""};
	int rc = RIVULET_IO;

	if (!a)
		return RIVULET_NOMEM;
	a->options = options;
	a->pool = pool;
	a->checker.fd = -1;
	a->figures.start = clock_wall();
	/* Nobody of the same user may look into this process. */
	if (spawner_pool_spawner(pool, &a->spawner, &inner) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		snprintf(why, why_size, "%s", inner.text);
	else
		rc = serve(a, why, why_size);
	for (size_t i = 0; i < JOBS_KNOWN; i++)
		document_deinit(&a->jobs[i]);
	spawner_deinit(&a->checker);
	spawner_deinit(&a->spawner);
	free(a);
	return rc;
}

int
agent_run(const struct agent_options *options, char *why, size_t why_size)
{
	struct spawner_pool pool;
	struct apart apart, *own = options->trainer_user ? &apart : NULL;
	struct why inner = {""};

	if (own && apart_init(own, &inner)) {
		snprintf(why, why_size, "%s", inner.text);
		return RIVULET_INVALID;
	}
	/* It comes first: it shall hold no key, and no memory that it has no use for. */
	if (spawner_pool_init(&pool, own, &inner)) {
		snprintf(why, why_size, "%s", inner.text);
		return RIVULET_IO;
	}
	int rc = run(options, &pool, why, why_size);
	spawner_pool_deinit(&pool);
	if (own)
		apart_deinit(own);
	return rc;
}
