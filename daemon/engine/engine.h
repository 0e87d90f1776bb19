#ifndef ENGINE_H
#define ENGINE_H
#include "job_needs.h"
#include "override.h"
#include "view.h"

struct store_db;

/* Jobs as persons have them: submitted, commanded, changed, deleted, looked at, within the limits of their owners. Any thread. */

/* --- administration (blocking: on a worker) */

/* What an owner is about to have: counted with what it has from before anything is written until rows count in its place, or it is
 * given up. The caller's, zero at first; all else is owner.c's. */
struct engine_reservation {
	struct engine_reservation *next;
	bool held;
	bool unsettled; /* it is being decided about, or made durable */
	bool asks; /* it only asks whether there is room: others do not count it */
	uint8_t owner[32], job[16];
	uint64_t jobs, bytes, kept, models;
	double evaluation, folds;
};
/* May this owner have models of so many bytes more? Then they are reserved; else nothing of r is. ERR_DENIED names the limit
 * and what to do. May wait for what others of the owner are just making durable. */
ERR_MUST_USE enum err engine_owner_models(struct engine *g, const uint8_t owner[32], uint64_t bytes,
    struct engine_reservation *r, struct why *why);
/* What was reserved is about to be made durable: whoever would be refused for counting it twice waits for its end. */
void engine_owner_settle(struct engine *g, struct engine_reservation *r);
/* It is at rest, or given up. Harmless if nothing is reserved. */
void engine_owner_release(struct engine *g, struct engine_reservation *r);

/* What a change writes into the database on behalf of an owner: [limits] owner_changes_per_hour and owner_bytes_per_day. */
struct engine_spending {
	uint8_t owner[32];
	uint64_t text; /* bytes of a document or the like */
	/* Of the audit log, with those that must never be refused later: each job is stopped and deleted once, and pauses once after
	 * each resume. 0: nothing is written. */
	unsigned entries;
	uint32_t wait_s; /* after ERR_AGAIN: it may be tried again then */
};
/* Counts it before it is begun; ERR_AGAIN, and nothing is counted. */
ERR_MUST_USE enum err engine_owner_spend(
    struct engine *g, struct engine_spending *s, struct why *why);
/* Nothing was written: its bytes are given back. */
void engine_owner_unspend(struct engine *g, const struct engine_spending *s);
/* Inside the transaction that writes it. NULL: nobody is charged. */
ERR_MUST_USE enum err engine_owner_written(
    struct spent *spent, struct store_db *db, const struct engine_spending *s);

struct engine_document {
	const char *text;
	size_t len;
	uint8_t owner[32]; /* whose job it becomes (struct identity) */
	const char *by; /* who submits it, for the audit log; NULL: not known */
	bool bounded; /* [limits] owner_* hold for the owner */
	const struct engine_spending *spending; /* it was spent; NULL: nobody is charged */
	bool tried; /* engine_try's own: nothing is reserved for it */
};
#define ENGINE_SUBMISSION_ENTRIES 6 /* its own, a pause, a stop and a deletion; and its rows */
#define ENGINE_RESUME_ENTRIES \
	8 /* with the pause that may follow, and three rounds that fail before */
/* Is this document a job already? */
bool engine_has(struct engine *g, const char *text, size_t len);
/* Takes a job document. *created is false if it is there already. ERR_INVALID: the document is wrong; ERR_STATE: its job was deleted;
 * ERR_EXISTS: it is, or was, a job of another owner; ERR_DENIED: a bound of its owner, and what to do. */
ERR_MUST_USE enum err engine_submit(struct engine *g, const struct engine_document *document,
    uint8_t id[16], bool *created, struct why *why);
/* Is there such a job, of another owner? */
bool engine_is_foreign(struct engine *g, const uint8_t id[16], const uint8_t owner[32]);

/* What would come of a document. */
struct engine_trial {
	bool exists; /* it is a job already: what follows is of this one */
	struct job_view job; /* of a new one id, name, parameters, model_bytes and forecast */
	struct engine_reach reach; /* all zero of a job that is over */
};
/* As engine_submit, with its errors, but for that nothing is submitted. */
ERR_MUST_USE enum err engine_try(struct engine *g, const struct engine_document *document,
    struct engine_trial *out, struct why *why);

/* Resumes (JOB_RUNNING), pauses or stops a job; one that is so already stays as it is, and nothing is written. by: who gives it, for
 * the audit log, or NULL. ERR_NOTFOUND, ERR_STATE. */
ERR_MUST_USE enum err engine_command(
    struct engine *g, const uint8_t id[16], enum job_state to, const char *by, struct why *why);
/* The same by an owner who is bounded: what is to be resumed is spent first. ERR_AGAIN */
ERR_MUST_USE enum err engine_command_of(struct engine *g, const uint8_t id[16], enum job_state to,
    const char *by, struct engine_spending *spending, struct why *why);
