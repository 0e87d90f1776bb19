#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "changed.h"
#include "cmd.h"
#include "compare.h"
#include "deletion.h"
#include "edit.h"
#include "evaluate.h"
#include "export_rounds.h"
#include "find.h"
#include "follow.h"
#include "job.h"
#include "jobs.h"
#include "num.h"
#include "override.h"
#include "panels.h"
#include "participation.h"
#include "planning.h"
#include "print.h"
#include "show_figures.h"
#include "states.h"
#include "submit.h"
#include "sweep.h"
#include "task_kind.h"

#define ROUNDS_SHOWN 20
#define JOB_HELP \
	"JOB: id, unique beginning of an id, or name, your own jobs first: of the one that is " \
	"not over, else the " \
	"newest."

static enum err
list(struct cmd_admin *a, bool all, bool names, struct why *why)
{
	struct json *doc = NULL, *shown;
	enum err e = cmd_admin_call(a, "GET", "/v1/jobs", NULL, &doc, why);

	if (e)
		return e;
	if ((a->json || names) && !all) {
		shown = json_object();
		json_add(shown, "jobs", cmd_jobs_living(json_get(doc, "jobs")));
		json_free(doc);
		doc = shown;
	}
	if (a->json)
		cmd_print_json(doc);
	else if (names)
		cmd_print_members(json_get(doc, "jobs"), "name");
	else
		cmd_jobs_print(json_get(doc, "jobs"), all);
	json_free(doc);
	return ERR_OK;
}

static int
job_list(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	bool all = false, names = false;
	const struct option_entry table[] = {
	    {"all", 'a', NULL, "also those that are done or stopped", NULL, &all},
	    {"names", 0, NULL, "only their names, one a line", NULL, &names},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"job list [--all] [--names] " CMD_ADMIN_USAGE,
	    "Lists the jobs that are not over.", 0, 0};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = list(&a, all, names, &why);
	return cmd_admin_end(&a, e, &why);
}

/* The latest of the job's rounds, at most `count`; the caller frees the answer. */
static enum err
get_rounds(
    struct cmd_admin *a, const struct json *job, uint64_t count, struct json **out, struct why *why)
{
	const char *id = json_string(json_get(job, "job"));
	char path[128];
	uint64_t last = 0;

	(void)json_u64(json_get(job, "round"), &last);
	uint64_t from = last >= count ? last - count + 1 : 1;
	snprintf(path, sizeof(path), "/v1/jobs/%.32s/rounds?from=%llu&limit=%llu", id ? id : "",
	    (unsigned long long)from, (unsigned long long)count);
	return cmd_admin_call(a, "GET", path, NULL, out, why);
}

struct show {
	const char *word, *metric; /* of the plot; NULL: loss and accuracy */
	uint64_t rounds;
	bool watch, follow, plot, ended;
	bool all; /* --rounds was not given */
	bool confusion; /* the matrix, too */
};

static void
print_shown(bool as_json, struct json *job, const struct json *rounds, bool confusion,
    const struct json *participation)
{
	if (as_json) {
		json_add(job, "rounds", json_copy(rounds));
		if (participation)
			json_add(job, "participation", json_copy(participation));
		cmd_print_json(job);
		return;
	}
	cmd_jobs_one(job);
	if (json_count(rounds) > 0) {
		printf("\n");
		cmd_jobs_rounds(job, rounds);
		cmd_figures_print(rounds, confusion);
	}
	if (participation) {
		printf("\n");
		cmd_participation_print(participation);
	}
	if (json_count(json_get(job, "failures")) > 0) {
		printf("\n");
		cmd_jobs_failures(json_get(job, "failures"));
	}
}

static enum err
plot(struct cmd_admin *a, const struct show *s, const struct json *job, struct why *why)
{
	uint64_t last = 0;

	(void)json_u64(json_get(job, "round"), &last);
	uint64_t from = !s->all && last >= s->rounds ? last - s->rounds + 1 : 1;
	cmd_jobs_one(job);
	printf("\n");
	return cmd_panels(a, job, s->metric, from, why);
}

/* NULL: an older coordinator does not say it, or this caller may not see it. */
static struct json *
get_participation(struct cmd_admin *a, const char *id)
{
	struct json *doc = NULL;
	struct why ignored;
	char path[112];

	snprintf(path, sizeof(path), "/v1/jobs/%s/participation", id);
	(void)!cmd_admin_call(a, "GET", path, NULL, &doc, &ignored);
	return doc;
}

