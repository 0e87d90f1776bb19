#include "device_change.h"

#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "cmd.h"
#include "devices.h"
#include "find.h"
#include "json.h"
#include "messages.h"
#include "print.h"
#include "session.h"
#include "states.h"

static const struct verb {
	const char *name;
	enum device_state becomes; /* 0: of set, which leaves it alone */
	unsigned from; /* which states --where means, as bits */
} verbs[] = {
    {"set", 0, 1u << DEVICE_ACTIVE | 1u << DEVICE_SUSPENDED},
    {"suspend", DEVICE_SUSPENDED, 1u << DEVICE_ACTIVE | 1u << DEVICE_SUSPENDED},
    {"resume", DEVICE_ACTIVE, 1u << DEVICE_ACTIVE | 1u << DEVICE_SUSPENDED},
    {"revoke", DEVICE_REVOKED,
	1u << DEVICE_ACTIVE | 1u << DEVICE_SUSPENDED | 1u << DEVICE_REVOKED | 1u << DEVICE_LEFT},
};

struct change {
	struct cmd_admin admin;
	const struct verb *verb;
	struct cmd_devices_filter filter;
	const char *labels, *unlabels, *name;
	bool dry_run;
	struct device_change wanted;
	struct json *answers; /* of each device, as it is now */
	size_t changed;
};

static enum device_state
state_of(const struct json *device)
{
	return states_device_find(json_string(json_get(device, "state")));
}

/* --- what to set */

/* "k=v" or, of a label that goes, "k" into the next place. */
static enum err
add_label(struct device_change *c, const char *text, size_t len, bool gone, struct why *why)
{
	const char *eq = memchr(text, '=', len);
	size_t key = eq ? (size_t)(eq - text) : len, most = sizeof(c->labels) / sizeof(*c->labels);

	if (!eq != gone || key == 0 || key >= RECIPE_NAME_MAX || len - key > RECIPE_NAME_MAX)
		return err_set(why, ERR_INVALID,
		    gone ? "--unlabel wants a label's name, several with commas"
			 : "--label wants key=value, several with commas");
	if (c->label_count == most)
		return err_set(why, ERR_INVALID, "more than %zu labels", most);
	snprintf(c->labels[c->label_count].key, RECIPE_NAME_MAX, "%.*s", (int)key, text);
	if (eq)
		snprintf(c->labels[c->label_count].value, RECIPE_NAME_MAX, "%.*s",
		    (int)(len - key - 1), eq + 1);
	c->labels[c->label_count++].gone = gone;
	return ERR_OK;
}

static enum err
add_labels(struct device_change *c, const char *text, bool gone, struct why *why)
{
	enum err e = ERR_OK;

	for (const char *p = text; !e && p && *p;) {
		size_t len = strcspn(p, ",");
		e = add_label(c, p, len, gone, why);
		p += len + (p[len] == ',');
	}
	return e;
}

/* Which devices, and what of them: what does not go together is said before anybody is asked. */
static enum err
check(struct change *c, const struct option_words *words, struct why *why)
{
	if ((words->count > 0) == (c->filter.where != NULL))
		return err_set(why, ERR_INVALID, "give devices, or --where k=v");
	if (c->verb->becomes)
		return cmd_devices_check(&c->filter, why);
	if (!c->labels && !c->unlabels && !c->name)
		return err_set(why, ERR_INVALID, "nothing to set: --label, --unlabel or --name");
	if (c->name && words->count > 1)
		return err_set(why, ERR_INVALID, "--name is for one device");
	if (c->name && (!c->name[0] || strlen(c->name) >= sizeof(c->wanted.name)))
		return err_set(why, ERR_INVALID, "a name has 1 to 63 bytes");
	snprintf(c->wanted.name, sizeof(c->wanted.name), "%s", c->name ? c->name : "");
	c->wanted.dry_run = c->dry_run;
	enum err e = add_labels(&c->wanted, c->labels, false, why);
	if (!e)
		e = add_labels(&c->wanted, c->unlabels, true, why);
	return e ? e : cmd_devices_check(&c->filter, why);
}

