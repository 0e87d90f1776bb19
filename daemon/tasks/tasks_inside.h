#ifndef TASKS_INSIDE_H
#define TASKS_INSIDE_H
#include "drive.h"
#include "job_facts.h"
#include "tasks.h"

/* --- what a device says against what a job needs (offer.c) */

/* Does a list of the offer hold this name? */
bool tasks_offer_names(const message_name *list, size_t count, const char *name);
/* Why the device's owner gives it no work now; WAIT_NONE: it is ready. A word of the owner's own counts as WAIT_CHECK. */
enum wait_reason tasks_offer_unready(const struct offer *o);
/* Why the device cannot do tasks of this kind for the job. */
enum wait_reason tasks_offer_lacks(const struct job *j, const struct offer *o, enum task_kind kind);
/* Does the device want none of the job's tasks for a while, because one failed there? */
bool tasks_offer_rests(const struct offer *o, const struct job *j);
/* Has the device done this task already, and waits to send the delta? */
bool tasks_offer_unsent(const struct offer *o, const char *task);
/* If the device holds a model from which differences lead to the round's base, and they are shorter than that: names it in
 * out. Lock held. */
void tasks_offer_difference(const struct job *j, const struct offer *o, struct task *out);

/* What a manifest says of its examples, and of the delta as a whole, against what the job allows. */
enum problem_type tasks_claim_examples(
    const struct job *j, const struct manifest *m, struct why *why);
enum problem_type tasks_claim_format(
    const struct job *j, const struct manifest *m, struct why *why);

/* How many steps the device's task of the open round has; 0: the recipe says how much. ERR_NOMEM. Lock held. */
ERR_MUST_USE enum err tasks_size(struct job *j, const uint8_t device[32], uint64_t *steps);
/* A delta was taken: so fast was the device. Lock held. */
void tasks_size_note(struct job *j, const struct engine_claim *claim);

/* --- who cannot hold the job's tasks (refusal.c). Lock held, but for the first. */

/* Of what a device can and has; what only tells of the moment is left out. */
uint64_t tasks_refusal_print(const struct offer *o);
/* The task was given back: is it for want of memory, before anything was fetched? Then the device is not asked again
 * (false: or there was no memory to note that). */
bool tasks_refusal_note(
    struct job *j, const struct invite *v, enum task_kind kind, struct abort_cause cause);
void tasks_refusal_forget(struct job *j, const uint8_t device[32]);
/* Has it refused tasks of this kind with the same offer? All of another offer are forgotten. */
bool tasks_refusal_stands(
    struct job *j, const uint8_t device[32], enum task_kind kind, uint64_t print);

/* --- rows of tasks that are out (out.c) */

/* The device gives its task back: some time its row goes. */
void tasks_returned(struct engine *g, const struct job *j, struct invite *v);

/* --- jobs that a program evaluates (central.c). Lock held. */

/* An evaluator asks: WAIT_NONE, and out holds its task. */
enum wait_reason tasks_central_ask(struct engine *g, struct job *j, const uint8_t device[32],
    const struct offer *offer, struct task *out);
/* Was this its task, which it gives back? */
bool tasks_central_give_up(struct engine *g, struct job *j, const uint8_t device[32],
    const uint8_t task[16], struct abort_cause cause);
/* Is this manifest judged here? Then why it may not come. */
bool tasks_central_claims(const struct job *j, const struct manifest *m);
enum problem_type tasks_central_claim(struct engine *g, const struct job *j,
    const struct manifest *m, const char *path_task, struct why *why);
/* As tasks_take and tasks_settle. */
ERR_MUST_USE enum err tasks_central_take(struct job *j, const struct engine_claim *claim);
void tasks_central_settle(struct job *j, const struct engine_claim *claim, bool durable);

#endif
