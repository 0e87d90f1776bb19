#include "verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hours.h"
#include "settings.h"

#define WORD_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

/* The first reason is the one that is said. */
static void __attribute__((format(printf, 3, 4)))
object(struct verdict *v, enum wait_reason reason, const char *fmt, ...)
{
	va_list ap;

	if (v->reason)
		return;
	v->reason = reason;
	snprintf(v->word, sizeof(v->word), "%s", wait_reason_name(reason));
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
}

static void
judge_power(struct verdict *v, const struct settings_eligibility *rules, const struct power *power)
{
	if (!power->battery)
		return;
	if (rules->mains)
		object(v, WAIT_ON_BATTERY, "%s discharges", power->name);
	/* NaN is not below. */
	else if (power->charge < (double)rules->battery_min)
		object(v, WAIT_BATTERY_LOW, "%s has %.0f %%, battery_min is %llu", power->name,
		    power->charge, (unsigned long long)rules->battery_min);
}

/* A program may say a word of its own, if it is none that means something already. */
static void
judge_check(struct verdict *v, const char *said)
{
	size_t len = strlen(said);

	if (v->reason)
		return;
	object(v, WAIT_CHECK, "check: %s", *said ? said : "no");
	if (len > 0 && len < sizeof(v->word) && strspn(said, WORD_CHARS) == len &&
	    wait_reason_find(said) == WAIT_UNKNOWN)
		memcpy(v->word, said, len + 1);
}

static void
judge_link(struct verdict *v, const struct settings_eligibility *rules, const struct link *link)
{
	bool metered = rules->link == SETTINGS_LINK_METERED ||
	    (rules->link == SETTINGS_LINK_AUTO && link->metered);

	if (!rules->metered_pauses || !metered)
		return;
	v->sending = WAIT_METERED;
	object(v, WAIT_METERED, "the link%s%s is metered", *link->interface ? " over " : "",
	    link->interface);
}

static void
judge_quota(struct verdict *v, const struct quota *q)
{
	if (quota_over(q, QUOTA_UP) && !v->sending)
		v->sending = WAIT_DATA_CAP;
	if (quota_over(q, QUOTA_UP))
		object(v, WAIT_DATA_CAP, "%llu of %llu bytes went up today",
		    (unsigned long long)q->used[QUOTA_UP], (unsigned long long)q->most[QUOTA_UP]);
	else if (quota_over(q, QUOTA_DOWN))
		object(v, WAIT_DATA_CAP, "%llu of %llu bytes came down today",
		    (unsigned long long)q->used[QUOTA_DOWN],
		    (unsigned long long)q->most[QUOTA_DOWN]);
}

void
verdict_find(
    struct verdict *out, const struct settings_eligibility *rules, const struct readings *now)
{
	*out = (struct verdict){.reason = WAIT_NONE};
	if (!hours_contain(&rules->hours, &now->local))
		object(out, WAIT_HOURS, "it is not one of the hours");
	judge_power(out, rules, &now->power);
	if (now->hot)
		object(out, WAIT_HOT, "%s: %.0f degrees, temperature_max is %.0f", now->heat.name,
		    now->heat.celsius, rules->temperature_max);
	if (now->busy)
		object(out, WAIT_MACHINE_BUSY,
		    "others use %.0f %% of the processors, load_max is %llu", now->others,
		    (unsigned long long)rules->load_max);
	if (!now->checked)
		judge_check(out, now->said);
	out->training = out->reason;
	judge_link(out, rules, &now->link);
	judge_quota(out, now->quota);
}
