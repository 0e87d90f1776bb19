#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "cmd.h"
#include "jobs.h"
#include "print.h"

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
	    "FREE", "TOTAL", "MODELS", "SPOOL", "KEPT", "DATABASE", "JOBS NEED"};
	static const char *const keys[] = {"free", "total", "models", "spool", "kept", "database"};
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
			printf("warning: job %s alone needs %llu bytes\n", name ? name : "?",
			    (unsigned long long)number(job, "bytes"));
	}
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
	printf("coordinator %s (%s), up %.0f s, %s%s%s\n", version ? version : "?",
	    backend ? backend : "?", uptime, ready ? "ready" : "not ready",
	    !ready && reason ? ": " : "", !ready && reason ? reason : "");
	if (!ready && detail && *detail)
		printf("%s\n", detail);
	printf("devices: %llu joined, %llu active; connections: %llu\n\n",
	    (unsigned long long)number(devices, "joined"),
	    (unsigned long long)number(devices, "active"),
	    (unsigned long long)number(doc, "connections"));
	print_disk(doc);
	cmd_jobs_print(json_get(doc, "jobs"));
}

static enum err
show(struct cmd_admin *a, bool clear, struct why *why)
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
	json_free(doc);
	return ERR_OK;
}

int
cmd_status_main(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	bool watch = false;
	const struct cmd_option table[] = {
	    {"watch", 'w', NULL, "again every two seconds, until Ctrl-C", NULL, &watch},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct cmd_usage usage = {
	    "status [--watch] " CMD_ADMIN_USAGE, "What the coordinator is doing.", 0, 0};
	struct cmd_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = show(&a, watch && isatty(1), &why);
	while (!e && watch) {
		sleep(2);
		e = show(&a, isatty(1), &why);
	}
	return cmd_admin_end(&a, e, &why);
}
