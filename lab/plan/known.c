#include "known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "allowance.h"
#include "hash.h"
#include "hex.h"
#include "json.h"
#include "transport.h"

/* --- the fleet */

/* Of a device's line: a number up to `most`; 0 and false where nothing is known, or what is said cannot be. */
static bool
number(const struct json *device, const char *key, double most, double *out)
{
	if (json_double(json_get(device, key), out) && *out >= 0 && *out <= most)
		return true;
	*out = 0;
	return false;
}

static void
read_profile(struct fleet_profile *p, const struct json *device)
{
	const char *name = json_string(json_get(device, "name"));
	const char *id = json_string(json_get(device, "device"));
	double examples;

	*p = (struct fleet_profile){.count = 1, .available = 1};
	p->has_id = id && hex_decode(p->id, sizeof(p->id), id, strlen(id));
	snprintf(p->name, sizeof(p->name), "%s", name ? name : "device");
	(void)number(device, "samples_per_s", FLEET_RATE_MAX, &p->samples_per_s);
	(void)number(device, "up_bytes_per_s", FLEET_RATE_MAX, &p->up_bytes_per_s);
	(void)number(device, "failure", FLEET_FAILURE_MAX, &p->failure);
	(void)number(device, "examples", FLEET_EXAMPLES_MAX, &examples);
	p->examples = (uint64_t)examples;
	if (!number(device, "available", 1, &p->available) || p->available < FLEET_AVAILABLE_MIN)
		p->available = 1;
}

static void
take_device(struct plan_known *k, const struct json *device, const struct recipe *recipe,
    const struct plan_need *need)
{
	struct fleet_profile p;
	const struct data_spec *data = &recipe->data;
	double memory;

	read_profile(&p, device);
	k->devices++;
	if (data->name[0] && (p.examples == 0 || p.examples < recipe_min_examples(recipe, false)))
		return;
	k->with_data++;
	if (data->window == 0 && allowance_cuts(recipe, false, p.examples, need->max_examples)) {
		bool draws = false;
		(void)json_bool(json_get(device, "draws"), &draws);
		++*(draws ? &k->drawn : &k->too_many);
		if (!draws)
			return;
	}
	if (number(device, "memory_bytes", (double)JSON_INT_MAX, &memory) &&
	    memory < need->bytes + need->per_example * (double)p.examples)
		return;
	k->with_memory++;
	k->measured += p.samples_per_s > 0;
	k->fleet.items[k->fleet.count++] = p;
	k->fleet.devices++;
}

/* Ids of jobs, one for each device that was measured, sorted. */
static int
compare_ids(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
count_job(struct plan_known *k, const char *job, uint64_t devices)
{
	struct plan_measured *m = k->measured_in;
	size_t at = 0;

	k->measured_jobs++;
	while (at < PLAN_MEASURED_MAX && m[at].devices >= devices)
		at++;
	if (at == PLAN_MEASURED_MAX)
		return;
	memmove(&m[at + 1], &m[at], (PLAN_MEASURED_MAX - 1 - at) * sizeof(*m));
	m[at] = (struct plan_measured){.devices = devices};
	snprintf(m[at].job, sizeof(m[at].job), "%.32s", job);
}

/* An older coordinator does not say in which job. */
static enum err
note_jobs(struct plan_known *k, const struct json *list)
{
	const char **ids = calloc(json_count(list) + 1, sizeof(*ids));
	size_t n = 0;

	if (!ids)
		return ERR_NOMEM;
	for (const struct json *d = json_first(list); d; d = json_next(d)) {
		ids[n] = json_string(json_get(d, "measured_in"));
		n += ids[n] && strlen(ids[n]) == 32;
	}
	qsort(ids, n, sizeof(*ids), compare_ids);
	for (size_t i = 0, from = 0; i < n; i++)
		if (i + 1 == n || strcmp(ids[i], ids[i + 1]) != 0) {
			count_job(k, ids[i], i + 1 - from);
			from = i + 1;
		}
	free(ids);
	return ERR_OK;
}

/* What cannot be had stays without a name. */
static void
name_jobs(struct plan_known *k, struct cmd_admin *a)
{
	for (size_t i = 0; i < PLAN_MEASURED_MAX && k->measured_in[i].devices > 0; i++) {
		struct plan_measured *m = &k->measured_in[i];
		struct json *job = NULL;
		struct why ignored;
		char path[64];
		snprintf(path, sizeof(path), "/v1/jobs/%.32s", m->job);
		if (cmd_admin_call(a, "GET", path, NULL, &job, &ignored) == ERR_OK) {
			const char *name = json_string(json_get(job, "name"));
			snprintf(m->name, sizeof(m->name), "%s", name ? name : "");
		}
		json_free(job);
	}
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Who was not measured is taken for one in the middle. */
static enum err
fill_speeds(struct plan_known *k)
{
	double *known = calloc(k->fleet.count + 1, sizeof(*known));
	size_t n = 0;

	if (!known)
		return ERR_NOMEM;
	for (size_t i = 0; i < k->fleet.count; i++)
		if (k->fleet.items[i].samples_per_s > 0)
			known[n++] = k->fleet.items[i].samples_per_s;
	if (n > 0)
		qsort(known, n, sizeof(*known), compare);
	for (size_t i = 0; i < k->fleet.count && n > 0; i++)
		if (k->fleet.items[i].samples_per_s <= 0)
			k->fleet.items[i].samples_per_s = known[n / 2];
	free(known);
	return ERR_OK;
}

static enum err
take_fleet(struct plan_known *k, const struct json *list, const struct recipe *recipe,
    const struct plan_need *need, struct why *why)
{
	size_t count = json_count(list);

	if (count > FLEET_DEVICES_MAX)
		return err_set(
		    why, ERR_LIMIT, "%zu devices, a plan takes %u", count, FLEET_DEVICES_MAX);
	if (count > 0 && recipe->data.name[0] && !json_get(json_first(list), "examples"))
		return err_set(why, ERR_UNSUPPORTED,
		    "this coordinator does not say what its devices have: give a --fleet");
	k->fleet.items = calloc(count + 1, sizeof(*k->fleet.items));
	if (!k->fleet.items)
		return err_set(why, ERR_NOMEM, "no memory for %zu devices", count);
	for (const struct json *d = json_first(list); d; d = json_next(d))
		take_device(k, d, recipe, need);
	return fill_speeds(k);
}

enum err
plan_known_fleet(struct plan_known *out, struct cmd_admin *a, const struct recipe *recipe,
    const struct plan_need *need, struct why *why)
{
	const struct data_spec *data = &recipe->data;
	char path[32 + RECIPE_NAME_MAX];
	struct json *doc = NULL;

	*out = (struct plan_known){.devices = 0};
	snprintf(path, sizeof(path), "/v1/fleet%s%s", data->name[0] ? "?data=" : "", data->name);
	enum err e = cmd_admin_call(a, "GET", path, NULL, &doc, why);
	if (!e)
		e = take_fleet(out, json_get(doc, "devices"), recipe, need, why);
	if (!e)
		e = note_jobs(out, json_get(doc, "devices"));
	if (!e)
		name_jobs(out, a);
	json_free(doc);
	return e;
}

void
plan_known_deinit(struct plan_known *k)
{
	fleet_profiles_deinit(&k->fleet);
}
