#include "health.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "report.h"

/* What is wrong below, noted where it shows. */
struct health {
	_Atomic(enum wait_reason) reason;
	pthread_mutex_t lock; /* of all below */
	uint64_t need; /* bytes there was no room for: of disk or memory */
	char detail[256];
	double since, begun; /* Unix time, and clock_seconds() */
	uint64_t failures_total;
};

bool
health_passes(enum err e)
{
	return e == ERR_NOSPACE || e == ERR_READONLY || e == ERR_IO || e == ERR_FILES ||
	    e == ERR_NOMEM || e == ERR_DENIED || e == ERR_TIMEOUT;
}

enum wait_reason
health_reason_of(enum err e)
{
	switch (e) {
	case ERR_NOSPACE:
		return WAIT_DISK_FULL;
	case ERR_READONLY:
	case ERR_DENIED:
		return WAIT_DISK_READ_ONLY;
	case ERR_FILES:
		return WAIT_NO_DESCRIPTORS;
	case ERR_NOMEM:
		return WAIT_NO_MEMORY;
	case ERR_TIMEOUT:
	case ERR_CORRUPT:
	case ERR_STATE:
		return WAIT_STORE_FAILED;
	default:
		return WAIT_DISK_ERROR;
	}
}

const char *
health_remedy(enum wait_reason reason)
{
	static const char *const remedies[WAIT_UNKNOWN] = {
	    [WAIT_DISK_FULL] =
		"make room: remove what others left, stop and delete jobs, lower [retention]",
	    [WAIT_DISK_READ_ONLY] = "mount it for writing, or fix its permissions",
	    [WAIT_DISK_ERROR] = "look at the kernel's log and at the disk",
	    [WAIT_STORE_FAILED] = "end other programs that hold the database",
	    [WAIT_NO_DESCRIPTORS] = "raise LimitNOFILE",
	    [WAIT_NO_MEMORY] = "end other programs, or raise MemoryMax",
	};

	return reason < WAIT_UNKNOWN && remedies[reason] ? remedies[reason] : "see its log";
}

void
health_set(struct health *h, enum wait_reason reason, uint64_t need, const char *detail)
{
	char text[sizeof(h->detail)];

	snprintf(text, sizeof(text), "%.140s; %s", detail, health_remedy(reason));
	pthread_mutex_lock(&h->lock);
	enum wait_reason before = atomic_load(&h->reason);
	if (!before) {
		h->since = clock_wall();
		h->begun = clock_seconds();
		h->failures_total++;
	}
	if (!before || need > h->need)
		h->need = need;
	memcpy(h->detail, text, sizeof(text));
	atomic_store(&h->reason, reason);
	pthread_mutex_unlock(&h->lock);
	if (before != reason)
		log_event(LOG_LEVEL_ERROR, "health.failed",
		    LOG_S("reason", wait_reason_name(reason)), LOG_S("why", text));
}

void
health_note(struct health *h, enum err e, uint64_t need, const char *detail)
{
	/* A refusal by permissions may have causes of another kind. */
	if (h && health_passes(e) && e != ERR_DENIED)
		health_set(
		    h, health_reason_of(e), need, detail && detail[0] ? detail : err_name(e));
}

enum wait_reason
health_reason(struct health *h)
{
	return h ? atomic_load(&h->reason) : WAIT_NONE;
}

void
health_report(struct health *h, struct health_report *out)
{
	*out = (struct health_report){.reason = WAIT_NONE};
	pthread_mutex_lock(&h->lock);
	out->reason = health_reason(h);
	out->failures_total = h->failures_total;
	if (out->reason) {
		snprintf(out->detail, sizeof(out->detail), "%s", h->detail);
		out->since_seconds = h->since;
	}
	pthread_mutex_unlock(&h->lock);
}

uint64_t
health_need(struct health *h)
{
	pthread_mutex_lock(&h->lock);
	uint64_t need = h->need;
	pthread_mutex_unlock(&h->lock);
	return need;
}

double
health_clear(struct health *h, enum wait_reason *reason)
{
	pthread_mutex_lock(&h->lock);
	*reason = atomic_exchange(&h->reason, WAIT_NONE);
	double seconds = clock_seconds() - h->begun;
	h->need = 0;
	pthread_mutex_unlock(&h->lock);
	return seconds;
}

enum err
health_new(struct health **out)
{
	struct health *h = calloc(1, sizeof(*h));

	if (!h)
		return ERR_NOMEM;
	pthread_mutex_init(&h->lock, NULL);
	*out = h;
	return ERR_OK;
}

void
health_free(struct health *h)
{
	if (!h)
		return;
	pthread_mutex_destroy(&h->lock);
	free(h);
}
