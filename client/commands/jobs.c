#include "jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "print.h"

static void
cell_ratio(struct cmd_table *t, const struct json *o, const char *part, const char *whole)
{
	uint64_t a, b;

	if (json_u64(json_get(o, part), &a) && json_u64(json_get(o, whole), &b))
		cmd_print_cell(t, "%llu/%llu", (unsigned long long)a, (unsigned long long)b);
	else
		cmd_print_cell(t, "-");
}

void
cmd_jobs_print(const struct json *jobs)
{
	static const char *const heads[] = {"JOB", "NAME", "STATE", "ROUND", "REPORTS", "ACCURACY",
	    "LOSS", "MODEL", "AGE", "OWNER"};
	struct cmd_table t;

	if (json_count(jobs) == 0) {
		printf("no jobs\n");
		return;
	}
	cmd_print_start(&t, heads, 10);
	for (size_t i = 0; i < json_count(jobs); i++) {
		const struct json *job = json_at(jobs, i);
		const struct json *metric = json_get(job, "metric");
		cmd_print_short_id(&t, job, "job");
		cmd_print_text(&t, job, "name");
		cmd_print_text(&t, job, "state");
		cmd_print_count(&t, job, "round");
		cell_ratio(&t, json_get(job, "open"), "reports", "goal");
		cmd_print_figure(&t, metric, "accuracy");
		cmd_print_figure(&t, metric, "loss");
		cmd_print_short_id(&t, job, "model");
		cmd_print_age(&t, job, "created_at");
		cmd_print_short_id(&t, job, "owner");
	}
	cmd_print_end(&t);
}

/* Why a round failed, or what the guard did at its end. */
static void
print_reason(const struct json *round)
{
	const char *reason = json_string(json_get(round, "reason"));
	uint64_t n = 0;

	if (reason && *reason && json_u64(json_get(round, "round"), &n))
		printf("round %" PRIu64 ": %s\n", n, reason);
}

void
cmd_jobs_rounds(const struct json *rounds)
{
	static const char *const heads[] = {"ROUND", "STATE", "REPORTS", "EXAMPLES", "LOSS",
	    "ACCURACY", "EVAL LOSS", "EVAL ACC", "UP", "DOWN", "SECONDS", "AGE"};
	struct cmd_table t;

	cmd_print_start(&t, heads, 12);
	for (size_t i = 0; i < json_count(rounds); i++) {
		const struct json *round = json_at(rounds, i);
		const struct json *evaluate = json_get(round, "evaluate");
		double seconds;
		cmd_print_count(&t, round, "round");
		cmd_print_text(&t, round, "state");
		cell_ratio(&t, round, "reports", "goal");
		cmd_print_count(&t, round, "examples");
		cmd_print_figure(&t, round, "loss");
		cmd_print_figure(&t, round, "accuracy");
		cmd_print_figure(&t, evaluate, "loss");
		cmd_print_figure(&t, evaluate, "accuracy");
		cmd_print_bytes(&t, round, "bytes_up");
		cmd_print_bytes(&t, round, "bytes_down");
		if (json_double(json_get(round, "seconds"), &seconds))
			cmd_print_cell(&t, "%.2f", seconds);
		else
			cmd_print_cell(&t, "-");
		cmd_print_age(&t, round, json_get(round, "closed_at") ? "closed_at" : "opened_at");
	}
	cmd_print_end(&t);
	for (size_t i = 0; i < json_count(rounds); i++)
		print_reason(json_at(rounds, i));
}

static void
fact(const char *name, const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	const char *text = json_string(v);
	double d;

	if (text && *text)
		printf("%-10s %s\n", name, text);
	else if (json_double(v, &d))
		printf("%-10s %.10g\n", name, d);
}

void
cmd_jobs_one(const struct json *job)
{
	const struct json *metric = json_get(job, "metric"), *open = json_get(job, "open");
	const struct json *best = json_get(json_get(job, "guard"), "best");

	fact("job", job, "job");
	fact("name", job, "name");
	fact("state", job, "state");
	fact("reason", job, "reason");
	fact("owner", job, "owner");
	fact("priority", job, "priority");
	fact("committed", job, "rounds_committed");
	fact("model", job, "model");
	fact("bytes", job, "model_bytes");
	if (json_kind(metric) == JSON_OBJECT) {
		fact("metric of", metric, "round");
		fact("accuracy", metric, "accuracy");
		fact("loss", metric, "loss");
	}
	if (json_kind(best) == JSON_OBJECT) {
		fact("best round", best, "round");
		fact("best model", best, "model");
		fact("rollbacks", json_get(job, "guard"), "rollbacks");
	}
	if (json_kind(open) == JSON_OBJECT) {
		fact("open round", open, "round");
		fact("reports", open, "reports");
		fact("invited", open, "invited");
		fact("goal", open, "goal");
	}
}
