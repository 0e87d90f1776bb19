#ifndef JOB_INVITES_H
#define JOB_INVITES_H
#include "abort_reason.h"
#include "job_list.h"
#include "roster.h"
#include "share.h"

struct manifest;
struct models;
struct store_db;
struct task;

/* Which device has, had and may have which task of a job. Lock held, where nothing else is said. */

/* What a device has of a job. */
struct invite {
	struct roster_place place; /* invites_happens alone changes it */
	uint8_t device[32];
	uint8_t task[16]; /* of the place; zero until it is handed out */
	bool stored; /* of a buffered job: that the device has the task is durable */
	/* share.c: since when the device has the task, and what the job was charged for it beforehand. 0: it has it no more, or not yet. */
	uint64_t handed_ms;
	double charged;
	uint64_t given_ms; /* when it went out last; 0: not since the start */
	uint64_t began_ms; /* when its delta first began to come after that; 0: not yet */
	uint64_t print; /* of the offer that it went out for: tasks_refusal_print */
	enum abort_reason gave_up; /* why, if it was given back */
};

/* The id of a task of this round, without a look at who has it. */
void invites_task_id(const struct engine *g, const struct job *j, uint64_t round,
    const uint8_t device[32], uint8_t out[16]);
/* NULL: it has none. */
struct invite *invites_find(const struct job *j, const uint8_t device[32]);
/* Finds or makes the device's. NULL: no memory. */
struct invite *invites_hold(struct job *j, const uint8_t device[32]);
/* The open round, for places; of a job without work only that it is over. */
struct roster_round invites_round(const struct job *j);
/* Something happens to an invitation: a set of roster_action. v may be of a device that has none, and zero. */
unsigned invites_happens(struct job *j, struct invite *v, const struct roster_event *e);
/* ROSTER_REOPEN or ROSTER_TURN happens to all: those of which nothing is left are gone, and how long devices rest is known. */
void invites_happens_all(struct job *j, enum roster_event_kind kind);
/* Does the device hold, or has it answered, a task of the open round? Lock held. */
bool invites_has(const struct job *j, const uint8_t device[32]);
/* Has it a task of the open round, or may it have one, that is not answered? Lock held. */
bool invites_awaits(const struct job *j, const uint8_t device[32]);
/* All, in no order. */
struct invite *invites_items(const struct job *j, size_t *count);
/* The round is over: nobody has a task of it, and nobody waits for one. */
void invites_clear(struct job *j);
/* Those whose tasks are out, the first by device; how many, at most `most`. */
size_t invites_first_out(const struct job *j, const struct invite **out, size_t most);
/* A device asked that its rounds can use. */
void invites_note_usable(struct job *j);
/* The id of an invitation's task, from now on known. */
const uint8_t *invites_name_task(struct engine *g, const struct job *j, struct invite *v);

/* --- who is drawn, and who evaluates */

/* Notes an asker of a round that draws (pick: sample); asking twice adds nothing, and failure to note one only leaves it out. Lock held. */
void invites_note(struct job *j, const uint8_t device[32]);
/* An asker that is here no more. Lock held. */
void invites_forget(struct job *j, const uint8_t device[32]);
/* Is there more to be known of who evaluates? Lock held. */
bool invites_wants_evaluator(const struct job *j);
/* A device that evaluates asked. Without memory to note it the job may end without a figure. Lock held. */
void invites_note_evaluator(struct job *j, const uint8_t device[32]);
/* Can as many as its quorum evaluate, as far as is known? Lock held. */
bool invites_evaluates(const struct job *j);
/* Invites the devices with the smallest SHA-256(seed || round || device id) among those noted: how many. Lock held. */
uint32_t invites_draw(struct job *j);

/* --- deltas of other rounds than the open one (late.c) */

/* Room for the rounds whose tasks may still be answered. ERR_NOMEM. No lock. */
ERR_MUST_USE enum err jobs_late_init(struct job *j);
ERR_MUST_USE enum err jobs_late_load(struct store_db *db, struct job *j);
/* Those that were out before the coordinator started, in whatever rounds. */
ERR_MUST_USE enum err jobs_late_load_out(
    const struct engine *g, struct store_db *db, struct job *j);
