#include "deletion.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "cmd.h"
#include "find.h"
#include "json.h"
#include "print.h"
#include "session.h"
#include "states.h"

/* Which jobs are meant: all that are set must fit; words name jobs one by one. */
struct filter {
	const struct option_words *words;
	const char *states, *older, *owner, *name;
	uint64_t older_s;
	double now; /* by the coordinator's clock, which the jobs' ends are of */
	bool dry, yes;
};

/* What they come to. */
struct sum {
	size_t count;
	uint64_t bytes;
	struct json *list;
};

/* The state before a comma or the end, *rest behind it. False: there is none of this name, or it is not over. */
static bool
take_state(const char *p, const char **rest, enum job_state *out)
{
	char word[16];
	size_t len = strcspn(p, ",");

	*rest = p + len + (p[len] == ',');
	snprintf(word, sizeof(word), "%.*s", (int)(len < sizeof(word) ? len : 0), p);
	*out = states_job_find(word);
	return states_job_over(*out);
}

static enum err
check(struct filter *f, struct why *why)
{
	enum job_state state;

	for (const char *p = f->states ? f->states : ""; *p;)
		if (!take_state(p, &p, &state))
			return err_set(why, ERR_INVALID,
			    "--state takes done, stopped or both with a comma: only jobs that are "
			    "over "
			    "are deleted");
	if (f->older && !cmd_admin_duration(f->older, &f->older_s))
		return err_set(why, ERR_INVALID, "--older wants a time like 30d or 12h");
	bool filters = f->states || f->older || f->owner || f->name;
	if (filters == (f->words->count > 0))
		return err_set(why, ERR_INVALID,
		    "name jobs, or say which by --state, --older, --owner and --name");
	return ERR_OK;
}

static bool
state_fits(const struct filter *f, enum job_state state)
{
	enum job_state wanted;

	if (!f->states)
		return states_job_over(state);
	for (const char *p = f->states; *p;)
		if (take_state(p, &p, &wanted) && wanted == state)
			return true;
	return false;
}

static bool
owner_fits(const struct filter *f, const struct json *job)
{
	const char *name = json_string(json_get(job, "owner_name"));
	const char *id = json_string(json_get(job, "owner"));

	if (!f->owner)
		return true;
	return (name && strcmp(name, f->owner) == 0) ||
	    (id && strlen(f->owner) >= 8 && strncmp(id, f->owner, strlen(f->owner)) == 0);
}

static bool
filters_fit(const struct filter *f, const struct json *job)
{
	const char *name = json_string(json_get(job, "name"));
	double ended = 0;

	if (!state_fits(f, states_job_find(json_string(json_get(job, "state")))))
		return false;
	if (f->older &&
	    (!json_double(json_get(job, "ended_at"), &ended) ||
		ended > f->now - (double)f->older_s))
		return false;
	if (f->name && (!name || fnmatch(f->name, name, 0) != 0))
		return false;
	return owner_fits(f, job);
}

/* --- one after the other */

static void
print_one(const struct filter *f, const struct json *answer)
{
	const char *id = json_string(json_get(answer, "job"));
	uint64_t models = 0, deltas = 0, bytes = 0;

	(void)json_u64(json_get(answer, "models"), &models);
	(void)json_u64(json_get(answer, "deltas"), &deltas);
	(void)json_u64(json_get(answer, "bytes"), &bytes);
	cmd_print_line("%s %s: %" PRIu64 " models, %" PRIu64 " deltas, %" PRIu64 " bytes",
	    id ? id : "?", f->dry ? "would go" : "deleted", models, deltas, bytes);
}

static enum err
delete_one(
    struct cmd_admin *a, const struct filter *f, const char *id, struct sum *sum, struct why *why)
{
	struct json *answer = NULL;
	char path[80];
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "/v1/jobs/%s%s", id, f->dry ? "?dry=1" : "");
	enum err e = cmd_admin_call(a, "DELETE", path, NULL, &answer, why);
	if (e)
		return e;
	(void)json_u64(json_get(answer, "bytes"), &bytes);
	sum->bytes += bytes;
	if (!a->json && f->words->count > 0)
		print_one(f, answer);
	json_push(sum->list, answer);
	return ERR_OK;
}

/* What cannot be undone for its age waits while that clock has stepped, also if a person asks for it. */
static enum err
ask_time(struct cmd_admin *a, struct filter *f, struct why *why)
{
	struct json *doc = NULL;
	double started = 0, up = 0;
	bool believed = true;

	if (!f->older)
		return ERR_OK;
	enum err e = cmd_admin_call(a, "GET", "/v1/status", NULL, &doc, why);
	if (!e &&
	    (!json_double(json_get(doc, "started_at"), &started) ||
		!json_double(json_get(doc, "uptime_s"), &up)))
		e = err_set(why, ERR_INVALID, "the coordinator does not say what time it is");
	(void)json_bool(json_get(json_get(doc, "clock"), "believed"), &believed);
	if (!e && !believed)
		e = err_set(why, ERR_STATE,
		    "the coordinator's clock has stepped, so that no job has an age: \"rivulet "
		    "status\" says more; or name the jobs");
	f->now = started + up;
	json_free(doc);
	return e;
}

