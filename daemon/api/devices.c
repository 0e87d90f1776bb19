#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "audit.h"
#include "claim.h"
#include "device_pick.h"
#include "hex.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "messages.h"
#include "names.h"
#include "registry.h"
#include "server.h"
#include "services.h"
#include "store.h"
#include "tasks.h"
#include "views.h"
#include "wake.h"

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
	json_add_seconds(event, "at", at);
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
	json_add_seconds(v, "joined_at", d->row.joined_at);
	json_add_u64(v, "reports", d->reports);
	json_add_u64(v, "ca_generation", d->row.ca_generation);
	json_add_bool(
	    v, "contested", d->row.state == DEVICE_SUSPENDED && d->row.claim == CLAIM_CONTESTED);
	if (d->locked_out)
		json_add_string(v, "locked_out", problem_word(d->locked_out));
	else
		json_add_null(v, "locked_out");
	add_seen(v, &d->seen);
	return v;
}

/* The devices that are still to be listed. */
struct devices_cursor {
	struct exchange *x;
	struct device_pick pick;
	char last[65]; /* the latest that was listed, in hex */
};

/* Adds a device to the list. ERR_AGAIN: the device is left for the next piece; ERR_CLOSED: for the next page. */
static enum err
add_device(void *ctx, const struct registry_view *d)
{
	struct devices_cursor *at = ctx;

	if (exchange_list_full(at->x)) {
		memcpy(at->pick.from, d->row.id, sizeof(at->pick.from));
		return ERR_AGAIN;
	}
	exchange_looked(at->x, 1);
	if (!device_pick_fits(&at->pick, d))
		return ERR_OK;
	if (at->pick.left == 0)
		return ERR_CLOSED;
	at->pick.left--;
	hex_encode(at->last, d->row.id, sizeof(d->row.id));
	exchange_list_add(at->x, device_json(d));
	return ERR_OK;
}

static enum err
fill_devices(struct exchange *x, void *cursor, struct why *why)
{
	struct devices_cursor *at = cursor;

	(void)why;
	enum err e = at->pick.none
	    ? ERR_OK
	    : registry_each(x->services->registry, at->pick.from, add_device, at);
	if (e == ERR_AGAIN)
		return e;
	exchange_list_tail_text(x, "next", e == ERR_CLOSED ? at->last : NULL);
	return e == ERR_CLOSED ? ERR_OK : e;
}

void
api_devices_list(struct exchange *x)
{
	struct devices_cursor first = {.x = x};

	if (!device_pick_read(x, &first.pick))
		return;
	struct devices_cursor *cursor = malloc(sizeof(*cursor));
	if (cursor)
		*cursor = first;
	exchange_list(x, NULL, "devices", fill_devices, cursor);
}

/* *out: the device in the path, by id or name. False: there is none, and the problem response is set. */
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

	if (!find_device(x, &d))
		return;
	struct json *v = device_json(&d);
	json_add(v, "refused", views_refusals_of(x->services, d.row.id));
	claim_describe(v, x->services, &d.row);
	exchange_json(x, 200, v);
}

static void
answer_changed(struct exchange *x, const struct registry_view *d, bool changed)
{
	struct json *v = device_json(d);

	json_add_bool(v, "changed", changed);
	exchange_json(x, 200, v);
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

/* May a device change between these states? Revoked is final, and a device that left can only be revoked, until it joins again. */
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
	if (c->to == DEVICE_ACTIVE && c->row.claim == CLAIM_CONTESTED)
		return err_set(why, ERR_STATE,
		    "several keys claim to be the device's: \"rivulet device rekey\" says which "
		    "is");
	c->row.state = c->to;
	c->changed = true;
	e = store_device_put(db, &c->row);
	return e ? e : audit_state(db, c, why);
}

