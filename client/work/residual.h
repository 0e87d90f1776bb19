#ifndef RESIDUAL_H
#define RESIDUAL_H
#include "kept.h"

struct outbox;

/*
 * Error feedback (Karimireddy and others, Error feedback fixes SignSGD, 2019): what encoding took from the deltas of a job. A delta
 * is encoded together with it, and so is sent late instead of never. Two kinds of file in HOME/residual:
 *
 *     JOB.sum       the residual, and the task whose delta changed it last
 *     TASK.change   what it will change by if that task's delta is accepted: the delta minus what the payload decodes to
 *
 * Both are RVE1 of FORMAT.md. The change is durable before the delta, and added when the receipt is here, before the delta leaves
 * the outbox; a delta that is refused takes its change with it. So the sum over accepted deltas of what was sent, plus the residual,
 * is the sum of these deltas, whatever order they are answered in and wherever the process is killed. A delta that was not accepted
 * is not made up for: the next training starts from a model without it and finds it again.
 */
struct residual {
	char dir[PATH_MAX - 128];
	uint64_t max_bytes;
	double began,
	    began_steady; /* residual_init, by the clock on the wall and by the monotonic one, seconds */
};

/* Removes what belongs to no delta of the outbox or was added already, and residuals of jobs without a delta for 30 days (disuse.h). Makes no
 * directory. */
ERR_MUST_USE enum err residual_init(struct residual *r, const char *home, uint64_t max_bytes,
    const struct outbox *o, struct why *why);
/* The residual of the job, `elements` values; the caller closes it. ERR_NOTFOUND: there is none. ERR_CORRUPT: the file is damaged or of
 * another model, and was removed. */
ERR_MUST_USE enum err residual_open(const struct residual *r, const char *job, uint64_t elements,
    struct kept *out, struct why *why);
/* Keeps a task's change durably, in place of an older one. Where room is short, residuals of other jobs without a delta for a day
 * go, the oldest first; ERR_NOSPACE past max_bytes. */
ERR_MUST_USE enum err residual_keep(const struct residual *r, const char *job, const char *task,
    const struct codec_elements *change, uint64_t elements, struct why *why);
/* Adds a task's change, durably and once, however often it is asked to; a task without one is fine. */
ERR_MUST_USE enum err residual_accept(const struct residual *r, const char *task, struct why *why);
/* Forgets the residual of a job, durably, but not the changes of deltas that wait: it made a delta longer than the job takes, and would
 * make each later one so. ERR_NOTFOUND if there is none. */
ERR_MUST_USE enum err residual_forget(const struct residual *r, const char *job, struct why *why);
/* Forgets a task's change. Its delta is out of the outbox for good. */
void residual_refuse(const struct residual *r, const char *task);

#endif
