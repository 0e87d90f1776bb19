#include "submit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "cmd.h"
#include "edit.h"
#include "job.h"
#include "num.h"
#include "planning.h"
#include "preset.h"
#include "print.h"
#include "rounds.h"
#include "states.h"
#include "task_kind.h"

struct submit {
	struct cmd_admin a;
	const char *init, *round;
	bool best;
	bool print; /* the document, */
	bool dry, runs; /* or what it would cost; and it can run */
	struct option_words sets;
	/* The document as it is submitted. */
	char *text;
	size_t len;
};

/* Devices may read the document of a job that selects them. */
static void
warn_of_names(const struct json *document)
{
	if (json_count(json_get(json_get(document, "select"), "devices")) > 0)
		fprintf(stderr,
		    "rivulet: the devices that this job selects can read its select.devices; "
		    "select by label to name none\n");
	if (json_count(json_get(json_get(document, "evaluate"), "devices")) > 0)
		fprintf(stderr,
		    "rivulet: the devices that this job selects can read its evaluate.devices; "
		    "name evaluators by label to name none\n");
}

/* Under the mean one delta of any length moves the model as far as it likes. */
static void
warn_of_norms(const struct json *document)
{
	const struct json *aggregate = json_get(document, "aggregate");
	const struct json *rule = json_get(aggregate, "rule");
	const char *name = json_string(json_get(rule, "name"));
	const char *kind = json_string(json_get(document, "kind"));
	double bound = 0;

	/* No deltas come of an evaluation. */
	if (kind && task_kind_find(kind) == TASK_EVALUATE)
		return;
	(void)json_double(json_get(aggregate, "max_norm"), &bound);
	if ((!name || strcmp(name, "mean") == 0) && bound <= 0 &&
	    !json_get(aggregate, "norm_bound"))
		fprintf(stderr,
		    "rivulet: one device can spoil this job: the mean takes deltas of any length; "
		    "set aggregate.max_norm, or a rule that tolerates hostile devices\n");
}

void
cmd_submit_say(const struct json *answer)
{
	const struct json *warnings = json_get(answer, "warnings");

	for (const struct json *w = json_first(warnings); w; w = json_next(w)) {
		const char *said = json_string(w);
		cmd_print_error("%s", said ? said : "");
	}
}

/* The same document is the same job: who submits one that is over waits in vain. An older coordinator does not say that it existed; one
 * that is over has, but for an evaluation, which can end at once. */
static void
say_exists(const struct json *job)
{
	enum job_state state = states_job_find(json_string(json_get(job, "state")));
	const char *kind = json_string(json_get(job, "kind"));
	bool over = states_job_over(state),
	     exists = over && (!kind || task_kind_find(kind) == TASK_TRAIN);
	char since[CMD_PRINT_TIME_MAX];
	double at;

	(void)json_bool(json_get(job, "exists"), &exists);
	if (!exists)
		return;
	/* Since when it is paused nobody says. */
	bool known = (over || state == JOB_RUNNING) &&
	    json_double(json_get(job, over ? "ended_at" : "created_at"), &at);
	cmd_print_time(since, known ? at : 0);
	cmd_print_error("the job exists, %s%s%s: the same document is the same job%s",
	    json_string(json_get(job, "state")), known ? " since " : "", known ? since : "",
	    over ? ", and nothing is done again; another \"seed\" or \"name\" makes a new one"
		 : "");
}

void
cmd_submit_warn(const char *text, size_t len, const struct json *job)
{
	struct json *document = NULL;

	say_exists(job);
	if (json_parse(&document, text, len, NULL) == ERR_OK) {
		warn_of_names(document);
		warn_of_norms(document);
	}
	json_free(document);
	cmd_submit_say(job);
}

/* --- What --init means */

static enum err
take_model(char out[65], const struct json *from, const char *lacks, struct why *why)
{
	const char *model = json_string(json_get(from, "model"));

	if (!model || strlen(model) != 64)
		return err_set(why, ERR_NOTFOUND, "%s", lacks);
	memcpy(out, model, 65);
	return ERR_OK;
}

static enum err
model_of_round(struct submit *s, const struct json *job, char out[65], struct why *why)
{
	struct json *round = NULL;
	char path[96], lacks[96];
	uint64_t n;

	if (!num_u64(s->round, JSON_INT_MAX, &n))
		return err_set(why, ERR_INVALID, "--round wants a number");
	snprintf(path, sizeof(path), "/v1/jobs/%.32s/rounds/%" PRIu64,
	    json_string(json_get(job, "job")), n);
	snprintf(lacks, sizeof(lacks), "round %" PRIu64 " has no model", n);
	enum err e = cmd_admin_call(&s->a, "GET", path, NULL, &round, why);
	if (!e)
		e = take_model(out, round, lacks, why);
	json_free(round);
	return e;
}

/* Before the document is refused for it, in words that say why. */
static enum err
check_kept(struct submit *s, const char *model, struct why *why)
{
	char path[96];

	snprintf(path, sizeof(path), "/v1/models/%.64s", model);
	enum err e = cmd_admin_call(&s->a, "HEAD", path, NULL, NULL, why);
	if (e == ERR_NOTFOUND)
		return err_set(why, e,
		    "model %.12s of that job is no longer kept ([retention], the job's \"keep\"), "
		    "or "
		    "its file is lost (\"rivuletd check\" there); --round N takes an earlier one",
		    model);
	return e;
}

