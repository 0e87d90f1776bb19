#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "cmd_admin.h"
#include "cmd_print.h"

static void
print_devices(const struct json *devices)
{
	static const char *const heads[] = {
	    "DEVICE", "NAME", "ROLE", "STATE", "REPORTS", "CONTACT", "JOINED", "AGENT", "REASON"};
	struct cmd_table t;

	if (json_count(devices) == 0) {
		printf("no devices\n");
		return;
	}
	cmd_print_start(&t, heads, 9);
	for (size_t i = 0; i < json_count(devices); i++) {
		const struct json *d = json_at(devices, i);
		cmd_print_short_id(&t, d, "device");
		cmd_print_text(&t, d, "name");
		cmd_print_text(&t, d, "role");
		cmd_print_text(&t, d, "state");
		cmd_print_count(&t, d, "reports");
		cmd_print_age(&t, d, "last_contact");
		cmd_print_age(&t, d, "joined_at");
		cmd_print_text(&t, d, "agent");
		cmd_print_text(&t, d, "reason");
	}
	cmd_print_end(&t);
}

static int
device_list(int argc, char **argv)
{
	static const struct cmd_list list = {
	    {"device list " CMD_ADMIN_USAGE, "Lists the devices that joined.", 0, 0}, "/v1/devices",
	    "devices", print_devices};

	return cmd_admin_list(&list, argc, argv);
}

/* Every member on a line of its own. */
static void
print_device(const struct json *d)
{
	for (size_t i = 0; i < json_count(d); i++) {
		const struct json *v = json_at(d, i);
		struct buf text;
		buf_init(&text, 64u << 10);
		const char *s = json_string(v);
		if (s)
			printf("%-14s %s\n", json_key(v), s);
		else if (json_print(&text, v, false) == ERR_OK)
			printf("%-14s %s\n", json_key(v), buf_str(&text));
		buf_deinit(&text);
	}
}

static bool
path_safe(const char *word)
{
	return *word && strlen(word) < 128 &&
	    word[strspn(
		word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

static int
device_show(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const struct cmd_option table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct cmd_usage usage = {
	    "device show DEVICE " CMD_ADMIN_USAGE, "Shows one device, by id or name.", 1, 1};
	struct cmd_words words;
	struct why why = {""};
	struct json *doc = NULL;
	char path[192];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = path_safe(words.words[0]) ? cmd_admin_open(&a, &why)
					       : err_set(&why, ERR_NOTFOUND, "no such device");
	if (!e) {
		snprintf(path, sizeof(path), "/v1/devices/%s", words.words[0]);
		e = cmd_admin_call(&a, "GET", path, NULL, &doc, &why);
	}
	if (!e && a.json)
		cmd_print_json(doc);
	else if (!e)
		print_device(doc);
	json_free(doc);
	return cmd_admin_end(&a, e, &why);
}

int
cmd_device_main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
	    {"list", device_list, "all devices"},
	    {"show", device_show, "one device"},
	    {NULL, NULL, NULL},
	};

	return cmd_admin_verbs("device", verbs, argc, argv);
}
