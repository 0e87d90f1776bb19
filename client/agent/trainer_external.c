#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "after_file.h"
#include "companions.h"
#include "kernel_choice.h"
#include "program.h"
#include "report_file.h"
#include "task_directory.h"
#include "trainer.h"

struct external {
	const struct trainer_in *in;
	const struct settings_trainer *program;
	struct trainer_out *out;
	struct task_directory dir;
	bool asked; /* it was told to finish */
};

/* The choice of kernels for the program: `rivulet trainer` makes the same network as the agent and must use the same kernels, but cannot
 * write to the home. */
static const char *
kernels_of(const struct trainer_in *in)
{
	const struct recipe *recipe = &in->work->task.recipe;

	if (recipe->net.layer_count == 0 || recipe->net.arithmetic != ARITHMETIC_FAST)
		return "";
	kernel_choice_ready(in->kernels);
	return kernel_choice_text();
}

static const char *
kept_home(const struct external *x)
{
	return x->in->kept_home ? x->in->kept_home : x->in->home;
}

static enum err
prepare(struct external *x, struct why *why)
{
	const struct task_directory_options from = {.work = x->in->work,
	    .train = x->in->train,
	    .validation = x->in->validation,
	    .settings = x->in->settings,
	    .data = x->in->data,
	    .place = {x->in->home, x->in->apart, x->program, x->in->copies},
	    .kept_home = kept_home(x),
	    .device = x->in->device,
	    .seconds = x->in->seconds,
	    .all = x->in->all,
	    .kernels = kernels_of(x->in),
	    .examples_id = x->in->examples_id};
	enum err e = task_directory_make(&x->dir, &from, why);
	/* What the system keeps from this user is as good as read-only. */
	return e == ERR_DENIED ? ERR_READONLY : e;
}

static enum err
run(struct external *x, struct child_result *result, struct why *why)
{
	char task[PATH_MAX + 32];
	const char *const environment[] = {task, NULL};
	const struct program program = {.settings = x->in->settings,
	    .trainer = x->program,
	    .home = x->in->home,
	    .apart = x->in->apart,
	    .directory = x->dir.path,
	    .given = x->dir.given,
	    .word = x->dir.path,
	    .environment = environment,
	    .data = x->in->data};
	const struct program_run options = {.child = {.spawner = x->in->spawner,
						.seconds = x->in->seconds,
						.grace_s = x->program->grace_s,
						.stop = x->in->stop,
						.context = x->in->context},
	    .log = x->out->log,
	    .room = sizeof(x->out->log)};

	snprintf(task, sizeof(task), "RIVULET_TASK=%s", x->dir.path);
	return program_run(result, &program, &options, why);
}

static enum err
judge_end(struct external *x, const struct child_result *result, struct why *why)
{
	if (result->exited && result->code == 0)
		return ERR_OK;
	if (result->memory > 0) {
		x->out->abort = ABORT_OUT_OF_MEMORY;
		return err_set(why, ERR_NOMEM,
		    "trainer %s was killed with %llu MiB of memory: its memory_bytes is %llu MiB",
		    x->program->name, (unsigned long long)(result->memory >> 20),
		    (unsigned long long)(x->program->memory_bytes >> 20));
	}
	x->out->abort = !result->asked			 ? ABORT_TRAINER_FAILED
	    : x->in->stop && x->in->stop(x->in->context) ? ABORT_STOPPED
							 : ABORT_DEADLINE;
	if (result->exited)
		return err_set(
		    why, ERR_INVALID, "trainer %s exited with %d", x->program->name, result->code);
	return err_set(why, ERR_INVALID, "trainer %s was ended by signal %d%s", x->program->name,
	    result->code, result->killed ? ": it did not finish when asked" : "");
}

static enum err
work_once(struct external *x, struct why *why)
{
	struct child_result result = {.exited = false};
	enum err e = program_sandbox_prepare(x->in->apart, x->in->home, x->program->name, why);

	if (!e)
		e = prepare(x, why);
	if (!e)
		e = run(x, &result, why);
	if (!e)
		e = judge_end(x, &result, why);
	x->asked = !e && result.asked;
	return e;
}