static enum err
model_of(struct submit *s, char out[65], struct why *why)
{
	struct json *job = NULL;
	enum err e = cmd_rounds_job(&s->a, s->init, &job, why);

	if (e)
		return e;
	if (s->round)
		e = model_of_round(s, job, out, why);
	else if (s->best && !json_get(job, "best"))
		e = err_set(why, ERR_UNSUPPORTED,
		    "this coordinator does not tell a job's best model: "
		    "--round N takes that of a round");
	else if (s->best)
		e = take_model(out, json_get(job, "best"),
		    "the job has no best model: nothing was measured yet", why);
	else
		e = take_model(out, job, "the job has no model yet", why);
	json_free(job);
	return e ? e : check_kept(s, out, why);
}

/* --- The document */

static enum err
edit(struct submit *s, struct json **document, struct why *why)
{
	char model[65];
	enum err e = ERR_OK;

	if (s->init) {
		e = model_of(s, model, why);
		struct json *id = e ? NULL : json_new_string(model);
		if (!e)
			e = edit_put(document, "model.init", id, why);
		json_free(id);
	}
	for (size_t i = 0; i < s->sets.count && !e; i++)
		e = edit_set(document, s->sets.words[i], why);
	return e;
}

/* The text of an edited document ends with a newline, as a file does. */
static enum err
reprint(char **to, size_t *len, const struct json *document, struct why *why)
{
	struct buf text;

	buf_init(&text, JOB_DOCUMENT_MAX);
	enum err e = json_print(&text, document, true);
	if (!e)
		e = buf_append(&text, "\n", 1);
	if (e) {
		buf_deinit(&text);
		return err_set(why, e, "the document cannot be written: %s", err_name(e));
	}
	free(*to);
	*to = text.data;
	*len = text.len;
	return ERR_OK;
}

static enum err
edit_text(void *ctx, char **text, size_t *len, struct why *why)
{
	struct submit *s = ctx;
	struct json *document = NULL;
	enum err e = json_parse(&document, *text, *len, why);

	if (!e)
		e = edit(s, &document, why);
	if (!e)
		e = reprint(text, len, document, why);
	json_free(document);
	return e;
}

/* The job's id is the hash of the document: what is not edited goes as it stands in the file. */
static enum err
prepare(struct submit *s, const char *path, struct why *why)
{
	const struct preset_edit changes = {edit_text, s};
	bool edited = s->init || s->sets.count > 0;

	return preset_read(path, edited ? &changes : NULL, &s->text, &s->len, why);
}

static enum err
submit(struct submit *s, const char *path, struct why *why)
{
	struct json *job = NULL;
	enum err e = prepare(s, path, why);

	if (!e && s->print) {
		fwrite(s->text, 1, s->len, stdout);
		return ERR_OK;
	}
	const struct plan_want want = {.text = s->text, .len = s->len, .admin = &s->a};
	if (!e && s->dry)
		return planning_show(&want, s->a.json, &s->runs, why);
	if (!e)
		e = cmd_body_document(&s->a, "/v1/jobs", s->text, s->len, &job, why);
	const char *id = json_string(json_get(job, "job"));
	if (!e)
		cmd_submit_warn(s->text, s->len, job);
	if (!e && s->a.json)
		cmd_print_json(job);
	else if (!e)
		cmd_print_line("%s", id ? id : "?");
	json_free(job);
	return e;
}

static const char *
misuse(const struct submit *s)
{
	if ((s->best || s->round) && !s->init)
		return "--best and --round go with --init";
	if (s->best && s->round)
		return "--best and --round exclude each other";
	if (s->dry && s->print)
		return "--dry-run and --print exclude each other";
	return NULL;
}

int
cmd_submit_main(int argc, char **argv)
{
	struct submit s = {.text = NULL};
	const char *set = NULL;
	const struct option_entry table[] = {
	    {"set", 's', "PATH=VALUE", "change the document, any number of times", &set, NULL},
	    {"init", 0, "JOB", "begin with that job's present model", &s.init, NULL},
	    {"best", 0, NULL, "of --init: with its best", NULL, &s.best},
	    {"round", 0, "N", "of --init: with that of a round", &s.round, NULL},
	    {"dry-run", 0, NULL, "say what the job will cost, as job plan does, instead", NULL,
		&s.dry},
	    {"print", 0, NULL, "print the document instead", NULL, &s.print},
	    CMD_ADMIN_OPTIONS(&s.a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "job submit FILE [--set PATH=VALUE]... [--init JOB [--best "
	    "| --round N]] [--dry-run | --print] " CMD_ADMIN_USAGE,
	    "Submits a job document and prints the job's id. The same document again is the same "
	    "job.\nPATH: keys with dots, as in local.optimizer.rate=0.01; VALUE: JSON, else text.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	const char *wrong = misuse(&s);
	if (wrong) {
		cmd_print_error("%s", wrong);
		return CMD_USAGE;
	}
	enum err e = option_all(&s.sets, table, "set", argc, argv, &why);
	if (!e && (!s.print || s.init))
		e = cmd_admin_open(&s.a, &why);
	if (!e)
		e = submit(&s, words.words[0], &why);
	free(s.text);
	rc = cmd_admin_end(&s.a, e, &why);
	return rc == CMD_OK && s.dry && !s.runs ? CMD_DENIED : rc;
}
