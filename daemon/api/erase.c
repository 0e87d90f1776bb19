#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "archive.h"
#include "audit.h"
#include "audit_rows.h"
#include "bytes.h"
#include "engine.h"
#include "hex.h"
#include "json.h"
#include "log.h"
#include "lost.h"
#include "registry.h"
#include "server.h"
#include "services.h"
#include "store.h"
#include "tasks.h"

/* One erasure, carried through the store's transaction. */
struct erasure {
	const struct services *services;
	char actor[EXCHANGE_ACTOR_MAX];
	struct store_device row;
	struct store_erased counts;
	uint8_t (
	    *tasks)[16]; /* tasks of the device's reports, by which its kept deltas are named */
	size_t count, room;
	uint64_t deltas;
};

static enum err
add_task(void *ctx, const uint8_t task[16])
{
	struct erasure *n = ctx;

	uint8_t(*grown)[16] = bytes_grow(n->tasks, n->count, &n->room, sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	n->tasks = grown;
	memcpy(n->tasks[n->count++], task, 16);
	return ERR_OK;
}

static enum err
audit_erasure(struct store_db *db, const struct erasure *n, struct why *why)
{
	struct json *facts = json_object(), *detail = json_object();

	json_add_u64(facts, "erased", n->counts.details);
	json_add_u64(facts, "reports", n->counts.reports);
	json_add_string(detail, "by", n->actor);
	return audit_append(db, n->services,
	    &(struct audit_event){.event = RECORD_DEVICE_ERASED, .facts = facts, .detail = detail},
	    why);
}

/* Erases what names the device. Id and keys stay, or the device could join again; nothing says any more whose they were. */
static enum err
erase(struct store_db *db, void *arg, struct why *why)
{
	struct erasure *n = arg;
	enum err e = store_device_get(db, n->row.id, &n->row);

	if (e)
		return e;
	if (n->row.state != DEVICE_REVOKED && n->row.state != DEVICE_LEFT)
		return err_set(why, ERR_STATE, "the device is %s: revoke it first",
		    states_device_name(n->row.state));
	if (engine_variate_holds(n->services->engine, n->row.id))
		return err_set(why, ERR_STATE,
		    "a job with control variates counts the device: wait for its end, or stop it");
	e = store_audit_erase(db, n->row.id, add_task, n, &n->counts);
	if (e == ERR_STATE)
		return err_set(why, e,
		    "a delta of the device is in a round that is not over: wait for it, or stop "
		    "its job");
	if (e)
		return e;
	registry_erase(&n->row);
	e = store_device_put(db, &n->row);
	return e ? e : audit_erasure(db, n, why);
}

/* Removes the device's files, after the rows. If a crash or a failing disk leaves some, no row names them any more: a second request finds
 * them by their heads. */
static enum err
take_effect(struct erasure *n, struct why *why)
{
	uint64_t left = 0;

	const struct services *s = n->services;
	enum err e = registry_follow(s->registry, n->row.id);

	registry_forget(s->registry, n->row.id);
	tasks_forget(s->engine, n->row.id);
	server_forget(s->server);
	for (size_t i = 0; i < n->count && !e; i++) {
		e = archive_remove(s->archive, n->tasks[i]);
		n->deltas += !e;
		e = e == ERR_NOTFOUND ? ERR_OK : e;
	}
	if (!e)
		e = archive_remove_device(s->archive, n->row.id, &left, why);
	n->deltas += left;
	if (!e)
		e = spool_lost_remove_device(s->spool, n->row.id, &n->deltas, why);
	if (!e)
		e = archive_sync(s->archive, why);
	log_event(LOG_LEVEL_INFO, "device.erased", LOG_U("details", n->counts.details),
	    LOG_U("reports", n->counts.reports), LOG_S("by", n->actor));
	return e;
}

static void
answer(struct exchange *x, const struct erasure *n)
{
	struct json *v = json_object();
	char hex[65];

	hex_encode(hex, n->row.id, 32);
	json_add_string(v, "device", hex);
	json_add_u64(v, "details", n->counts.details);
	json_add_u64(v, "reports", n->counts.reports);
	json_add_u64(v, "deltas", n->deltas);
	exchange_json(x, 200, v);
}

void
api_device_erase(struct exchange *x)
{
	struct erasure n = {.services = x->services};
	struct registry_view view;
	struct why why = {""};

	enum err e = registry_find(x->services->registry, x->param[0], &view);
	if (e) {
		exchange_problem(x, PROBLEM_NOT_FOUND,
		    e == ERR_EXISTS ? "several devices have this name; use the id"
				    : "no such device");
		return;
	}
	n.row = view.row;
	exchange_actor(x, n.actor);
	e = store_write(x->services->store, erase, &n, &why);
	if (!e)
		e = take_effect(&n, &why);
	if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_WRONG_STATE, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	else
		answer(x, &n);
	free(n.tasks);
}
