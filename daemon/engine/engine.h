#ifndef ENGINE_H
#define ENGINE_H
#include "abort_reason.h"
#include "after.h"
#include "job.h"
#include "manifest.h"
#include "messages.h"
#include "problem.h"
#include "schedule_state.h"
#include "services.h"
#include "store.h"
#include "view.h"

/*
 * The jobs and their rounds. One lock, held for microseconds, never across I/O, crypto or disk: what must block is handed
 * to the store, the folder or done by the caller on a worker. Any thread.
 */
struct engine;
struct engine_report; /* report.h */
struct engine_fold;
struct engine_job; /* lives as long as the engine */

/* Loads jobs and open rounds; deltas accepted before a restart are counted, their files checked. task_key: 32 bytes. */
ERR_MUST_USE enum err engine_new(struct engine **out, const struct services *services,
    const uint8_t task_key[32], struct why *why);
void engine_free(struct engine *g);
/* Lets rounds run: called once all of services is there, before the first request. */
void engine_start(
    struct engine *g, enum err (*fold)(void *folder, const struct engine_fold *f), void *folder);
/* No more folding is begun; what is open stays open. */
void engine_stop(struct engine *g);
/* Rounds' timers. Call about every 50 ms. */
void engine_tick(struct engine *g);

/* --- devices */

/* What a device gets: a task (out->recipe.document belongs to the job), or wait with a reason. */
void engine_ask(
    struct engine *g, const uint8_t device[32], const struct offer *offer, struct task *out);
/* Does a running job's round want a delta that the spool's quota has no room for? Its devices are told spool-full. */
bool engine_spool_full(struct engine *g);

/* A delta on its way: filled by engine_claim, passed along until settled. */
struct engine_claim {
	struct engine_job *job;
	uint8_t job_id[16], task[16], device[32];
	uint64_t round;
	uint64_t elements, payload_bytes;
	uint64_t entries; /* codec_params.entries */
	double max_norm;
	uint64_t max_examples;
};
/* Checks everything about a manifest but its signature: device, job, task, round, base, codec, size, examples. path_task is
 * the task in the URL. Why it may not come, with why. A delta
 * accepted before is PROBLEM_USED_TASK. */
enum problem_type engine_claim(struct engine *g, const struct manifest *m, const uint8_t device[32],
    const char *path_task, struct engine_claim *out, struct why *why);
/* Inside the accepting transaction. ERR_OK: the delta may be accepted, and engine_settle must follow. ERR_STATE: the round has
 * closed or has a delta of the device; ERR_DENIED: the device is no longer active; ERR_NOMEM. */
ERR_MUST_USE enum err engine_take(struct engine *g, const struct engine_claim *claim);
void engine_settle(
    struct engine *g, const struct engine_claim *claim, bool durable, uint64_t body_bytes);
/* ERR_NOTFOUND if the device holds no such task. */
ERR_MUST_USE enum err engine_abort(
    struct engine *g, const uint8_t device[32], const char *task, struct abort_cause cause);
/* Counts bytes of a base model or its state sent to devices. */
void engine_count_down(struct engine *g, const uint8_t model[32], uint64_t bytes);
/* May this device fetch this model: is it the base of a job it may work on? */
bool engine_may_read(struct engine *g, const uint8_t device[32], const uint8_t model[32]);

/* May this device fetch this state: does the open round of a job with control variates that it may work on start from it? */
bool engine_variate_may_read(struct engine *g, const uint8_t device[32], const uint8_t hash[32]);
/* Does a running or paused job with control variates count this device? What it counts is known from the device's reports. */
bool engine_variate_holds(struct engine *g, const uint8_t device[32]);

/* May this device work on the job at all? Then it may read the job's models. */
bool engine_may_work(struct engine *g, const uint8_t device[32], const uint8_t job[16]);

/* --- administration (blocking: on a worker) */

struct engine_document {
	const char *text;
	size_t len;
	uint8_t owner[32]; /* whose job it becomes (struct identity) */
	const char *by; /* who submits it, for the audit log; NULL: not known */
};
/* Takes a job document. *created is false if it is there already. ERR_INVALID: the document is wrong. */
ERR_MUST_USE enum err engine_submit(struct engine *g, const struct engine_document *document,
    uint8_t id[16], bool *created, struct why *why);
