#ifndef JOB_LIST_H
#define JOB_LIST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "states.h"
#include "wait_reason.h"

struct config;
struct engine_fold;
struct engine_outcome;
struct engine_report;
struct engine_reservation;
struct job_spec;
struct services;
struct store_db;
struct store_job;
struct store_past;
struct store_round;
struct tails;

/*
 * The jobs and their rounds. One lock, held for microseconds, never across I/O, crypto or disk: what must block is handed
 * to the store, the folder or done by the caller on a worker. Any thread.
 */
struct engine;
struct job;

/* Loads jobs and open rounds; deltas accepted before a restart are counted, their files checked. task_key: 32 bytes. */
ERR_MUST_USE enum err jobs_new(struct engine **out, const struct services *services,
    const uint8_t task_key[32], struct why *why);
void jobs_free(struct engine *g);

/* --- the set (list.c). Lock held, where nothing else is said. */

#define ENGINE_JOBS_MAX 4096
/* Not one that is gone. */
struct job *jobs_find(const struct engine *g, const uint8_t id[16]);
/* The next one of a walk over all jobs, which lets others have the lock now and then: what is to be decided about all of them at one
 * moment needs a loop of its own. seen: the walk's, 0 at first. Lock held. */
struct job *jobs_next(struct engine *g, struct job *j, unsigned *seen);
/* Links a complete job into the list. Lock held. */
void jobs_link(struct engine *g, struct job *j);
/* Frees the jobs that are gone and used by nobody. Lock held. */
void jobs_drop_gone(struct engine *g);

/* The lock of all that is known of jobs, for memory only. */
void jobs_lock(struct engine *g);
void jobs_unlock(struct engine *g);
/* A walk that gives the lock to nobody. */
struct job *jobs_first(const struct engine *g);
struct job *jobs_after(const struct job *j);
size_t jobs_count(const struct engine *g);
/* A job in use (jobs_share_held) may go. */
void jobs_leave(struct job *j);
/* The job stays while it is read without the lock, and nothing of it goes. */
void jobs_read_begin(struct job *j);
void jobs_read_end(struct engine *g, struct job *j);

/* What the four rooms work with; any may be NULL that may be so in struct services. */
struct engine_uses {
	struct shared *config;
	const struct config *fixed;
	struct store *store;
	struct registry *registry;
	struct models *models;
	struct spool *spool;
	struct archive *archive;
	struct age *age;
	struct spent *spent;
	struct health *health;
	struct budget *budget;
	struct evalsets *sets;
	struct stop *stop;
	const struct wake *wake;
};
struct engine_uses jobs_uses(const struct engine *g);
/* Its registry, for walks over all jobs; its workers. */
struct registry *jobs_registry(const struct engine *g);
struct worker_pool *jobs_pool(const struct engine *g);
/* For who records and logs on behalf of the coordinator. */
const struct services *jobs_services(const struct engine *g);
/* What is counted, to be changed by who has the lock. */
struct engine_report *jobs_counts(struct engine *g);
void jobs_report(struct engine *g, struct engine_report *out);
struct tails *jobs_tails(struct engine *g); /* no lock: they have one of their own */
/* What owners are about to have: engine/owner.c keeps it. */
struct engine_reservation **jobs_reserved(struct engine *g);

/* Does somebody delete it? */
bool jobs_is_deleting(const struct job *j);
void jobs_set_deleting(struct job *j, bool deleting);
/* It is deleted: nobody finds it any more. */
void jobs_forget(struct engine *g, struct job *j);
/* The time by which those are dated that ended while the clock was doubted. */
void jobs_date_ends(struct engine *g, double now);
/* What was set aside makes way for the same job, loaded again. */
void jobs_replace(struct engine *g, struct job *old, struct job *j);

/* --- a job of its own (job.c, load.c, past.c) */

/* One without work; NULL: no memory. */
struct job *job_blank(const uint8_t id[16]);
/* Makes an in-memory job from its document and base model: parses, reads the model's table, assigns roles. No lock. */
ERR_MUST_USE enum err jobs_read(
    struct job **out, const uint8_t id[16], const char *text, size_t len, struct why *why);
/* A job once more, in no list and known to nobody. No lock. */
ERR_MUST_USE enum err jobs_load_one(struct engine *g, const uint8_t id[16], struct job **out);
/* What only its rounds need goes. */
void job_empty(struct job *j);
void job_free(struct job *j);
/* Frees what only rounds need, once none of them comes, and notes in the store what is left: a start reads no more of the job. Lock
 * held. */
void jobs_shrink(struct engine *g, struct job *j);
/* As its row has it. ERR_NOMEM. */
ERR_MUST_USE enum err jobs_past_new(struct job **out, const struct store_past *row);
/* Writes that row, some time. Lock held. */
void jobs_past_note(struct engine *g, const struct job *j);

