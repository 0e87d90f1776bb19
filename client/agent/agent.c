#include "agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "device.h"
#include "fault.h"
#include "gate.h"
#include "stock.h"
#include "trainer.h"
#include "trainer_offer.h"
#include "training.h"

#define DEADLINE_SHARE 0.9 /* of the time left; the rest is for encoding and sending */
#define JOBS_KNOWN 32

struct known_job {
	char id[33];
	char name[RECIPE_NAME_MAX];
};

struct agent {
	const struct agent_options *options;
	struct rivulet *r;
	struct stock stock;
	struct known_job jobs[JOBS_KNOWN]; /* a ring */
	size_t next_job;
	struct trainer_out out; /* of the task in hand */
};

static void
put_data(struct offer *o, const struct stock_item *item)
{
	struct offer_data *d = &o->data[o->data_count++];
	size_t n = data_class_names(item->settings->classes, 0, NULL);

	memset(d, 0, sizeof(*d));
	strcpy(d->name, item->settings->name);
	d->examples = item->all.count;
	d->classes = n ? calloc(n, sizeof(*d->classes)) : NULL;
	d->class_count = d->classes ? n : 0;
	for (size_t i = 0; i < d->class_count; i++)
		data_class_names(item->settings->classes, i, d->classes[i]);
}

/* The data sets that could be loaded. */
static void
renew_offer(struct agent *a)
{
	struct offer *o = device_offer(a->r);

	for (size_t i = 0; i < o->data_count; i++)
		free(o->data[i].classes);
	o->data_count = 0;
	for (size_t i = 0; i < a->stock.count && o->data_count < MESSAGES_LIST_MAX; i++)
		if (a->stock.items[i].loaded)
			put_data(o, &a->stock.items[i]);
}

/* The job's name, asked for once per job; "" if the coordinator does not say. */
static const char *
job_name(struct agent *a, const char *job)
{
	struct transport_answer answer;
	struct json *doc = NULL;
	char path[64];

	for (size_t i = 0; i < JOBS_KNOWN; i++)
		if (strcmp(a->jobs[i].id, job) == 0)
			return a->jobs[i].name;
	snprintf(path, sizeof(path), "/v1/jobs/%.32s", job);
	const struct session_call call = {
	    .path = path, .attempts = 2, .request = {.method = "GET"}};
	enum err e = session_do(device_session(a->r), &call, &answer, NULL);
	if (!e)
		e = session_problem(&answer, NULL, NULL);
	if (!e)
		e = json_parse(&doc, buf_str(&answer.body), answer.body.len, NULL);
	const char *name = e ? NULL : json_string(json_get(doc, "name"));
	struct known_job *known = &a->jobs[a->next_job];
	snprintf(known->name, sizeof(known->name), "%s", name ? name : "");
	memcpy(known->id, job, sizeof(known->id));
	if (name)
		a->next_job = (a->next_job + 1) % JOBS_KNOWN;
	else
		known->id[0] = '\0';
	json_free(doc);
	transport_answer_deinit(&answer);
	return known->name;
}

static bool
admitted(struct agent *a, const struct gate *gate, const char *job)
{
	return !gate_used(gate) || gate_admits(gate, job, job_name(a, job));
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
	if (program && !admitted(a, &program->gate, w->task.job)) {
		err_set(why, ERR_DENIED, "the owner does not let this job use trainer %s",
		    program->name);
		return ABORT_REFUSED;
	}
	return ABORT_NONE;
}

