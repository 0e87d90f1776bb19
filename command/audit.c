#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "clock.h"
#include "cmd.h"
#include "find.h"
#include "json.h"
#include "option.h"
#include "print.h"
#include "record_json.h"
#include "session.h"

#define BY_MAX 72

struct looking {
	struct cmd_admin admin;
	const char *by, *since;
	struct json *entries; /* all that came */
};

/* --- a table of entries */

/* Of the first detail that has it; the caller frees. */
static struct json *
detail_with(const struct json *entry, const char *key)
{
	struct record_detail d;
	struct json *v = NULL;

	for (const struct json *i = json_first(json_get(entry, "details")); i && !v;
	     i = json_next(i)) {
		if (record_json_detail_read(&d, i, NULL))
			continue;
		if (json_parse(&v, (const char *)d.data, d.len, NULL) == ERR_OK &&
		    !json_get(v, key)) {
			json_free(v);
			v = NULL;
		}
		free(d.data);
	}
	return v;
}

static void
cell_detail(struct cmd_table *t, const struct json *entry, const char *key)
{
	struct json *v = detail_with(entry, key);
	const char *text = json_string(json_get(v, key));

	cmd_print_cell(t, "%s", text ? text : "-");
	json_free(v);
}

static void
cell_time(struct cmd_table *t, const struct json *entry)
{
	char text[CMD_PRINT_TIME_MAX];
	double at = 0;

	(void)json_double(json_get(entry, "at"), &at);
	cmd_print_time(text, at);
	cmd_print_cell(t, "%s", text);
}

static void
print_row(struct cmd_table *t, const struct json *entry)
{
	const char *text = json_string(json_get(entry, "body"));
	struct json *body = NULL;

	if (!text || json_parse(&body, text, strlen(text), NULL))
		body = NULL;
	cmd_print_count(t, entry, "seq");
	cell_time(t, entry);
	cmd_print_text(t, body, "event");
	cmd_print_short_id(t, body, "job");
	cmd_print_count(t, body, "round");
	cmd_print_text(t, body, "state");
	cell_detail(t, entry, "name");
	cell_detail(t, entry, "by");
	json_free(body);
}

static void
print_entries(const struct json *entries)
{
	static const char *const heads[] = {
	    "SEQ", "TIME", "EVENT", "JOB", "ROUND", "STATE", "NAME", "BY"};
	struct cmd_table t;

	cmd_print_start(&t, heads, sizeof(heads) / sizeof(*heads));
	for (const struct json *e = json_first(entries); e; e = json_next(e))
		print_row(&t, e);
	cmd_print_end(&t);
}

/* --- asking */

/* A device's id may be short, as it is shown. */
static enum err
find_by(struct looking *l, char out[BY_MAX], struct why *why)
{
	const char *by = l->by ? l->by : "";
	char id[CMD_FIND_ID];

	snprintf(out, BY_MAX, "%s", by);
	if (strncmp(by, "device:", 7) == 0) {
		enum err e = cmd_find(&l->admin, CMD_FIND_DEVICE, by + 7, id, why);
		if (!e)
			snprintf(out, BY_MAX, "device:%s", id);
		return e;
	}
	bool good = strncmp(by, "token:", 6) == 0 || strncmp(by, "owner:", 6) == 0;
	if (!by[0] || (good && by[6] && !strpbrk(by, "&?# ")))
		return ERR_OK;
	return err_set(
	    why, ERR_INVALID, "--by is token:ID, owner:NAME or device:NAME, not \"%.60s\"", by);
}

/* *next: where the next page begins, also after one without entries; 0: that was the last. An older coordinator does not say. */
static void
take_page(struct looking *l, const struct json *page, uint64_t *next)
{
	const struct json *said = json_get(page, "next");
	uint64_t seq = 0, behind = 0;

	for (const struct json *e = json_first(json_get(page, "entries")); e; e = json_next(e)) {
		json_push(l->entries, json_copy(e));
		if (json_u64(json_get(e, "seq"), &seq))
			behind = seq + 1;
	}
	if (said && (!json_u64(said, &seq) || seq <= *next))
		seq = 0;
	*next = said ? seq : behind;
}

static enum err
ask(struct looking *l, uint64_t since, struct why *why)
{
	uint64_t next = 1;
	char by[BY_MAX], path[BY_MAX + 96];
	enum err e = find_by(l, by, why);

	while (!e && next > 0) {
		struct json *page = NULL;
		snprintf(path, sizeof(path), "/v1/audit?from=%llu&since=%llu%s%s",
		    (unsigned long long)next, (unsigned long long)since, by[0] ? "&by=" : "", by);
		e = cmd_admin_call(&l->admin, "GET", path, NULL, &page, why);
		if (!e)
			take_page(l, page, &next);
		json_free(page);
	}
	return e;
}

static enum err
read_since(const char *text, uint64_t *since, struct why *why)
{
	uint64_t age;

	*since = 0;
	if (!text)
		return ERR_OK;
	if (!cmd_admin_duration(text, &age))
		return err_set(why, ERR_INVALID, "--since is a time like 90s, 15m, 24h or 2d");
	uint64_t now = (uint64_t)clock_unix();
	*since = age < now ? now - age : 0;
	return ERR_OK;
}

static void
print_all(struct looking *l)
{
	if (!l->admin.json) {
		print_entries(l->entries);
		json_free(l->entries);
		return;
	}
	struct json *v = json_object();
	json_add(v, "entries", l->entries);
	cmd_print_json(v);
	json_free(v);
}

int
cmd_audit_main(int argc, char **argv)
{
	struct looking l = {.by = NULL};
	const struct option_entry table[] = {
	    {"by", 0, "WHO", "token:ID, owner:NAME or device:NAME", &l.by, NULL},
	    {"since", 0, "TIME", "no older entries: 90s, 15m, 24h, 2d", &l.since, NULL},
	    CMD_ADMIN_OPTIONS(&l.admin),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"audit [--by WHO] [--since TIME] " CMD_ADMIN_USAGE,
	    "What the audit log says: of all, or what a token, an owner or a device did.", 0, 0};
	struct option_words words;
	struct why why = {""};
	uint64_t since;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = read_since(l.since, &since, &why);
	if (!e)
		e = cmd_admin_open(&l.admin, &why);
	l.entries = json_array();
	if (!e)
		e = ask(&l, since, &why);
	if (e)
		json_free(l.entries);
	else
		print_all(&l);
	return cmd_admin_end(&l.admin, e, &why);
}
