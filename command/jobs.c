#include "jobs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "json.h"
#include "print.h"
#include "states.h"

/* Of those that close the round. */
static void
cell_reports(struct cmd_table *t, const struct json *o, const char *key)
{
	uint64_t a, b;

	if (json_u64(json_get(o, key), &a) && json_u64(json_get(o, "goal"), &b))
		cmd_print_cell(t, "%llu/%llu", (unsigned long long)a, (unsigned long long)b);
	else
		cmd_print_cell(t, "-");
}

/* By name, where it has one that is no id. */
static void
cell_owner(struct cmd_table *t, const struct json *job, const char *key)
{
	const char *name = json_string(json_get(job, "owner_name"));

	if (name && *name && strncmp(name, "token:", 6) != 0)
		cmd_print_cell(t, "%s", name);
	else
		cmd_print_short_id(t, job, key);
}

struct json *
cmd_jobs_living(const struct json *jobs)
{
	struct json *out = json_array();

	for (const struct json *job = json_first(jobs); job; job = json_next(job))
		if (!states_job_over(states_job_find(json_string(json_get(job, "state")))))
			json_push(out, json_copy(job));
	return out;
}

static void
print_table(const struct json *jobs)
{
	static const struct cmd_column columns[] = {
	    {"JOB", cmd_print_short_id, .key = "job"},
	    {"NAME", cmd_print_text, .key = "name"},
	    {"STATE", cmd_print_text, .key = "state"},
	    {"ROUND", cmd_print_count, .key = "round"},
	    {"REPORTS", cell_reports, .in = "open", .key = "reports"},
	    {"ACCURACY", cmd_print_figure, .in = "metric", .key = "accuracy"},
	    {"LOSS", cmd_print_figure, .in = "metric", .key = "loss"},
	    {"MODEL", cmd_print_short_id, .key = "model"},
	    {"AGE", cmd_print_age, .key = "created_at"},
	    {"OWNER", cell_owner, .key = "owner"},
	    {.head = NULL},
	};

	cmd_print_rows(columns, jobs);
}

void
cmd_jobs_print(const struct json *jobs, bool all)
{
	struct json *living = all ? json_copy(jobs) : cmd_jobs_living(jobs);
	size_t shown = json_count(living), hidden = json_count(jobs) - shown;

	if (shown > 0)
		print_table(living);
	else if (hidden == 0)
		printf("no jobs\n");
	if (hidden > 0)
		cmd_print_line("%zu job%s over: rivulet job list --all", hidden,
		    hidden == 1 ? " is" : "s are");
	json_free(living);
}

/* Why a round failed, or what the guard did at its end. */
static void
print_reason(const struct json *round)
{
	const char *reason = json_string(json_get(round, "reason"));
	uint64_t n = 0;

	if (reason && *reason && json_u64(json_get(round, "round"), &n))
		cmd_print_line("round %" PRIu64 ": %s", n, reason);
}

/* Trainers report by names of their own, so a job may be judged by one that nobody gives. */
static void
print_missing(const struct json *job, const struct json *round)
{
	static const char own[] = "metrics.";
	const struct json *metrics = json_get(round, "metrics");
	const char *metric = json_string(json_get(json_get(job, "monitor"), "metric"));

	if (!metric || strncmp(metric, own, strlen(own)) != 0 ||
	    json_get(metrics, metric + strlen(own)))
		return;
	cmd_print_part("the monitor's %s is in no report; there is", metric);
	for (const struct json *m = json_first(metrics); m; m = json_next(m))
		cmd_print_part(" %s%s", own, json_key(m));
	cmd_print_line("%s", "");
}

/* What trainers report by names of their own, of the newest round that has some. */
static void
print_metrics(const struct json *job, const struct json *rounds)
{
	static const char *const heads[] = {"ROUND", "METRIC", "MEAN", "REPORTS"};
	const struct json *round = NULL;
	struct cmd_table t;

	for (size_t i = 0; i < json_count(rounds); i++)
		if (json_count(json_get(json_at(rounds, i), "metrics")) > 0)
			round = json_at(rounds, i);
	if (!round)
		return;
	const struct json *metrics = json_get(round, "metrics");
	printf("\n");
	print_missing(job, round);
	cmd_print_start(&t, heads, 4);
	for (size_t i = 0; i < json_count(metrics); i++) {
		const struct json *metric = json_at(metrics, i);
		cmd_print_count(&t, round, "round");
		cmd_print_cell(&t, "%s", json_key(metric));
		cmd_print_figure(&t, metric, "mean");
		cmd_print_count(&t, metric, "reports");
	}
	cmd_print_end(&t);
}