/* Has a persistent program do the task; the program starts while the task's files are written. */
static enum err
work_with(struct external *x, struct companions *all, struct why *why)
{
	const struct task *task = &x->in->work->task;
	const struct companion_task t = {.trainer = x->program,
	    .task = task->task,
	    .kind = task_kind_name(task->kind),
	    .job = task->job,
	    .data = x->in->data,
	    .seconds = x->in->seconds,
	    .stop = x->in->stop,
	    .context = x->in->context};
	struct companions_result result;
	enum err e = companions_call(all, &t, &result, why);

	if (!e && (e = prepare(x, why)))
		companions_drop(all, &t);
	else if (!e)
		e = companions_run(all, &t, x->dir.path, &result, why);
	x->asked = result.asked;
	x->out->abort = result.abort;
	snprintf(x->out->log, sizeof(x->out->log), "%s", companions_log(all, &t));
	return e;
}

/* Adds a message behind the program's output, where it is not cut off. */
static void
add_said(struct trainer_out *out, const char *said)
{
	struct last_words log = {
	    .text = out->log, .room = sizeof(out->log), .len = strlen(out->log)};

	if (*said && log.len > 0 && out->log[log.len - 1] != '\n')
		last_words_add(&log, "\n", 1);
	last_words_add(&log, said, strlen(said));
}

/* Keeps the program's state. A failure is noted in out->unkept, and the work counts all the same. */
static void
keep(struct external *x)
{
	struct why *unkept = &x->out->unkept;

	if (!after_file_keep(
		x->in->work, x->dir.fd, kept_home(x), x->in->settings->kept_bytes, unkept))
		unkept->text[0] = '\0';
}

static enum err
take(struct external *x, struct why *why)
{
	struct trainer_out *out = x->out;
	struct report_file *report = malloc(sizeof(*report));

	if (!report)
		return err_set(why, ERR_NOMEM, "no memory for a report");
	const struct task *task = &x->in->work->task;
	enum err e = task_directory_show(&x->dir, why);
	if (e) {
		free(report);
		return e;
	}
	e = report_file_read(report, x->dir.fd, task, why);
	out->abort = report->cause.reason;
	memcpy(out->word, report->cause.word, sizeof(out->word));
	add_said(out, report->said);
	out->finish = report->finish;
	out->report = report->report;
	out->has_report = report->has_report;
	out->counts = report->counts;
	out->report.counts = report->counts;
	if (!e)
		e = task_directory_check(&x->dir, why);
	if (!e && task->kind == TASK_TRAIN)
		e = after_file_take(x->in->work, x->dir.fd, report, why);
	if (!e && task->kind == TASK_TRAIN)
		keep(x);
	free(report);
	return e;
}

static enum abort_reason
reason_of(enum err e)
{
	if (abort_reason_of_disk(e))
		return abort_reason_of_disk(e);
	return e == ERR_NOMEM ? ABORT_OUT_OF_MEMORY : ABORT_TRAINER_FAILED;
}

bool
trainer_external_fits(const struct settings *settings, const struct recipe *recipe)
{
	return settings_find_trainer(settings, recipe->trainer) != NULL;
}

enum err
trainer_external_run(const struct trainer_in *in, struct trainer_out *out, struct why *why)
{
	struct external x = {.in = in,
	    .program = settings_find_trainer(in->settings, in->work->task.recipe.trainer),
	    .out = out};
	struct companions own;

	memset(out, 0, sizeof(*out));
	if (!x.program) {
		out->abort = ABORT_NO_TRAINER;
		return err_set(why, ERR_NOTFOUND, "no such trainer");
	}
	/* Without others of its kind it stays for this task alone. */
	companions_init(&own,
	    &(struct companion_place){
		.settings = in->settings, .home = in->home, .apart = in->apart});
	enum err e = x.program->persistent
	    ? work_with(&x, in->companions ? in->companions : &own, why)
	    : work_once(&x, why);
	out->lost = x.dir.lost;
	if (!e)
		e = take(&x, why);
	if (!e && x.asked)
		out->finish.partial = true;
	if (e && !out->abort)
		out->abort = reason_of(e);
	task_directory_remove(&x.dir);
	companions_deinit(&own);
	return e;
}
