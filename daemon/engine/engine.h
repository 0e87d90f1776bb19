#ifndef ENGINE_H
#define ENGINE_H
#include "after.h"
#include "fold_cost.h"
#include "messages.h"
#include "override.h"
#include "tails.h"
#include "view.h"

struct manifest;
struct services;
struct store_db;

/*
 * The jobs and their rounds. One lock, held for microseconds, never across I/O, crypto or disk: what must block is handed
 * to the store, the folder or done by the caller on a worker. Any thread.
 */
struct engine;
struct engine_report; /* report.h */
struct engine_fold;
struct engine_job;

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

/* What a device gets: a task, or wait with a reason. The caller ends it with messages_task_deinit. */
void engine_ask(
    struct engine *g, const uint8_t device[32], const struct offer *offer, struct task *out);
/* A task of steps that the coordinator decided goes out only once this row of it is durable; false: it is, or there is none to be. */
bool engine_size_missing(
    struct engine *g, const uint8_t device[32], const struct task *task, struct store_sized *out);
/* After its commit. */
void engine_size_stored(struct engine *g, const struct store_sized *row);
/* The same of a task of a buffered job, which counts as out after a restart, too. */
bool engine_out_missing(
    struct engine *g, const uint8_t device[32], const struct task *task, struct store_out *out);
void engine_out_stored(struct engine *g, const struct store_out *row);
/* Does a running job's round want a delta that the spool's quota has no room for? Its devices are told spool-full. */
bool engine_spool_full(struct engine *g);

/* A reason in the coordinator's own words, and devices, as many as are told of. */
#define ENGINE_UNMEASURED_MAX 200
#define ENGINE_DEVICES_SHOWN 20

/* A delta on its way: filled by engine_claim, passed along until settled. */
struct engine_claim {
	enum task_kind kind;
	uint8_t job_id[16], task[16], device[32];
	uint8_t base[32]; /* the model that it starts from, or measures */
	uint64_t round, examples;
	bool
	    central; /* of a job that a program evaluates: it is no report of the round, but of the model that this makes */
	bool late; /* the task's round is over */
	bool fresh; /* set by engine_take: no task that was out is answered by it */
	uint64_t folded; /* set by engine_take: the round that it goes into, */
	/* and how fast the device was; seconds 0: it is not known when it got the task. The upload's part and the time are the caller's. */
	struct store_speed speed;
	uint64_t elements, payload_bytes;
	uint64_t entries; /* codec_params.entries */
	double max_norm;
	uint64_t max_examples;
	float accuracy; /* of the manifest */
	bool has_layers; /* its loss is one that this coordinator knows */
	struct figure_set figures; /* what its report must count, */
	size_t class_count; /* of so many classes */
};
/* Checks everything about a manifest but its signature: device, job, task, round, base, codec, size, examples. path_task is
 * the task in the URL. Why it may not come, with why. A delta
 * accepted before is PROBLEM_USED_TASK. */
enum problem_type engine_claim(struct engine *g, const struct manifest *m, const uint8_t device[32],
    const char *path_task, struct engine_claim *out, struct why *why);
/* The same for the report beside the manifest. */
enum problem_type engine_claim_report(
    const struct engine_claim *claim, const struct report *r, struct why *why);
/* Inside the accepting transaction. ERR_OK: the delta may be accepted, and engine_settle must follow. ERR_STATE: the round has
 * closed or has a delta of the device; ERR_AGAIN: the device has as many in this round and the next as it may; ERR_DENIED: the device is
 * no longer active; ERR_NOMEM. */
ERR_MUST_USE enum err engine_take(struct engine *g, struct engine_claim *claim);
void engine_settle(
    struct engine *g, const struct engine_claim *claim, bool durable, uint64_t body_bytes);
/* ERR_NOTFOUND if the device holds no such task. log: what it says of it, may be NULL. */
ERR_MUST_USE enum err engine_abort(struct engine *g, const uint8_t device[32], const char *task,
    struct abort_cause cause, const char *log);
