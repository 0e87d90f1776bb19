#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "registry_state.h"

void
registry_touch(struct registry *r, const uint8_t id[32], const char *agent, const char *reason)
{
	double now = clock_wall();

	pthread_mutex_lock(&r->lock);
	struct device *d = registry_device(r, id);
	if (d) {
		struct store_seen *s = &d->view.seen;
		s->last_contact = now;
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
		d->view.seen = (struct store_seen){.last_contact = NAN,
		    .refused_at = NAN,
		    .aborted_at = NAN,
		    .clock_offset = NAN,
		    .disk_free = NAN};
		memcpy(d->view.seen.device, id, 32);
		d->view.reports = 0;
		d->unsaved = false;
	}
	pthread_mutex_unlock(&r->lock);
}

void
registry_count_report(struct registry *r, const uint8_t id[32])
{
	pthread_mutex_lock(&r->lock);
	struct device *d = registry_device(r, id);
	if (d)
		d->view.reports++;
	pthread_mutex_unlock(&r->lock);
}
