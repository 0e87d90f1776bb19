#ifndef HANDLE_INSIDE_H
#define HANDLE_INSIDE_H
#include "cache.h"
#include "device.h"
#include "eligibility.h"
#include "events.h"
#include "job_backoff.h"
#include "outbox.h"
#include "residual.h"
#include "rivulet.h"
#include "session.h"
#include "settings.h"
#include "work.h"

/* The inside of struct rivulet. Programs see rivulet.h, the agent device.h. */
struct rivulet {
	char home[PATH_MAX];
	int lock; /* descriptor of HOME/lock, -1 */
	struct settings *settings;
	struct session *session;
	struct transport *mirror; /* NULL without model_mirror */
	double mirror_at; /* backoff_now(): after a failure the mirror is not used until then */
	struct cache cache;
	struct outbox outbox;
	struct residual residual;
	bool outbox_checked; /* entries of an earlier process were verified */
	struct backoff resend; /* for deltas that the coordinator could not accept */
	double resend_at; /* backoff_now(): the outbox is not sent again until then */
	/* backoff_now(): the outbox is not sent again until then: the coordinator has its deltas, but only in memory. */
	double held_at;
	struct events events;
	int (*cancel)(void *context);
	void (*event)(void *context, int level, const char *line);
	void *context;
	/* backoff_now(): `cancel` is ignored until then, so that a finished delta can be sent. */
	double grace_until;
	bool stepped; /* this device's clock stepped during a wait */
	unsigned revision; /* the number of session_revision at which `idle` was last reset */
	/* backoff_now(): no coordinator was reached since then; 0: the coordinator is reached. */
	double away_since;
	/* Waiting for work: a request of this machine (handle_requested) may end the wait. */
	bool asking;
	bool (*interrupted)(void *context); /* device.h; NULL without */
	void *interrupt_context;
	struct backoff rotate;
	double rotate_at; /* backoff_now(): a requested key rotation is not tried before */
	struct backoff idle; /* between failed tasks */
	double suspended_until; /* backoff_now(): the coordinator is not asked before */
	enum standing standing;
	uint64_t taken; /* deltas and reports, for good */
	struct job_backoff job_backoff; /* jobs whose tasks failed here */
	/* Only the job of the last failed task is paused; the device need not wait. */
	bool job_rests;
	double began_at; /* backoff_now() when the last task came; 0: not known */
	/* The last ERR_DENIED came from the coordinator's answer, not from this home's files. */
	bool denied;
	enum err failed; /* why the last rivulet_submit did not keep a delta */
	struct why why;
	struct offer *offer; /* held_models and wait are filled in per request */
	struct work work;
	bool has_work;
	/* By enum rivulet_kind: what the program told by rivulet_count. */
	struct report_counted counted[2];
	bool weights_held; /* the caller holds the weights (rivulet_hold) and frees them */
	double stop_at; /* backoff_now(): training should end then */
	struct rivulet_task task; /* `work` as the caller sees it */
	struct rivulet_tensor *tensors; /* of `task` */
	struct counts *counts; /* of the task's evaluation; NULL: the program gave none */
	void *kept; /* what rivulet_kept returned for the task; NULL: nothing yet */
	char kept_model[65];
	struct eligibility *eligibility; /* NULL: the owner has no rules */
	/* Word of the owner's rules that the coordinator was told; "": ready. */
	char unready[VERDICT_WORD_MAX];
	char waiting[32]; /* the last reason for waiting, so that a reason is logged once */
	char
	    shortage[160]; /* of the last task that did not fit into memory: "out-of-memory: ..." */
	enum abort_reason (*consider)(
	    void *context, struct work *work, struct why *why); /* device.h; NULL without */
	void *consider_context;
};

/* Public code of an internal error. */
int handle_error(enum err e);
/* Is something asked of this process that only it can do, such as a new key, and is it time to try? */
bool handle_requested(const struct rivulet *r);
/* The verdict of the owner's rules now; with the word "" the device may work. */
const struct verdict *handle_verdict(struct rivulet *r);
/* Does the agent want rivulet_next to return (device_interrupt)? */
bool handle_interrupted(const struct rivulet *r);
/* rivulet_options.cancel with the signature that session, backoff and others take; handle: the struct rivulet. */
bool handle_cancelled(void *handle);
/* Sleeps. HANDLE_CLOCK_STEPPED: the sleep ended early because this device's clock stepped, which may end the cause of the last failure. */
enum handle_wait { HANDLE_WAITED, HANDLE_CLOCK_STEPPED, HANDLE_BROKEN_OFF };
enum handle_wait handle_wait(struct rivulet *r, double seconds);
/* Notes the coordinator's answer to this device, and when it may be asked again if it is suspended. answer: NULL if none came; e and problem as
 * session_do or session_problem gave them. */
void handle_answered(struct rivulet *r, const struct transport_answer *answer, enum err e,
    enum problem_type problem);
/* Forgets failures from before a clock stepped. */
void handle_settle(struct rivulet *r);
/* Called when a task of the job failed. If the job may be the cause (abort_reason_is_jobs) and the coordinator knows of resting jobs, only
 * the job is paused and job_rests is true; else the device has to wait and job_rests is false. */
void handle_failed(
    struct rivulet *r, const char *job, enum abort_reason reason, double worked_seconds);
/* Seconds since the task in hand, or the last one, came. */
double handle_worked(const struct rivulet *r);
/* Forgets the task in hand, if there is one. */
void handle_drop(struct rivulet *r);

#endif