static enum err
show_once(struct cmd_admin *a, struct show *s, struct why *why)
{
	char id[CMD_FIND_ID], path[96];
	struct json *doc = NULL, *rounds = NULL, *participation = NULL;
	enum err e = cmd_find(a, CMD_FIND_JOB, s->word, id, why);

	if (e)
		return e;
	snprintf(path, sizeof(path), "/v1/jobs/%s", id);
	e = cmd_admin_call(a, "GET", path, NULL, &doc, why);
	if (!e && !s->plot)
		e = get_rounds(a, doc, s->rounds, &rounds, why);
	const char *kind = json_string(json_get(doc, "kind"));
	if (!e && !s->plot && (!kind || task_kind_find(kind) == TASK_TRAIN))
		participation = get_participation(a, id);
	if (!e) {
		s->ended = states_job_over(states_job_find(json_string(json_get(doc, "state"))));
		if (s->watch && isatty(1))
			printf("\033[H\033[2J");
		if (s->plot)
			e = plot(a, s, doc, why);
		else
			print_shown(
			    a->json, doc, json_get(rounds, "rounds"), s->confusion, participation);
		fflush(stdout);
	}
	json_free(participation);
	json_free(rounds);
	json_free(doc);
	return e;
}

static enum err
show(struct cmd_admin *a, struct show *s, struct why *why)
{
	/* What is shown and is no change of a job is that old at most. */
	static const struct cmd_changed_pause pause = {.poll_ms = 2000, .most_s = 10};
	struct cmd_changed changed = {.after = 0};
	char id[CMD_FIND_ID];
	enum err e;

	if (s->follow) {
		e = cmd_find(a, CMD_FIND_JOB, s->word, id, why);
		return e ? e : cmd_follow(a, id, why);
	}
	e = show_once(a, s, why);
	while (!e && s->watch && !s->ended) {
		cmd_changed_wait(a, &changed, false, &pause);
		e = show_once(a, s, why);
	}
	return e;
}

static int
job_show(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct show s = {.rounds = ROUNDS_SHOWN, .all = true};
	const char *rounds = NULL;
	const struct option_entry table[] = {
	    {"watch", 'w', NULL,
		"again when something has changed, every two seconds at most, until the job ends",
		NULL, &s.watch},
	    {"follow", 'f', NULL, "a line per round as it is committed, until the job ends", NULL,
		&s.follow},
	    {"rounds", 0, "N", "how many of the latest rounds (default 20; of a plot all)", &rounds,
		NULL},
	    {"confusion", 0, NULL, "the confusion matrix, too, if the job asks for it", NULL,
		&s.confusion},
	    {"plot", 'p', NULL, "curves instead of the table of rounds", NULL, &s.plot},
	    {"metric", 'm', "NAME", "of --plot: loss, accuracy, metrics.NAME, ... (default: both)",
		&s.metric, NULL},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "job show JOB [--watch | --follow] [--rounds N] [--confusion] "
	    "[--plot [--metric NAME]] " CMD_ADMIN_USAGE,
	    "Shows a job and its latest rounds.\n" JOB_HELP
	    "\n--follow goes on when the coordinator was away; with --json it prints a JSON "
	    "object per line.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (rounds && (!num_u64(rounds, 1000, &s.rounds) || s.rounds == 0)) {
		fprintf(stderr, "rivulet: --rounds wants a number from 1 to 1000\n");
		return CMD_USAGE;
	}
	if ((s.plot && (s.follow || a.json)) || (s.metric && !s.plot)) {
		cmd_print_error("%s",
		    s.plot ? "--plot goes without --follow and --json"
			   : "--metric goes with --plot");
		return CMD_USAGE;
	}
	s.all = !rounds;
	s.word = words.words[0];
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = show(&a, &s, &why);
	return cmd_admin_end(&a, e, &why);
}

/* pause, resume, stop: argv[0] is the verb. */
static int
job_change(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const struct option_entry table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {"job pause|resume|stop JOB " CMD_ADMIN_USAGE,
	    "Pauses, resumes or ends a job.\n" JOB_HELP, 1, 1};
	struct option_words words;
	struct why why = {""};
	struct json *doc = NULL;
	char id[CMD_FIND_ID], path[96];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = cmd_find(&a, CMD_FIND_JOB, words.words[0], id, &why);
	if (!e) {
		snprintf(path, sizeof(path), "/v1/jobs/%s/%.8s", id, argv[0]);
		e = cmd_admin_call(&a, "POST", path, NULL, &doc, &why);
	}
	const char *state = json_string(json_get(doc, "state"));
	if (!e && a.json)
		cmd_print_json(doc);
	else if (!e)
		cmd_print_line("%s %s", id, state ? state : "?");
	json_free(doc);
	return cmd_admin_end(&a, e, &why);
}

