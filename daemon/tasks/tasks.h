#ifndef TASKS_H
#define TASKS_H
#include "abort_reason.h"
#include "figure_set.h"
#include "job_list.h"
#include "manifest.h"
#include "messages.h"
#include "problem.h"
#include "row.h"
#include "tails.h"

struct engine_fold;

/* Tasks of devices: asked for, answered, given back. Any thread. */

/* What a device gets: a task, or wait with a reason. The caller ends it with messages_task_deinit. */
void tasks_ask(
    struct engine *g, const uint8_t device[32], const struct offer *offer, struct task *out);
/* A task of steps that the coordinator decided goes out only once this row of it is durable; false: it is, or there is none to be. */
bool tasks_size_missing(
    struct engine *g, const uint8_t device[32], const struct task *task, struct store_sized *out);
/* After its commit. */
void tasks_size_stored(struct engine *g, const struct store_sized *row);
/* The same of a task of a buffered job, which counts as out after a restart, too. */
bool tasks_out_missing(
    struct engine *g, const uint8_t device[32], const struct task *task, struct store_out *out);
void tasks_out_stored(struct engine *g, const struct store_out *row);
/* Does a running job's round want a delta that the spool's quota has no room for? Its devices are told spool-full. */
bool tasks_spool_full(struct engine *g);

/* A delta on its way: filled by tasks_claim, passed along until settled. */
struct engine_claim {
	enum task_kind kind;
	uint8_t job_id[16], task[16], device[32];
	uint8_t base[32]; /* the model that it starts from, or measures */
	uint64_t round, examples;
	bool
	    central; /* of a job that a program evaluates: it is no report of the round, but of the model that this makes */
	bool late; /* the task's round is over */
	bool fresh; /* set by tasks_take: no task that was out is answered by it */
	uint64_t folded; /* set by tasks_take: the round that it goes into, */
	/* and how fast the device was; seconds 0: it is not known when it got the task. The upload's part and the time are the caller's. */
	struct store_speed speed;
	uint64_t
	    given_ms; /* set by tasks_take: when the task went out, by clock_ms; 0: it is not known */
	uint16_t codec; /* enum codec_id */
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
enum problem_type tasks_claim(struct engine *g, const struct manifest *m, const uint8_t device[32],
    const char *path_task, struct engine_claim *out, struct why *why);
/* The same for the report beside the manifest. */
enum problem_type tasks_claim_report(
    const struct engine_claim *claim, const struct report *r, struct why *why);
/* Inside the accepting transaction. ERR_OK: the delta may be accepted, and tasks_settle must follow. ERR_STATE: the round has
 * closed or has a delta of the device; ERR_AGAIN: the device has as many in this round and the next as it may; ERR_DENIED: the device is
 * no longer active; ERR_NOMEM. */
ERR_MUST_USE enum err tasks_take(struct engine *g, struct engine_claim *claim);
void tasks_settle(
    struct engine *g, const struct engine_claim *claim, bool durable, uint64_t body_bytes);
/* Counts bytes of a base model or its state sent to devices. */
void tasks_count_down(struct engine *g, const uint8_t model[32], uint64_t bytes);

/* ERR_NOTFOUND if the device holds no such task. log: what it says of it, may be NULL. */
ERR_MUST_USE enum err tasks_abort(struct engine *g, const uint8_t device[32], const char *task,
    struct abort_cause cause, const char *log);
/* The last tasks of a job that devices gave back, as tails_of. */
size_t tasks_tails(struct engine *g, const uint8_t job[16], struct tail out[TAILS_OF_JOB]);
/* A device is here no more, for the reason that the word says: others may have the places of all its tasks. */
void tasks_device_gone(struct engine *g, const uint8_t device[32], const char *word);
/* A device is erased: so is what it said, and how fast it was. */
void tasks_forget(struct engine *g, const uint8_t device[32]);

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
size_t tasks_refusals(
    struct engine *g, const uint8_t job[16], struct engine_refusal out[ENGINE_REFUSALS]);
size_t tasks_refusals_of(
    struct engine *g, const uint8_t device[32], struct engine_refusal out[ENGINE_REFUSALS]);

/* --- for the folder: the model of a round that a program measures */

/* A round's new model waits for the report of a program (EVALUATE_PROGRAM): it is there to be fetched, and evaluators get tasks. */
void tasks_central_begin(
    struct engine *g, const struct engine_fold *f, const uint8_t model[32], uint64_t bytes);
enum engine_central_state {
	CENTRAL_WAITS,
	CENTRAL_REPORTED, /* the report is durable: store_evaluation_get */
	CENTRAL_LATE, /* evaluate.deadline_s is over */
	CENTRAL_OVER, /* the job is */
};
enum engine_central_state tasks_central_look(struct engine *g, const struct engine_fold *f);
/* Who or what it waits for in vain, as far as that is known; "": nothing speaks against a report. Looks at every device. */
void tasks_central_why(
    struct engine *g, const struct engine_fold *f, char out[ENGINE_UNMEASURED_MAX]);
/* Shows that with the job. */
void tasks_central_tell(struct engine *g, const struct engine_fold *f);
void tasks_central_end(struct engine *g, const struct engine_fold *f);

#endif
