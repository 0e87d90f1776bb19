#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "cmd.h"
#include "file.h"
#include "follow.h"
#include "job.h"
#include "jobs.h"
#include "num.h"
#include "print.h"
#include "states.h"

#define ROUNDS_SHOWN 20

static enum err
submit(struct cmd_admin *a, const char *path, struct json **out, struct why *why)
{
	char *text = NULL;
	size_t len = 0;
	enum err e = file_read(path, JOB_DOCUMENT_MAX, &text, &len, why);

	if (e)
		return e;
	/* The job's id is the hash of the document: it goes as it stands in the file. */
	const struct buf body = {.data = text, .len = len};
	e = cmd_admin_call(a, "POST", "/v1/jobs", &body, out, why);
	free(text);
	return e;
}

static int
job_submit(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const struct cmd_option table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct cmd_usage usage = {"job submit FILE " CMD_ADMIN_USAGE,
	    "Submits a job document and prints the job's id. The same document again is the same "
	    "job.",
	    1, 1};
	struct cmd_words words;
	struct why why = {""};
	struct json *doc = NULL;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = submit(&a, words.words[0], &doc, &why);
	const char *id = json_string(json_get(doc, "job"));
	if (!e && a.json)
		cmd_print_json(doc);
	else if (!e)
		printf("%s\n", id ? id : "?");
	json_free(doc);
	return cmd_admin_end(&a, e, &why);
}

static int
job_list(int argc, char **argv)
{
	static const struct cmd_list list = {{"job list " CMD_ADMIN_USAGE, "Lists the jobs.", 0, 0},
	    "/v1/jobs", "jobs", cmd_jobs_print};

	return cmd_admin_list(&list, argc, argv);
}

static enum err
show_rounds(
    struct cmd_admin *a, const char *id, const struct json *job, uint64_t count, struct why *why)
{
	char path[128];
	struct json *doc = NULL;
	uint64_t last = 0;

	(void)json_u64(json_get(job, "round"), &last);
	uint64_t from = last >= count ? last - count + 1 : 1;
	snprintf(path, sizeof(path), "/v1/jobs/%s/rounds?from=%llu&limit=%llu", id,
	    (unsigned long long)from, (unsigned long long)count);
	enum err e = cmd_admin_call(a, "GET", path, NULL, &doc, why);
	const struct json *rounds = json_get(doc, "rounds");
	if (!e && json_count(rounds) > 0) {
		printf("\n");
		cmd_jobs_rounds(rounds);
	}
	json_free(doc);
	return e;
}

struct show {
	const char *word;
	uint64_t rounds;
	bool watch, follow, ended;
};

static enum err
show_once(struct cmd_admin *a, struct show *s, struct why *why)
{
	char id[33], path[64];
	struct json *doc = NULL;
	enum err e = cmd_admin_find_job(a, s->word, id, why);

	if (e)
		return e;
	snprintf(path, sizeof(path), "/v1/jobs/%s", id);
	e = cmd_admin_call(a, "GET", path, NULL, &doc, why);
	if (!e) {
		enum job_state state = states_job_find(json_string(json_get(doc, "state")));
		s->ended = state == JOB_DONE || state == JOB_STOPPED;
		if (s->watch && isatty(1))
			printf("\033[H\033[2J");
		if (a->json) {
			cmd_print_json(doc);
		} else {
			cmd_jobs_one(doc);
			e = show_rounds(a, id, doc, s->rounds, why);
		}
		fflush(stdout);
	}
	json_free(doc);
	return e;
}

static enum err
show(struct cmd_admin *a, struct show *s, struct why *why)
{
	char id[33];
	enum err e;

	if (s->follow) {
		e = cmd_admin_find_job(a, s->word, id, why);
		return e ? e : cmd_follow(a, id, why);
	}
	e = show_once(a, s, why);
	while (!e && s->watch && !s->ended) {
		sleep(2);
		e = show_once(a, s, why);
	}
	return e;
}

static int
job_show(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct show s = {.rounds = ROUNDS_SHOWN};
	const char *rounds = NULL;
	const struct cmd_option table[] = {
	    {"watch", 'w', NULL, "again every two seconds, until the job ends", NULL, &s.watch},
	    {"follow", 'f', NULL, "a line per round as it is committed, until the job ends", NULL,
		&s.follow},
	    {"rounds", 0, "N", "how many of the latest rounds (default 20)", &rounds, NULL},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct cmd_usage usage = {
	    "job show JOB [--watch | --follow] [--rounds N] " CMD_ADMIN_USAGE,
	    "Shows a job and its latest rounds. JOB: id, unique beginning of an id, or unique "
	    "name.",
	    1, 1};
	struct cmd_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (rounds && (!num_u64(rounds, 1000, &s.rounds) || s.rounds == 0)) {
		fprintf(stderr, "rivulet: --rounds wants a number from 1 to 1000\n");
		return CMD_USAGE;
	}
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
	const struct cmd_option table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct cmd_usage usage = {"job pause|resume|stop JOB " CMD_ADMIN_USAGE,
	    "Pauses, resumes or ends a job. JOB: id, unique beginning of an id, or unique name.", 1,
	    1};
	struct cmd_words words;
	struct why why = {""};
	struct json *doc = NULL;
	char id[33], path[64];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = cmd_admin_find_job(&a, words.words[0], id, &why);
	if (!e) {
		snprintf(path, sizeof(path), "/v1/jobs/%s/%.8s", id, argv[0]);
		e = cmd_admin_call(&a, "POST", path, NULL, &doc, &why);
	}
	const char *state = json_string(json_get(doc, "state"));
	if (!e && a.json)
		cmd_print_json(doc);
	else if (!e)
		printf("%s %s\n", id, state ? state : "?");
	json_free(doc);
	return cmd_admin_end(&a, e, &why);
}

int
cmd_job_main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
	    {"submit", job_submit, "start a job from a document"},
	    {"list", job_list, "all jobs"},
	    {"show", job_show, "one job and its rounds"},
	    {"pause", job_change, "hand out no more tasks"},
	    {"resume", job_change, "go on"},
	    {"stop", job_change, "end it for good"},
	    {NULL, NULL, NULL},
	};

	return cmd_admin_verbs("job", verbs, argc, argv);
}