static void
cell_seconds(struct cmd_table *t, const struct json *round, const char *key)
{
	double seconds;

	if (json_double(json_get(round, key), &seconds))
		cmd_print_cell(t, "%.2f", seconds);
	else
		cmd_print_cell(t, "-");
}

static void
cell_round_age(struct cmd_table *t, const struct json *round, const char *key)
{
	cmd_print_age(t, round, json_get(round, key) ? key : "opened_at");
}

void
cmd_jobs_rounds(const struct json *job, const struct json *rounds)
{
	static const struct cmd_column columns[] = {
	    {"ROUND", cmd_print_count, .key = "round"},
	    {"STATE", cmd_print_text, .key = "state"},
	    {"REPORTS", cell_reports, .key = "reports"},
	    {"EXAMPLES", cmd_print_count, .key = "examples"},
	    {"LOSS", cmd_print_figure, .key = "loss"},
	    {"ACCURACY", cmd_print_figure, .key = "accuracy"},
	    {"EVAL LOSS", cmd_print_figure, .in = "evaluate", .key = "loss"},
	    {"EVAL ACC", cmd_print_figure, .in = "evaluate", .key = "accuracy"},
	    {"UP", cmd_print_bytes, .key = "bytes_up"},
	    {"DOWN", cmd_print_bytes, .key = "bytes_down"},
	    {"SECONDS", cell_seconds, .key = "seconds"},
	    {"AGE", cell_round_age, .key = "closed_at"},
	    {.head = NULL},
	};

	cmd_print_rows(columns, rounds);
	for (size_t i = 0; i < json_count(rounds); i++)
		print_reason(json_at(rounds, i));
	print_metrics(job, rounds);
}

static const char *
text_of(const struct json *o, const char *key)
{
	const char *text = json_string(json_get(o, key));

	return text ? text : "";
}

void
cmd_jobs_stuck(const struct json *jobs)
{
	for (const struct json *job = json_first(jobs); job; job = json_next(job)) {
		const struct json *stuck = json_get(job, "stuck");
		if (json_kind(stuck) == JSON_OBJECT)
			cmd_print_line("job %s cannot move (%s): %s; what to do: %s",
			    text_of(job, "name"), text_of(stuck, "kind"), text_of(stuck, "reason"),
			    text_of(stuck, "advice"));
	}
}

static void
fact(const char *name, const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	const char *text = json_string(v);
	double d;

	if (text && *text)
		cmd_print_line("%-10s %s", name, text);
	else if (json_double(v, &d))
		cmd_print_line("%-10s %.10g", name, d);
}

/* "12 wait (no-data 10, old-agent 2)" */
static void
print_reasons(const struct json *counts, const char *what)
{
	uint64_t n, sum = 0;

	for (size_t i = 0; i < json_count(counts); i++)
		sum += json_u64(json_at(counts, i), &n) ? n : 0;
	if (sum == 0)
		return;
	cmd_print_part(", %" PRIu64 " %s (", sum, what);
	for (size_t i = 0; i < json_count(counts); i++)
		if (json_u64(json_at(counts, i), &n))
			cmd_print_part(
			    "%s%s %" PRIu64, i > 0 ? ", " : "", json_key(json_at(counts, i)), n);
	cmd_print_part(")");
}

static void
print_devices(const struct json *devices)
{
	uint64_t ready;

	if (!json_u64(json_get(devices, "ready"), &ready))
		return;
	cmd_print_part("%-10s %" PRIu64 " ready", "devices", ready);
	print_reasons(json_get(devices, "waiting"), "wait");
	print_reasons(json_get(devices, "gave_up"), "gave up");
	cmd_print_line("%s", "");
}

void
cmd_jobs_refused(const char *head, const struct json *refused)
{
	for (const struct json *r = json_first(refused); r; r = json_next(r)) {
		const char *name = json_string(json_get(r, "name"));
		const char *reason = json_string(json_get(r, "reason"));
		uint64_t needed = 0, had = 0;
		(void)json_u64(json_get(r, "needed_bytes"), &needed);
		(void)json_u64(json_get(r, "memory_bytes"), &had);
		cmd_print_line("%s %s: %s, %" PRIu64 " bytes for a task and %" PRIu64 " there",
		    head, name ? name : "?", reason ? reason : "?", needed, had);
	}
}

/* By the monitor. */
static void
print_best(const struct json *job)
{
	const struct json *monitor = json_get(job, "monitor"), *best = json_get(job, "best");
	const char *metric = json_string(json_get(monitor, "metric"));
	const char *mode = json_string(json_get(monitor, "mode"));
	double value;

	if (!metric || !json_double(json_get(best, "value"), &value))
		return;
	cmd_print_line("%-10s %s, %s: %.6g", "best of", metric, mode ? mode : "?", value);
	fact("best round", best, "round");
	fact("best model", best, "model");
}

