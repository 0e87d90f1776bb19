#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "audit.h"
#include "hex.h"
#include "log.h"
#include "registry.h"
#include "server.h"
#include "store.h"

static void
add_time(struct json *v, const char *key, double at)
{
	if (isnan(at))
		json_add_null(v, key);
	else
		json_add_double(v, key, at);
}

/* An event as {"reason", "at"}, or null. */
static void
add_event(struct json *v, const char *key, const char *reason, double at)
{
	struct json *event = json_object();

	if (isnan(at)) {
		json_free(event);
		json_add_null(v, key);
		return;
	}
	json_add_string(event, "reason", reason);
	json_add_double(event, "at", at);
	json_add(v, key, event);
}

static void
add_machine(struct json *v, const char *key, const uint8_t machine[32])
{
	static const uint8_t none[32];
	char hex[65];

	hex_encode(hex, machine, 32);
	if (memcmp(machine, none, 32) == 0)
		json_add_null(v, key);
	else
		json_add_string(v, key, hex);
}

static void
add_seen(struct json *v, const struct store_seen *s)
{
	static const uint8_t none[32];

	add_time(v, "last_contact", s->last_contact);
	json_add_string(v, "agent", s->agent);
	json_add_string(v, "reason", s->reason);
	add_event(v, "last_refusal", s->refused, s->refused_at);
	add_event(v, "last_abort", s->aborted, s->aborted_at);
	add_time(v, "clock_offset_s", s->clock_offset);
	add_time(v, "disk_free_bytes", s->disk_free);
	add_machine(v, "machine", s->machine);
	json_add_bool(v, "cloned", memcmp(s->other_machine, none, 32) != 0);
	add_machine(v, "other_machine", s->other_machine);
}

static struct json *
device_json(const struct registry_view *d)
{
	struct json *v = json_object();
	char hex[65];

	hex_encode(hex, d->row.id, 32);
	json_add_string(v, "device", hex);
	json_add_string(v, "name", d->row.name);
	json_add_string(v, "role", d->row.role);
	json_add_string(v, "state", states_device_name(d->row.state));
	json_add(v, "labels", api_labels_json(d->row.labels));
	json_add_double(v, "joined_at", d->row.joined_at);
	json_add_u64(v, "reports", d->reports);
	json_add_u64(v, "ca_generation", d->row.ca_generation);
	add_seen(v, &d->seen);
	return v;
}

static enum err
add_device(void *ctx, const struct registry_view *d)
{
	json_push(ctx, device_json(d));
	return ERR_OK;
}

void
api_devices_list(struct exchange *x)
{
	struct json *list = json_array();
	struct json *v = json_object();

	enum err e = registry_each(x->services->registry, add_device, list);
	json_add(v, "devices", list);
	if (!e) {
		exchange_json(x, 200, v);
	} else {
		json_free(v);
		exchange_failed(x, e, NULL);
	}
}

/* The device of the path, by id or name; false: the problem is answered. */
static bool
find_device(struct exchange *x, struct registry_view *out)
{
	enum err e = registry_find(x->services->registry, x->param[0], out);

	if (e == ERR_EXISTS)
		exchange_problem(
		    x, PROBLEM_NOT_FOUND, "several devices have this name; use the id");
	else if (e)
		exchange_problem(x, PROBLEM_NOT_FOUND, "no such device");
	return !e;
}

void
api_device_show(struct exchange *x)
{
	struct registry_view d;

	if (find_device(x, &d))
		exchange_json(x, 200, device_json(&d));
}

/* --- suspend, resume, revoke */

struct command {
	const struct services *services;
	char actor[EXCHANGE_ACTOR_MAX];
	uint8_t id[32];
	enum device_state to;
	struct store_device row;
	bool changed;
};

/* revoked is final, and a device that left is gone until it joins again. */
static bool
may_become(enum device_state from, enum device_state to)
{
	return from != DEVICE_REVOKED && (from != DEVICE_LEFT || to == DEVICE_REVOKED);
}

static enum err
audit_state(struct store_db *db, const struct command *c, struct why *why)
{
	struct json *detail = json_object();

	json_add_string(detail, "by", c->actor);
	return audit_append(db, c->services,
	    &(struct audit_event){.event = c->to == DEVICE_SUSPENDED ? RECORD_DEVICE_SUSPENDED
		    : c->to == DEVICE_REVOKED			     ? RECORD_DEVICE_REVOKED
								     : RECORD_DEVICE_RESUMED,
		.device = c->id,
		.detail = detail},
	    why);
}

static enum err
write_state(struct store_db *db, void *arg, struct why *why)
{
	struct command *c = arg;
	enum err e = store_device_get(db, c->id, &c->row);

	if (e)
		return e;
	if (c->row.state == c->to)
		return ERR_OK;
	if (!may_become(c->row.state, c->to))
		return err_set(
		    why, ERR_STATE, "the device is %s", states_device_name(c->row.state));
	c->row.state = c->to;
	c->changed = true;
	e = store_device_put(db, &c->row);
	return e ? e : audit_state(db, c, why);
}

/* Before the answer: the next request, whichever connection it comes by, meets the new state. */
static enum err
take_effect(struct exchange *x, const struct command *c)
{
	char hex[65];

	enum err e = registry_follow(x->services->registry, c->id);
	if (e || c->changed)
		server_forget(x->services->server);
	if (e || !c->changed)
		return e;
	hex_encode(hex, c->id, 32);
	log_event(LOG_LEVEL_INFO, "device.state", LOG_S("device", hex), LOG_S("name", c->row.name),
	    LOG_S("state", states_device_name(c->to)), LOG_S("by", c->actor));
	return ERR_OK;
}

static void
command(struct exchange *x, enum device_state to)
{
	struct command c = {.services = x->services, .to = to};
	struct registry_view view;
	struct why why = {""};

	if (!find_device(x, &view))
		return;
	memcpy(c.id, view.row.id, 32);
	exchange_actor(x, c.actor);
	enum err e = store_write(x->services->store, write_state, &c, &why);
	if (!e)
		e = take_effect(x, &c);
	if (!e)
		e = registry_get(x->services->registry, c.id, &view);
	if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_WRONG_STATE, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	else
		exchange_json(x, 200, device_json(&view));
}

void
api_device_suspend(struct exchange *x)
{
	command(x, DEVICE_SUSPENDED);
}

void
api_device_resume(struct exchange *x)
{
	command(x, DEVICE_ACTIVE);
}

void
api_device_revoke(struct exchange *x)
{
	command(x, DEVICE_REVOKED);
}
