#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "cmd.h"
#include "device_change.h"
#include "devices.h"
#include "find.h"
#include "json.h"
#include "participation.h"
#include "print.h"
#include "session.h"

static enum err
list(struct cmd_admin *a, const struct cmd_devices_filter *filter, bool names, struct why *why)
{
	struct json *picked;
	enum err e = cmd_devices_ask(a, filter, &picked, why);

	if (e)
		return e;
	if (a->json) {
		struct json *doc = json_object();
		json_add(doc, "devices", picked);
		cmd_print_json(doc);
		json_free(doc);
		return ERR_OK;
	}
	if (names)
		cmd_print_members(picked, "name");
	else
		cmd_devices_print(picked);
	json_free(picked);
	return ERR_OK;
}

static int
device_list(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct cmd_devices_filter filter = {.state = NULL};
	bool names = false;
	const struct option_entry table[] = {
	    {"state", 0, "STATE", "only active, suspended, revoked or left ones", &filter.state,
		NULL},
	    {"where", 0, "K=V", "only with this label, several with commas", &filter.where, NULL},
	    {"label", 0, "K=V", "the same", &filter.where, NULL},
	    {"reason", 0, "WORD", "only those that wait for this reason", &filter.reason, NULL},
	    {"silent", 0, "TIME", "only those not heard of for so long, as 30m, 24h, 7d, or never",
		&filter.silent, NULL},
	    {"agent", 0, "VERSION", "only agents of this version, or one that begins so: 1.1",
		&filter.agent, NULL},
	    {"cloned", 0, NULL, "only keys that were seen on two machines", NULL, &filter.cloned},
	    {"contested", 0, NULL, "only those that several keys claim to be", NULL,
		&filter.contested},
	    {"names", 0, NULL, "only their names, one a line", NULL, &names},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "device list [--state STATE] [--where k=v] [--reason WORD] [--silent TIME] "
	    "[--agent VERSION] [--cloned] [--contested] [--names] " CMD_ADMIN_USAGE,
	    "Lists the devices that joined.", 0, 0};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_devices_check(&filter, &why);
	if (!e)
		e = cmd_admin_open(&a, &why);
	if (!e)
		e = list(&a, &filter, names, &why);
	return cmd_admin_end(&a, e, &why);
}

/* show, erase: argv[0] is the verb. */
static int
device_one(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const struct option_entry table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {"device show|erase DEVICE " CMD_ADMIN_USAGE,
	    "Shows a device.\n"
	    "erase, of one that was revoked or left, deletes all that tells about it.\n"
	    "DEVICE: id, unique beginning of an id, or name.",
	    1, 1};
	bool show = strcmp(argv[0], "show") == 0;
	struct option_words words;
	struct why why = {""};
	struct json *doc = NULL;
	char id[CMD_FIND_ID], path[128];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = cmd_find(&a, CMD_FIND_DEVICE, words.words[0], id, &why);
	if (!e) {
		snprintf(path, sizeof(path), "/v1/devices/%s%s%s", id, show ? "" : "/",
		    show ? "" : argv[0]);
		e = cmd_admin_call(&a, show ? "GET" : "POST", path, NULL, &doc, &why);
	}
	if (!e && a.json)
		cmd_print_json(doc);
	else if (!e && show)
		cmd_devices_one(doc);
	else if (!e)
		cmd_print_line("%s erased", id);
	json_free(doc);
	return cmd_admin_end(&a, e, &why);
}

/* argv[0] is the verb. */
static int
device_rekey(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const char *key = NULL;
	const struct option_entry table[] = {
	    {"key", 0, "KEY", "the beginning of its fingerprint, 8 digits or more", &key, NULL},
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {"device rekey DEVICE [--key KEY] " CMD_ADMIN_USAGE,
	    "Says which key is a device's, when after the restore of a backup several claim to be, "
	    "and lets it go on\n"
	    "under its id, name and labels. The others are refused from then on. Without --key it "
	    "is "
	    "the one that\n"
	    "is newer than the backup's, if there is only one. \"rivulet device show\" lists "
	    "them.\n"
	    "DEVICE: id, unique beginning of an id, or name.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	struct json *doc = NULL;
	char id[CMD_FIND_ID], path[256];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (key &&
	    (strlen(key) < 8 || strlen(key) > 64 ||
		strspn(key, "0123456789abcdef") != strlen(key))) {
		cmd_print_error("--key wants 8 to 64 digits of a key's fingerprint");
		return CMD_USAGE;
	}
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = cmd_find(&a, CMD_FIND_DEVICE, words.words[0], id, &why);
	if (!e) {
		snprintf(path, sizeof(path), "/v1/devices/%s/rekey%s%s", id, key ? "/" : "",
		    key ? key : "");
		e = cmd_admin_call(&a, "POST", path, NULL, &doc, &why);
	}
	if (!e && a.json)
		cmd_print_json(doc);
	else if (!e)
		cmd_print_line("%s active, its key is %s", id, json_string(json_get(doc, "key")));
	json_free(doc);
	return cmd_admin_end(&a, e, &why);
}

int
cmd_device_main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
	    {"list", device_list, "all devices, or those with a state or label"},
	    {"show", device_one, "one device"},
	    {"profile", cmd_participation_profile, "the fleet as it was seen, as CSV"},
	    {"set", cmd_device_change_main, "change name or labels"},
	    {"suspend", cmd_device_change_main, "refuse it until it is resumed"},
	    {"resume", cmd_device_change_main, "let it go on"},
	    {"revoke", cmd_device_change_main, "refuse it for good"},
	    {"rekey", device_rekey, "say which key is its own, after a restore"},
	    {"erase", device_one, "delete all that tells about a revoked one"},
	    {NULL, NULL, NULL},
	};

	return cmd_admin_verbs("device", verbs, argc, argv);
}
