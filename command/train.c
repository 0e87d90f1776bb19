#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "allowance.h"
#include "backoff.h"
#include "cmd.h"
#include "companions.h"
#include "data.h"
#include "examples.h"
#include "examples_file.h"
#include "file.h"
#include "hex.h"
#include "identity.h"
#include "interrupt.h"
#include "network.h"
#include "num.h"
#include "option.h"
#include "options.h"
#include "print.h"
#include "statement.h"
#include "train.h"
#include "trainer.h"
#include "training.h"
#include "trial_run.h"

#define SCORES 2

/* What the command was asked for, and everything that lives as long as it. */
struct alone {
	const char *job_file, *home_option, *config, *data_name, *test_name, *epochs_text,
	    *out_file, *init, *exec;
	bool json;
	bool plan, fits; /* --plan */
	const char *memory_text; /* --memory */
	uint64_t memory; /* 0: not given */
	char home[PATH_MAX], scratch[PATH_MAX];
	uint8_t device[32];
	struct settings *settings;
	struct companions companions; /* programs that stay do so until the last round */
	char examples_id[EXAMPLES_FILE_ID];
	struct job_spec job;
	bool has_job;
	uint64_t rounds, max_examples;
	struct dataset all, train, validation, test;
	const struct settings_data *data;
	struct json *epochs; /* for --json */
};

static enum err
load_job(struct alone *a, struct why *why)
{
	enum err e = cmd_network_read_job(&a->job, a->job_file, why);

	if (e)
		return e;
	a->has_job = true;
	a->rounds = 1;
	if (a->memory_text && !a->plan)
		return err_set(why, ERR_INVALID, "--memory belongs to --plan");
	if (a->memory_text && (!num_bytes(a->memory_text, &a->memory) || a->memory == 0))
		return err_set(why, ERR_INVALID, "--memory wants a size like 64M, not \"%.40s\"",
		    a->memory_text);
	a->max_examples = a->job.aggregate.max_examples;
	if (a->epochs_text) {
		if (!num_u64(a->epochs_text, 1000000, &a->rounds) || a->rounds == 0)
			return err_set(
			    why, ERR_INVALID, "--epochs wants a number from 1 to 1000000");
		/* A pass over the data at a time, so that each gets its line. */
		a->job.recipe.local.unit = LOCAL_EPOCHS;
		a->job.recipe.local.amount = 1;
		a->job.recipe.local.seconds = 0;
	}
	return ERR_OK;
}

static enum err
load_set(const struct alone *a, const char *name, struct dataset *out,
    const struct settings_data **from, struct why *why)
{
	const struct settings_data *d = settings_find_data(a->settings, name);

	if (!d)
		return err_set(why, ERR_NOTFOUND, "no [data %s] in %s", name,
		    *a->settings->file ? a->settings->file : "the settings, for there are none");
	enum err e = data_load(out, d, why);
	if (!e)
		e = data_fits(out, d, &a->job.recipe, why);
	if (!e)
		e = examples_cut(out, a->job.recipe.data.window, why);
	if (!e && from)
		*from = d;
	return e;
}

/* A device that has not joined trains as a device of zeros. */
static enum err
load_all(struct alone *a, struct why *why)
{
	struct identity id;
	enum err e = identity_home(a->home, a->home_option, why);

	if (!e)
		e = settings_load(&a->settings, a->home, a->config, why);
	if (!e && a->exec)
		e = settings_replace_builtin(a->settings, a->exec, why);
	if (!e)
		e = load_job(a, why);
	if (!e && identity_load(&id, a->home, NULL) == ERR_OK)
		(void)hex_decode(a->device, sizeof(a->device), id.device, 64);
	if (!e)
		e = load_set(a, a->data_name ? a->data_name : a->job.recipe.data.name, &a->all,
		    &a->data, why);
	if (!e &&
	    (e = examples_split(&a->train, &a->validation, &a->all, a->job.recipe.data.validation,
		 training_seed(a->job.seed, 0, a->device))))
		err_set(why, e, "the data set cannot be divided");
	if (!e && a->test_name)
		e = load_set(a, a->test_name, &a->test, NULL, why);
	return e;
}