static bool
is_override(const char *path)
{
	enum override_key key = 0;

	while (key < OVERRIDE_KEYS && strcmp(override_path(key), path) != 0)
		key++;
	return key < OVERRIDE_KEYS;
}

/* "PATH=VALUE" as a member of the change; without a value the override goes. */
static enum err
add_setting(struct json *change, const char *text, struct why *why)
{
	const char *value = strchr(text, '=');
	char path[EDIT_PATH_MAX];
	struct json *v = NULL;

	if (!value || value == text || (size_t)(value - text) >= sizeof(path))
		return err_set(why, ERR_INVALID, "\"%.80s\" is not PATH=VALUE", text);
	snprintf(path, sizeof(path), "%.*s", (int)(value - text), text);
	if (!is_override(path))
		return err_set(why, ERR_INVALID,
		    "%s cannot be changed once the job is submitted; \"rivulet job set --help\" "
		    "names what can",
		    path);
	if (json_get(change, path))
		return err_set(why, ERR_INVALID, "%s is given twice", path);
	if (!value[1]) {
		json_add_null(change, path);
		return ERR_OK;
	}
	enum err e = edit_value(&v, value + 1, why);
	if (!e)
		json_add(change, path, v);
	return e;
}

/* What is wrong with it by itself is said before anybody is asked. */
static enum err
print_change(struct buf *body, const struct option_words *words, struct why *why)
{
	struct json *change = json_object();
	struct override_set set;
	enum err e = ERR_OK;

	for (size_t i = 1; i < words->count && !e; i++)
		e = add_setting(change, words->words[i], why);
	if (!e)
		e = json_print(body, change, false);
	json_free(change);
	return e ? e : override_parse(&set, buf_str(body), body->len, why);
}

static enum err
set_terms(struct cmd_admin *a, const char *word, struct buf *body, struct why *why)
{
	char id[CMD_FIND_ID], path[96];
	struct json *doc = NULL;

	enum err e = cmd_find(a, CMD_FIND_JOB, word, id, why);
	if (e)
		return e;
	snprintf(path, sizeof(path), "/v1/jobs/%s/set", id);
	e = cmd_admin_call(a, "POST", path, body, &doc, why);
	json_free(doc);
	doc = NULL;
	snprintf(path, sizeof(path), "/v1/jobs/%s", id);
	if (!e)
		e = cmd_admin_call(a, "GET", path, NULL, &doc, why);
	if (!e && a->json)
		cmd_print_json(doc);
	else if (!e && json_count(json_get(doc, "overrides")) == 0)
		cmd_print_line("%s is run as its document says", id);
	else if (!e)
		cmd_jobs_overrides(doc);
	json_free(doc);
	return e;
}

static int
job_set(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const struct option_entry table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {"job set JOB PATH=VALUE... " CMD_ADMIN_USAGE,
	    "Changes what a job is run by, from now on; its document stays. PATH= takes a change "
	    "back.\nPATH: share, priority, round.goal and round.quorum (only lower than the "
	    "document's), "
	    "round.deadline_s, round.grace_s, round.task_timeout_s, "
	    "round.concurrency, stop.rounds, stop.reports, stop.seconds, "
	    "evaluate.deadline_s.\n" JOB_HELP,
	    2, 1 + OVERRIDE_KEYS};
	struct option_words words;
	struct why why = {""};
	struct buf body;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	buf_init(&body, OVERRIDE_TEXT_MAX);
	if (print_change(&body, &words, &why)) {
		cmd_print_error("%s", why.text);
		buf_deinit(&body);
		return CMD_USAGE;
	}
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = set_terms(&a, words.words[0], &body, &why);
	buf_deinit(&body);
	return cmd_admin_end(&a, e, &why);
}

int
cmd_job_main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
	    {"submit", cmd_submit_main, "start a job from a document"},
	    {"plan", planning_main, "what a job will cost, before it is submitted"},
	    {"sweep", cmd_sweep_main, "start a job for each of a grid of values, and rank them"},
	    {"evaluate", cmd_evaluate_main, "have devices evaluate a model"},
	    {"list", job_list, "jobs that are not over, or all"},
	    {"show", job_show, "one job and its rounds"},
	    {"compare", cmd_compare_main, "the curves of several jobs side by side"},
	    {"export", cmd_export_rounds, "rounds as CSV, JSON lines or for TensorBoard"},
	    {"pause", job_change, "hand out no more tasks"},
	    {"resume", job_change, "go on"},
	    {"stop", job_change, "end it for good"},
	    {"set", job_set, "change its share, priority, goal, deadlines or end"},
	    {"delete", cmd_deletion_jobs, "jobs that are over, with all that is theirs"},
	    {NULL, NULL, NULL},
	};

	return cmd_admin_verbs("job", verbs, argc, argv);
}
