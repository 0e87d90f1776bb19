#ifndef RESIDUAL_H
#define RESIDUAL_H
#include "kept.h"

struct outbox;

/*
 * Error feedback (Karimireddy and others, Error feedback fixes SignSGD, 2019). The residual is what encoding has lost of the deltas of a
 * job; the next delta is encoded together with it, so that nothing is lost, only sent late. Two kinds of file in HOME/residual:
 *
 *     JOB.sum       the residual, and the task whose delta changed it last
 *     TASK.change   the residual's change if that task's delta is accepted: the delta minus what the payload decodes to
 *
 * Both are RVE1 of FORMAT.md. The change is durable before the delta, and added when the receipt is here, before the delta leaves
 * the outbox; a delta that is refused takes its change with it. So the sum over accepted deltas of what was sent, plus the residual,
 * is the sum of these deltas, whatever order they are answered in and wherever the process is killed. A delta that was not accepted
 * is not added: the next training starts from a model without it and makes it again.
 */
struct residual {
	char dir[PATH_MAX - 128];
	uint64_t max_bytes;
	/* When residual_init was called, in seconds: by the wall clock and by the monotonic clock. */
	double began, began_steady;
};

/* Removes each TASK.change whose delta is not in the outbox or that was added already, and residuals of jobs without a delta for 30 days
 * (disuse.h). Makes no directory. */
ERR_MUST_USE enum err residual_init(struct residual *r, const char *home, uint64_t max_bytes,
    const struct outbox *o, struct why *why);
/* Opens the residual of the job, `elements` values; the caller closes *out. ERR_NOTFOUND: there is none. ERR_CORRUPT: the file is damaged
 * or of another model, and was removed. */
ERR_MUST_USE enum err residual_open(const struct residual *r, const char *job, uint64_t elements,
    struct kept *out, struct why *why);
/* Keeps a task's change durably, in place of an older one. If room is short, residuals of other jobs without a delta for a day
 * are removed, the oldest first; ERR_NOSPACE past max_bytes. */
ERR_MUST_USE enum err residual_keep(const struct residual *r, const char *job, const char *task,
    const struct codec_elements *change, uint64_t elements, struct why *why);
/* Adds a task's change to the residual, durably; further calls for the task add nothing. A task without a change is fine. */
ERR_MUST_USE enum err residual_accept(const struct residual *r, const char *task, struct why *why);
/* Forgets the residual of a job, durably, but not the changes of deltas that wait. Called when the residual made a delta longer than the
 * job accepts, as it would make each later delta. ERR_NOTFOUND if there is none. */
ERR_MUST_USE enum err residual_forget(const struct residual *r, const char *job, struct why *why);
/* Forgets a task's change; called when the task's delta was removed from the outbox. */
void residual_refuse(const struct residual *r, const char *task);

#endif