static void
remove_scratch(const struct alone *a)
{
	if (*a->scratch)
		(void)!file_remove_dir(a->scratch, NULL);
}

/* What a coordinator would not take. */
static enum err
check_result(const struct alone *a, const struct work *w, const struct finish *f, struct why *why)
{
	enum err e = finish_check(f, why);

	if (!e && f->examples > a->max_examples)
		return err_set(why, ERR_INVALID,
		    "%llu examples are more than aggregate.max_examples",
		    (unsigned long long)f->examples);
	return e ? e : work_delta_check(w, why);
}

static enum err
run_trainer(struct alone *a, struct work *w, struct trainer_out *out, struct why *why)
{
	const struct recipe *recipe = &w->task.recipe;
	struct examples_task hand;
	struct trainer_in in = {.work = w,
	    .settings = a->settings,
	    .data = a->data,
	    .home = a->scratch,
	    .device = a->device,
	    .companions = &a->companions,
	    .seconds = a->settings->seconds_per_round,
	    .stop = cmd_interrupted};

	const struct trainer *trainer = trainer_find(a->settings, recipe);
	if (!trainer)
		return err_set(
		    why, ERR_NOTFOUND, "no [trainer %s] in the settings", recipe->trainer);
	enum err e = examples_task_init(&hand, &w->task, a->device, &a->train, &a->validation);
	trainer_in_give(&in, &hand, a->examples_id);
	if (!e)
		e = trainer->run(&in, out, why);
	examples_task_deinit(&hand);
	if (!e)
		e = check_result(a, w, &out->finish, why);
	if (e && *out->log) {
		cmd_print_error("the end of what trainer %s said:", recipe->trainer);
		cmd_print_said(out->log);
		fprintf(stderr, "\n---\n");
	}
	return e;
}

static void
add_figure(struct json *o, const char *key, double v)
{
	if (isfinite(v))
		json_add_double(o, key, v);
}

/* A model's figures on a set that it was not trained on. */
struct score {
	const char *set; /* "validation", "test"; NULL: there is no such set */
	struct train_score score;
};

static void
add_score(struct json *o, const struct score *s)
{
	char key[32];

	snprintf(key, sizeof(key), "%s_loss", s->set);
	add_figure(o, key, s->score.loss);
	snprintf(key, sizeof(key), "%s_accuracy", s->set);
	add_figure(o, key, s->score.accuracy);
}

static void
print_score(const struct score *s)
{
	char number[CMD_PRINT_NUMBER_MAX];

	cmd_print_part("  %s loss %s", s->set,
	    isfinite(s->score.loss) ? cmd_print_number(number, s->score.loss) : "-");
	if (isfinite(s->score.accuracy))
		cmd_print_part("  %s accuracy %.4f", s->set, s->score.accuracy);
}

static void
report(struct alone *a, uint64_t round, const struct trainer_out *out,
    const struct score scores[SCORES], double seconds)
{
	const struct finish *f = &out->finish;
	double loss = messages_report_loss(&out->report.trained, f->loss);
	char number[CMD_PRINT_NUMBER_MAX];

	if (a->json) {
		struct json *o = json_object();
		json_add_u64(o, "epoch", round);
		json_add_u64(o, "examples", f->examples);
		json_add_u64(o, "steps", f->steps);
		add_figure(o, "loss", loss);
		add_figure(o, "accuracy", f->accuracy);
		for (size_t i = 0; i < SCORES && scores[i].set; i++)
			add_score(o, &scores[i]);
		add_figure(o, "seconds", seconds);
		json_push(a->epochs, o);
		return;
	}
	cmd_print_part("%s %llu  examples %llu  steps %llu  loss ",
	    a->epochs_text ? "epoch" : "round", (unsigned long long)round,
	    (unsigned long long)f->examples, (unsigned long long)f->steps);
	cmd_print_part("%s", isfinite(loss) ? cmd_print_number(number, loss) : "-");
	if (isfinite(f->accuracy))
		printf("  accuracy %.4f", f->accuracy);
	for (size_t i = 0; i < SCORES && scores[i].set; i++)
		print_score(&scores[i]);
	cmd_print_line("  %.1f s%s", seconds, f->partial ? "  (partial)" : "");
	fflush(stdout);
}

