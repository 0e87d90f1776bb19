#include <math.h>
#include <stdio.h>

#include "cmd.h"
#include "doctor.h"
#include "home.h"
#include "owner_check.h"

#define MIB 1048576.0

static void
tell_power(struct cmd_doctor *d, const struct power *p)
{
	char charge[32] = "";

	if (!isnan(p->charge))
		snprintf(charge, sizeof(charge), ", charge %.0f %%", p->charge);
	cmd_doctor_add(d, "power", CMD_DOCTOR_FINE, 0, NULL, "%s%s%s%s%s",
	    p->battery ? "battery" : "mains", *p->name ? " (" : "", p->name, *p->name ? ")" : "",
	    charge);
}

static void
tell_link(struct cmd_doctor *d, const struct link *link)
{
	static const char *const owners[] = {[SETTINGS_LINK_METERED] = "metered, by rivulet.conf",
	    [SETTINGS_LINK_UNMETERED] = "not metered, by rivulet.conf"};
	enum settings_link rule = d->settings->eligibility.link;

	if (rule != SETTINGS_LINK_AUTO) {
		cmd_doctor_add(d, "link", CMD_DOCTOR_FINE, 0, NULL, "%s", owners[rule]);
		return;
	}
	cmd_doctor_add(d, "link", CMD_DOCTOR_FINE, 0, NULL, "%s%s%smetered, %s",
	    *link->interface ? link->interface : "", *link->interface ? ": " : "",
	    link->metered ? "" : "not ",
	    link->answer == LINK_UNKNOWN ? "by its kind: NetworkManager says nothing"
					 : "says NetworkManager");
}

static void
tell_heat(struct cmd_doctor *d, const struct heat *heat)
{
	if (isnan(heat->celsius))
		cmd_doctor_add(d, "temperature", CMD_DOCTOR_WARNING, CMD_SETTINGS,
		    "take temperature_max out, or find the sensor's driver",
		    "no sensor says how hot it is: temperature_max limits nothing");
	else
		cmd_doctor_add(d, "temperature", CMD_DOCTOR_FINE, 0, NULL, "%.0f degrees (%s)",
		    heat->celsius, heat->name);
}

static void
tell_day(struct cmd_doctor *d, const struct quota *q)
{
	static const char *const ways[] = {"sent", "received"};

	for (enum quota_way way = QUOTA_UP; way <= QUOTA_DOWN; way++)
		if (q->most[way])
			cmd_doctor_add(d, "day", CMD_DOCTOR_FINE, 0, NULL,
			    "%.1f of %.1f MiB %s today", (double)q->used[way] / MIB,
			    (double)q->most[way] / MIB, ways[way]);
}

static void
tell_sensors(struct cmd_doctor *d, const struct readings *now)
{
	const struct settings_eligibility *rules = &d->settings->eligibility;

	if (rules->mains || rules->battery_min)
		tell_power(d, &now->power);
	if (rules->metered_pauses)
		tell_link(d, &now->link);
	if (rules->temperature_max > 0)
		tell_heat(d, &now->heat);
	if (rules->load_max && !isnan(now->others))
		cmd_doctor_add(d, "load", CMD_DOCTOR_FINE, 0, NULL,
		    "others use %.0f %% of the processors", now->others);
	tell_day(d, now->quota);
	if (*rules->check && now->checked)
		cmd_doctor_add(d, "check", CMD_DOCTOR_FINE, 0, NULL, "%.150s: yes", rules->check);
}

void
cmd_doctor_rules_check(struct cmd_doctor *d)
{
	struct owner_check check = {.settings = d->settings, .home = d->home};
	struct eligibility *e = NULL;
	struct why why = {""};

	if (eligibility_new(&e, d->settings, d->home, &why) || !e)
		return;
	long agent = home_holder(d->home);
	if (agent > 0)
		eligibility_of(e, (pid_t)agent);
	eligibility_check_with(e, owner_check_ask, &check);
	const struct verdict *v = eligibility_look(e);
	tell_sensors(d, eligibility_readings(e));
	if (v->reason)
		cmd_doctor_add(d, "eligibility", CMD_DOCTOR_NOTE, 0, NULL,
		    "the device rests now: %s: %s", v->word, v->text);
	else
		cmd_doctor_add(d, "eligibility", CMD_DOCTOR_FINE, 0, NULL,
		    "by its owner's rules the device may work now");
	eligibility_free(e);
}
