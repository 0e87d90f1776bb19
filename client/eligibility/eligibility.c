#include "eligibility.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backoff.h"
#include "clock.h"
#include "err.h"
#include "load.h"
#include "settings.h"

#define LINK_EVERY_S 1.0
#define FIRST_S 1.0 /* what the first look at the load takes */

struct eligibility {
	const struct settings_eligibility *rules;
	const char *root;
	pid_t agent; /* whose processor time is no load */
	eligibility_check *check;
	void *context;
	bool looking; /* the owner's program is being asked, and its waiting asks us */
	bool looked, asked;
	double look_at, link_at, check_at; /* backoff_now(): not before */
	struct uplink_bus bus;
	struct heat_state heat;
	struct load_state load;
	struct load_sample sample; /* of the last look */
	bool sampled;
	struct quota quota;
	struct readings now;
	struct verdict verdict;
};

static uint32_t
today(const struct tm *t)
{
	return (uint32_t)((t->tm_year + 1900) * 10000 + (t->tm_mon + 1) * 100 + t->tm_mday);
}

static void
read_clock(struct readings *now)
{
	time_t t = clock_unix();

	localtime_r(&t, &now->local);
}

enum err
eligibility_new(
    struct eligibility **out, const struct settings *settings, const char *home, struct why *why)
{
	const char *root = getenv(ELIGIBILITY_ROOT);

	*out = NULL;
	if (!settings_has_rules(settings))
		return ERR_OK;
	struct eligibility *e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(why, ERR_NOMEM, "no memory for the rules of [eligibility]");
	e->rules = &settings->eligibility;
	e->root = root ? root : "";
	e->agent = getpid();
	e->now.checked = true;
	e->now.others = (double)NAN;
	read_clock(&e->now);
	const uint64_t most[QUOTA_WAYS] = {e->rules->upload_per_day, e->rules->download_per_day};
	quota_init(&e->quota, home, most, today(&e->now.local));
	e->now.quota = &e->quota;
	*out = e;
	return ERR_OK;
}

void
eligibility_free(struct eligibility *e)
{
	if (e)
		uplink_bus_deinit(&e->bus);
	free(e);
}

void
eligibility_of(struct eligibility *e, pid_t agent)
{
	e->agent = agent;
}

void
eligibility_check_with(struct eligibility *e, eligibility_check *check, void *context)
{
	e->check = check;
	e->context = context;
}

/* The first look compares two samples of its own; later ones have that of the look before. */
static void
look_at_load(struct eligibility *e)
{
	struct load_sample sample;

	if (!e->sampled) {
		e->sampled = load_read(&e->sample, e->agent, e->root);
		(void)backoff_sleep(FIRST_S, NULL, NULL);
	}
	if (!e->sampled || !load_read(&sample, e->agent, e->root))
		return;
	e->now.others = load_others(&e->sample, &sample);
	e->now.busy = load_step(&e->load, e->now.others, (double)e->rules->load_max);
	e->sample = sample;
}

static void
look_at_heat(struct eligibility *e)
{
	heat_read(&e->now.heat, e->root);
	e->now.hot =
	    heat_step(&e->heat, e->now.heat.celsius, e->rules->temperature_max, backoff_now());
}

static void
ask_program(struct eligibility *e)
{
	if (e->asked && backoff_now() < e->check_at)
		return;
	e->asked = true;
	e->check_at = backoff_now() + ELIGIBILITY_CHECK_S;
	snprintf(e->now.said, sizeof(e->now.said), "only rivulet run can ask it");
	e->now.checked = e->check && e->check(e->context, e->now.said);
}

static void
look_at_link(struct eligibility *e)
{
	if (e->rules->metered_pauses && e->rules->link == SETTINGS_LINK_AUTO)
		uplink_read(&e->now.link, &e->bus, e->root);
	e->link_at = backoff_now() + LINK_EVERY_S;
}

/* What no rule asks for is not read. */
static void
read_sensors(struct eligibility *e)
{
	const struct settings_eligibility *r = e->rules;

	read_clock(&e->now);
	quota_turn(&e->quota, today(&e->now.local));
	if (r->mains || r->battery_min)
		power_read(&e->now.power, e->root);
	if (r->temperature_max > 0)
		look_at_heat(e);
	if (r->load_max)
		look_at_load(e);
	look_at_link(e);
	if (*r->check)
		ask_program(e);
}

const struct verdict *
eligibility_look(struct eligibility *e)
{
	if (e->looking || (e->looked && backoff_now() < e->look_at))
		return &e->verdict;
	e->looking = true;
	read_sensors(e);
	e->looking = false;
	e->looked = true;
	e->look_at = backoff_now() + ELIGIBILITY_EVERY_S;
	verdict_find(&e->verdict, e->rules, &e->now);
	return &e->verdict;
}

const struct verdict *
eligibility_look_at_link(struct eligibility *e)
{
	(void)eligibility_look(e);
	if (!e->looking && backoff_now() >= e->link_at) {
		look_at_link(e);
		read_clock(&e->now);
		quota_turn(&e->quota, today(&e->now.local));
		verdict_find(&e->verdict, e->rules, &e->now);
	}
	return &e->verdict;
}

const struct readings *
eligibility_readings(const struct eligibility *e)
{
	return &e->now;
}

enum err
eligibility_charge(struct eligibility *e, enum quota_way way, uint64_t bytes, struct why *why)
{
	read_clock(&e->now);
	quota_turn(&e->quota, today(&e->now.local));
	enum err failed = quota_charge(&e->quota, way, bytes, why);
	/* What is said should be so at once. */
	if (quota_over(&e->quota, way))
		verdict_find(&e->verdict, e->rules, &e->now);
	return failed;
}

void
eligibility_refund(struct eligibility *e, enum quota_way way, uint64_t bytes)
{
	quota_refund(&e->quota, way, bytes);
}