/* The trained model's on the validation share and on the set of --test. Without layers only its trainer can tell: of the base model. */
static enum err
rate(struct alone *a, struct cmd_trial *trial, const struct report *r, struct score scores[SCORES],
    struct why *why)
{
	bool layers = trial->work.task.recipe.net.layer_count > 0;
	enum err e = ERR_OK;

	if (layers && a->validation.count > 0) {
		scores->set = "validation";
		e = cmd_trial_evaluate(trial, &a->validation, &scores++->score, why);
	} else if (r && r->has_evaluate) {
		scores->score = (struct train_score){.examples = r->eval_examples,
		    .loss = r->eval_loss,
		    .accuracy = r->eval_accuracy};
		scores++->set = "base";
	}
	if (!e && a->test_name) {
		scores->set = "test";
		e = cmd_trial_evaluate(trial, &a->test, &scores->score, why);
	}
	return e;
}

static enum err
one_round(struct alone *a, struct cmd_trial *trial, uint64_t round, struct why *why)
{
	struct trainer_out *out = calloc(1, sizeof(*out));
	struct score scores[SCORES] = {{.set = NULL}};
	double began = backoff_now();

	if (!out)
		return err_set(why, ERR_NOMEM, "no memory");
	trial->work.task.round = round;
	trial->work.task.max_examples = a->max_examples;
	enum err e = cmd_trial_base(trial, why);
	if (!e)
		e = run_trainer(a, &trial->work, out, why);
	if (!e)
		e = rate(a, trial, out->has_report ? &out->report : NULL, scores, why);
	if (!e)
		report(a, round, out, scores, backoff_now() - began);
	trainer_out_deinit(out);
	free(out);
	return e;
}

/* Where its bytes go, and what a piece of a batch may be. */
static enum err
detail(const struct footprint_want *want, struct plan_task *t, struct net **net, struct why *why)
{
	if (t->footprint.program)
		return ERR_OK;
	enum err e = footprint_network(net, want, t->footprint.threads, why);
	t->net = *net;
	return e || t->limit == 0 ? e : footprint_propose(&t->proposal, want, why);
}

/* What a task would take of this device, which trains nothing. */
static enum err
show_plan(struct alone *a, struct cmd_trial *trial, struct why *why)
{
	const struct work *w = &trial->work;
	const struct recipe *recipe = &w->task.recipe;
	struct dataset train = a->train;
	const struct allowance most =
	    allowance_of(recipe, false, a->train.count, a->validation.count, a->max_examples);
	train.count = (size_t)most.train;
	struct plan_task t = {.recipe = recipe,
	    .table = &w->table,
	    .examples = train.count,
	    .limit = a->memory > 0 ? a->memory : a->settings->memory_bytes};
	const struct footprint_want want = {.recipe = recipe,
	    .kind = TASK_TRAIN,
	    .table = &w->table,
	    .threads = a->settings->threads,
	    .program = !trainer_is_builtin(a->settings, recipe),
	    .train = &train,
	    .validation = most.validation,
	    .examples_bytes = footprint_examples(&a->all, recipe),
	    .most = t.limit};
	struct net *net = NULL;

	enum err e = footprint_bytes(&t.bytes, recipe, &w->table, why);
	if (!e)
		e = footprint_of(&t.footprint, &want, why);
	if (!e)
		e = detail(&want, &t, &net, why);
	if (!e) {
		struct json *sheet = plan_statement_task(&t);
		if (a->json)
			cmd_print_json(sheet);
		else
			plan_statement_print_task(sheet);
		json_free(sheet);
		fflush(stdout);
	}
	a->fits = !e && (t.limit == 0 || t.footprint.peak <= t.limit);
	if (!e && !a->fits)
		cmd_print_error("a task takes %llu bytes, more memory than %s allows: %llu",
		    (unsigned long long)t.footprint.peak,
		    a->memory > 0 ? "--memory" : "memory_bytes", (unsigned long long)t.limit);
	net_free(net);
	return e;
}

