#include "evaluate.h"

#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "cmd.h"
#include "evaluation.h"
#include "find.h"
#include "follow.h"
#include "job.h"
#include "num.h"
#include "options.h"
#include "print.h"
#include "submit.h"

struct evaluate {
	const char *model, *like, *name;
	uint64_t goal;
	bool wait;
};

static enum err
get_document(struct cmd_admin *a, const char *job, struct json **out, struct why *why)
{
	char id[CMD_FIND_ID], path[96];
	enum err e = cmd_find(a, CMD_FIND_JOB, job, id, why);

	if (e)
		return e;
	snprintf(path, sizeof(path), "/v1/jobs/%s/document", id);
	return cmd_admin_call(a, "GET", path, NULL, out, why);
}

static enum err
submit_evaluation(struct cmd_admin *a, const struct evaluate *v, struct json **out, struct why *why)
{
	char model[CMD_FIND_ID];
	struct json *like = NULL;
	struct buf text;

	buf_init(&text, JOB_DOCUMENT_MAX);
	enum err e = cmd_find(a, CMD_FIND_WEIGHTS, v->model, model, why);
	if (!e)
		e = get_document(a, v->like, &like, why);
	if (!e)
		e = cmd_evaluation_document(&text,
		    &(struct cmd_evaluation){
			.like = like, .model = model, .name = v->name, .goal = v->goal},
		    why);
	if (!e)
		e = cmd_admin_call(a, "POST", "/v1/jobs", &text, out, why);
	if (!e)
		cmd_submit_warn(buf_str(&text), text.len, *out);
	json_free(like);
	buf_deinit(&text);
	return e;
}

/* Until it is over, as `job show --follow`; without a figure that is an error. */
static enum err
wait_for(struct cmd_admin *a, const char *id, struct why *why)
{
	char path[96];
	struct json *job = NULL;
	enum err e = cmd_follow(a, id, why);

	snprintf(path, sizeof(path), "/v1/jobs/%.32s", id);
	if (!e)
		e = cmd_admin_call(a, "GET", path, NULL, &job, why);
	const char *reason = json_string(json_get(job, "reason"));
	if (!e && json_kind(json_get(job, "metric")) != JSON_OBJECT)
		e = err_set(why, ERR_STATE, "%.200s", reason ? reason : "not evaluated");
	json_free(job);
	return e;
}

static enum err
evaluate(struct cmd_admin *a, const struct evaluate *v, struct why *why)
{
	struct json *doc = NULL;
	enum err e = submit_evaluation(a, v, &doc, why);
	const char *id = json_string(json_get(doc, "job"));

	if (!e && (!id || strlen(id) != 32))
		e = err_set(why, ERR_INVALID, "the coordinator names no job");
	if (!e && a->json && !v->wait)
		cmd_print_json(doc);
	else if (!e && !a->json)
		cmd_print_line("%s", id);
	fflush(stdout);
	if (!e && v->wait)
		e = wait_for(a, id, why);
	json_free(doc);
	return e;
}

int
cmd_evaluate_main(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct evaluate v = {.goal = 0};
	const char *goal = NULL;
	const struct option_entry table[] = {
	    {"like", 0, "JOB", "the job that says how: data, trainer, round, select", &v.like,
		NULL},
	    {"goal", 0, "N", "so many devices (default: as JOB)", &goal, NULL},
	    {"name", 0, "NAME", "of the new job", &v.name, NULL},
	    {"wait", 'w', NULL, "until it is over; without a figure that is a failure", NULL,
		&v.wait},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "job evaluate MODEL|JOB --like JOB [--goal N] [--name NAME] [--wait] " CMD_ADMIN_USAGE,
	    "Has devices evaluate a model on their data, and prints the id of the job that does "
	    "it.\n"
	    "The same again is the same job; under another name the model is evaluated again.\n"
	    "JOB: id, unique beginning of an id, or name, your own jobs first: of the one that is "
	    "not over, else the "
	    "newest.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (!v.like || (goal && (!num_u64(goal, JOB_GOAL_MAX, &v.goal) || v.goal == 0))) {
		cmd_print_error(
		    "%s", v.like ? "--goal wants a number from 1 to 200000" : "--like is missing");
		return CMD_USAGE;
	}
	v.model = words.words[0];
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = evaluate(&a, &v, &why);
	return cmd_admin_end(&a, e, &why);
}
