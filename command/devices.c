#include "devices.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "buf.h"
#include "clock.h"
#include "jobs.h"
#include "json.h"
#include "print.h"
#include "states.h"

/* A row fits 120 columns. */
#define NAME_SHOWN 16
#define LABELS_SHOWN 16
#define REASON_SHOWN 20
/* Of a path and its query: a coordinator takes less than 1024. Longer ones are not sent. */
#define PATH_LEN_MAX 1000

/* The label that "k=v" at p asks for: is it there? *rest is what follows. */
static bool
label_fits(const struct json *labels, const char *p, const char **rest)
{
	size_t len = strcspn(p, ","), key = strcspn(p, "=");

	*rest = p + len + (p[len] == ',');
	for (size_t i = 0; i < json_count(labels); i++) {
		const struct json *v = json_at(labels, i);
		const char *name = json_key(v), *value = json_string(v);
		if (name && value && strlen(name) == key && strncmp(name, p, key) == 0 &&
		    strlen(value) == len - key - 1 &&
		    strncmp(value, p + key + 1, len - key - 1) == 0)
			return true;
	}
	return false;
}

static const char *
wanted(const struct cmd_devices_filter *filter)
{
	return filter->where ? filter->where : "";
}

enum err
cmd_devices_check(struct cmd_devices_filter *filter, struct why *why)
{
	if (filter->silent && !cmd_admin_duration(filter->silent, &filter->silent_s))
		return err_set(why, ERR_INVALID, "--silent wants a time like 90s, 30m, 24h or 7d");
	if ((filter->agent && !*filter->agent) || (filter->reason && !*filter->reason))
		return err_set(
		    why, ERR_INVALID, "--agent and --reason want a word, and nothing is given");
	if (filter->state && !states_device_find(filter->state))
		return err_set(why, ERR_INVALID,
		    "--state is active, suspended, revoked or left, not \"%.40s\"", filter->state);
	if (filter->where && !*filter->where)
		return err_set(why, ERR_INVALID, "--where wants key=value, and nothing is given");
	for (const char *p = wanted(filter); *p;) {
		size_t len = strcspn(p, ","), key = strcspn(p, "=");
		if (key == 0 || key >= len)
			return err_set(
			    why, ERR_INVALID, "--where wants key=value, several with commas");
		p += len + (p[len] == ',');
	}
	return ERR_OK;
}

static bool
is_cloned(const struct json *device)
{
	bool cloned = false;

	(void)json_bool(json_get(device, "cloned"), &cloned);
	return cloned;
}

/* Why its certificate is refused; NULL: it is taken, as far as anybody knows. */
static const char *
locked_out(const struct json *device)
{
	return json_string(json_get(device, "locked_out"));
}

static bool
is_contested(const struct json *device)
{
	bool contested = false;

	(void)json_bool(json_get(device, "contested"), &contested);
	return contested;
}

static bool
is_silent(const struct json *device, double since)
{
	double at;

	return !json_double(json_get(device, "last_contact"), &at) || at <= since;
}

/* As the coordinator decides: "1.1" is "1.1.0+15.g8904a80", and not "1.10". */
static bool
is_agent(const struct json *device, const char *version)
{
	const char *agent = json_string(json_get(device, "agent"));
	size_t len = strlen(version);

	return agent && strncmp(agent, version, len) == 0 && !isalnum((unsigned char)agent[len]);
}

static bool
passes(const struct json *device, const struct cmd_devices_filter *filter, double now)
{
	const char *state = json_string(json_get(device, "state"));

	if (filter->state && (!state || strcmp(state, filter->state) != 0))
		return false;
	if (filter->cloned && !is_cloned(device))
		return false;
	if (filter->contested && !is_contested(device))
		return false;
	const char *reason =
	    locked_out(device) ? locked_out(device) : json_string(json_get(device, "reason"));
	if (filter->reason && (!reason || strcmp(reason, filter->reason) != 0))
		return false;
	if (filter->silent && !is_silent(device, now - (double)filter->silent_s))
		return false;
	if (filter->agent && !is_agent(device, filter->agent))
		return false;
	for (const char *p = wanted(filter); *p;)
		if (!label_fits(json_get(device, "labels"), p, &p))
			return false;
	return true;
}

struct json *
cmd_devices_pick(const struct json *devices, const struct cmd_devices_filter *filter, double now)
{
	struct json *out = json_array();

	for (const struct json *d = json_first(devices); d; d = json_next(d))
		if (passes(d, filter, now))
			json_push(out, json_copy(d));
	return out;
}

