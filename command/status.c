#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "changed.h"
#include "cmd.h"
#include "jobs.h"
#include "json.h"
#include "print.h"
#include "session.h"

static uint64_t
number(const struct json *object, const char *key)
{
	uint64_t v = 0;

	(void)json_u64(json_get(object, key), &v);
	return v;
}

/* Only readers and administrators are told. */
static void
print_disk(const struct json *doc)
{
	static const char *const heads[] = {
	    "FREE", "TOTAL", "MODELS", "SPOOL", "KEPT", "DATABASE", "RESERVE", "JOBS NEED"};
	static const char *const keys[] = {
	    "free", "total", "models", "spool", "kept", "database", "reserve"};
	const struct json *disk = json_get(doc, "disk"), *forecast = json_get(doc, "forecast");
	const struct json *jobs = json_get(forecast, "jobs");
	struct cmd_table t;
	bool fits = true;

	if (!disk)
		return;
	cmd_print_start(&t, heads, sizeof(heads) / sizeof(*heads));
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		cmd_print_bytes(&t, disk, keys[i]);
	cmd_print_bytes(&t, forecast, "bytes");
	cmd_print_end(&t);
	if (json_bool(json_get(forecast, "fits"), &fits) && !fits)
		printf("warning: the jobs need more than is free\n");
	for (size_t i = 0; i < json_count(jobs); i++) {
		const struct json *job = json_at(jobs, i);
		const char *name = json_string(json_get(job, "name"));
		if (json_bool(json_get(job, "fits"), &fits) && !fits)
			cmd_print_line("warning: job %s alone needs %llu bytes", name ? name : "?",
			    (unsigned long long)number(job, "bytes"));
	}
	printf("\n");
}

/* The coordinator does its work, but somebody has to do something. */
static void
warn_of(const char *kind, uint64_t devices, const char *what)
{
	cmd_print_line("warning: %llu %s device%s %s\n", (unsigned long long)devices, kind,
	    devices == 1 ? " is" : "s are", what);
}

static void
print_ca(const struct json *ca)
{
	bool rotating = false;
	const uint64_t behind = number(ca, "not_renewed");

	(void)json_bool(json_get(ca, "rotating"), &rotating);
	if (rotating)
		cmd_print_line(
		    "the CA is being replaced: %llu %s not renewed; \"rivuletd ca status\" names "
		    "them, \"rivuletd ca finish\" ends it when none is left\n",
		    (unsigned long long)behind, behind == 1 ? "device has" : "devices have");
	else if (behind > 0)
		cmd_print_line(
		    "warning: %llu %s of a CA that was replaced, and must join again: \"rivuletd "
		    "ca status\" names them\n",
		    (unsigned long long)behind, behind == 1 ? "device is" : "devices are");
}

static void
print_clock(const struct json *doc)
{
	const struct json *clock = json_get(doc, "clock");
	const char *detail = json_string(json_get(clock, "detail"));
	bool believed = true;

	if (json_bool(json_get(clock, "believed"), &believed) && !believed)
		cmd_print_line("warning: %s", detail ? detail : "the clock is in doubt");
}

/* Only readers and administrators are told. */
static void
print_stuck(const struct json *doc)
{
	const struct json *stuck = json_get(doc, "stuck");
	uint64_t jobs = number(stuck, "jobs"), paused = number(stuck, "paused");

	if (jobs == 0 && paused == 0)
		return;
	cmd_print_line("stuck: %llu job%s, and %llu paused by hand", (unsigned long long)jobs,
	    jobs == 1 ? "" : "s", (unsigned long long)paused);
	cmd_jobs_stuck(json_get(doc, "jobs"));
	printf("\n");
}

