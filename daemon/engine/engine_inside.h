#ifndef ENGINE_INSIDE_H
#define ENGINE_INSIDE_H
#include "best.h"
#include "choice.h"
#include "config.h"
#include "engine.h"
#include "late.h"
#include "lock.h"
#include "past_rows.h"
#include "report.h"
#include "round.h"
#include "share.h"
#include "stuck.h"
#include "tails.h"
#include "tempo.h"
#include "tensor.h"

/* Inside of the engine: shared by engine*.c only. All fields are under the engine's lock
 * unless said otherwise. */

#define ENGINE_JOBS_MAX 4096
#define ENGINE_RETRY_MS 1000 /* until a fold that failed is tried again, the first time */

enum invite_state {
	INVITE_OUT,
	INVITE_COMMITTING, /* of a buffered job: its delta is on its way to the disk */
	INVITE_ACCEPTED,
	INVITE_ABORTED,
	INVITE_STOPPED, /* given back because the program ended: it may ask again */
	INVITE_EXPIRED, /* out for too long: another one has its place, its delta is taken all the same */
	INVITE_NONE, /* it has no task; there is a delta of an earlier one */
};

struct invite {
	uint8_t device[32];
	uint8_t task[16]; /* zero until it is handed out */
	uint64_t round; /* of the task */
	uint64_t until_ms; /* of a buffered job: then it expires */
	bool stored; /* of a buffered job: that the device has it is durable */
	uint16_t now, next; /* deltas of the device in the open round, and for the next one */
	enum invite_state state;
	/* share.c: since when the device has the task, and what the job was charged for it beforehand. 0: it has it no more, or not yet. */
	uint64_t handed_ms;
	double charged;
	uint64_t given_ms; /* when it went out last; 0: not since the start */
	uint64_t began_ms; /* when its delta first began to come after that; 0: not yet */
	uint64_t print; /* of the offer that it went out for: engine_refusal_print */
	enum abort_reason gave_up; /* why, if it was given back */
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

/* A device that asks for a job's tasks. */
struct engine_regular {
	uint8_t device[32];
	uint64_t asked_ms;
	uint64_t folded; /* the last round that took a delta of it; 0: none */
};

/* A round's model that a program of a named evaluator measures (central.c). */
#define ENGINE_CENTRAL_GAVE_UP 16
struct engine_central {
	bool open; /* it waits for its figure */
	bool taken; /* a report is on its way to the disk, */
	bool reported; /* or has got there: no other is taken */
	uint64_t round, bytes; /* bytes: of its file */
	uint8_t model[32];
	uint64_t until_ms;
	/* Who is not asked again, as far as there is room: then the device lets the job rest. */
	uint8_t gave_up[ENGINE_CENTRAL_GAVE_UP][32];
	size_t gave_up_count;
	struct abort_cause cause; /* of the last of them */
};

/* What only the rounds of a job need. */
struct engine_work {
	struct job_spec spec; /* immutable: of the document, */
	struct job_stamp stamp; /* with what was noted beside it */
	struct override_set overrides; /* of it, */
	struct job_terms
	    terms; /* and what is in force with them: engine_terms_take alone changes both */
	struct tensor_table table; /* immutable; roles are assigned */
	double
	    evaluation; /* multiply-adds of a batch of the coordinator's evaluation; 0: it makes none */
	struct fold_cost
	    cost; /* of a round of its goal; bytes with the net that measures its model */
	struct schedule_state schedule; /* after the last round that ended */
	struct engine_central central;
	/* Of a job that takes late deltas: the rounds whose tasks may still be answered, the newest first. */
	struct late_point *points;
	size_t point_count;
	/* Of a buffered job whose rule bears hostile devices: who asked lately, by device, and the rounds that each rests. */
	struct engine_regular *regulars;
	size_t regular_count, regular_room;
	uint64_t rest;
	/* The newest first; each from is the next one's to. */
	struct engine_step steps[ENGINE_STEPS];
	size_t step_count;
	struct tempo tempo; /* of LOCAL_SIZED */
	struct engine_reservation reservation; /* until it is linked */
	/* Whether it moves: the verdict, and what it is made of that nobody else keeps. */
	struct stuck_watch stuck;
	struct stuck_reopened reopened;
	struct stuck_reach reach; /* as it was at reach_ms; 0: nobody looked */
	uint64_t reach_ms;
	char unmeasured[ENGINE_UNMEASURED_MAX]; /* why its newest model has no figure; "" */
	/* Who did not answer when the round was opened again, as far as there is room. */
	uint8_t silent[ENGINE_DEVICES_SHOWN][32];
	size_t silent_count;
	uint64_t silent_round;
};

struct engine_job {
	struct engine_job *next; /* by priority, then age */
	struct engine_job *chain; /* of its bucket */
	uint64_t serial; /* of the oldest the least */
	struct share_member member; /* of g->order, while it is not over */
	uint32_t place; /* standing.h */
	unsigned users; /* who has it without the lock */
	unsigned readers; /* who reads its work without the lock */
	unsigned folds; /* of its rounds, that the folder has */
	bool deleting; /* somebody does */
	/* Nobody finds it any more. It stays in the list while it is used or names a state. */
	bool gone;
	uint8_t id[16];
	char hex[33];
	char name[RECIPE_NAME_MAX];
	int64_t priority; /* of the document: its place in the list. member.priority is in force */
	bool only_evaluates; /* it has no rounds but its evaluation */
	/* NULL once the job is over, nothing of it is folded any more, and its states are forgotten: engine_job_shrink. */
	struct engine_work *work;
	double created_at, ended_at; /* NaN: it is not over */
	uint8_t owner[32]; /* immutable */
	enum job_state state;
	char reason[STORE_REASON_MAX];
	bool aside; /* what it needs could not be read: nothing of it is removed */
	struct engine_lack lack; /* what it waits for; it is paused for that alone */
	enum err lack_fault; /* what the last look at it came to; ERR_OK: nobody has looked */
	unsigned lack_looks; /* in vain */
	uint64_t lack_ms; /* of the next look */
	struct round round; /* engine_step alone changes it */
	bool asked; /* since the coordinator started, by a device that its rounds can use */
	uint8_t (*evaluators)[32]; /* of those, who evaluates: sorted, no more than the quorum */
	size_t evaluator_count, evaluator_room;
	uint32_t loaded; /* deltas that the open round had when the coordinator started */
	uint32_t early; /* and those for the next one */
	uint32_t out; /* and tasks of a buffered job */
	uint64_t expiry_ms; /* the first of the tasks that are out expires; UINT64_MAX: none does */
	struct store_round row; /* of the open round */
	uint64_t model_bytes, parameters;
	uint8_t model[32]; /* the newest committed model */
	uint64_t rounds_committed;
	uint64_t reports; /* in its models; kept while there is a limit for them */
	struct store_metric metric;
	uint64_t metric_round;
	uint64_t measured; /* buffered, by devices: the last round whose base has a figure */
	struct monitor_spec monitor;
	struct keep_spec keep;
	struct best best;
	bool is_guarded;
	struct guard_view guard; /* without work: as it was at the end */
	uint64_t bytes_up, bytes_down;
	struct invite *invites; /* sorted by device */
	size_t invite_count, invite_room;
	struct engine_refusal *refusals; /* sorted by device and kind */
	size_t refusal_count, refusal_room;
	struct choice_ticket *candidates; /* gathered askers, the first to be drawn first */
	size_t candidate_count, candidate_room;
	struct engine_member *members; /* of a job with control variates: those it has, by device */
	size_t member_count; /* at most spec.aggregate.variates, for which there is room */
	unsigned fold_failures; /* of the round at hand, in a row */
	uint64_t fold_retry_ms; /* when it is folded again; 0: it does not wait for that */
};

#define ENGINE_DOUBTS 16

struct engine {
	const struct services *services;
	uint8_t task_key[32];
	struct lock lock;
	struct engine_job *jobs;
	/* The same by the first byte of their ids, which are hashes. */
	struct engine_job *buckets[256];
	struct engine_job *last; /* of them */
	struct share_order
	    order; /* of those that are not over: who is asked first for a device's work */
	uint64_t serial; /* of the newest */
	size_t job_count, gone_count;
	bool
	    dated; /* each job that is over has an end; one that ended while the clock was doubted has none */
	struct engine_report report; /* that of the lock apart */
	struct engine_reservation *reserved; /* the oldest first */
	struct tails tails; /* under a lock of its own */
	bool started, stopping;
	bool looking; /* a worker looks after files */
	uint8_t doubts[ENGINE_DOUBTS][32]; /* models that devices say are damaged */
	size_t doubt_count;
	uint64_t look_ms; /* before that no round and no fold waits for the time */
	uint64_t stuck_ms; /* when to look again whether jobs move */
	uint64_t stuck[STUCK_KINDS]; /* jobs, by what is said of them */
	uint64_t tasks_out; /* of all running jobs, at the last look */
	size_t reach_wanted; /* jobs of which the last look wanted to know whom they reach */
	enum err (*fold)(void *folder, const struct engine_fold *f); /* who folds */
	void *folder;
};

/* The next one of a walk over all jobs, which lets others have the lock now and then: what is to be decided about all of them at one
 * moment needs a loop of its own. seen: the walk's, 0 at first. Lock held. */
struct engine_job *engine_next(struct engine *g, struct engine_job *j, unsigned *seen);
/* Not one that is gone. */
struct engine_job *engine_find(const struct engine *g, const uint8_t id[16]);
/* Does a job's open round, newest model or guard need this model? Lock held. */
bool engine_holds_model(struct engine *g, const uint8_t model[32]);
/* Frees the jobs that are gone and used by nobody. Lock held. */
void engine_drop_gone(struct engine *g);
/* Tells the job's round what happened and does what it answers; the actions, for a caller that asked for one. Lock held. */
unsigned engine_step(struct engine *g, struct engine_job *j, enum round_event event, uint32_t arg);
/* What the round would answer, as it stands. No lock. */
unsigned engine_foresee(struct engine *g, const struct engine_job *j, enum round_event event);
/* A device says that the base is damaged: it is hashed some time. Lock held. */
void engine_doubt(struct engine *g, const uint8_t model[32]);
/* It waits for this; of no kind, for nothing that can be looked at. Lock held. */
void engine_lack_is(struct engine *g, struct engine_job *j, const struct engine_lack *lack);
/* A job once more, in no list and known to nobody. No lock. */
ERR_MUST_USE enum err engine_load_one(
    struct engine *g, const uint8_t id[16], struct engine_job **out);
/* The row of the job's next round, or of its first. */
void engine_open_row(
    struct store_round *r, const struct engine_job *j, uint64_t round, const uint8_t base[32]);
/* Has the device work to do for it? Lock held. */
bool engine_concerns(struct engine *g, const struct engine_job *j, const uint8_t device[32]);
/* Does a job with control variates that is not over count this device? Lock held. */
bool engine_variate_counts(const struct engine_job *j, const uint8_t device[32]);
/* A state that the job names, which it forgets with this; false: none. Lock held. */
bool engine_schedule_take_state(struct engine_job *j, uint8_t out[32]);
/* The reason of a state that a person brought about. */
const char *engine_by_hand(enum job_state state);
/* A person decides about the job: it waits for no file any more. Lock held. */
void engine_lack_nothing(struct engine *g, struct engine_job *j);
/* The first task expires then. Lock held. */
void engine_expire_at(struct engine *g, struct engine_job *j, uint64_t ms);
/* The round is folded again then, if it still waits for it. Lock held. */
void engine_fold_at(struct engine *g, struct engine_job *j, uint64_t ms);
/* late.c: deltas of other rounds than the open one. Lock held but for the first and for loading. */
/* Room for the rounds whose tasks may still be answered. ERR_NOMEM. No lock. */
ERR_MUST_USE enum err engine_late_init(struct engine_job *j);
ERR_MUST_USE enum err engine_late_load(struct store_db *db, struct engine_job *j);
/* The round in j->row begins; ended: what the one before it came to, NULL of the first. */
void engine_late_open(struct engine_job *j, const uint8_t *ended);
/* Would a delta of this task round be taken? */
bool engine_late_takes(const struct engine_job *j, uint64_t round);
/* Does the job take nothing for its next round? Its guard may go back with the one before, and give up what that was trained on. */
bool engine_late_defers(const struct engine_job *j);
/* Of a manifest whose round is not the open one, or whose round has closed: why it is not taken. */
enum problem_type engine_late_judge(
    const struct engine_job *j, const struct manifest *m, struct why *why);
/* Is it a base of those rounds? */
bool engine_late_reads(const struct engine_job *j, const uint8_t model[32]);
/* Is it the base of a task that is out? */
bool engine_late_holds(const struct engine_job *j, const uint8_t model[32]);
/* A task of a buffered job went out: it is watched for its time. */
void engine_late_watch(struct engine *g, struct engine_job *j, struct invite *v);
/* Those that were out before the coordinator started, in whatever rounds. */
ERR_MUST_USE enum err engine_late_load_out(
    const struct engine *g, struct store_db *db, struct engine_job *j);
/* The device gives its task back: some time its row goes. */
void engine_late_returned(struct engine *g, const struct engine_job *j, struct invite *v);
/* Frees the places of tasks that are out for too long. */
void engine_late_expire(struct engine *g, struct engine_job *j, uint64_t now_ms);
/* A buffer is folded: who has nothing in the next one and no task is forgotten. */
void engine_late_turn(struct engine_job *j);

/* late.c. Lock held, but for loading. */
ERR_MUST_USE enum err engine_rest_load(struct store_db *db, struct engine_job *j);
/* The device asks for the job's work: is it to rest? */
bool engine_rest_asks(struct engine_job *j, const uint8_t device[32]);
/* This round took a delta of it. */
void engine_rest_taken(struct engine_job *j, const uint8_t device[32], uint64_t folded);
/* A round is over: who was not heard of for long counts no more. */
void engine_rest_turn(struct engine_job *j);

/* invite.c. Lock held. */
void engine_task_id(const struct engine *g, const struct engine_job *j, uint64_t round,
    const uint8_t device[32], uint8_t out[16]);
/* NULL: it has none. */
struct invite *engine_find_invite(const struct engine_job *j, const uint8_t device[32]);
/* The id of an invitation's task, from now on known. */
const uint8_t *engine_name_task(struct engine *g, const struct engine_job *j, struct invite *v);
/* Finds or makes the device's; a new one is INVITE_NONE. NULL: no memory. */
struct invite *engine_hold_invite(struct engine_job *j, const uint8_t device[32]);
/* Adds the device to the invited of the open round, or changes its state. ERR_NOMEM. Lock held. */
ERR_MUST_USE enum err engine_invite(
    struct engine_job *j, const uint8_t device[32], enum invite_state state);
/* Makes an in-memory job from its document and base model: parses, reads the model's table, assigns roles. No lock. */
ERR_MUST_USE enum err engine_job_new(
    struct engine_job **out, const uint8_t id[16], const char *text, size_t len, struct why *why);
/* What only its rounds need goes. */
void engine_job_empty(struct engine_job *j);
void engine_job_free(struct engine_job *j);
/* Frees what only rounds need, once none of them comes, and notes in the store what is left: a start reads no more of the job. Lock
 * held. */
void engine_job_shrink(struct engine *g, struct engine_job *j);
/* One without work; NULL: no memory. */
struct engine_job *engine_job_blank(const uint8_t id[16]);
/* Does the job still name states that are to be forgotten? Lock held. */
bool engine_names_state(const struct engine_job *j);
/* The model of round 0: drawn from the seed into the model folder, or the uploaded one, whose tensors a new file has in the order of
 * the layers if it has them in another. No lock. */
ERR_MUST_USE enum err engine_first_model(
    const struct services *s, struct engine_job *j, uint8_t id[32], struct why *why);
/* Its table, roles and size, before it is made: nothing is written, nothing drawn. What is submitted keeps to tensor_table_bound. No
 * lock. */
ERR_MUST_USE enum err engine_first_table(
    const struct services *s, struct engine_job *j, struct why *why);
/* What a round of the job will take of the coordinator, by its document and table. */
void engine_cost_note(struct engine_work *w);
/* Is that within [limits], whosever job it is? ERR_LIMIT names the one that it passes. No lock. */
ERR_MUST_USE enum err engine_cost_check(
    const struct services *s, const struct engine_work *w, struct why *why);
/* Reads the table of a model that is there into the job, assigns the job's roles, checks it against the layers. No lock. */
ERR_MUST_USE enum err engine_take_table(
    const struct services *s, struct engine_job *j, const uint8_t model[32], struct why *why);
/* Does its open round make no model, but evaluate one? Lock held. */
bool engine_evaluates(const struct engine_job *j);
/* The open round that stands in j->row begins. Lock held. */
void engine_begin_open(struct engine *g, struct engine_job *j);
/* Links a complete job into the list. Lock held. */
void engine_job_link(struct engine *g, struct engine_job *j);
/* Has it a task of the open round, or may it have one, that is not answered? Lock held. */
bool engine_awaits(const struct engine_job *j, const uint8_t device[32]);
/* Does the device hold, or has it answered, a task of the open round? Lock held. */
bool engine_has_invite(const struct engine_job *j, const uint8_t device[32]);
/* pick: sample. Notes an asker; asking twice adds nothing, and failure to note one only leaves it out. Lock held. */
void engine_draw_note(struct engine_job *j, const uint8_t device[32]);
/* An asker that is here no more. Lock held. */
void engine_draw_forget(struct engine_job *j, const uint8_t device[32]);
/* Is there more to be known of who evaluates? Lock held. */
bool engine_draw_wants_evaluator(const struct engine_job *j);
/* A device that evaluates asked. Without memory to note it the job may end without a figure. Lock held. */
void engine_draw_evaluator(struct engine_job *j, const uint8_t device[32]);
/* Can as many as its quorum evaluate, as far as is known? Lock held. */
bool engine_draw_evaluates(const struct engine_job *j);
/* Invites the devices with the smallest SHA-256(seed || round || device id) among those noted: how many. Lock held. */
uint32_t engine_draw(struct engine_job *j);
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
bool engine_schedule_blames(
    const struct engine_job *j, const struct invite *v, enum abort_reason reason);
/* What the guard makes of a folded round: into the outcome's rows, job state and schedule. f->schedule is the one before. */
ERR_MUST_USE enum err engine_schedule_plan(const struct services *s, const struct engine_fold *f,
    struct engine_outcome *o, struct why *why);
/* The same of an evaluation after the last round: what it measured counts among the best models, and all else stays. */
void engine_schedule_evaluated(const struct engine_fold *f, struct engine_outcome *o);
/* After the commit. Lock held. */
void engine_schedule_apply(
    struct engine_job *j, const struct engine_fold *f, const struct engine_outcome *o);
/* Reads it from the rows of a job that is being loaded, whose newest row and metric are known. */
ERR_MUST_USE enum err engine_schedule_load(struct store_db *db, struct engine_job *j);
/* May the guard go back to it? Of a job that is over, only its best model is held. Lock held. */
bool engine_schedule_holds_model(const struct engine_job *j, const uint8_t model[32]);
/* Lets the folder, which alone may, forget the states of jobs that are over. Lock held. */
void engine_forget_later(struct engine *g);
/* Of a job that is over: it names none any more. */
void engine_schedule_drop_states(struct engine_job *j);
bool engine_schedule_holds_state(const struct engine_job *j, const uint8_t state[32]);

/* terms.c: what a job is run by. */
/* From now on, also in the open round. Lock held, or nobody else knows the job. */
void engine_terms_take(struct engine *g, struct engine_job *j, const struct override_set *o);
/* A new job gets the defaults of this version, and a row of them with its own. */
void engine_terms_stamp(struct engine_job *j);
ERR_MUST_USE enum err engine_terms_put_stamp(struct store_db *db, const struct engine_job *j);
/* Of its rounds, or of its evaluation. */
struct round_policy engine_terms_policy(const struct engine_job *j, bool evaluates);
/* Reads what was noted beside a job that is being loaded, and what is overridden of it. */
/* What is overridden of a job; empty if there is no row. */
ERR_MUST_USE enum err engine_terms_overrides(
    struct store_db *db, const uint8_t job[16], struct override_set *out, struct why *why);
ERR_MUST_USE enum err engine_terms_load(
    struct engine *g, struct store_db *db, struct engine_job *j, struct why *why);
/* Of "stop", what the job reaches with its round that has closed. Lock held. */
enum after_limit engine_terms_limit(const struct engine *g, const struct engine_job *j);

/* central.c: jobs that a program evaluates. Lock held, but for the first, which reads the registry alone. */
bool engine_central_evaluator(
    struct engine *g, const struct job_spec *spec, const uint8_t device[32]);
/* Is the device one of the job's evaluators? Then it trains nothing of it. */
bool engine_central_of(struct engine *g, const struct engine_job *j, const uint8_t device[32]);
/* Is that the model that it is to measure? */
bool engine_central_reads(struct engine *g, const struct engine_job *j, const uint8_t device[32],
    const uint8_t model[32]);
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

/* share.c: what jobs have had of the devices. Lock held. */
/* A job that is linked, or is to be: from now on it is asked for work. */
void engine_share_join(struct engine *g, struct engine_job *j);
/* It takes tasks again, or takes none. */
void engine_share_wait(struct engine *g, struct engine_job *j, bool waits);
/* The device has the task now; harmless if it had it before. */
void engine_share_begin(struct engine *g, struct engine_job *j, struct invite *v);
/* The task has ended for the device. */
void engine_share_end(struct engine *g, struct engine_job *j, struct invite *v);
/* Of a member of the order. */
struct engine_job *engine_share_job(struct share_member *m);
/* Those of all its invitations have. */
void engine_share_end_all(struct engine *g, struct engine_job *j);
/* The next job of a walk in order, which lets others have the lock now and then: the job's place may change then, so that it is seen
 * twice, or not if it was given use back at that moment. The walk's place: seen is 0 at first. */
struct share_walk {
	unsigned seen;
	struct share_place last;
};
struct engine_job *engine_share_next(struct engine *g, struct share_walk *w);
/* Of the jobs that have an unanswered invitation of this device, the oldest of the highest priority, which is in use then; NULL: none. */
struct engine_job *engine_share_held(struct engine *g, const uint8_t device[32]);
/* Use as the rows of its latest rounds tell, of a job that is being loaded. */
ERR_MUST_USE enum err engine_share_load(struct store_db *db, struct engine_job *j);
/* All are loaded: to the youngest that says too little. */
void engine_share_restart(struct engine *g, struct engine_job *j);

/* view.c. Of a job with work. Lock held. */
struct guard_view engine_view_guard(const struct engine_job *j);

/* past.c: jobs that are over, which have no work. */
/* As its row has it. ERR_NOMEM. */
ERR_MUST_USE enum err engine_past_new(struct engine_job **out, const struct store_past *row);
/* Writes that row, some time. Lock held. */
void engine_past_note(struct engine *g, const struct engine_job *j);
/* Would the job have taken this device? Reads and parses its document: the store is waited for. No lock. */
bool engine_past_selects(
    struct engine *g, const uint8_t job[16], const uint8_t device[32], uint64_t *read);

/* owner.c */
/* Memory that a job with work takes while it is not over, as [limits] owner_document_bytes counts it. */
uint64_t engine_owner_bytes(const struct engine_job *j);
/* ERR_OK: the document is a job of who submits it, or of anybody where an administrator does; ERR_NOTFOUND: none yet; ERR_EXISTS:
 * somebody else's. */
ERR_MUST_USE enum err engine_owner_find(struct engine *g, const struct engine_document *document,
    const uint8_t id[16], struct why *why);
/* ERR_STATE: the document's job was deleted; ERR_EXISTS: it was another owner's. */
ERR_MUST_USE enum err engine_owner_deleted(
    struct store_db *db, const uint8_t id[16], const uint8_t owner[32], struct why *why);
/* jobs.c. Can the job's aggregation rule work with so many reports? ERR_INVALID. No lock. */
ERR_MUST_USE enum err engine_rule_takes(
    const struct job_spec *spec, const struct round_spec *round, struct why *why);

/* May its owner have this job, which is complete but for its rows, too? Then its place is reserved, unless r only asks. bounded:
 * [limits] owner_* hold.
 * ERR_DENIED names the limit and what to do; ERR_INVALID: too many jobs of all. No lock. */
ERR_MUST_USE enum err engine_owner_takes(struct engine *g, const struct engine_job *j, bool bounded,
    struct engine_reservation *r, struct why *why);
/* May an owner that is bounded change the job's terms so? Then what it is to have more is reserved. ERR_DENIED names the limit and what
 * to do. The job is in use. No lock. */
ERR_MUST_USE enum err engine_owner_changes(struct engine *g, const struct engine_job *j,
    const struct job_terms *was, const struct job_terms *to, struct engine_reservation *r,
    struct why *why);
/* As engine_owner_release, with the lock held: together with what then counts in its place. */
void engine_owner_end(struct engine *g, struct engine_reservation *r);

/* Did a person pause it? Lock held. */
bool engine_paused_by_hand(const struct engine_job *j);

/* view.c: whether jobs move. No lock; looks once in a second. */
void engine_view_stuck(struct engine *g, uint64_t now_ms);
/* The open round is opened again: what came of the tasks that brought no report, and whose they were. Lock held. */
void engine_view_reopened(struct engine_job *j);
/* The job is over, or was paused or resumed: what was said of it holds no longer. Lock held. */
void engine_view_unstuck(struct engine *g, struct engine_job *j);

/* view.c. Whom the job, which does not change, can reach now. */
void engine_reach_of(struct engine *g, const struct engine_job *j, struct engine_reach *out);

/* forecast.c. Lock held. */
struct job_forecast engine_forecast(const struct config *c, const struct engine_job *j);
/* The document's "keep", with what the configuration says where it says nothing. */
struct keep_spec engine_forecast_keep(const struct config *c, const struct engine_job *j);
/* Bytes of the models that "keep" holds of a job after so many rounds; 0 is without an end: UINT64_MAX. */
uint64_t engine_forecast_kept(const struct config *c, const struct engine_job *j, uint64_t rounds);
/* Of a job that is in no list: without the lock. */
void engine_forecast_new(struct engine *g, const struct engine_job *j, struct engine_trial *out);

/* engine_offer.c: what a device says against what a job needs. */
/* Does a list of the offer hold this name? */
bool engine_offer_names(const message_name *list, size_t count, const char *name);
/* Why the device's owner gives it no work now; WAIT_NONE: it is ready. A word of the owner's own counts as WAIT_CHECK. */
enum wait_reason engine_offer_unready(const struct offer *o);
/* Why the device cannot do tasks of this kind for the job. */
enum wait_reason engine_offer_lacks(
    const struct engine_job *j, const struct offer *o, enum task_kind kind);
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
/* Does a manifest say more steps than its task gave? Lock held. */
enum problem_type engine_claim_steps(
    const struct engine_job *j, const struct manifest *m, struct why *why);
/* Does it draw a share where it has more examples than a task allows? */
bool engine_offer_draws(const struct offer *o);
/* Does the device want none of the job's tasks for a while, because one failed there? */
bool engine_offer_rests(const struct offer *o, const struct engine_job *j);
/* Has the device done this task already, and waits to send the delta? */
bool engine_offer_unsent(const struct offer *o, const char *task);

/* offer.c: who cannot hold the job's tasks. Lock held, but for the first. */
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

/* offer.c: the differences between a job's newest models. */
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
