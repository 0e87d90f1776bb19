#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "err.h"
#include "hex.h"
#include "log.h"
#include "messages.h"
#include "registry_inside.h"
#include "store.h"

#define BATCH 500 /* rows in one transaction: others wait behind it */
#define TRY_OUT_MS 60000 /* from the renewal of a certificate to the end of its trial */

static const uint8_t no_machine[32];

bool
registry_is_erased(const struct store_device *row)
{
	return row->state == DEVICE_REVOKED && strcmp(row->name, "erased") == 0 &&
	    strcmp(row->labels, "{}") == 0;
}

void
registry_erase(struct store_device *row)
{
	snprintf(row->name, sizeof(row->name), "erased");
	snprintf(row->labels, sizeof(row->labels), "{}");
	row->state = DEVICE_REVOKED;
}

/* The device, or NULL if it is unknown or erased, so that nothing is noted. With the lock held. */
static struct device *
noted(const struct registry *r, const uint8_t id[32])
{
	struct device *d = registry_device(r, id);

	return d && !registry_is_erased(&d->view.row) ? d : NULL;
}

/* Adds the time since the last contact to heard_seconds, unless the device was silent for longer than it was told to wait. With the
 * lock held. */
static void
note_there(struct device *d, double now)
{
	struct registry_view *v = &d->view;
	double gap = now - d->heard;

	if (v->heard_from == 0)
		v->heard_from = now;
	else if (clock_ms() <= d->told.until_ms || gap < REGISTRY_SEEN_SECONDS)
		v->heard_seconds += gap > 0 ? gap : 0;
}

static void
note_lock_out(struct registry *r, struct device *d, enum problem_type problem)
{
	if (d->view.locked_out == problem)
		return;
	registry_counts_leave(r, d);
	d->view.locked_out = problem;
	registry_counts_enter(r, d);
}

void
registry_touch(struct registry *r, const uint8_t id[32], const char *agent, const char *reason)
{
	double now = clock_seconds();

	pthread_mutex_lock(&r->lock);
	struct device *d = noted(r, id);
	if (d) {
		struct store_seen *s = &d->view.seen;
		registry_counts_heard(r, d->heard, now);
		note_there(d, now);
		d->heard = now;
		device_status_note_there(d);
		s->last_contact = clock_wall();
		note_lock_out(r, d, PROBLEM_NONE);
		if (agent)
			snprintf(s->agent, sizeof(s->agent), "%s", agent);
		if (reason)
			snprintf(s->reason, sizeof(s->reason), "%s", reason);
		d->unsaved = true;
	}
	pthread_mutex_unlock(&r->lock);
}

void
registry_forget(struct registry *r, const uint8_t id[32])
{
	pthread_mutex_lock(&r->lock);
	struct device *d = registry_device(r, id);
	if (d) {
		registry_counts_heard(r, d->heard, NAN);
		d->heard = NAN;
		note_lock_out(r, d, PROBLEM_NONE);
		d->view.seen = (struct store_seen){.last_contact = NAN,
		    .refused_at = NAN,
		    .aborted_at = NAN,
		    .clock_offset = NAN,
		    .disk_free = NAN};
		memcpy(d->view.seen.device, id, 32);
		d->view.reports = d->view.taken = d->view.aborted = 0;
		d->view.heard_from = d->view.heard_seconds = 0;
		device_status_drop(r, d);
		device_status_free(&d->told);
		d->unsaved = false;
	}
	pthread_mutex_unlock(&r->lock);
}

void
registry_count_report(struct registry *r, const uint8_t id[32])
{
	pthread_mutex_lock(&r->lock);
	struct device *d = noted(r, id);
	if (d) {
		d->view.reports++;
		d->view.taken++;
	}
	pthread_mutex_unlock(&r->lock);
}

static void
note_machine(struct store_seen *s, const uint8_t machine[32])
{
	if (memcmp(s->machine, no_machine, 32) != 0 && memcmp(s->machine, machine, 32) != 0)
		memcpy(s->other_machine, s->machine, 32);
	memcpy(s->machine, machine, 32);
}

bool
registry_note_offer(struct registry *r, const uint8_t id[32], const struct offer *offer)
{
	double now = clock_wall();
	uint8_t machine[32];
	bool known = hex_decode(machine, sizeof(machine), offer->machine, strlen(offer->machine));
	bool fresh = false;

	pthread_mutex_lock(&r->lock);
	struct device *d = noted(r, id);
	if (d) {
		struct store_seen *s = &d->view.seen;
		bool cloned = memcmp(s->other_machine, no_machine, 32) != 0;
		if (known)
			note_machine(s, machine);
		fresh = !cloned && memcmp(s->other_machine, no_machine, 32) != 0;
		if (offer->time_ms)
			s->clock_offset = (double)offer->time_ms / 1000 - now;
		if (offer->has_disk_free)
			s->disk_free = (double)offer->disk_free_bytes;
		device_status_note_data(d, offer);
		d->unsaved = true;
	}
	pthread_mutex_unlock(&r->lock);
	return fresh;
}