/* Tells registry and server of the change before the answer, so that the device's next request, on any connection, finds the new state. */
static enum err
take_effect(struct exchange *x, const struct command *c)
{
	char hex[65];

	enum err e = registry_follow(x->services->registry, c->id);
	if (e || c->changed)
		server_forget(x->services->server);
	if (e || !c->changed)
		return e;
	/* Nobody waits for what would be refused. A delta that a suspended device has made is taken all the same, once it is resumed. */
	if (c->to != DEVICE_ACTIVE)
		tasks_device_gone(x->services->engine, c->id, states_device_name(c->to));
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
	enum err e = store_write_reserved(x->services->store, write_state, NULL, &c, &why);
	if (!e)
		e = take_effect(x, &c);
	if (!e)
		e = registry_get(x->services->registry, c.id, &view);
	if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_WRONG_STATE, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	else
		answer_changed(x, &view, c.changed);
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

/* --- name and labels */

struct relabelled {
	struct store_device row;
	bool changed;
};

struct relabelling {
	const struct services *services;
	char actor[EXCHANGE_ACTOR_MAX];
	struct device_change wanted;
	struct relabelled *items; /* of each device, in the order asked for */
	size_t count;
};

/* The value that the change gives this label; NULL: the change does not name the label. */
static const char *
wanted_value(const struct device_change *c, const char *key, bool *gone)
{
	for (size_t i = 0; i < c->label_count; i++)
		if (strcmp(c->labels[i].key, key) == 0) {
			*gone = c->labels[i].gone;
			return c->labels[i].value;
		}
	*gone = false;
	return NULL;
}

/* The labels of before, with changed values in their places and new labels behind. */
static struct json *
merged_labels(const struct json *before, const struct device_change *c)
{
	struct json *v = json_object();
	bool gone;

	for (const struct json *m = json_first(before); m; m = json_next(m)) {
		const char *value = wanted_value(c, json_key(m), &gone);
		if (!gone)
			json_add_string(v, json_key(m), value ? value : json_string(m));
	}
	for (size_t i = 0; i < c->label_count; i++)
		if (!c->labels[i].gone && !json_get(before, c->labels[i].key))
			json_add_string(v, c->labels[i].key, c->labels[i].value);
	return v;
}

static enum err
print_labels(const struct json *v, char out[STORE_LABELS_MAX], struct why *why)
{
	struct buf text;

	buf_init(&text, STORE_LABELS_MAX - 1);
	enum err e = json_print(&text, v, false);
	if (!e)
		snprintf(out, STORE_LABELS_MAX, "%s", buf_str(&text));
	buf_deinit(&text);
	return e == ERR_LIMIT
	    ? err_set(why, e, "the labels are longer than %d bytes", STORE_LABELS_MAX)
	    : e;
}

/* Changes the row. Labels are compared by value, since an older version may have written them in another form. */
static enum err
apply_change(struct relabelled *c, const struct device_change *wanted, struct why *why)
{
	struct json *before = api_labels_json(c->row.labels);
	struct json *after = merged_labels(before, wanted);
	char old[STORE_LABELS_MAX], new[STORE_LABELS_MAX];
	enum err e = print_labels(before, old, why);

	if (!e)
		e = print_labels(after, new, why);
	if (!e && strcmp(old, new) != 0) {
		memcpy(c->row.labels, new, sizeof(new));
		c->changed = true;
	}
	if (!e && wanted->name[0] && strcmp(c->row.name, wanted->name) != 0) {
		memcpy(c->row.name, wanted->name, sizeof(c->row.name));
		c->changed = true;
	}
	json_free(before);
	json_free(after);
	return e;
}

static enum err
write_change(
    struct store_db *db, const struct relabelling *all, struct relabelled *c, struct why *why)
{
	char hex[65];
	uint8_t id[32];

	memcpy(id, c->row.id, sizeof(id));
	hex_encode(hex, id, sizeof(id));
	c->changed = false;
	enum err e = store_device_get(db, id, &c->row);
	if (e == ERR_NOTFOUND)
		return err_set(why, e, "no device %.12s", hex);
	if (!e && c->row.state != DEVICE_ACTIVE && c->row.state != DEVICE_SUSPENDED)
		return err_set(
		    why, ERR_STATE, "device %.12s is %s", hex, states_device_name(c->row.state));
	if (!e)
		e = apply_change(c, &all->wanted, why);
	if (!e && c->changed)
		e = names_check(db, &c->row, why);
	if (e || !c->changed || all->wanted.dry_run)
		return e;
	e = store_device_put(db, &c->row);
	return e ? e : audit_device(db, all->services, &c->row, all->actor, why);
}

/* Writes all changes in one transaction, or none. */
static enum err
write_changes(struct store_db *db, void *arg, struct why *why)
{
	struct relabelling *c = arg;
	enum err e = ERR_OK;

	for (size_t i = 0; i < c->count && !e; i++)
		e = write_change(db, c, &c->items[i], why);
	return e;
}

static enum err
follow_change(struct exchange *x, const struct relabelling *all, const struct relabelled *c)
{
	char hex[65];

	if (!c->changed || all->wanted.dry_run)
		return ERR_OK;
	enum err e = registry_follow(x->services->registry, c->row.id);
	hex_encode(hex, c->row.id, 32);
	log_event(LOG_LEVEL_INFO, "device.changed", LOG_S("device", hex),
	    LOG_S("name", c->row.name), LOG_S("labels", c->row.labels), LOG_S("by", all->actor));
	return e;
}

/* Has the registry read each changed row, and wakes the requests that wait for work. */
static enum err
follow_changes(struct exchange *x, const struct relabelling *c)
{
	enum err result = ERR_OK;

	for (size_t i = 0; i < c->count; i++) {
		enum err e = follow_change(x, c, &c->items[i]);
		result = result ? result : e;
	}
	if (!c->wanted.dry_run)
		wake_ring(&x->services->wake);
	return result;
}

/* A device as it is after the change, or would be. */
static struct json *
changed_json(struct exchange *x, const struct relabelled *c)
{
	struct registry_view view = {.seen = {.last_contact = NAN}};

	/* It was there a moment ago; what it said is no part of the change. */
	(void)!registry_get(x->services->registry, c->row.id, &view);
	view.row = c->row;
	struct json *v = device_json(&view);
	json_add_bool(v, "changed", c->changed);
	if (c->changed && hex_like_id(c->row.name))
		json_add_string(v, "warning",
		    "the name looks like an id: where another device's id begins so, the word is "
		    "refused");
	return v;
}

static void
answer_changes(struct exchange *x, const struct relabelling *c)
{
	struct json *v = json_object(), *list = json_array();
	size_t changed = 0;

	for (size_t i = 0; i < c->count; i++) {
		changed += c->items[i].changed;
		json_push(list, changed_json(x, &c->items[i]));
	}
	json_add_u64(v, "changed", changed);
	json_add_bool(v, "dry_run", c->wanted.dry_run);
	json_add(v, "devices", list);
	exchange_json(x, 200, v);
}

/* Makes the changes. True: they are done, and the caller answers; false: the problem response is set. */
static bool
relabel(struct exchange *x, struct relabelling *c)
{
	struct why why = {""};

	c->services = x->services;
	exchange_actor(x, c->actor);
	enum err e = store_write(x->services->store, write_changes, c, &why);
	if (!e)
		e = follow_changes(x, c);
	if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_WRONG_STATE, "%s", why.text);
	else if (e == ERR_EXISTS)
		exchange_problem(x, PROBLEM_NAME_IN_USE, "%s", why.text);
	else if (e == ERR_LIMIT)
		exchange_problem(x, PROBLEM_BAD_MESSAGE, "%s", why.text);
	else if (e == ERR_NOTFOUND)
		exchange_problem(x, PROBLEM_NOT_FOUND, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	return !e;
}

static bool
read_change(struct exchange *x, struct device_change *out)
{
	struct why why = {""};

	if (!messages_change_decode(out, buf_str(&x->body), x->body.len, &why))
		return true;
	exchange_problem(x, PROBLEM_BAD_MESSAGE, "%s", why.text);
	return false;
}

void
api_device_set(struct exchange *x)
{
	struct relabelled item = {.changed = false};
	struct relabelling c = {.items = &item, .count = 1};
	struct registry_view view;

	if (!read_change(x, &c.wanted) || !find_device(x, &view))
		return;
	memcpy(item.row.id, view.row.id, 32);
	if (relabel(x, &c))
		exchange_json(x, 200, changed_json(x, &item));
}

void
api_devices_set(struct exchange *x)
{
	struct relabelling c = {.items = NULL};

	if (!read_change(x, &c.wanted))
		return;
	c.count = c.wanted.device_count;
	c.items = calloc(c.count ? c.count : 1, sizeof(*c.items));
	if (!c.items) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return;
	}
	for (size_t i = 0; i < c.count; i++)
		(void)!hex_decode(c.items[i].row.id, 32, c.wanted.devices[i], 64);
	if (relabel(x, &c))
		answer_changes(x, &c);
	free(c.items);
}