void
cmd_jobs_overrides(const struct json *job)
{
	const struct json *all = json_get(job, "overrides");
	double value, document;

	for (const struct json *v = json_first(all); v; v = json_next(v))
		if (json_double(json_get(v, "value"), &value) &&
		    json_double(json_get(v, "document"), &document))
			cmd_print_line("%-10s %s = %.10g (document: %.10g)", "set", json_key(v),
			    value, document);
}

static void
print_stuck(const struct json *stuck)
{
	double since;

	if (json_kind(stuck) != JSON_OBJECT)
		return;
	cmd_print_part("%-10s %s", "stuck", text_of(stuck, "kind"));
	if (json_double(json_get(stuck, "since"), &since)) {
		char at[CMD_PRINT_TIME_MAX];
		cmd_print_time(at, since);
		cmd_print_part(" since %s", at);
	}
	cmd_print_line(": %s", text_of(stuck, "reason"));
	cmd_print_line("%-10s %s", "what to do", text_of(stuck, "advice"));
}

static void
print_deadline(const struct json *open)
{
	char at[CMD_PRINT_TIME_MAX];
	double deadline;

	if (!json_double(json_get(open, "deadline_at"), &deadline))
		return;
	cmd_print_time(at, deadline);
	double left = deadline - clock_wall();
	cmd_print_line(
	    "%-10s %s, %.0f s %s", "deadline", at, fabs(left), left < 0 ? "ago" : "from now");
}

/* Devices of the open round, a line each; since: a time of theirs. */
static void
print_held(const char *head, const struct json *devices, const char *since, const char *what)
{
	double at;

	for (const struct json *d = json_first(devices); d; d = json_next(d)) {
		const char *name = *text_of(d, "name") ? text_of(d, "name") : text_of(d, "device");
		if (json_double(json_get(d, since), &at))
			cmd_print_line("%-10s %s, %s %.0f s ago", head, name, what,
			    fmax(clock_wall() - at, 0));
		else
			cmd_print_line("%-10s %s", head, name);
	}
}

static void
print_open(const struct json *job, const struct json *open)
{
	if (json_kind(open) != JSON_OBJECT)
		return;
	fact("open round", open, "round");
	fact("kind", open, "kind");
	fact("reports", open, "reports");
	fact("invited", open, "invited");
	fact("goal", open, "goal");
	fact("quorum", open, "quorum");
	fact("reopened", open, "reopened");
	if (json_get(open, "waits_for"))
		fact("waits for", open, "waits_for");
	print_deadline(open);
	print_held("works", json_get(job, "invited"), "given_at", "got its task");
	print_held("silent", json_get(job, "silent"), "last_contact", "last heard of");
}

void
cmd_jobs_one(const struct json *job)
{
	const struct json *metric = json_get(job, "metric");

	fact("job", job, "job");
	fact("name", job, "name");
	fact("state", job, "state");
	fact("reason", job, "reason");
	print_stuck(json_get(job, "stuck"));
	fact("owner", job, "owner");
	fact("owner name", job, "owner_name");
	fact("priority", job, "priority");
	fact("share", job, "share");
	cmd_jobs_overrides(job);
	fact("committed", job, "rounds_committed");
	fact("model", job, "model");
	fact("bytes", job, "model_bytes");
	if (json_kind(metric) == JSON_OBJECT) {
		fact("metric of", metric, "round");
		fact("accuracy", metric, "accuracy");
		fact("loss", metric, "loss");
	}
	print_best(job);
	fact("rollbacks", json_get(job, "guard"), "rollbacks");
	print_devices(json_get(job, "devices"));
	cmd_jobs_refused("refused by", json_get(job, "refused"));
	print_open(job, json_get(job, "open"));
}

/* A log has lines of its own, and may be none of ours. */
static void
print_log(const char *log)
{
	for (const char *p = log; *p; p += strspn(p, "\n")) {
		size_t len = strcspn(p, "\n");
		cmd_print_line("    %.*s", (int)len, p);
		p += len;
	}
}

void
cmd_jobs_failures(const struct json *failures)
{
	for (size_t i = 0; i < json_count(failures); i++) {
		const struct json *f = json_at(failures, i);
		const char *name = json_string(json_get(f, "name"));
		const char *id = json_string(json_get(f, "device"));
		const char *reason = json_string(json_get(f, "reason"));
		const char *log = json_string(json_get(f, "log"));
		uint64_t round = 0;
		(void)json_u64(json_get(f, "round"), &round);
		cmd_print_line("%s gave up round %" PRIu64 ": %s",
		    name && *name ? name
			: id	  ? id
				  : "?",
		    round, reason ? reason : "?");
		print_log(log ? log : "");
	}
}