/* Stops all jobs of an owner that are not over; *count of them, also after a failure. */
ERR_MUST_USE enum err engine_stop_of(
    struct engine *g, const uint8_t owner[32], const char *by, uint64_t *count, struct why *why);

/* A change of what a job is run by. */
struct engine_terms_change {
	const struct override_set *change;
	const char *by; /* who wants it, for the audit log; or NULL */
	bool bounded; /* [limits] owner_* hold for who wants it */
	struct engine_spending *spending; /* it is spent first; NULL: nobody is charged */
};
/* Durable, and in force, in the open round too; what is in force already writes nothing. ERR_AGAIN: see engine_owner_spend. ERR_NOTFOUND; ERR_STATE: the job is over; ERR_INVALID: it has no use for a path;
 * ERR_DENIED: a bound of its owner, and what to do. */
ERR_MUST_USE enum err engine_set(
    struct engine *g, const uint8_t id[16], const struct engine_terms_change *c, struct why *why);

/* What goes, or would, with a job that is over. */
struct engine_deletion {
	uint64_t models, deltas; /* files */
	uint64_t bytes; /* of these */
};
/* Deletes a job that is over, with all that only it holds; its entries in the audit log stay, and its document may never come again.
 * dry: only counts. ERR_NOTFOUND; ERR_STATE: it is not over, its last round is still being folded, or somebody deletes it. After
 * another failure the job is still there, perhaps without some of its reports. */
ERR_MUST_USE enum err engine_delete(struct engine *g, const uint8_t id[16], const char *by,
    bool dry, struct engine_deletion *out, struct why *why);
/* Deletes some of the jobs that ended longer ago than [retention] ended_jobs. Call now and then. */
void engine_delete_old(struct engine *g);

/* --- views; device NULL: of everything, else of what this device may see */

#define ENGINE_SLICE 32
/* Zero at first, but for the device. */
struct engine_slice {
	const uint8_t *device;
	double
	    ended_after; /* Unix time: of jobs that are over only those that ended later; 0: all */
	bool begun;
	int64_t priority; /* of the last one looked at, */
	uint64_t serial; /* and its place among those of this priority, */
	uint8_t id[16]; /* and its id */
	size_t looked; /* this time */
	size_t count; /* and of these it shows */
	struct job_view jobs[ENGINE_SLICE];
};
/* The next jobs of the list, none of them perhaps; false: that was all. A job that is submitted meanwhile may be missing. */
ERR_MUST_USE bool engine_jobs(struct engine *g, struct engine_slice *s);
/* False if there is no such job or the device may not see it; out->read_bytes as above, also then. */
ERR_MUST_USE bool engine_job(
    struct engine *g, const uint8_t id[16], const uint8_t *device, struct job_view *out);

/* May this device fetch this model: is it the base of a job it may work on? *read, unless NULL: bytes of documents of jobs that are
 * over which had to be read and parsed are added, here and below. */
bool engine_may_read(
    struct engine *g, const uint8_t device[32], const uint8_t model[32], uint64_t *read);
/* May this device work on the job at all? Then it may read the job's models. */
bool engine_may_work(
    struct engine *g, const uint8_t device[32], const uint8_t job[16], uint64_t *read);
/* May this device fetch this state: does the open round of a job with control variates that it may work on start from it? */
bool engine_variate_may_read(struct engine *g, const uint8_t device[32], const uint8_t hash[32]);
/* Does a running or paused job with control variates count this device? What it counts is known from the device's reports. */
bool engine_variate_holds(struct engine *g, const uint8_t device[32]);

/* Does a job need this model: for its open round, its guard, or as what it has come to? */
bool engine_uses_model(struct engine *g, const uint8_t model[32]);
/* Does any job's open round continue from this optimizer state? */
bool engine_uses_state(struct engine *g, const uint8_t hash[32]);

/* Looks at every device: for the moment of a submission. False if there is no such job, or it is over. */
bool engine_reach(struct engine *g, const uint8_t id[16], struct engine_reach *out);
/* Devices of a job's open round, the first by id. */
struct engine_hands {
	size_t working; /* have a task out: */
	struct {
		uint8_t device[32];
		double seconds; /* for so long; NaN: nobody knows */
	} works[ENGINE_DEVICES_SHOWN];
	size_t silent; /* had one when the round was opened again, and have not answered since */
	uint8_t silents[ENGINE_DEVICES_SHOWN][32];
};
void engine_hands(struct engine *g, const uint8_t job[16], struct engine_hands *out);
/* Live counts of a job's open round into a row read from the store. */
void engine_fill_open(struct engine *g, struct store_round *r);

#endif