/* The last tasks of a job that devices gave back, as tails_of. */
size_t engine_tails(struct engine *g, const uint8_t job[16], struct tail out[TAILS_OF_JOB]);
/* A device that cannot hold a job's tasks, by its own word. */
#define ENGINE_REFUSALS 20 /* shown at most */
struct engine_refusal {
	uint8_t device[32];
	uint8_t kind; /* enum task_kind; with the device, what it is found by */
	uint8_t job[16];
	uint64_t print; /* of the offer that it stands for */
	uint64_t needed_bytes, memory_bytes;
	double at; /* Unix time */
};
/* The first of a job, by device and kind; those of a device, by job. How many there are in out. */
size_t engine_refusals(
    struct engine *g, const uint8_t job[16], struct engine_refusal out[ENGINE_REFUSALS]);
size_t engine_refusals_of(
    struct engine *g, const uint8_t device[32], struct engine_refusal out[ENGINE_REFUSALS]);
/* A device is erased: so is what it said, and how fast it was. */
void engine_forget(struct engine *g, const uint8_t device[32]);
/* A device is here no more, for the reason that the word says: others may have the places of all its tasks. */
void engine_device_gone(struct engine *g, const uint8_t device[32], const char *word);
/* Counts bytes of a base model or its state sent to devices. */
void engine_count_down(struct engine *g, const uint8_t model[32], uint64_t bytes);
/* May this device fetch this model: is it the base of a job it may work on? *read, unless NULL: bytes of documents of jobs that are
 * over which had to be read and parsed are added, here and below. */
bool engine_may_read(
    struct engine *g, const uint8_t device[32], const uint8_t model[32], uint64_t *read);

/* May this device fetch this state: does the open round of a job with control variates that it may work on start from it? */
bool engine_variate_may_read(struct engine *g, const uint8_t device[32], const uint8_t hash[32]);
/* Does a running or paused job with control variates count this device? What it counts is known from the device's reports. */
bool engine_variate_holds(struct engine *g, const uint8_t device[32]);

/* Does a job want the device to train: is it selected, and none of the job's evaluators? */
bool engine_selects(
    struct engine *g, const uint8_t job[16], const struct job_spec *spec, const uint8_t device[32]);
/* May this device work on the job at all? Then it may read the job's models. */
bool engine_may_work(
    struct engine *g, const uint8_t device[32], const uint8_t job[16], uint64_t *read);

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
    const struct services *services, struct store_db *db, const struct engine_spending *s);

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
/* Resumes (JOB_RUNNING), pauses or stops a job; one that is so already stays as it is, and nothing is written. by: who gives it, for
 * the audit log, or NULL. ERR_NOTFOUND, ERR_STATE. */
ERR_MUST_USE enum err engine_command(
    struct engine *g, const uint8_t id[16], enum job_state to, const char *by, struct why *why);
/* The same by an owner who is bounded: what is to be resumed is spent first. ERR_AGAIN */
ERR_MUST_USE enum err engine_command_of(struct engine *g, const uint8_t id[16], enum job_state to,
    const char *by, struct engine_spending *spending, struct why *why);

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

/* Stops all jobs of an owner that are not over; *count of them, also after a failure. */
ERR_MUST_USE enum err engine_stop_of(
    struct engine *g, const uint8_t owner[32], const char *by, uint64_t *count, struct why *why);

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

void engine_report(struct engine *g, struct engine_report *out);

/* --- views; device NULL: of everything, else of what this device may see */