static void
print_status(const struct json *doc)
{
	const struct json *devices = json_get(doc, "devices");
	const char *version = json_string(json_get(doc, "version"));
	const char *backend = json_string(json_get(doc, "backend"));
	const char *reason = json_string(json_get(doc, "reason"));
	const char *detail = json_string(json_get(doc, "detail"));
	bool ready = false;
	double uptime = 0;

	(void)json_bool(json_get(doc, "ready"), &ready);
	(void)json_double(json_get(doc, "uptime_s"), &uptime);
	cmd_print_line("coordinator %s (%s), up %.0f s, %s%s%s", version ? version : "?",
	    backend ? backend : "?", uptime, ready ? "ready" : "not ready",
	    !ready && reason ? ": " : "", !ready && reason ? reason : "");
	if (!ready && detail && *detail)
		cmd_print_line("%s", detail);
	printf("devices: %llu joined, %llu active; connections: %llu\n\n",
	    (unsigned long long)number(devices, "joined"),
	    (unsigned long long)number(devices, "active"),
	    (unsigned long long)number(doc, "connections"));
	if (number(doc, "locked_out") > 0)
		warn_of("active", number(doc, "locked_out"),
		    "locked out, for their certificates are refused: is the coordinator's clock "
		    "right? "
		    "\"rivulet device list\" has them. Who was away for long renews by itself once "
		    "its agent runs");
	const struct json *lost = json_get(doc, "lost");
	if (number(lost, "files") > 0)
		printf(
		    "warning: %llu models or deltas, %llu bytes, lie in lost/, for no row explains "
		    "them: \"rivuletd check\" lists them\n\n",
		    (unsigned long long)number(lost, "files"),
		    (unsigned long long)number(lost, "bytes"));
	print_clock(doc);
	print_ca(json_get(doc, "ca"));
	if (number(doc, "contested") > 0)
		warn_of("suspended", number(doc, "contested"),
		    "claimed by several keys: \"rivulet device list --contested\", then \"rivulet "
		    "device rekey\"");
	print_stuck(doc);
	print_disk(doc);
	cmd_jobs_print(json_get(doc, "jobs"), false);
}

static enum err
show(struct cmd_admin *a, bool clear, bool *ready, struct why *why)
{
	struct json *doc = NULL;
	enum err e = cmd_admin_call(a, "GET", "/v1/status", NULL, &doc, why);

	if (e)
		return e;
	if (clear)
		printf("\033[H\033[2J");
	if (a->json)
		cmd_print_json(doc);
	else
		print_status(doc);
	fflush(stdout);
	*ready = false;
	(void)json_bool(json_get(doc, "ready"), ready);
	json_free(doc);
	return ERR_OK;
}

int
cmd_status_main(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	static const struct cmd_changed_pause pause = {.poll_ms = 2000, .most_s = 10};
	struct cmd_changed changed = {.after = 0};
	bool watch = false, ready = true;
	const struct option_entry table[] = {
	    {"watch", 'w', NULL,
		"again when something has changed, every two seconds at most, until Ctrl-C", NULL,
		&watch},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"status [--watch] " CMD_ADMIN_USAGE,
	    "What the coordinator is doing. The exit code is 1 when it is not ready.", 0, 0};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = show(&a, watch && isatty(1), &ready, &why);
	while (!e && watch) {
		cmd_changed_wait(&a, &changed, false, &pause);
		e = show(&a, isatty(1), &ready, &why);
	}
	rc = cmd_admin_end(&a, e, &why);
	return rc == CMD_OK && !ready ? CMD_FAILED : rc;
}

/* --- the coordinator's clock */

static int
clock_confirm(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const struct option_entry table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {"clock confirm " CMD_ADMIN_USAGE,
	    "Says that the coordinator's clock is right although it has moved: what is old is "
	    "deleted again.\n"
	    "\"rivulet status\" says when that is asked for. Where nothing is, nothing changes.",
	    0, 0};
	struct option_words words;
	struct why why = {""};
	struct json *doc = NULL;
	bool changed = false;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = cmd_admin_call(&a, "POST", "/v1/clock/confirm", NULL, &doc, &why);
	(void)json_bool(json_get(doc, "changed"), &changed);
	if (!e && a.json)
		cmd_print_json(doc);
	else if (!e)
		cmd_print_line(
		    "%s", changed ? "the clock is confirmed" : "the clock was not in doubt");
	json_free(doc);
	return cmd_admin_end(&a, e, &why);
}

int
cmd_clock_main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
	    {"confirm", clock_confirm, "say that the coordinator's clock is right"},
	    {NULL, NULL, NULL},
	};

	return cmd_admin_verbs("clock", verbs, argc, argv);
}
