#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "cmd_admin.h"
#include "cmd_jobs.h"
#include "cmd_print.h"

static uint64_t
number(const struct json *object, const char *key)
{
	uint64_t v = 0;

	(void)json_u64(json_get(object, key), &v);
	return v;
}

static void
print_status(const struct json *doc)
{
	const struct json *devices = json_get(doc, "devices");
	const char *version = json_string(json_get(doc, "version"));
	const char *backend = json_string(json_get(doc, "backend"));
	const char *reason = json_string(json_get(doc, "reason"));
	bool ready = false;
	double uptime = 0;

	(void)json_bool(json_get(doc, "ready"), &ready);
	(void)json_double(json_get(doc, "uptime_s"), &uptime);
	printf("coordinator %s (%s), up %.0f s, %s%s%s\n", version ? version : "?",
	    backend ? backend : "?", uptime, ready ? "ready" : "not ready",
	    !ready && reason ? ": " : "", !ready && reason ? reason : "");
	printf("devices: %llu joined, %llu active; connections: %llu\n\n",
	    (unsigned long long)number(devices, "joined"),
	    (unsigned long long)number(devices, "active"),
	    (unsigned long long)number(doc, "connections"));
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