/* --- a state: one device after the other */

static enum err
change_state(struct change *c, const struct json *device, struct why *why)
{
	const char *id = json_string(json_get(device, "device"));
	struct json *answer = NULL;
	char path[128];
	bool changed = false;
	enum err e = ERR_OK;

	if (c->dry_run) {
		changed = state_of(device) != c->verb->becomes;
		answer = json_copy(device);
		json_add_bool(answer, "changed", changed);
	} else {
		snprintf(path, sizeof(path), "/v1/devices/%s/%s", id, c->verb->name);
		e = cmd_admin_call(&c->admin, "POST", path, NULL, &answer, why);
		(void)json_bool(json_get(answer, "changed"), &changed);
	}
	if (e)
		return e;
	c->changed += changed;
	json_push(c->answers, answer);
	return ERR_OK;
}

/* --- name and labels: as many at a time as one request takes, which are changed all or none */

static enum err
ask(struct change *c, struct why *why)
{
	struct json *answer = NULL;
	struct buf body;
	uint64_t changed = 0;

	buf_init(&body, 64u << 10);
	enum err e = messages_change_encode(&body, &c->wanted);
	if (!e)
		e = cmd_admin_call(&c->admin, "POST", "/v1/devices/set", &body, &answer, why);
	buf_deinit(&body);
	(void)json_u64(json_get(answer, "changed"), &changed);
	c->changed += changed;
	const struct json *devices = json_get(answer, "devices");
	for (const struct json *d = json_first(devices); d; d = json_next(d))
		json_push(c->answers, json_copy(d));
	json_free(answer);
	return e;
}

static enum err
set_all(struct change *c, const struct json *picked, struct why *why)
{
	enum err e = ERR_OK;

	for (const struct json *d = json_first(picked); d && !e; d = json_next(d)) {
		snprintf(c->wanted.devices[c->wanted.device_count++], sizeof(*c->wanted.devices),
		    "%s", json_string(json_get(d, "device")));
		if (c->wanted.device_count < DEVICE_CHANGE_MAX && json_next(d))
			continue;
		e = ask(c, why);
		c->wanted.device_count = 0;
	}
	return e;
}

/* --- which */

static enum err
pick_where(struct change *c, struct json *out, struct why *why)
{
	struct json *picked = NULL;
	enum err e = cmd_devices_ask(&c->admin, &c->filter, &picked, why);

	for (const struct json *d = json_first(picked); d && !e; d = json_next(d))
		if (c->verb->from & 1u << state_of(d))
			json_push(out, json_copy(d));
	json_free(picked);
	return e;
}

static const struct json *
of_id(const struct json *devices, const char *id)
{
	for (const struct json *d = json_first(devices); d; d = json_next(d)) {
		const char *own = json_string(json_get(d, "device"));
		if (own && strcmp(own, id) == 0)
			return d;
	}
	return NULL;
}

static enum err
pick_named(struct change *c, const struct option_words *words, struct json *out, struct why *why)
{
	struct json *devices = NULL;
	char id[CMD_FIND_ID];
	enum err e = cmd_devices_ask(&c->admin, &c->filter, &devices, why);

	for (size_t i = 0; i < words->count && !e; i++) {
		e = cmd_find(&c->admin, CMD_FIND_DEVICE, words->words[i], id, why);
		const struct json *found = e ? NULL : of_id(devices, id);
		if (!e && !found)
			e = err_set(why, ERR_NOTFOUND, "no device \"%.64s\"", words->words[i]);
		if (!e)
			json_push(out, json_copy(found));
	}
	json_free(devices);
	return e;
}

