#include "follow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "changed.h"
#include "contact.h"
#include "json.h"
#include "print.h"
#include "session.h"
#include "states.h"

/* Also what keeps a job from moving is told as a change; who waits long finds a connection that has died. */
static const struct cmd_changed_pause pause_between = {.poll_ms = 200, .most_s = 25};
#define PAGE 1000
#define REASON_MAX 512
#define KIND_MAX 32

struct follow {
	struct cmd_admin *a;
	const char *id;
	uint64_t next; /* first round not printed yet */
	bool terminal, progress; /* progress: an unfinished line stands on the terminal */
	bool heading;
	bool evaluates; /* the job is evaluated: its figures have columns of their own */
	struct cmd_contact contact;
	struct cmd_changed changed;
	bool over; /* the job is, and all its rounds are printed */
	enum job_state state;
	char reason[REASON_MAX];
	bool told; /* that it cannot move, */
	char kind
	    [KIND_MAX]; /* and why; "": it is only paused, as far as an older coordinator tells */
};

static void
clear_progress(struct follow *f)
{
	if (f->progress)
		printf("\r\033[K");
	f->progress = false;
}

static double
number(const struct json *o, const char *key)
{
	double v;

	return json_double(json_get(o, key), &v) ? v : NAN;
}

/* "-" for what is not known. */
static void
print_figure(double v)
{
	char number[CMD_PRINT_NUMBER_MAX];

	cmd_print_part("%10s", isnan(v) ? "-" : cmd_print_number(number, v));
}

/* Training figures and those of the evaluation, as `job show` has them. */
static void
print_heading(const struct follow *f)
{
	cmd_print_part("%5s %9s %9s %9s", "round", "reports", "loss", "accuracy");
	if (f->evaluates)
		cmd_print_part(" %10s %9s", "eval loss", "eval acc");
	cmd_print_line(" %9s %8s", "MB up", "seconds");
}

static void
print_line(struct follow *f, const struct json *round)
{
	const struct json *evaluate = json_get(round, "evaluate");
	enum round_outcome outcome = states_round_find(json_string(json_get(round, "state")));
	const char *reason = json_string(json_get(round, "reason"));
	char reports[32];

	clear_progress(f);
	if (!f->heading)
		print_heading(f);
	f->heading = true;
	snprintf(
	    reports, sizeof(reports), "%.0f/%.0f", number(round, "reports"), number(round, "goal"));
	cmd_print_part("%5.0f %9s", number(round, "round"), reports);
	print_figure(number(round, "loss"));
	print_figure(number(round, "accuracy"));
	if (f->evaluates) {
		printf(" ");
		print_figure(number(evaluate, "loss"));
		print_figure(number(evaluate, "accuracy"));
	}
	printf("%10.2f %8.2f", number(round, "bytes_up") / 1e6, number(round, "seconds"));
	if (outcome == OUTCOME_FAILED)
		cmd_print_part("  failed: %s", reason ? reason : "");
	else if (reason && *reason)
		cmd_print_part("  %s", reason);
	printf("\n");
}

/* Prints finished rounds from f->next on. */
static enum err
print_rounds(struct follow *f, struct why *why)
{
	char path[128];
	struct json *doc = NULL;

	snprintf(path, sizeof(path), "/v1/jobs/%s/rounds?from=%llu&limit=%d", f->id,
	    (unsigned long long)f->next, PAGE);
	enum err e = cmd_admin_call(f->a, "GET", path, NULL, &doc, why);
	const struct json *rounds = json_get(doc, "rounds");
	for (size_t i = 0; !e && i < json_count(rounds); i++) {
		const struct json *round = json_at(rounds, i);
		const char *state = json_string(json_get(round, "state"));
		if (!state || states_round_is_open(states_round_find(state)))
			break;
		if (f->a->json)
			cmd_print_json_line(round);
		else
			print_line(f, round);
		f->next++;
	}
	json_free(doc);
	return e;
}

static void
show_progress(struct follow *f, const struct json *job)
{
	const struct json *open = json_get(job, "open");
	const char *state = json_string(json_get(open, "state"));

	if (!f->terminal || f->a->json || json_kind(open) != JSON_OBJECT)
		return;
	printf("\r\033[K");
	cmd_print_part("%5.0f %4.0f/%-4.0f %s", number(open, "round"), number(open, "reports"),
	    number(open, "goal"), state ? state : "");
	f->progress = true;
}

static const char *
text(const struct json *o, const char *key)
{
	const char *s = json_string(json_get(o, key));

	return s ? s : "";
}

/* That it cannot move is told once, and again only for another reason. A newer coordinator says it a moment after the pause. */
static void
tell_stuck(struct follow *f, const struct json *job)
{
	const struct json *stuck = json_get(job, "stuck");
	const bool paused = f->state == JOB_PAUSED, stands = json_kind(stuck) == JSON_OBJECT;
	const char *kind = text(stuck, "kind");

	if (!stands && stuck && paused)
		return;
	if (!stands && !paused) {
		if (f->told && !states_job_over(f->state)) {
			clear_progress(f);
			cmd_print_error("the job goes on");
		}
		f->told = false;
		return;
	}
	if (f->told && strcmp(f->kind, kind) == 0)
		return;
	clear_progress(f);
	cmd_print_error("the job is %s: %s%s%s", paused ? "paused" : "stuck",
	    stands ? text(stuck, "reason") : f->reason, stands ? "; what to do: " : "",
	    text(stuck, "advice"));
	f->told = true;
	snprintf(f->kind, sizeof(f->kind), "%s", kind);
}

/* Reads the job's state. */
static enum err
look(struct follow *f, struct json **doc, struct why *why)
{
	char path[64];

	snprintf(path, sizeof(path), "/v1/jobs/%s", f->id);
	enum err e = cmd_admin_call(f->a, "GET", path, NULL, doc, why);
	if (e)
		return e;
	enum job_state state = states_job_find(json_string(json_get(*doc, "state")));
	const char *reason = json_string(json_get(*doc, "reason"));
	f->state = state;
	f->evaluates = json_get(json_get(*doc, "document"), "evaluate") != NULL ||
	    json_kind(json_get(*doc, "metric")) == JSON_OBJECT;
	snprintf(f->reason, sizeof(f->reason), "%s", reason ? reason : "");
	tell_stuck(f, *doc);
	return ERR_OK;
}

/* The state before the rounds: a job seen as over has all its rounds committed. */
static enum err
step(struct follow *f, struct why *why)
{
	struct json *doc = NULL;
	enum err e = look(f, &doc, why);

	if (!e)
		e = print_rounds(f, why);
	f->over = !e && states_job_over(f->state);
	if (!e && !f->over)
		show_progress(f, doc);
	else
		clear_progress(f);
	json_free(doc);
	fflush(stdout);
	return e;
}

enum err
cmd_follow(struct cmd_admin *a, const char *id, struct why *why)
{
	struct follow f = {.a = a, .id = id, .next = 1, .terminal = isatty(1)};

	for (;;) {
		enum err e = step(&f, why);
		e = cmd_contact_note(&f.contact, e, why);
		if (e)
			return e;
		if (f.over && f.state == JOB_STOPPED)
			return err_set(why, ERR_STATE, "the job was stopped: %s", f.reason);
		if (f.over)
			return ERR_OK;
		cmd_changed_wait(a, &f.changed, f.contact.away, &pause_between);
	}
}