static enum err
pick_words(struct cmd_admin *a, const struct filter *f, struct json *ids, struct why *why)
{
	enum err e = ERR_OK;
	char id[CMD_FIND_ID];

	for (size_t i = 0; i < f->words->count && !e; i++) {
		e = cmd_find(a, CMD_FIND_JOB, f->words->words[i], id, why);
		if (!e)
			json_push(ids, json_new_string(id));
	}
	return e;
}

static enum err
pick(struct cmd_admin *a, const struct filter *f, struct json *ids, struct why *why)
{
	struct json *doc = NULL;

	if (f->words->count > 0)
		return pick_words(a, f, ids, why);
	enum err e = cmd_admin_call(a, "GET", "/v1/jobs", NULL, &doc, why);
	const struct json *jobs = json_get(doc, "jobs");
	for (size_t i = 0; !e && i < json_count(jobs); i++)
		if (filters_fit(f, json_at(jobs, i)))
			json_push(ids, json_copy(json_get(json_at(jobs, i), "job")));
	json_free(doc);
	return e;
}

static enum err
delete_all(struct cmd_admin *a, const struct filter *f, const struct json *ids, struct sum *sum,
    struct why *why)
{
	enum err e = ERR_OK;

	if (json_count(ids) > 1 && !f->dry && !f->yes)
		return err_set(why, ERR_INVALID,
		    "these are %zu jobs: look with --dry-run, delete with --yes", json_count(ids));
	for (; sum->count < json_count(ids) && !e; sum->count += !e)
		e = delete_one(a, f, json_string(json_at(ids, sum->count)), sum, why);
	return e;
}

/* Said also after a failure in the middle: these are gone. */
static void
print_sum(const struct cmd_admin *a, const struct filter *f, struct sum *sum)
{
	if (!a->json) {
		cmd_print_line("%zu jobs %s, %" PRIu64 " bytes", sum->count,
		    f->dry ? "would go" : "deleted", sum->bytes);
		return;
	}
	struct json *v = json_object();
	json_add_bool(v, "dry_run", f->dry);
	json_add_u64(v, "count", sum->count);
	json_add_u64(v, "bytes", sum->bytes);
	json_add(v, "jobs", json_copy(sum->list));
	cmd_print_json(v);
	json_free(v);
}

static enum err
delete_picked(struct cmd_admin *a, const struct filter *f, struct why *why)
{
	struct json *ids = json_array();
	struct sum sum = {.list = json_array()};

	enum err e = pick(a, f, ids, why);
	if (!e) {
		e = delete_all(a, f, ids, &sum, why);
		if (!e || sum.count > 0)
			print_sum(a, f, &sum);
	}
	json_free(sum.list);
	json_free(ids);
	return e;
}

int
cmd_deletion_jobs(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct option_words words;
	struct filter f = {.words = &words};
	const struct option_entry table[] = {
	    {"state", 0, "STATE", "jobs that are done, stopped, or done,stopped", &f.states, NULL},
	    {"older", 0, "TIME", "that ended so long ago: 30d, 12h", &f.older, NULL},
	    {"owner", 0, "OWNER", "of this owner, by name or id", &f.owner, NULL},
	    {"name", 0, "PATTERN", "of such a name: 'sweep-*'", &f.name, NULL},
	    {"dry-run", 0, NULL, "only say what would go", NULL, &f.dry},
	    {"yes", 0, NULL, "more than one job", NULL, &f.yes},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "job delete JOB... | [--state STATE] [--older TIME] [--owner OWNER] [--name PATTERN] "
	    "[--dry-run] [--yes] " CMD_ADMIN_USAGE,
	    "Deletes jobs that are over, with their models, rounds and kept deltas. The audit log "
	    "keeps its entries.\nThe same document may not be submitted again.",
	    0, OPTION_WORDS_MAX};
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = check(&f, &why);
	if (e) {
		cmd_print_error("%s", why.text);
		return CMD_USAGE;
	}
	e = cmd_admin_open(&a, &why);
	if (!e)
		e = ask_time(&a, &f, &why);
	if (!e)
		e = delete_picked(&a, &f, &why);
	return cmd_admin_end(&a, e, &why);
}

int
cmd_deletion_models(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const struct option_entry table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {"model delete MODEL " CMD_ADMIN_USAGE,
	    "Deletes an uploaded model that no running or paused job needs. MODEL: its id, or the "
	    "beginning of one that a job shows.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	char id[CMD_FIND_ID], path[96];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = cmd_find(&a, CMD_FIND_MODEL, words.words[0], id, &why);
	if (!e) {
		snprintf(path, sizeof(path), "/v1/models/%s", id);
		e = cmd_admin_call(&a, "DELETE", path, NULL, NULL, &why);
	}
	if (!e && a.json)
		cmd_print_line("{\"model\": \"%s\", \"deleted\": true}", id);
	else if (!e)
		cmd_print_line("%s deleted", id);
	return cmd_admin_end(&a, e, &why);
}