/* Is there such a job, of another owner? */
bool engine_is_foreign(struct engine *g, const uint8_t id[16], const uint8_t owner[32]);
/* Resumes (JOB_RUNNING), pauses or stops a job. by: who gives it, for the audit log, or NULL. ERR_NOTFOUND, ERR_STATE. */
ERR_MUST_USE enum err engine_command(
    struct engine *g, const uint8_t id[16], enum job_state to, const char *by, struct why *why);

void engine_report(struct engine *g, struct engine_report *out);

/* --- views; device NULL: of everything, else of what this device may see */

#define ENGINE_SLICE 32
/* Zero at first, but for the device. */
struct engine_slice {
	const uint8_t *device;
	struct engine_job *last; /* looked at */
	size_t count;
	struct job_view jobs[ENGINE_SLICE];
};
/* The next jobs of the list, none of them perhaps; false: that was all. A job that is submitted meanwhile may be missing. */
ERR_MUST_USE bool engine_jobs(struct engine *g, struct engine_slice *s);
/* False if there is no such job or the device may not see it. */
ERR_MUST_USE bool engine_job(
    struct engine *g, const uint8_t id[16], const uint8_t *device, struct job_view *out);
/* Live counts of a job's open round into a row read from the store. */
void engine_fill_open(struct engine *g, struct store_round *r);

/* --- for the folder */

/* What a closing round is folded from; a copy, except spec and table, which live as long as the engine. */
struct engine_fold {
	struct engine_job *job;
	uint8_t job_id[16];
	char job_hex[33];
	const struct job_spec *spec;
	const struct tensor_table *table;
	struct store_round row; /* base, optimizer_state of the base, opened_at, counts */
	uint64_t bytes_down;
	/* Above 0: so many devices found the base to give none, and the round has failed. */
	uint32_t no_numbers;
	struct schedule_state schedule; /* before this round */
};
/* What comes of it. */
struct engine_outcome {
	struct store_round row; /* committed or failed */
	double fold_seconds; /* from the first delta to the model's metric */
	uint64_t model_bytes;
	uint64_t difference_bytes; /* of the file that leads from base to model; 0: there is none */
	struct after after; /* set by engine_plan: if the next round begins, */
	struct store_round next; /* this is its row */
	struct schedule_state schedule; /* set by engine_plan: after this round, */
	struct schedule_turn turn; /* and how it goes on */
	uint64_t next_bytes; /* set by engine_plan: of the next round's base */
};
/* Decides what follows a folded round, so that it can be committed together with it. Fails if the model that a guard goes back
 * to is not known. */
ERR_MUST_USE enum err engine_plan(
    struct engine *g, const struct engine_fold *f, struct engine_outcome *o, struct why *why);
/* May retention remove this model? Not if it is one that [retention] keeps of its job, if a job starts its open round from it, ends
 * in it, or has a guard that may go back to it; nor if its job is not known, or could not be read. */
bool engine_lets_go(struct engine *g, const struct store_model *m);
/* Does any job's open round continue from this optimizer state? */
bool engine_uses_state(struct engine *g, const uint8_t hash[32]);
/* A state that a job which is over named, and forgets with this; another may use it. False: there is none. For the thread that
 * folds: between two rounds no state is on its way to a row. */
bool engine_forgotten_state(struct engine *g, uint8_t hash[32]);
/* Inside a transaction: a job's new state, and its entry in the audit log. A job that is over stays as it is. *was: what it was. */
struct engine_change {
	const uint8_t *job;
	enum job_state state;
	const char *reason;
	const char *by; /* who wanted it; NULL: the coordinator itself */
};
ERR_MUST_USE enum err engine_change_state(struct store_db *db, const struct services *s,
    const struct engine_change *c, enum job_state *was, struct why *why);
/* After the commit. */
void engine_folded(struct engine *g, const struct engine_fold *f, const struct engine_outcome *o);
/* The difference that leads to this model goes: no more tasks name it. */
void engine_steps_gone(struct engine *g, const uint8_t job[16], const uint8_t model[32]);
/* The fold itself failed. If that passes (health_passes), the round is folded again after a pause; else (a damaged delta or model)
 * the job is paused with the reason and the round stays open. */
void engine_fold_failed(
    struct engine *g, const struct engine_fold *f, enum err e, const struct why *why);
/* What failed may work now: rounds that wait to be folded again wait no longer. */
void engine_retry(struct engine *g);

#endif