static enum err
train(struct alone *a, struct cmd_trial *trial, struct why *why)
{
	enum err e = ERR_OK;

	for (uint64_t r = 1; !e && r <= a->rounds && !cmd_interrupted(NULL); r++)
		e = one_round(a, trial, r, why);
	if (!e && a->out_file)
		e = cmd_trial_save(trial, a->out_file, why);
	return e;
}

static enum err
run(struct alone *a, struct why *why)
{
	struct cmd_trial trial;
	enum err e = cmd_trial_init(&trial, &a->job, a->scratch, a->init, why);

	companions_init(
	    &a->companions, &(struct companion_place){.settings = a->settings, .home = a->scratch});
	if (!e && a->plan)
		e = cmd_trial_base(&trial, why);
	if (!e)
		e = a->plan ? show_plan(a, &trial, why) : train(a, &trial, why);
	companions_deinit(&a->companions);
	cmd_trial_deinit(&trial);
	return e;
}

static void
finish(struct alone *a)
{
	remove_scratch(a);
	dataset_deinit(&a->all);
	dataset_deinit(&a->train);
	dataset_deinit(&a->validation);
	dataset_deinit(&a->test);
	settings_free(a->settings);
	if (a->has_job)
		job_deinit(&a->job);
	json_free(a->epochs);
}

static int
go(struct alone *a)
{
	struct why why = {""};

	cmd_interrupt_catch();
	a->epochs = json_array();
	enum err e = load_all(a, &why);
	if (!e)
		e = file_scratch_dir(a->scratch, "rivulet-train", &why);
	if (!e)
		e = run(a, &why);
	if (!e && a->json && !a->plan)
		cmd_print_json(a->epochs);
	finish(a);
	if (e)
		return cmd_options_fail(e, &why);
	return a->plan && !a->fits ? CMD_DENIED : CMD_OK;
}

int
cmd_train_main(int argc, char **argv)
{
	struct alone a = {.job_file = NULL};
	const struct option_entry table[] = {
	    {"home", 0, "DIR", "for settings and, if it joined, the device id", &a.home_option,
		NULL},
	    {"config", 0, "FILE", "settings (default: rivulet.conf in the home)", &a.config, NULL},
	    {"data", 0, "NAME", "data set to train on (default: the job's)", &a.data_name, NULL},
	    {"epochs", 0, "N", "passes over the data (default: the job's \"local\" once)",
		&a.epochs_text, NULL},
	    {"test", 0, "NAME", "data set to evaluate on after each pass", &a.test_name, NULL},
	    {"init", 0, "FILE", "weights to begin with (default: drawn from the job's seed)",
		&a.init, NULL},
	    {"out", 'o', "FILE", "write the trained model there", &a.out_file, NULL},
	    {"exec", 0, "LINE",
		"a program in place of the built-in trainer, as [trainer builtin] exec", &a.exec,
		NULL},
	    {"plan", 0, NULL, "train nothing: say what a task takes of this device", NULL, &a.plan},
	    {"memory", 0, "SIZE", "with --plan: propose a parallel.micro_batch for so much (64M)",
		&a.memory_text, NULL},
	    {"json", 0, NULL, "print JSON", NULL, &a.json},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"train JOBFILE [--data NAME] [--epochs N] [--test NAME] "
					   "[--out FILE] [--config FILE] [--plan [--memory SIZE]]",
	    "Trains a job's model on this machine alone, with the same trainer that the agent "
	    "uses.",
	    1, 1};
	struct option_words words;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	a.job_file = words.words[0];
	return go(&a);
}