#define ENGINE_SLICE 32
/* Zero at first, but for the device. */
struct engine_slice {
	const uint8_t *device;
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
/* The devices whose programs evaluate a job's models. */
struct engine_evaluators {
	bool by_program; /* else there are none to be, and all else is zero */
	uint64_t devices, suspended; /* named, or labelled so; active, and suspended */
	uint64_t heard; /* of the active ones: asked for work lately; */
	uint64_t ready; /* with a program that evaluates for the trainer */
	char wanted[256]; /* the first names or labels that the job wants, */
	char trainer[RECIPE_NAME_MAX];
	char first[RECIPE_NAME_MAX + 1]; /* and the first device that is there */
};
/* Looks at every device. No lock. */
void engine_central_count(
    struct engine *g, const struct job_spec *spec, struct engine_evaluators *out);
/* Whose program is missing, in words; false: there is one. */
bool engine_central_missing(char out[ENGINE_UNMEASURED_MAX], const struct engine_evaluators *e);

/* Whom a job can reach now. */
struct engine_reach {
	struct engine_evaluators evaluators;
	struct round_spec round; /* in force; goal 0: of a job that is over nothing is known */
	uint64_t devices; /* active, and selected by the job */
	uint64_t suspended; /* selected likewise, but not active */
	uint64_t lately; /* of the active ones: not silent; */
	uint64_t heard; /* asked for work within some minutes, */
	uint64_t with_data; /* and offered the job's data set with as many examples as it wants */
	uint64_t with_trainer; /* likewise, its trainer */
	uint64_t
	    drawn; /* of those with the data: they have more examples than the job lets them claim, and draw a share, */
	uint64_t too_many; /* or cannot: they get no task */
	uint64_t without_figures; /* of those with the trainer: it does not give those asked for */
	uint64_t most; /* examples that may be claimed */
	struct data_spec data; /* of it name and examples alone; no name: the job needs none */
	char trainer[RECIPE_NAME_MAX];
	const char *warning; /* recipe_warning of it */
};
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

/* How many jobs are said not to move, by why. */
void engine_stuck(struct engine *g, uint64_t out[STUCK_KINDS]);

/* What would come of a document. */
struct engine_trial {
	bool exists; /* it is a job already: what follows is of this one */
	struct job_view job; /* of a new one id, name, parameters, model_bytes and forecast */
	struct engine_reach reach; /* all zero of a job that is over */
};
/* As engine_submit, with its errors, but for that nothing is submitted. */
ERR_MUST_USE enum err engine_try(struct engine *g, const struct engine_document *document,
    struct engine_trial *out, struct why *why);
/* Live counts of a job's open round into a row read from the store. */
void engine_fill_open(struct engine *g, struct store_round *r);

/* --- for the folder */

/* What a closing round is folded from; a copy, except spec and table, which stay until engine_fold_end. */
struct engine_fold {
	/* NULL: nothing is to be folded, but states of jobs that are over may be forgotten. */
	struct engine_job *job;
	uint8_t job_id[16], owner[32];
	char job_hex[33];
	const struct job_spec *spec;
	const struct tensor_table *table;
	struct fold_cost cost; /* of memory and time */
	struct store_round row; /* base, optimizer_state of the base, opened_at, counts */
	uint64_t bytes_down;
	enum after_limit limit; /* that the job reaches with this round */
	struct job_stamp stamp; /* noted beside the document; spec has it */
	struct override_set overrides; /* in force as it closed */
	double evaluate_deadline_s; /* likewise, */
	uint32_t quorum; /* and of reports */
	/* Above 0: so many devices found the base to give none, and the round has failed. */
	uint32_t no_numbers;
	bool
	    lacks; /* fewer reports than the quorum: so it is with an evaluation whose deadline is over */
	struct schedule_state schedule; /* before this round */
	struct best best; /* likewise */
	uint64_t measured; /* buffered, by devices: the last round whose base has a figure */
};
/* A file that a job needs and that is gone, damaged, or cannot be read. */
enum engine_lack_kind { LACKS_NOTHING, LACKS_MODEL, LACKS_STATE, LACKS_DELTA };
struct engine_lack {
	enum engine_lack_kind kind;
	uint8_t id[32]; /* of a delta: its task, and zeros */
};
/* Whoever opened such a file says why that failed. Jobs whose open round needs it wait, in memory only, until it is there and sound
 * again: engine_look_after looks. Failures that pass with the machine's are not meant, but for those of the disk. */
void engine_lacks(
    struct engine *g, const struct engine_lack *lack, enum err e, const struct why *why);
/* Looks, on a worker, whether files that jobs wait for are back; whether those that open rounds start from are still there and as
 * they were; and at models that devices call damaged. Call every few seconds. */
void engine_look_after(struct engine *g);
/* A round's new model waits for the report of a program (EVALUATE_PROGRAM): it is there to be fetched, and evaluators get tasks. */
void engine_central_begin(
    struct engine *g, const struct engine_fold *f, const uint8_t model[32], uint64_t bytes);
enum engine_central_state {
	CENTRAL_WAITS,
	CENTRAL_REPORTED, /* the report is durable: store_evaluation_get */
	CENTRAL_LATE, /* evaluate.deadline_s is over */
	CENTRAL_OVER, /* the job is */
};
enum engine_central_state engine_central_look(struct engine *g, const struct engine_fold *f);
/* Who or what it waits for in vain, as far as that is known; "": nothing speaks against a report. Looks at every device. */
void engine_central_why(
    struct engine *g, const struct engine_fold *f, char out[ENGINE_UNMEASURED_MAX]);
/* Shows that with the job. */
void engine_central_tell(struct engine *g, const struct engine_fold *f);
void engine_central_end(struct engine *g, const struct engine_fold *f);
/* Is the job running or paused? What is made for its sake alone need not be, once it is over. */
bool engine_job_lives(struct engine *g, const struct engine_job *j);
/* What comes of it. */
struct engine_outcome {
	struct store_round row; /* committed or failed */
	uint8_t measured_base[32]; /* the base of round row.measured, if that is not 0 */
	double fold_seconds; /* from the first delta to the model's metric */
	uint64_t model_bytes;
	uint64_t difference_bytes; /* of the file that leads from base to model; 0: there is none */
	struct after after; /* set by engine_plan: if the next round begins, */
	struct store_round next; /* this is its row */
	struct schedule_state schedule; /* set by engine_plan: after this round, */
	struct schedule_turn turn; /* and how it goes on */
	char unmeasured
	    [ENGINE_UNMEASURED_MAX]; /* why the model has no figure, where it was to have one */
	bool best_changed; /* set by engine_plan: to */
	struct best best;
	uint64_t next_bytes; /* set by engine_plan: of the next round's base */
};
/* Decides what follows a folded round, so that it can be committed together with it. Fails if the model that a guard goes back
 * to is not known. */
ERR_MUST_USE enum err engine_plan(
    struct engine *g, const struct engine_fold *f, struct engine_outcome *o, struct why *why);
/* May retention remove this model? Not if it is one that [retention] keeps of its job, if a job starts its open round from it, ends
 * in it, or has a guard that may go back to it; nor if its job is not known, or could not be read. */
bool engine_lets_go(struct engine *g, const struct store_model *m);
/* Does a job need this model: for its open round, its guard, or as what it has come to? */
bool engine_uses_model(struct engine *g, const uint8_t model[32]);
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
/* The file of a model that was made for a row that did not come, unless a row says that it is somebody's all the same: uploaded, or of
 * the same job, submitted twice. Waits for the store. */
void engine_drop_leftover(const struct services *s, const uint8_t model[32]);
/* The difference that leads to this model goes: no more tasks name it. */
void engine_steps_gone(struct engine *g, const uint8_t job[16], const uint8_t model[32]);
/* The fold itself failed. If that passes (health_passes) and is no fault of the file in *lack, the round is folded again after a pause;
 * else (a delta or model that is damaged or cannot be read) the job waits, or is paused, with the reason, and the round stays open. */
void engine_fold_failed(struct engine *g, const struct engine_fold *f,
    const struct engine_lack *lack, enum err e, const struct why *why);
/* Whoever got f from engine_start's fold is done with it, and with what belongs to its round. */
void engine_fold_end(struct engine *g, const struct engine_fold *f);
/* What failed may work now: rounds that wait to be folded again wait no longer. */
void engine_retry(struct engine *g);

#endif
