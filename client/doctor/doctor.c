#include "doctor.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "json.h"
#include "option.h"
#include "options.h"
#include "print.h"
#include "settings.h"

void
cmd_doctor_add(struct cmd_doctor *d, const char *check, enum cmd_doctor_level level, int code,
    const char *advice, const char *fmt, ...)
{
	va_list ap;

	if (d->count == CMD_DOCTOR_FINDINGS_MAX)
		return;
	struct cmd_doctor_finding *f = &d->findings[d->count++];
	*f = (struct cmd_doctor_finding){.level = level, .code = code};
	snprintf(f->check, sizeof(f->check), "%s", check);
	snprintf(f->advice, sizeof(f->advice), "%s", advice ? advice : "");
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

void
cmd_doctor_span(char out[32], double seconds)
{
	static const struct {
		double seconds;
		const char *name;
	} units[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}, {1, "seconds"}};

	seconds = fabs(seconds);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (seconds >= 2 * units[i].seconds || i == 3) {
			snprintf(out, 32, "%.0f %s", seconds / units[i].seconds, units[i].name);
			return;
		}
}

/* The exit code that all findings together deserve: the first fault's, else the first warning's, else 0. */
static int
exit_code(const struct cmd_doctor *d)
{
	for (int level = CMD_DOCTOR_FAULT; level >= CMD_DOCTOR_WARNING; level--)
		for (size_t i = 0; i < d->count; i++)
			if ((int)d->findings[i].level == level)
				return d->findings[i].code;
	return CMD_OK;
}

static const char *const levels[] = {"ok", "note", "WARNING", "FAULT"};

static void
print_text(const struct cmd_doctor *d)
{
	size_t faults = 0, warnings = 0;

	for (size_t i = 0; i < d->count; i++) {
		const struct cmd_doctor_finding *f = &d->findings[i];
		cmd_print_line("%-8s %-12s %s", levels[f->level], f->check, f->text);
		if (*f->advice)
			cmd_print_line("%-8s %-12s -> %s", "", "", f->advice);
		faults += f->level == CMD_DOCTOR_FAULT;
		warnings += f->level == CMD_DOCTOR_WARNING;
	}
	if (faults + warnings == 0)
		printf("all fine\n");
	else
		printf("%zu faults, %zu warnings\n", faults, warnings);
}

static void
print_json(const struct cmd_doctor *d)
{
	static const char *const words[] = {"ok", "note", "warning", "fault"};
	struct json *doc = json_object(), *list = json_array();

	json_add_string(doc, "home", d->home);
	if (d->joined)
		json_add_string(doc, "device", d->identity.device);
	json_add_u64(doc, "code", (uint64_t)exit_code(d));
	if (d->offset_known)
		json_add_double(doc, "clock_offset", (double)d->offset);
	for (size_t i = 0; i < d->count; i++) {
		const struct cmd_doctor_finding *f = &d->findings[i];
		struct json *o = json_object();
		json_add_string(o, "check", f->check);
		json_add_string(o, "level", words[f->level]);
		json_add_u64(o, "code", (uint64_t)f->code);
		json_add_string(o, "text", f->text);
		json_add_string(o, "advice", f->advice);
		json_push(list, o);
	}
	json_add(doc, "findings", list);
	cmd_print_json(doc);
	json_free(doc);
}

static int
examine(const char *home, const char *config, bool offline, bool json)
{
	struct cmd_doctor *d = calloc(1, sizeof(*d));
	struct why why = {""};
	enum err e = d ? identity_home(d->home, home, &why) : err_set(&why, ERR_NOMEM, "no memory");

	if (e) {
		free(d);
		return cmd_options_fail(e, &why);
	}
	d->config = config;
	cmd_doctor_home_check(d);
	if (!offline)
		cmd_doctor_net_check(d);
	cmd_doctor_certificate_check(d);
	cmd_doctor_work_check(d);
	if (json)
		print_json(d);
	else
		print_text(d);
	int code = exit_code(d);
	if (d->usable)
		credentials_deinit(&d->held);
	settings_free(d->settings);
	free(d);
	return code;
}

int
cmd_doctor_main(int argc, char **argv)
{
	const char *home = NULL, *config = NULL;
	bool offline = false, json = false;
	const struct option_entry table[] = {
	    {"home", 0, "DIR", "the home to examine", &home, NULL},
	    {"config", 0, "FILE", "settings (default: rivulet.conf in the home)", &config, NULL},
	    {"offline", 0, NULL, "leave out what needs the network", NULL, &offline},
	    {"json", 0, NULL, "print JSON", NULL, &json},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "doctor [--home DIR] [--config FILE] [--offline] [--json]",
	    "Says what is wrong with this device, and what to do. It changes nothing.", 0, 0};
	struct option_words words;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	return examine(home, config, offline, json);
}
