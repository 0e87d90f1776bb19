#include "handle_inside.h"

#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "hex.h"
#include "home.h"
#include "program_state.h"

/* Of one that is not told how long: a person has to resume it. */
#define SUSPENDED_PAUSE_S 60.0

int
handle_error(enum err e)
{
	switch (e) {
	case ERR_OK:
		return RIVULET_OK;
	case ERR_AGAIN:
		return RIVULET_STOPPED;
	case ERR_LIMIT:
		return RIVULET_LIMIT;
	case ERR_NOMEM:
		return RIVULET_NOMEM;
	case ERR_IO:
	case ERR_READONLY:
	case ERR_FILES:
	case ERR_NOSPACE:
		return RIVULET_IO;
	case ERR_NOTFOUND:
		return RIVULET_NOTFOUND;
	case ERR_DENIED:
		return RIVULET_DENIED;
	case ERR_CORRUPT:
		return RIVULET_CORRUPT;
	case ERR_CLOSED:
	case ERR_TIMEOUT:
		return RIVULET_UNREACHABLE;
	case ERR_STATE:
		return RIVULET_STATE;
	case ERR_NUMERIC:
		return RIVULET_NUMERIC;
	default:
		return RIVULET_INVALID;
	}
}

bool
handle_requested(const struct rivulet *r)
{
	return home_has(r->home, HOME_ROTATE) && backoff_now() >= r->rotate_at;
}

bool
handle_interrupted(const struct rivulet *r)
{
	return r->interrupted && r->interrupted(r->interrupt_context);
}

const struct verdict *
handle_verdict(struct rivulet *r)
{
	static const struct verdict ready;

	return r->eligibility ? eligibility_look(r->eligibility) : &ready;
}

/* Do the owner's rules say something else than the coordinator was told? */
static bool
has_news(struct rivulet *r)
{
	return strcmp(handle_verdict(r)->word, r->unready) != 0;
}

bool
handle_cancelled(void *handle)
{
	struct rivulet *r = handle;

	if (r->asking && (handle_requested(r) || handle_interrupted(r) || has_news(r)))
		return true;
	if (!r->cancel || r->cancel(r->context) == 0)
		return false;
	return r->grace_until <= 0 || backoff_now() >= r->grace_until;
}

/* It was told that the job rests, and gave a task of it all the same. */
static bool
is_unheeded(const struct rivulet *r, const char *job)
{
	const struct offer *o = r->offer;
	uint8_t id[16];

	if (!hex_decode(id, sizeof(id), job, strlen(job)))
		return false;
	for (size_t i = 0; i < o->resting_count; i++)
		if (memcmp(o->resting[i].job, id, sizeof(id)) == 0)
			return true;
	return false;
}

void
handle_failed(struct rivulet *r, const char *job, enum abort_reason reason, double worked_seconds)
{
	double now = backoff_now();

	r->job_rests = abort_reason_is_jobs(reason) &&
	    job_backoff_failed(&r->job_backoff, job, now, worked_seconds) && !is_unheeded(r, job);
	if (r->job_rests)
		events_emit(&r->events, EVENTS_INFO, "job.rests",
		    EVENTS_PAIRS(EVENTS_S("job", job),
			EVENTS_D("seconds", job_backoff_left(&r->job_backoff, job, now))));
}

double
handle_worked(const struct rivulet *r)
{
	return r->began_at > 0 ? backoff_now() - r->began_at : 0;
}

void
handle_settle(struct rivulet *r)
{
	const unsigned revision = session_revision(r->session);

	if (revision == r->revision)
		return;
	r->revision = revision;
	backoff_reset(&r->idle);
	backoff_reset(&r->resend);
	backoff_reset(&r->rotate);
	backoff_reset(session_backoff(r->session));
	r->resend_at = r->rotate_at = r->mirror_at = 0;
}

/* Said once, as `unreachable` is the last word otherwise. */
static void
tell_reachable(struct rivulet *r)
{
	if (r->away_since > 0)
		events_emit(&r->events, EVENTS_INFO, "reachable",
		    EVENTS_PAIRS(EVENTS_S("url", session_url(r->session)),
			EVENTS_D("away_s", backoff_now() - r->away_since)));
	r->away_since = 0;
}

static enum standing
standing_of(const struct transport_answer *answer, enum err e, enum problem_type problem)
{
	if (!e)
		return STANDING_GOOD;
	/* A proxy's 502 names no problem. */
	if (!answer || (e == ERR_CLOSED && problem == PROBLEM_NONE))
		return STANDING_UNREACHABLE;
	switch (problem) {
	case PROBLEM_DEVICE_SUSPENDED:
		return STANDING_SUSPENDED;
	case PROBLEM_DEVICE_REVOKED:
		return STANDING_REVOKED;
	case PROBLEM_DEVICE_LEFT:
		return STANDING_LEFT;
	default:
		return STANDING_REFUSED;
	}
}

void
handle_answered(
    struct rivulet *r, const struct transport_answer *answer, enum err e, enum problem_type problem)
{
	/* Cancelled, or the fault is here. */
	if (!answer && e != ERR_CLOSED && e != ERR_DENIED)
		return;
	r->standing = standing_of(answer, e, problem);
	/* What is tried again at once is told as unreachable. */
	if (e != ERR_CLOSED && answer)
		tell_reachable(r);
	if (r->standing == STANDING_SUSPENDED)
		r->suspended_until = backoff_now() +
		    backoff_after(session_backoff(r->session),
			answer->retry_after_s > 0 ? answer->retry_after_s : SUSPENDED_PAUSE_S);
}

static bool
ends_wait(void *handle)
{
	struct rivulet *r = handle;

	r->stepped = session_clock_stepped(r->session);
	return r->stepped || handle_cancelled(r);
}

enum handle_wait
handle_wait(struct rivulet *r, double seconds)
{
	r->stepped = false;
	if (backoff_sleep(seconds, ends_wait, r))
		return HANDLE_WAITED;
	return r->stepped ? HANDLE_CLOCK_STEPPED : HANDLE_BROKEN_OFF;
}

/* Without a delta that waits, what its program wanted kept never comes into force. */
static void
drop_state(struct rivulet *r)
{
	if (r->has_work && r->work.task.kind == TASK_TRAIN &&
	    !outbox_has(&r->outbox, r->work.task.task))
		program_state_refuse(r->home, r->work.task.task);
	free(r->kept);
	r->kept = NULL;
	counts_free(r->counts);
	r->counts = NULL;
}

void
handle_drop(struct rivulet *r)
{
	drop_state(r);
	if (r->weights_held)
		r->work.weights = NULL;
	r->weights_held = false;
	work_deinit(&r->work);
	free(r->tensors);
	r->tensors = NULL;
	r->has_work = false;
	memset(r->counted, 0, sizeof(r->counted));
}