static enum err
change_all(struct change *c, const struct option_words *words, struct why *why)
{
	struct json *picked = json_array();
	enum err e =
	    c->filter.where ? pick_where(c, picked, why) : pick_named(c, words, picked, why);
	size_t count = json_count(picked);

	/* A name is one device's. */
	if (!e && c->name && count != 1)
		e = err_set(why, ERR_INVALID, "--name is for one device, and %zu are %s", count,
		    c->filter.where ? c->filter.where : "named");
	if (!e && !c->verb->becomes)
		e = set_all(c, picked, why);
	else
		for (const struct json *d = json_first(picked); d && !e; d = json_next(d))
			e = change_state(c, d, why);
	json_free(picked);
	return e;
}

/* --- what came of it */

static void
print_one(const struct change *c, const struct json *d)
{
	const char *id = json_string(json_get(d, "device")),
		   *name = json_string(json_get(d, "name"));
	const char *state = json_string(json_get(d, "state"));
	const char *warning = json_string(json_get(d, "warning"));
	bool changed = false;

	if (warning)
		cmd_print_error("%s: %s", name ? name : "?", warning);

	(void)json_bool(json_get(d, "changed"), &changed);
	if (c->verb->becomes && !c->dry_run)
		cmd_print_line("%s %s", id ? id : "?", state ? state : "?");
	else
		cmd_print_line("%s %s %s%s", id ? id : "?", name ? name : "?",
		    c->dry_run && changed ? "would be " : "", changed ? "changed" : "unchanged");
}

static void
print(struct change *c)
{
	if (c->admin.json) {
		struct json *doc = json_object();
		json_add_u64(doc, "changed", c->changed);
		json_add_bool(doc, "dry_run", c->dry_run);
		json_add(doc, "devices", json_copy(c->answers));
		cmd_print_json(doc);
		json_free(doc);
		return;
	}
	for (const struct json *d = json_first(c->answers); d; d = json_next(d))
		print_one(c, d);
	if (c->filter.where)
		cmd_print_line("%zu of %zu devices %schanged", c->changed, json_count(c->answers),
		    c->dry_run ? "would be " : "");
}

static enum err
run(struct change *c, const struct option_words *words, struct why *why)
{
	enum err e = cmd_admin_open(&c->admin, why);

	c->answers = json_array();
	if (!e)
		e = change_all(c, words, why);
	if (!e || json_count(c->answers) > 0)
		print(c);
	json_free(c->answers);
	return e;
}

int
cmd_device_change_main(int argc, char **argv)
{
	struct change c = {.verb = verbs};
	const struct option_entry table[] = {
	    {"where", 0, "K=V", "all devices with this label, several with commas", &c.filter.where,
		NULL},
	    {"dry-run", 'n', NULL, "say what would change, and change nothing", NULL, &c.dry_run},
	    CMD_ADMIN_OPTIONS(&c.admin),
	    {"label", 0, "K=V", "set: labels to give, several with commas", &c.labels, NULL},
	    {"unlabel", 0, "K", "set: labels to take away, several with commas", &c.unlabels, NULL},
	    {"name", 0, "NAME", "set: the name, of one device", &c.name, NULL},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "device suspend|resume|revoke DEVICE...|--where k=v [--dry-run] " CMD_ADMIN_USAGE "\n"
	    "       rivulet device set DEVICE...|--where k=v [--label k=v] [--unlabel k] [--name "
	    "NAME] "
	    "[--dry-run] " CMD_ADMIN_USAGE,
	    "Changes the standing, name or labels of devices; each is met by it at its next "
	    "request. "
	    "revoke is final.\n"
	    "DEVICE: id, unique beginning of an id, or name. Nothing to change is no error.",
	    0, OPTION_WORDS_MAX};
	struct option_words words;
	struct why why = {""};
	int rc;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(argv[0], verbs[i].name) == 0)
			c.verb = &verbs[i];
	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (check(&c, &words, &why)) {
		cmd_print_error("%s", why.text);
		fprintf(stderr, "usage: rivulet %s\n", usage.usage);
		return CMD_USAGE;
	}
	enum err e = run(&c, &words, &why);
	return cmd_admin_end(&c.admin, e, &why);
}
