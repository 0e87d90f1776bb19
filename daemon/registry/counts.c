#include <math.h>

#include "clock.h"
#include "registry_inside.h"

/* Counts are kept as devices change, so that a report costs the same however many there are. */

static uint64_t
newest_ca(const struct registry *r)
{
	return r->ca_count ? r->ca[r->ca_count - 1].generation : 0;
}

bool
registry_counts_behind(const struct registry *r, const struct device *d)
{
	enum device_state state = d->view.row.state;

	return d->view.row.ca_generation < newest_ca(r) && state != DEVICE_REVOKED &&
	    state != DEVICE_LEFT;
}

static bool
is_contested(const struct device *d)
{
	return d->view.row.state == DEVICE_SUSPENDED && d->view.row.claim == CLAIM_CONTESTED;
}

static bool
is_locked_out(const struct device *d)
{
	return d->view.locked_out && d->view.row.state == DEVICE_ACTIVE;
}

void
registry_counts_enter(struct registry *r, const struct device *d)
{
	r->counts.joined++;
	++r->counts.by_state[d->view.row.state];
	r->counts.not_renewed += registry_counts_behind(r, d);
	r->counts.contested += is_contested(d);
	r->counts.locked_out += is_locked_out(d);
}

void
registry_counts_leave(struct registry *r, const struct device *d)
{
	r->counts.joined--;
	--r->counts.by_state[d->view.row.state];
	r->counts.not_renewed -= registry_counts_behind(r, d);
	r->counts.contested -= is_contested(d);
	r->counts.locked_out -= is_locked_out(d);
}

void
registry_counts_ca(struct registry *r)
{
	r->counts.not_renewed = 0;
	for (size_t i = 0; i < r->count; i++)
		r->counts.not_renewed += registry_counts_behind(r, r->items[i]);
}

/* The place of a second in the ring, which may still hold an older second; NULL for none. */
static struct registry_second *
second_at(struct registry *r, double at)
{
	return isfinite(at) && at >= 0 ? &r->seconds[(uint64_t)at % REGISTRY_SECONDS] : NULL;
}

void
registry_counts_heard(struct registry *r, double before, double now)
{
	struct registry_second *old = second_at(r, before), *new = second_at(r, now);

	if (old && old->at == (uint64_t)before && old->devices > 0)
		old->devices--;
	if (!new)
		return;
	if (new->at != (uint64_t)now)
		*new = (struct registry_second){.at = (uint64_t)now};
	new->devices++;
}

void
registry_report(struct registry *r, struct registry_report *out)
{
	double since = clock_seconds() - REGISTRY_SEEN_SECONDS;

	pthread_mutex_lock(&r->lock);
	*out = r->counts;
	for (size_t i = 0; i < WAIT_UNKNOWN; i++)
		out->waiting[i] = r->told.waiting[i];
	for (size_t i = 0; i <= ABORT_UNKNOWN; i++)
		out->gave_up[i] = r->told.gave_up[i];
	for (size_t i = 0; i < REGISTRY_SECONDS; i++)
		if ((double)r->seconds[i].at >= floor(since))
			out->seen += r->seconds[i].devices;
	pthread_mutex_unlock(&r->lock);
}