void
registry_note_refusal(struct registry *r, const uint8_t id[32], enum problem_type problem)
{
	double now = clock_wall();

	pthread_mutex_lock(&r->lock);
	struct device *d = noted(r, id);
	if (d) {
		snprintf(d->view.seen.refused, sizeof(d->view.seen.refused), "%s",
		    problem_word(problem));
		d->view.seen.refused_at = now;
		if (problem == PROBLEM_EXPIRED_CERTIFICATE || problem == PROBLEM_RETIRED_CA)
			note_lock_out(r, d, problem);
		d->unsaved = true;
	}
	pthread_mutex_unlock(&r->lock);
}

void
registry_note_abort(struct registry *r, const uint8_t id[32], const char *reason)
{
	double now = clock_wall();

	pthread_mutex_lock(&r->lock);
	struct device *d = noted(r, id);
	if (d) {
		snprintf(d->view.seen.aborted, sizeof(d->view.seen.aborted), "%s", reason);
		d->view.seen.aborted_at = now;
		d->view.aborted++;
		d->unsaved = true;
	}
	pthread_mutex_unlock(&r->lock);
}

bool
registry_note_renewal(struct registry *r, const uint8_t id[32], uint64_t seconds)
{
	pthread_mutex_lock(&r->lock);
	/* Not before the lock: another thread's look may be later then. */
	const uint64_t now = clock_ms();
	struct device *d = noted(r, id);
	bool first = d && (!d->renewed_ms || now - d->renewed_ms >= seconds * 1000);
	if (first)
		d->renewed_ms = now;
	if (d)
		d->issued_ms = now;
	pthread_mutex_unlock(&r->lock);
	return first;
}

bool
registry_tries_out(struct registry *r, const uint8_t id[32])
{
	pthread_mutex_lock(&r->lock);
	const struct device *d = registry_device(r, id);
	bool tries = d && d->issued_ms && clock_ms() - d->issued_ms < TRY_OUT_MS;
	pthread_mutex_unlock(&r->lock);
	return tries;
}

void
registry_forget_machines(struct registry *r, const uint8_t id[32])
{
	pthread_mutex_lock(&r->lock);
	struct device *d = noted(r, id);
	if (d) {
		memset(d->view.seen.machine, 0, 32);
		memset(d->view.seen.other_machine, 0, 32);
		d->unsaved = true;
	}
	pthread_mutex_unlock(&r->lock);
}

/* --- to the database */

struct batch {
	size_t count;
	struct {
		struct store_seen seen;
		uint64_t ca_generation;
	} rows[BATCH];
};

static enum err
write_row(struct store_db *db, const struct store_seen *seen, uint64_t ca_generation)
{
	struct store_device row;
	enum err e = store_device_get(db, seen->device, &row);

	/* Erased meanwhile. */
	if (!e && registry_is_erased(&row))
		return ERR_OK;
	if (!e && row.ca_generation != ca_generation) {
		row.ca_generation = ca_generation;
		e = store_device_put(db, &row);
	}
	return e ? e : store_seen_put(db, seen);
}

static enum err
write_batch(struct store_db *db, void *arg, struct why *why)
{
	const struct batch *b = arg;

	(void)why;
	for (size_t i = 0; i < b->count; i++) {
		enum err e = write_row(db, &b->rows[i].seen, b->rows[i].ca_generation);
		if (e && e != ERR_NOTFOUND)
			return e;
	}
	return ERR_OK;
}

void
registry_seen_written(void *arg, enum err e, const struct why *why)
{
	if (e)
		log_event(LOG_LEVEL_WARN, "seen.failed", LOG_S("why", why->text));
	free(arg);
}

/* Takes a batch of unsaved rows from index *at on; false: none was left. */
static bool
collect(struct registry *r, size_t *at, struct batch *b)
{
	b->count = 0;
	pthread_mutex_lock(&r->lock);
	for (; *at < r->count && b->count < BATCH; ++*at) {
		struct device *d = r->items[*at];
		if (!d->unsaved)
			continue;
		d->unsaved = false;
		b->rows[b->count].seen = d->view.seen;
		b->rows[b->count++].ca_generation = d->view.row.ca_generation;
	}
	pthread_mutex_unlock(&r->lock);
	return b->count > 0;
}

bool
registry_has_renewed(struct registry *r)
{
	pthread_mutex_lock(&r->lock);
	bool renewed = r->renewed;
	r->renewed = false;
	pthread_mutex_unlock(&r->lock);
	return renewed;
}

void
registry_flush(struct registry *r, struct store *store)
{
	size_t at = 0;

	registry_flush_tokens(r, store);
	for (;;) {
		struct batch *b = malloc(sizeof(*b));
		if (!b)
			return;
		if (!collect(r, &at, b) ||
		    store_submit(store, write_batch, registry_seen_written, b)) {
			free(b);
			return;
		}
	}
}
