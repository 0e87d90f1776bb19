#ifndef TASKS_INSIDE_H
#define TASKS_INSIDE_H
#include "drive.h"
#include "job_struct.h"
#include "tasks.h"

/* --- what a device says against what a job needs (offer.c) */

/* Does a list of the offer hold this name? */
bool engine_offer_names(const message_name *list, size_t count, const char *name);
/* Why the device's owner gives it no work now; WAIT_NONE: it is ready. A word of the owner's own counts as WAIT_CHECK. */
enum wait_reason engine_offer_unready(const struct offer *o);
/* Why the device cannot do tasks of this kind for the job. */
enum wait_reason engine_offer_lacks(
    const struct engine_job *j, const struct offer *o, enum task_kind kind);
/* Does the device want none of the job's tasks for a while, because one failed there? */
bool engine_offer_rests(const struct offer *o, const struct engine_job *j);
/* Has the device done this task already, and waits to send the delta? */
bool engine_offer_unsent(const struct offer *o, const char *task);
/* If the device holds a model from which differences lead to the round's base, and they are shorter than that: names it in
 * out. Lock held. */
void engine_steps_offer(const struct engine_job *j, const struct offer *o, struct task *out);

/* What a manifest says of its examples, and of the delta as a whole, against what the job allows. */
enum problem_type engine_claim_examples(
    const struct engine_job *j, const struct manifest *m, struct why *why);
enum problem_type engine_claim_format(
    const struct engine_job *j, const struct manifest *m, struct why *why);

/* Deltas of older tasks are taken no more. */
uint64_t engine_size_oldest(const struct engine_job *j);
/* How many steps the device's task of the open round has; 0: the recipe says how much. ERR_NOMEM. Lock held. */
ERR_MUST_USE enum err engine_size(struct engine_job *j, const uint8_t device[32], uint64_t *steps);
/* A delta was taken: so fast was the device. Lock held. */
void engine_size_note(struct engine_job *j, const struct engine_claim *claim);

/* --- who cannot hold the job's tasks (refusal.c). Lock held, but for the first. */

/* who cannot hold the job's tasks. Lock held, but for the first. */
/* Of what a device can and has; what only tells of the moment is left out. */
uint64_t engine_refusal_print(const struct offer *o);
/* The task was given back: is it for want of memory, before anything was fetched? Then the device is not asked again
 * (false: or there was no memory to note that). */
bool engine_refusal_note(
    struct engine_job *j, const struct invite *v, enum task_kind kind, struct abort_cause cause);
void engine_refusal_forget(struct engine_job *j, const uint8_t device[32]);
/* Has it refused tasks of this kind with the same offer? All of another offer are forgotten. */
bool engine_refusal_stands(
    struct engine_job *j, const uint8_t device[32], enum task_kind kind, uint64_t print);

/* --- rows of tasks that are out (out.c) */

/* The device gives its task back: some time its row goes. */
void engine_late_returned(struct engine *g, const struct engine_job *j, struct invite *v);

/* --- jobs that a program evaluates (central.c). Lock held. */

/* An evaluator asks: WAIT_NONE, and out holds its task. */
enum wait_reason engine_central_ask(struct engine *g, struct engine_job *j,
    const uint8_t device[32], const struct offer *offer, struct task *out);
/* Was this its task, which it gives back? */
bool engine_central_give_up(struct engine *g, struct engine_job *j, const uint8_t device[32],
    const uint8_t task[16], struct abort_cause cause);
/* Is this manifest judged here? Then why it may not come. */
bool engine_central_claims(const struct engine_job *j, const struct manifest *m);
enum problem_type engine_central_claim(struct engine *g, const struct engine_job *j,
    const struct manifest *m, const char *path_task, struct why *why);
/* As engine_take and engine_settle. */
ERR_MUST_USE enum err engine_central_take(struct engine_job *j, const struct engine_claim *claim);
void engine_central_settle(struct engine_job *j, const struct engine_claim *claim, bool durable);

#endif
