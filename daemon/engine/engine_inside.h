#ifndef ENGINE_INSIDE_H
#define ENGINE_INSIDE_H
#include "engine.h"
#include "lock.h"
#include "report.h"
#include "round.h"

/* Inside of the engine: shared by engine*.c only. All fields are under the engine's lock
 * unless said otherwise. */

#define ENGINE_JOBS_MAX 4096

enum invite_state { INVITE_OUT, INVITE_ACCEPTED, INVITE_ABORTED };

struct invite {
	uint8_t device[32];
	uint8_t task[16]; /* zero until it is handed out */
	enum invite_state state;
};

/* A difference: its model, what that comes from, the file's length. */
struct engine_step {
	uint8_t to[32], from[32];
	uint64_t bytes;
};
#define ENGINE_STEPS 16
/* A device whose control variate counts in the coordinator's. */
struct engine_member {
	uint8_t device[32];
	uint64_t round; /* the last committed one that its delta is in */
};

struct engine_job {
	struct engine_job *next; /* by priority, then age; never changes after insertion */
	struct engine_job *chain; /* of its bucket */
	uint8_t id[16];
	char hex[33];
	struct job_spec spec; /* immutable */
	struct tensor_table table; /* immutable; roles assigned */
	double created_at;
	uint8_t owner[32]; /* immutable */
	enum job_state state;
	char reason[128];
	bool aside; /* what it needs could not be read: nothing of it is removed */
	struct round round; /* engine_step alone changes it */
	uint32_t loaded; /* deltas that the open round had when the coordinator started */
	struct store_round row; /* of the open round */
	uint64_t model_bytes;
	uint8_t model[32]; /* the newest committed model */
	uint64_t rounds_committed;
	struct store_metric metric;
	uint64_t metric_round;
	struct schedule_state schedule; /* after the last round that ended */
	uint64_t bytes_up, bytes_down;
	struct invite *invites; /* sorted by device */
	size_t invite_count, invite_room;
	uint8_t (*candidates)[32]; /* gathered askers, sorted */
	size_t candidate_count, candidate_room;
	/* The newest first; each from is the next one's to. */
	struct engine_step steps[ENGINE_STEPS];
	size_t step_count;
	struct engine_member *members; /* of a job with control variates: those it has, by device */
	size_t member_count; /* at most spec.aggregate.variates, for which there is room */
	unsigned fold_failures; /* of the round at hand, in a row */
	uint64_t fold_retry_ms; /* when it is folded again; 0: it does not wait for that */
};

struct engine {
	const struct services *services;
	uint8_t task_key[32];
	struct lock lock;
	struct engine_job *jobs;
	/* The same by the first byte of their ids, which are hashes. */
	struct engine_job *buckets[256];
	struct engine_job *last; /* of them */
	size_t job_count;
	struct engine_report report; /* that of the lock apart */
	bool started, stopping;
	uint64_t look_ms; /* before that no round and no fold waits for the time */
	enum err (*fold)(void *folder, const struct engine_fold *f); /* who folds */
	void *folder;
};

/* The next one of a walk over all jobs, which lets others have the lock now and then: what is to be decided about all of them at one
 * moment needs a loop of its own. seen: the walk's, 0 at first. Lock held. */
struct engine_job *engine_next(struct engine *g, const struct engine_job *j, unsigned *seen);
struct engine_job *engine_find(const struct engine *g, const uint8_t id[16]);
/* Tells the job's round what happened and does what it answers; the actions, for a caller that asked for one. Lock held. */
unsigned engine_step(struct engine *g, struct engine_job *j, enum round_event event, uint32_t arg);
/* What the round would answer, as it stands. No lock. */
unsigned engine_foresee(struct engine *g, const struct engine_job *j, enum round_event event);
/* The round is folded again then, if it still waits for it. Lock held. */
void engine_fold_at(struct engine *g, struct engine_job *j, uint64_t ms);
/* Adds the device to the invited, or changes its state. ERR_NOMEM. Lock held. */
ERR_MUST_USE enum err engine_invite(
    struct engine_job *j, const uint8_t device[32], enum invite_state state);
/* Makes an in-memory job from its document and base model: parses, reads the model's table, assigns roles. No lock. */
ERR_MUST_USE enum err engine_job_new(struct engine_job **out, const struct services *services,
    const uint8_t id[16], const char *text, size_t len, struct why *why);
void engine_job_free(struct engine_job *j);
/* The model of round 0: drawn from the seed into the model folder, or the uploaded one. No lock. */
ERR_MUST_USE enum err engine_first_model(
    const struct services *s, struct engine_job *j, uint8_t id[32], struct why *why);
/* Reads a model's table into the job, assigns the job's roles, checks it against the layers. No lock. */
ERR_MUST_USE enum err engine_take_table(
    const struct services *s, struct engine_job *j, const uint8_t model[32], struct why *why);