/* The list of those that the filter wants, as far as a coordinator can tell. */
static enum err
put_path(struct buf *path, const struct cmd_devices_filter *f)
{
	char seconds[24];
	const struct {
		const char *name, *value;
	} words[] = {{"state", f->state}, {"where", f->where}, {"reason", f->reason},
	    {"silent_s", f->silent ? seconds : NULL}, {"agent", f->agent}};
	enum err e = buf_printf(path, "/v1/devices");

	snprintf(seconds, sizeof(seconds), "%" PRIu64, f->silent_s);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words) && !e; i++)
		if (words[i].value)
			e = cmd_admin_put_query(path, words[i].name, words[i].value);
	return e;
}

enum err
cmd_devices_ask(struct cmd_admin *a, const struct cmd_devices_filter *filter, struct json **out,
    struct why *why)
{
	struct cmd_devices_filter rest = *filter;
	struct json *doc = NULL;
	struct buf path;

	*out = NULL;
	buf_init(&path, PATH_LEN_MAX);
	bool filters = put_path(&path, filter) == ERR_OK;
	enum err e =
	    cmd_admin_call(a, "GET", filters ? buf_str(&path) : "/v1/devices", NULL, &doc, why);
	/* One that does not know the words of the query. */
	if (e && filters && a->problem == PROBLEM_BAD_REQUEST) {
		json_free(doc);
		e = cmd_admin_call(a, "GET", "/v1/devices", NULL, &doc, why);
	}
	buf_deinit(&path);
	/* Who says where the list goes on has filtered it. */
	if (filters && json_get(doc, "next"))
		rest = (struct cmd_devices_filter){
		    .cloned = filter->cloned, .contested = filter->contested};
	if (!e)
		*out = cmd_devices_pick(json_get(doc, "devices"), &rest, clock_wall());
	json_free(doc);
	return e;
}

/* "active", or with another role than device "active,admin"; "locked-out" of one that is active, but is not let in. */
static void
cell_state(struct cmd_table *t, const struct json *d, const char *key)
{
	const char *state = locked_out(d) ? "locked-out" : json_string(json_get(d, key));
	const char *role = json_string(json_get(d, "role"));
	bool plain = !role || strcmp(role, "device") == 0;

	cmd_print_cell(t, "%s%s%s", state ? state : "?", plain ? "" : ",", plain ? "" : role);
}

/* How far the device's clock is from the coordinator's: "+3s", "-2h". */
static void
cell_clock(struct cmd_table *t, const struct json *d, const char *key)
{
	double v;

	if (!json_double(json_get(d, key), &v)) {
		cmd_print_cell(t, "-");
		return;
	}
	char sign = v < 0 ? '-' : '+';
	double off = fabs(v);
	if (off < 120)
		cmd_print_cell(t, "%c%.0fs", sign, off);
	else if (off < 7200)
		cmd_print_cell(t, "%c%.0fm", sign, off / 60);
	else if (off < 172800)
		cmd_print_cell(t, "%c%.0fh", sign, off / 3600);
	else
		cmd_print_cell(t, "%c%.0fd", sign, off / 86400);
}

static double
event_time(const struct json *event)
{
	double at;

	return json_double(json_get(event, "at"), &at) ? at : 0;
}

/* A copied home; else why it has no work, or, if nothing came after it, what went wrong: "refused stale-round", "abort no-data". */
static void
cell_reason(struct cmd_table *t, const struct json *d, const char *key)
{
	const struct json *refusal = json_get(d, "last_refusal"),
			  *abort = json_get(d, "last_abort");
	bool aborted = event_time(abort) > event_time(refusal);
	const struct json *event = aborted ? abort : refusal;
	const char *word = json_string(json_get(event, "reason"));
	const char *reason = json_string(json_get(d, key));

	if (is_contested(d))
		cmd_print_cell(t, "CONTESTED");
	else if (is_cloned(d))
		cmd_print_cell(t, "CLONED");
	else if (locked_out(d))
		cmd_print_text(t, d, "locked_out");
	else if (word && reason && strcmp(word, reason) == 0)
		cmd_print_cell(t, "%s %s", aborted ? "abort" : "refused", word);
	else
		cmd_print_text(t, d, key);
}