/* Does its open round make no model, but evaluate one? Lock held. */
bool job_evaluates(const struct job *j);
/* The row of the job's next round, or of its first. */
void job_open_row(
    struct store_round *r, const struct job *j, uint64_t round, const uint8_t base[32]);

/* A job's guard, as it is shown. */
struct guard_view {
	uint32_t bad, rollbacks;
	uint64_t base_round;
	bool has_best; /* then: */
	uint64_t best_round;
	uint8_t best_model[32];
	double best_value;
};

/* --- who may work on it (select.c). Lock held, where no job is named by its id alone. */

/* Does a job want the device to train: is it selected, and none of the job's evaluators? */
bool jobs_selects(
    struct engine *g, const uint8_t job[16], const struct job_spec *spec, const uint8_t device[32]);
/* Why this device may not work on the job at all. Lock held. */
enum wait_reason jobs_ineligible(struct engine *g, const struct job *j, const uint8_t device[32]);
/* Does the document name the device as one whose program evaluates? Reads the registry alone. */
bool jobs_evaluator(struct engine *g, const struct job_spec *spec, const uint8_t device[32]);
/* Is the device one of the job's evaluators? Then it trains nothing of it. */
bool jobs_evaluator_of(struct engine *g, const struct job *j, const uint8_t device[32]);
/* Has the device work to do for it? Lock held. */
bool jobs_concerns(struct engine *g, const struct job *j, const uint8_t device[32]);
/* Would the job have taken this device? Reads and parses its document: the store is waited for. No lock. */
bool jobs_past_selects(
    struct engine *g, const uint8_t job[16], const uint8_t device[32], uint64_t *read);
/* Is that the model that the device is to measure? */
bool jobs_evaluator_reads(
    struct engine *g, const struct job *j, const uint8_t device[32], const uint8_t model[32]);

/* --- what its rounds come to (outcome.c). Lock held. */

/* Of a job that is in no list. */
void jobs_set_owner(struct job *j, const uint8_t owner[32]);
/* The first round: from now on it may be linked. No lock. */
void jobs_begin(struct job *j, const struct store_job *row, const struct store_round *first,
    const uint8_t model[32]);
void jobs_take_result(
    struct engine *g, struct job *j, const struct engine_fold *f, const struct engine_outcome *o);
/* The next one begins; ended: what the one before it came to. */
void jobs_open_next(struct job *j, const struct store_round *row, const uint8_t ended[32]);
void jobs_count_bytes(struct job *j, uint64_t up, uint64_t down);
void jobs_note_reports(struct job *j, uint64_t reports);
void jobs_note_unmeasured(struct job *j, const char *why);

/* --- its state (state.c) */

/* Inside a transaction: a job's new state, and its entry in the audit log. A job that is over stays as it is. *was: what it was. */
struct engine_change {
	const uint8_t *job;
	enum job_state state;
	const char *reason;
	const char *by; /* who wanted it; NULL: the coordinator itself */
	double at; /* as age_stamp says */
};
ERR_MUST_USE enum err jobs_change_state(struct store_db *db, const struct services *s,
    const struct engine_change *c, enum job_state *was, struct why *why);
/* Is the job running or paused? What is made for its sake alone need not be, once it is over. */
bool jobs_lives(struct engine *g, const struct job *j);
/* Changes the job's state in memory and logs it. Lock held. */
void jobs_note_state(struct engine *g, struct job *j, enum job_state state, const char *reason);
/* Changes the job's state in memory and (queued) in the store. Lock held. */
void jobs_set_state(struct engine *g, struct job *j, enum job_state state, const char *reason);
/* The reason of a state that a person brought about. */
const char *jobs_by_hand(enum job_state state);
/* Did a person pause it? Lock held. */
bool jobs_paused_by_hand(const struct job *j);

/* A reason in the coordinator's own words, and devices, as many as are told of. */
#define ENGINE_UNMEASURED_MAX 200
#define ENGINE_DEVICES_SHOWN 20
/* A file that a job needs and that is gone, damaged, or cannot be read. */
enum engine_lack_kind { LACKS_NOTHING, LACKS_MODEL, LACKS_STATE, LACKS_DELTA };
struct engine_lack {
	enum engine_lack_kind kind;
	uint8_t id[32]; /* of a delta: its task, and zeros */
};
/* It waits for this; of no kind, for nothing that can be looked at. Lock held. */
void jobs_lack_is(struct engine *g, struct job *j, const struct engine_lack *lack);
/* Its state stays; the reason is another. Lock held. */
void jobs_note_reason(struct job *j, const char *reason);
/* A person decides about the job: it waits for no file any more. Lock held. */
void jobs_lack_nothing(struct engine *g, struct job *j);

#endif
