#ifndef HANDLE_INSIDE_H
#define HANDLE_INSIDE_H
#include "cache.h"
#include "eligibility.h"
#include "events.h"
#include "outbox.h"
#include "residual.h"
#include "resting.h"
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
	double mirror_at; /* backoff_now(): after a failure it is left alone until then */
	struct cache cache;
	struct outbox outbox;
	struct residual residual;
	bool outbox_checked; /* entries of an earlier life were verified */
	struct backoff resend; /* of deltas that the coordinator could not take */
	double resend_at; /* backoff_now(): the outbox is left alone until then */
	double held_at; /* likewise, because what is in it lies in the coordinator's memory */
	struct events events;
	int (*cancel)(void *context);
	void (*event)(void *context, int level, const char *line);
	void *context;
	/* Cancel is not heard before: a finished delta gets its chance to be sent. */
	double grace_until;
	bool stepped; /* this device's clock has, while it rested */
	unsigned steps; /* session_steps: how many the back-off below knows of */
	double away_since; /* backoff_now(): no coordinator was reached since; 0: it is reached */
	bool asking; /* waiting for work: that may be broken off for a request of this machine */
	bool (*interrupted)(void *context); /* device.h; NULL without */
	void *interrupt_context;
	struct backoff rotate;
	double rotate_at; /* backoff_now(): a requested rotation is not tried before */
	struct backoff idle; /* between tasks that came to nothing */
	struct resting resting; /* jobs whose tasks do so */
	bool job_rests; /* what failed last is left alone: nothing else has to wait for it */
	double began_at; /* backoff_now(): the last task came; 0: it was not said */
	bool denied; /* the coordinator refused what load asked for: it was not the home */
	enum err failed; /* why the last rivulet_submit did not keep a delta */
	struct why why;
	struct offer *offer; /* held_models and wait are filled in per request */
	struct work work;
	bool has_work;
	struct report_counted
	    counted[2]; /* by enum rivulet_kind: what the program says of its task */
	bool weights_held; /* by the caller, who frees them */
	double stop_at; /* backoff_now(): training should end then */
	struct rivulet_task task; /* what the caller sees of it */
	struct rivulet_tensor *tensors; /* of task */
	struct counts *counts; /* of its evaluation; NULL: none were given */
	void *kept; /* what rivulet_kept gave of it; NULL: nothing yet */
	char kept_model[65];
	struct eligibility *eligibility; /* NULL: the owner has no rules */
	char unready[VERDICT_WORD_MAX]; /* what the coordinator was told of them; "": ready */
	char waiting[32]; /* last reason for waiting, so that it is logged once */
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
/* What the owner's rules say now; "" in it: the device may work. */
const struct verdict *handle_verdict(struct rivulet *r);
/* Does the agent want to have it back from waiting? */
bool handle_interrupted(const struct rivulet *r);
/* struct options' cancel in the shape the parts want; context is the handle. */
bool handle_cancelled(void *handle);
/* Sleeps. The wait is over, too, once this device's clock steps: what the last failure came from may be over with it. */
enum handle_rest { HANDLE_RESTED, HANDLE_STEPPED, HANDLE_BROKEN_OFF };
enum handle_rest handle_rest(struct rivulet *r, double seconds);
/* Forgets failures from before a clock stepped. */
void handle_settle(struct rivulet *r);
/* A task of the job came to nothing: the job rests alone if it has a part in that and the coordinator heeds it, else the device
 * has to, and job_rests is false. */
void handle_failed(
    struct rivulet *r, const char *job, enum abort_reason reason, double worked_seconds);
/* Of the task in hand, or the last one. */
double handle_worked(const struct rivulet *r);
/* Forgets the task in hand, if there is one. */
void handle_drop(struct rivulet *r);

#endif