static void
print_totals(const struct json *devices)
{
	size_t cloned = 0, locked = 0, n = json_count(devices);

	cmd_print_part("%zu device%s", n, n == 1 ? "" : "s");
	for (enum device_state k = DEVICE_ACTIVE; k <= DEVICE_LEFT; k++) {
		size_t count = 0;
		for (size_t i = 0; i < n; i++) {
			const char *state = json_string(json_get(json_at(devices, i), "state"));
			count += states_device_find(state) == k;
			cloned += k == DEVICE_ACTIVE && is_cloned(json_at(devices, i));
			locked += k == DEVICE_ACTIVE && locked_out(json_at(devices, i));
		}
		if (count)
			cmd_print_part(", %zu %s", count, states_device_name(k));
	}
	if (locked)
		printf("; %zu LOCKED OUT: their certificates are refused", locked);
	if (cloned)
		printf("; %zu CLONED: one key on two machines", cloned);
	printf("\n");
}

void
cmd_devices_print(const struct json *devices)
{
	static const struct cmd_column columns[] = {
	    {"DEVICE", cmd_print_short_id, .key = "device"},
	    {"NAME", cmd_print_text, .key = "name", .most = NAME_SHOWN},
	    {"STATE", cell_state, .key = "state"},
	    {"SEEN", cmd_print_age, .key = "last_contact"},
	    {"AGENT", cmd_print_text, .key = "agent"},
	    {"CLOCK", cell_clock, .key = "clock_offset_s"},
	    {"DISK", cmd_print_bytes, .key = "disk_free_bytes"},
	    {"REPORTS", cmd_print_count, .key = "reports"},
	    {"LABELS", cmd_print_labels, .key = "labels", .most = LABELS_SHOWN},
	    {"REASON", cell_reason, .key = "reason", .most = REASON_SHOWN},
	    {.head = NULL},
	};

	if (json_count(devices) == 0) {
		printf("no devices\n");
		return;
	}
	cmd_print_rows(columns, devices);
	print_totals(devices);
}

static bool
is_time(const char *key)
{
	size_t n = strlen(key);

	return strcmp(key, "last_contact") == 0 || (n > 3 && strcmp(key + n - 3, "_at") == 0);
}

static void
print_time(double at)
{
	char text[CMD_PRINT_TIME_MAX];

	const double ago = clock_wall() - at;

	cmd_print_time(text, at);
	if (ago >= 0)
		cmd_print_line("%s (%.0f s ago)", text, ago);
	else
		cmd_print_line("%s (%.0f s ahead of this machine's clock)", text, -ago);
}

static void
print_labels(const struct json *labels)
{
	for (size_t i = 0; i < json_count(labels); i++) {
		const char *value = json_string(json_at(labels, i));
		cmd_print_part(
		    "%s%s=%s", i ? " " : "", json_key(json_at(labels, i)), value ? value : "?");
	}
	cmd_print_line("%s", json_count(labels) ? "" : "-");
}

static void
print_value(const char *key, const struct json *v)
{
	const char *text = json_string(v);
	const char *reason = json_string(json_get(v, "reason"));
	struct buf out;
	double number;

	if (text) {
		cmd_print_line("%s", *text ? text : "-");
	} else if (json_kind(v) == JSON_NULL) {
		printf("-\n");
	} else if (reason) {
		cmd_print_part("%s, ", reason);
		print_time(event_time(v));
	} else if (strcmp(key, "labels") == 0) {
		print_labels(v);
	} else if (is_time(key) && json_double(v, &number)) {
		print_time(number);
	} else {
		buf_init(&out, 64u << 10);
		if (json_print(&out, v, false) == ERR_OK)
			cmd_print_line("%s", buf_str(&out));
		buf_deinit(&out);
	}
}

void
cmd_devices_one(const struct json *device)
{
	for (size_t i = 0; i < json_count(device); i++) {
		const struct json *v = json_at(device, i);
		if (strcmp(json_key(v), "refused") == 0)
			continue;
		cmd_print_part("%-16s ", json_key(v));
		print_value(json_key(v), v);
	}
	cmd_jobs_refused("refuses the job ", json_get(device, "refused"));
	if (is_cloned(device))
		printf(
		    "\nThis key was used on two machines: its home was copied. Find the copy, then "
		    "give the\n"
		    "rightful one a new key (rivulet rotate); the copy is refused from then on.\n");
	if (is_contested(device))
		printf(
		    "\nAfter the restore of a backup several keys claim to be this device's: "
		    "`key`, "
		    "the present one,\n"
		    "and those under `claims`. Find out which one the device holds (rivulet doctor "
		    "there), then\n"
		    "rivulet device rekey DEVICE --key KEY.\n");
}