/* Before anything is downloaded: may and can this device do the task? */
static enum abort_reason
consider(void *agent, const struct work *w, struct why *why)
{
	struct agent *a = agent;
	const struct recipe *recipe = &w->task.recipe;
	struct stock_item *item = stock_find(&a->stock, recipe->data.name);

	if (!item || item->all.count < recipe->data.min_examples) {
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
	return consider_trainer(a, w, why);
}

static double
time_budget(const struct work *w, const struct settings *settings)
{
	double left = work_left(w) * DEADLINE_SHARE, own = settings->seconds_per_round;

	if (left <= 0)
		left = 0.001;
	return own > 0 && own < left ? own : left;
}

static enum err
run_trainer(struct agent *a, const struct trainer_in *in, struct why *why)
{
	const struct trainer *trainer = trainer_find(in->settings, &in->work->task.recipe);

	events_emit(device_events(a->r), EVENTS_DEBUG, "training",
	    EVENTS_PAIRS(EVENTS_S("trainer", trainer->name)));
	return trainer->run(in, &a->out, why);
}

static enum err
train(struct agent *a, struct why *why)
{
	struct work *w = device_task(a->r);
	const struct settings *settings = device_settings(a->r);
	const struct recipe *recipe = &w->task.recipe;
	struct stock_item *item = stock_find(&a->stock, recipe->data.name);
	struct trainer_in in = {.work = w,
	    .settings = settings,
	    .home = device_home(a->r),
	    .device = session_device(device_session(a->r)),
	    .seconds = time_budget(w, settings),
	    .stop = device_cancelled,
	    .context = a->r};

	a->out.abort = ABORT_NO_DATA;
	if (!item)
		return err_set(why, ERR_NOTFOUND, "the data set is gone");
	in.data = item->settings;
	/* Round 0 stands for "in every round": the validation share of a job never changes. */
	enum err e = stock_split(item, recipe->data.validation,
	    training_seed(w->task.seed, 0, in.device), &in.train, &in.validation);
	if (e) {
		a->out.abort = ABORT_OUT_OF_MEMORY;
		return err_set(why, e, "the data set cannot be divided");
	}
	return run_trainer(a, &in, why);
}

/* Why a delta could not be made. */
static enum abort_reason
submit_reason(int rc)
{
	if (rc == RIVULET_NUMERIC)
		return ABORT_NOT_FINITE;
	if (rc == RIVULET_NOMEM)
		return ABORT_OUT_OF_MEMORY;
	return rc == RIVULET_IO ? ABORT_DISK_FULL : ABORT_TRAINER_FAILED;
}

static int
work_on(struct agent *a)
{
	struct rivulet *r = a->r;
	const struct task *task = &device_task(r)->task;
	struct why why = {""};
	double began = backoff_now();
	enum err e = train(a, &why);

	if (e) {
		char log[TRAINER_LOG_MAX + 300];
		snprintf(log, sizeof(log), "%s%s%s", why.text, *a->out.log ? "\n" : "", a->out.log);
		int rc = device_abort(
		    r, abort_reason_cause(a->out.abort ? a->out.abort : ABORT_TRAINER_FAILED), log);
		return rc == RIVULET_STOPPED ? rc : RIVULET_INVALID;
	}
	events_emit(device_events(r), EVENTS_INFO, "trained",
	    EVENTS_PAIRS(EVENTS_S("job", task->job), EVENTS_U("round", task->round),
		EVENTS_U("examples", a->out.finish.examples),
		EVENTS_U("steps", a->out.finish.steps), EVENTS_D("loss", a->out.finish.loss),
		EVENTS_D("accuracy", a->out.finish.accuracy),
		EVENTS_D("seconds", backoff_now() - began)));
	FAULT("client.trained");
	a->out.finish.report = a->out.has_report ? &a->out.report : NULL;
	int rc = finish_submit(r, &a->out.finish);
	if (device_task(r)) {
		snprintf(why.text, sizeof(why.text), "%s", rivulet_why(r));
		(void)device_abort(r, abort_reason_cause(submit_reason(rc)), why.text);
	}
	return rc;
}

static void
tell_status(struct agent *a, const char *what)
{
	if (a->options->status)
		a->options->status(a->options->rivulet.context, what);
}

/* One task; RIVULET_TIMEOUT never, for it waits as long as it takes. */
static int
one_task(struct agent *a)
{
	const struct rivulet_task *task;
	char line[160];
	int rc = RIVULET_TIMEOUT;

	tell_status(a, "waiting for work");
	while (rc == RIVULET_TIMEOUT) {
		if (stock_refresh(&a->stock, device_events(a->r)))
			renew_offer(a);
		bool all = device_offer(a->r)->data_count == a->stock.count;
		rc = rivulet_next(a->r, all ? -1 : 60, &task);
	}
	if (rc != RIVULET_OK) {
		if (rc != RIVULET_STOPPED)
			events_emit(device_events(a->r), EVENTS_ERROR, "task.failed",
			    EVENTS_PAIRS(EVENTS_S("reason", rivulet_why(a->r))));
		return rc;
	}
	snprintf(line, sizeof(line), "training round %llu of job %.8s",
	    (unsigned long long)task->round, task->job);
	tell_status(a, line);
	return work_on(a);
}

static int
loop(struct agent *a)
{
	uint64_t done = 0;

	for (;;) {
		int rc = one_task(a);
		bool stopped = a->options->rivulet.cancel &&
		    a->options->rivulet.cancel(a->options->rivulet.context);
		if (rc == RIVULET_STOPPED || stopped)
			return RIVULET_OK;
		if (a->options->once)
			return rc;
		if (rc == RIVULET_OK && ++done == a->options->rounds)
			return RIVULET_OK;
		/* A delta refused once is likely to be refused again: that waits like any failure. */
		if (rc == RIVULET_OK)
			continue;
		if (!device_rest(a->r))
			return RIVULET_OK;
	}
}

int
agent_run(const struct agent_options *options, char *why, size_t why_size)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (!a)
		return RIVULET_NOMEM;
	a->options = options;
	int rc = rivulet_open(&a->r, &options->rivulet, why, why_size);
	if (rc != RIVULET_OK) {
		free(a);
		return rc;
	}
	device_consider(a->r, consider, a);
	trainer_external_clean(device_home(a->r));
	stock_init(&a->stock, device_settings(a->r));
	stock_refresh(&a->stock, device_events(a->r));
	renew_offer(a);
	trainer_offer_put(device_offer(a->r),
	    &(struct trainer_offer){.settings = device_settings(a->r),
		.events = device_events(a->r),
		.stop = device_cancelled,
		.context = a->r});
	events_emit(device_events(a->r), EVENTS_INFO, "started",
	    EVENTS_PAIRS(EVENTS_S("device", rivulet_device(a->r)),
		EVENTS_S("name", rivulet_name(a->r)),
		EVENTS_S("coordinator", session_url(device_session(a->r))),
		EVENTS_U("data", device_offer(a->r)->data_count)));
	if (options->ready)
		options->ready(options->rivulet.context);
	rc = loop(a);
	if (rc != RIVULET_OK && why && why_size)
		snprintf(why, why_size, "%s", rivulet_why(a->r));
	events_emit(device_events(a->r), EVENTS_INFO, "stopped",
	    EVENTS_PAIRS(EVENTS_U("code", (unsigned)rc)));
	stock_deinit(&a->stock);
	rivulet_close(a->r);
	free(a);
	return rc;
}
