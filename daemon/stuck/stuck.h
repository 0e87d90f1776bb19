#ifndef STUCK_H
#define STUCK_H
#include "device_status.h"
#include "states.h"

/*
 * Can a job make progress? One verdict from all that the coordinator knows of the job: why not, and what a person can do. The facts come
 * from the engine, which looks every second; no function here reads a clock, takes a lock or allocates.
 */
enum stuck_kind {
	STUCK_NONE, /* the job makes progress, or nothing speaks against it */
	STUCK_PAUSED, /* by hand */
	/* Paused by the coordinator: failed rounds, the job's guard, a fold that could not be made. */
	STUCK_HALTED,
	STUCK_SET_ASIDE, /* a file that the job starts from is missing or damaged */
	STUCK_NOT_READY, /* the coordinator hands out no tasks: its disk, database, memory, descriptors */
	STUCK_FOLD, /* the job's closed round cannot be folded */
	STUCK_SPOOL_FULL,
	/* The coordinator's data set, or the devices, that evaluate the job's models are missing. */
	STUCK_NO_EVALUATION,
	STUCK_NO_DEVICES, /* no device that the job selects has joined */
	STUCK_SUSPENDED, /* the devices that the job selects are suspended */
	STUCK_SILENT, /* devices that could work on the job do not ask for work */
	STUCK_NO_DATA, /* devices lack the data set */
	STUCK_NO_TRAINER, /* devices lack the trainer */
	STUCK_OLD_AGENT, /* the devices' agents do not know what the document asks for */
	STUCK_NO_MEMORY, /* devices lack the memory */
	STUCK_JOB_FULL, /* all the job's control variates belong to other devices */
	STUCK_OWNERS, /* the devices' owners: the limits they set, or a refusal by hand */
	STUCK_GAVE_UP,
	STUCK_TOO_SLOW, /* tasks are not answered before the deadline */
	STUCK_TOO_FEW, /* devices, for no single reason */
	STUCK_KINDS,
};

/* The word for a kind; "" for STUCK_NONE. */
const char *stuck_name(enum stuck_kind kind);
/* What a person can do: a sentence without its period; "" for STUCK_NONE. */
const char *stuck_advice(enum stuck_kind kind);

/* The devices that a job selects. */
struct stuck_reach {
	uint64_t devices; /* active devices */
	uint64_t heard; /* active devices that asked for work lately */
	uint64_t suspended; /* suspended devices */
};

/* How often in a row a round was opened again for one reason. */
struct stuck_reopened {
	uint64_t round;
	uint32_t accepted; /* reports when it was opened again the last time */
	uint32_t tasks[STUCK_KINDS]; /* tasks that had brought no report then, by the reason */
	enum stuck_kind why; /* the reason of most of these tasks */
	uint32_t times; /* how often in a row for the reason `why` and with no further report */
};
/* Why a job is stuck when devices give up its tasks for this reason. */
enum stuck_kind stuck_of_abort(enum abort_reason r);
/* Notes that the round was opened again. If a report came since the last time, the count begins anew. */
void stuck_reopen(
    struct stuck_reopened *r, uint64_t round, uint32_t accepted, const uint32_t tasks[STUCK_KINDS]);

struct stuck_facts {
	enum job_state state;
	const char *reason; /* the reason in the job's row */
	bool by_hand; /* `reason` says that a person paused the job */
	bool aside; /* the job is set aside: STUCK_SET_ASIDE */
	enum wait_reason unready; /* why the coordinator is not ready; WAIT_NONE: it is */
	const char *detail; /* the words for `unready` */
	bool evaluates; /* the open round makes no model */
	const char *evaluation; /* why the last models have no figures; "": they have */
	uint32_t fold_failures; /* failed folds of the present round in a row */
	bool is_open; /* the round takes reports; the members below are of that round */
	uint64_t round;
	uint32_t quorum; /* reports needed, of which one device may give per_device */
	uint32_t per_device;
	uint32_t accepted, out; /* reports accepted; tasks that may still bring one */
	double deadline_s;
	const struct stuck_reopened *reopened; /* may be of another round */
	struct device_status status; /* the devices' status in the job */
	uint64_t elsewhere; /* tasks of other jobs that devices hold */
	bool knows_reach;
	struct stuck_reach reach;
};
/* Does the verdict need f->reach? */
bool stuck_wants_reach(const struct stuck_facts *f);

#define STUCK_REASON_MAX 384
struct stuck {
	enum stuck_kind kind;
	char reason[STUCK_REASON_MAX];
};
/* The verdict of these facts alone. Returns how long, in ms, facts must have given this verdict before it is shown. */
uint32_t stuck_judge(const struct stuck_facts *f, struct stuck *out);

/* The verdict over time, so that each is announced once and stays until it is over. Zero at first. */
struct stuck_watch {
	struct stuck said; /* the verdict that is shown now */
	double since; /* since when `said` is shown; set by the caller */
	enum stuck_kind seen; /* the kind of the last facts' verdict */
	uint64_t seen_ms; /* since when the facts give that kind */
	uint64_t round; /* the job's round when `said` began */
	uint32_t accepted; /* the round's accepted reports when `said` began */
};
/* True: the kind that is shown has changed, also to STUCK_NONE. While the kind stays, only the text of `said` follows the facts. */
bool stuck_watch_step(struct stuck_watch *w, const struct stuck_facts *f, uint64_t now_ms);

#endif
