#include "planning.h"

#include <stdio.h>
#include <stdlib.h>

#include "admin.h"
#include "cmd.h"
#include "err.h"
#include "estimate.h"
#include "num.h"
#include "option.h"
#include "options.h"
#include "preset.h"
#include "print.h"
#include "statement.h"

enum err
planning_show(const struct plan_want *want, bool as_json, bool *runs, struct why *why)
{
	struct plan_estimate *e = malloc(sizeof(*e));

	*runs = false;
	if (!e)
		return err_set(why, ERR_NOMEM, "no memory for a plan");
	enum err failed = plan_estimate(e, want, why);
	if (!failed) {
		struct json *sheet = plan_statement(e);
		if (as_json)
			cmd_print_json(sheet);
		else
			plan_statement_print(sheet);
		json_free(sheet);
		*runs = e->problem_count == 0;
	}
	plan_estimate_deinit(e);
	free(e);
	return failed;
}

struct planning {
	struct cmd_admin a;
	const char *devices;
	struct plan_want want;
	char *text;
	bool runs;
};

static enum err
plan(struct planning *p, const char *path, struct why *why)
{
	struct plan_want *want = &p->want;
	size_t len = 0;

	if (want->fleet_file && p->devices)
		return err_set(why, ERR_INVALID, "--fleet and --devices exclude each other");
	if (p->devices &&
	    (!num_u64(p->devices, FLEET_DEVICES_MAX, &want->devices) || want->devices == 0))
		return err_set(
		    why, ERR_INVALID, "--devices wants a number from 1 to %u", FLEET_DEVICES_MAX);
	enum err e = preset_read(path, NULL, &p->text, &len, why);
	if (e)
		return e;
	want->text = p->text;
	want->len = len;
	if (!want->fleet_file && want->devices == 0) {
		want->admin = &p->a;
		e = cmd_admin_open(&p->a, why);
	}
	return e ? e : planning_show(want, p->a.json, &p->runs, why);
}

int
planning_main(int argc, char **argv)
{
	struct planning p = {.text = NULL};
	const struct option_entry table[] = {
	    {"fleet", 0, "FILE",
		"what the devices are like: a table in CSV (default: as the coordinator knows "
		"them)",
		&p.want.fleet_file, NULL},
	    {"devices", 0, "N", "that many equal devices", &p.devices, NULL},
	    {"config", 0, "FILE", "a device's settings, for [data], [trainer] and memory_bytes",
		&p.want.config, NULL},
	    {"init", 0, "FILE", "first weights, where the job begins with a model of its own",
		&p.want.init, NULL},
	    CMD_ADMIN_OPTIONS(&p.a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "job plan FILE [--fleet FILE | --devices N] [--config FILE] " CMD_ADMIN_USAGE,
	    "Says what a job will cost: bytes, memory, disk, time. Submits nothing.\nWithout "
	    "--fleet and --devices the coordinator checks the document, and the fleet is its own; "
	    "with them nobody is asked.\nExit code 4: the job cannot run.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = plan(&p, words.words[0], &why);
	free(p.text);
	rc = cmd_admin_end(&p.a, e, &why);
	return rc == CMD_OK && !p.runs ? CMD_DENIED : rc;
}