/* The round in the job's row begins; ended: what the one before it came to, NULL of the first. */
void jobs_late_open(struct job *j, const uint8_t *ended);
/* Is it a base of those rounds? */
bool jobs_late_reads(const struct job *j, const uint8_t model[32]);
/* Is it the base of a task that is out? */
bool jobs_late_holds(const struct job *j, const uint8_t model[32]);

/* Which round took the last delta of each device, of a job whose devices rest. */
ERR_MUST_USE enum err jobs_rest_load(struct store_db *db, struct job *j);

/* --- what jobs have had of the devices (share.c) */

/* A job that is linked, or is to be: from now on it is asked for work. */
void jobs_share_join(struct engine *g, struct job *j);
/* It takes tasks again, or takes none. */
void jobs_share_wait(struct engine *g, struct job *j, bool waits);
/* The device has the task now; harmless if it had it before. */
void jobs_share_begin(struct engine *g, struct job *j, struct invite *v);
/* The task has ended for the device. */
void jobs_share_end(struct engine *g, struct job *j, struct invite *v);
/* Those of all its invitations have. */
void jobs_share_end_all(struct engine *g, struct job *j);
/* The i-th of those that are not over; NULL: there are no more. */
struct job *jobs_share_at(const struct engine *g, size_t i);
/* In force. */
int64_t jobs_share_priority(const struct job *j);
/* The next job of a walk in order, which lets others have the lock now and then: the job's place may change then, so that it is seen
 * twice, or not if it was given use back at that moment. The walk's place: seen is 0 at first. */
struct share_walk {
	unsigned seen;
	struct share_place last;
};
struct job *jobs_share_next(struct engine *g, struct share_walk *w);
/* Of the jobs that have an unanswered invitation of this device, the oldest of the highest priority, which is in use then; NULL: none. */
struct job *jobs_share_held(struct engine *g, const uint8_t device[32]);
/* Use as the rows of its latest rounds tell, of a job that is being loaded. */
ERR_MUST_USE enum err jobs_share_load(struct store_db *db, struct job *j);
/* All are loaded: to the youngest that says too little. */
void jobs_share_restart(struct engine *g, struct job *j);

/* --- control variates. Nothing here concerns a job without them. */

/* Makes room for the job's devices. ERR_NOMEM. No lock. */
ERR_MUST_USE enum err jobs_variate_init(struct job *j);
/* Reads which device counts since when. */
ERR_MUST_USE enum err jobs_variate_load(struct store_db *db, struct job *j);
/* Is this device none of the job's, and are there as many as the job may have? Lock held. */
bool jobs_variate_full(const struct job *j, const uint8_t device[32]);
/* Then what refuses its delta, with why. Lock held. */
enum problem_type jobs_variate_claim(
    const struct job *j, const uint8_t device[32], struct why *why);
/* What the device's task says of it. Lock held. */
void jobs_variate_fill(const struct job *j, const uint8_t device[32], struct task *out);
/* The accepted of the open round count now. Lock held. */
void jobs_variate_count(struct job *j, uint64_t round);
/* Does a job with control variates that is not over count this device? Lock held. */
bool jobs_variate_counts(const struct job *j, const uint8_t device[32]);

/* --- the differences between a job's newest models (difference.c) */

/* A difference: its model, what that comes from, the file's length. */
struct engine_difference {
	uint8_t to[32], from[32];
	uint64_t bytes;
};
#define ENGINE_DIFFERENCES 16
struct engine_differences {
	struct engine_difference
	    items[ENGINE_DIFFERENCES]; /* the newest first; each from is the next one's to */
	size_t count;
};
/* Finds those in the model folder that lead to the job's newest model. No lock. */
void jobs_difference_load(struct models *models, struct job *j);
/* A new one. Lock held. */
void jobs_difference_add(
    struct job *j, const uint8_t from[32], const uint8_t to[32], uint64_t bytes);
/* The difference that leads to this model goes: no more tasks name it. */
void jobs_difference_gone(struct engine *g, const uint8_t job[16], const uint8_t model[32]);

#endif