/* The open round that stands in j->row begins. Lock held. */
void engine_begin_open(struct engine *g, struct engine_job *j);
/* Links a complete job into the list. Lock held. */
void engine_job_link(struct engine *g, struct engine_job *j);
/* Does the device hold, or has it answered, a task of the open round? Lock held. */
bool engine_has_invite(const struct engine_job *j, const uint8_t device[32]);
/* pick: sample. Notes an asker; asking twice adds nothing, and failure to note one only leaves it out. Lock held. */
void engine_draw_note(struct engine_job *j, const uint8_t device[32]);
/* Invites the devices with the smallest SHA-256(seed || round || device id) among those noted. Lock held. */
void engine_draw(struct engine *g, struct engine_job *j);
/* Why this device may not work on the job at all. Lock held. */
enum wait_reason engine_ineligible(
    struct engine *g, const struct engine_job *j, const uint8_t device[32]);
/* Is the round to be folded again now? Then it no longer waits. Lock held. */
bool engine_retry_due(struct engine_job *j, uint64_t now_ms);
/* Changes the job's state in memory and logs it. Lock held. */
void engine_note_state(
    struct engine *g, struct engine_job *j, enum job_state state, const char *reason);
/* Changes the job's state in memory and (queued) in the store. Lock held. */
void engine_set_state(
    struct engine *g, struct engine_job *j, enum job_state state, const char *reason);

/* schedule_state.c: guard and rate of a job over its rounds. */
/* A device gives up its task for this reason: does that tell the guard that the base gives no numbers? Lock held. */
bool engine_schedule_blames(const struct engine_job *j, enum abort_reason reason);
/* What the guard makes of a folded round: into the outcome's rows, job state and schedule. f->schedule is the one before. */
ERR_MUST_USE enum err engine_schedule_plan(const struct services *s, const struct engine_fold *f,
    struct engine_outcome *o, struct why *why);
/* After the commit. Lock held. */
void engine_schedule_apply(
    struct engine_job *j, const struct engine_fold *f, const struct engine_outcome *o);
/* Reads it from the rows of a job that is being loaded, whose newest row and metric are known. */
ERR_MUST_USE enum err engine_schedule_load(struct store_db *db, struct engine_job *j);
/* May the guard go back to it? Of a job that is over, only its best model is held. Lock held. */
bool engine_schedule_holds_model(const struct engine_job *j, const uint8_t model[32]);
bool engine_schedule_holds_state(const struct engine_job *j, const uint8_t state[32]);

/* forecast.c. Lock held. */
struct job_forecast engine_forecast(const struct config *c, const struct engine_job *j);

/* engine_offer.c: what a device says against what a job needs. */
/* Does a list of the offer hold this name? */
bool engine_offer_names(const message_name *list, size_t count, const char *name);
/* Why the device cannot do this job. */
enum wait_reason engine_offer_lacks(const struct engine_job *j, const struct offer *o);
/* Has the device done this task already, and waits to send the delta? */
bool engine_offer_unsent(const struct offer *o, const char *task);

/* engine_steps.c: the differences between a job's newest models. */
/* Finds those in the model folder that lead to j->model. No lock. */
void engine_steps_load(const struct services *s, struct engine_job *j);
/* A new one. Lock held. */
void engine_steps_add(
    struct engine_job *j, const uint8_t from[32], const uint8_t to[32], uint64_t bytes);
/* If the device holds a model from which differences lead to the round's base, and they are shorter than that: names it in
 * out. Lock held. */
void engine_steps_offer(const struct engine_job *j, const struct offer *o, struct task *out);
/* engine_variate.c: control variates. Nothing here concerns a job without them, but for the two sizes. */
/* Makes room for the job's devices. ERR_NOMEM. No lock. */
ERR_MUST_USE enum err engine_variate_init(struct engine_job *j);
/* Reads which device counts since when. */
ERR_MUST_USE enum err engine_variate_load(struct store_db *db, struct engine_job *j);
/* Is this device none of the job's, and are there as many as the job may have? Lock held. */
bool engine_variate_full(const struct engine_job *j, const uint8_t device[32]);
/* Then what refuses its delta, with why. Lock held. */
enum problem_type engine_variate_claim(
    const struct engine_job *j, const uint8_t device[32], struct why *why);
/* What the device's task says of it. Lock held. */
void engine_variate_fill(const struct engine_job *j, const uint8_t device[32], struct task *out);
/* The accepted of the open round count now. Lock held. */
void engine_variate_count(struct engine_job *j, uint64_t round);
/* A delta's payload, at its largest; UINT64_MAX if that is no number. */
uint64_t engine_variate_payload(const struct engine_job *j);
/* The state that goes with a model. */
uint64_t engine_variate_state_bytes(const struct engine_job *j);

#endif
