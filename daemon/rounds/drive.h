#ifndef DRIVE_H
#define DRIVE_H
#include "job_list.h"
#include "round.h"
#include "stuck.h"

struct engine_fold;
struct engine_outcome;
struct invite;

/* What drives the rounds of jobs: events and time go in, and what the round machine answers is done. */

/* Lets rounds run: called once all of services is there, before the first request. */
void rounds_start(
    struct engine *g, enum err (*fold)(void *folder, const struct engine_fold *f), void *folder);
/* No more folding is begun; what is open stays open. */
void rounds_stop(struct engine *g);
/* Rounds' timers. Call about every 50 ms. */
void rounds_tick(struct engine *g);

/* Tells the job's round what happened and does what it answers; the actions, for a caller that asked for one. Lock held. */
unsigned rounds_step(struct engine *g, struct job *j, enum round_event event, uint32_t arg);
/* What the round would answer, as it stands. No lock. */
unsigned rounds_foresee(struct engine *g, const struct job *j, enum round_event event);
/* The open round that stands in the job's row begins. Lock held. */
void rounds_begin_open(struct engine *g, struct job *j);
/* A task of a buffered job went out: it is watched for its time. */
void rounds_watch_task(struct engine *g, struct job *j, const struct invite *v);
/* A device says that the base is damaged: it is hashed some time. Lock held. */
void rounds_doubt(struct engine *g, const uint8_t model[32]);
/* Lets the folder, which alone may, forget the states of jobs that are over. Lock held. */
void rounds_forget_later(struct engine *g);

/* --- for the folder */

/* Decides what follows a folded round, so that it can be committed together with it. Fails if the model that a guard goes back
 * to is not known. */
ERR_MUST_USE enum err rounds_plan(
    struct engine *g, const struct engine_fold *f, struct engine_outcome *o, struct why *why);
/* After the commit. */
void rounds_folded(struct engine *g, const struct engine_fold *f, const struct engine_outcome *o);
/* The fold itself failed. If that passes (health_passes) and is no fault of the file in *lack, the round is folded again after a pause;
 * else (a delta or model that is damaged or cannot be read) the job waits, or is paused, with the reason, and the round stays open. */
void rounds_fold_failed(struct engine *g, const struct engine_fold *f,
    const struct engine_lack *lack, enum err e, const struct why *why);
/* Whoever got f from rounds_start's fold is done with it, and with what belongs to its round. */
void rounds_fold_end(struct engine *g, const struct engine_fold *f);
/* A state that a job which is over named, and forgets with this; another may use it. False: there is none. For the thread that
 * folds: between two rounds no state is on its way to a row. */
bool rounds_forgotten_state(struct engine *g, uint8_t hash[32]);

/* Whoever opened such a file says why that failed. Jobs whose open round needs it wait, in memory only, until it is there and sound
 * again: rounds_look_after looks. Failures that pass with the machine's are not meant, but for those of the disk. */
void rounds_lacks(
    struct engine *g, const struct engine_lack *lack, enum err e, const struct why *why);
/* Looks, on a worker, whether files that jobs wait for are back; whether those that open rounds start from are still there and as
 * they were; and at models that devices call damaged. Call every few seconds. */
void rounds_look_after(struct engine *g);
/* What failed may work now: rounds that wait to be folded again wait no longer. */
void rounds_retry(struct engine *g);

/* How many jobs are said not to move, by why. */
void rounds_stuck(struct engine *g, uint64_t out[STUCK_KINDS]);

#endif
