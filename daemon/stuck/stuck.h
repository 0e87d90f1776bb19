#ifndef STUCK_H
#define STUCK_H
#include "standing.h"
#include "states.h"

/*
 * Can a job move? One verdict of what the coordinator knows about it: why it cannot, and what a person does about that. The facts come
 * from the engine, which looks every second; nothing here reads a clock, takes a lock or allocates.
 */
enum stuck_kind {
	STUCK_NONE, /* it moves, or nothing speaks against it */
	STUCK_PAUSED, /* by hand */
	STUCK_HALTED, /* paused by the coordinator: failed rounds, its guard, a fold that could not be made */
	STUCK_SET_ASIDE, /* what it starts from is missing or damaged */
	STUCK_NOT_READY, /* the coordinator hands out no tasks: its disk, database, memory, descriptors */
	STUCK_FOLD, /* its closed round cannot be folded */
	STUCK_SPOOL_FULL,
	STUCK_NO_EVALUATION, /* what its figures come from is missing: the coordinator's data set, or devices that evaluate */
	STUCK_NO_DEVICES, /* none has joined that it selects */
	STUCK_SUSPENDED,
	STUCK_SILENT, /* those that could work on it do not ask for work */
	STUCK_NO_DATA,
	STUCK_NO_TRAINER,
	STUCK_OLD_AGENT,
	STUCK_NO_MEMORY, /* of devices */
	STUCK_JOB_FULL, /* its control variates belong to other devices */
	STUCK_OWNERS, /* the devices' owners: their rules, or their word */
	STUCK_GAVE_UP,
	STUCK_TOO_SLOW, /* tasks are not answered before the deadline */
	STUCK_TOO_FEW, /* devices, for no single reason */
	STUCK_KINDS,
};

/* "" of STUCK_NONE. */
const char *stuck_name(enum stuck_kind kind);
/* What to do about it: a sentence without its period; "" of STUCK_NONE. */
const char *stuck_advice(enum stuck_kind kind);

/* The devices that a job selects. */
struct stuck_reach {
	uint64_t devices; /* active, */
	uint64_t heard; /* and these asked for work lately; */
	uint64_t suspended; /* not active */
};

/* How often in a row a round was opened again for one reason. */
struct stuck_reopened {
	uint64_t round;
	uint32_t accepted; /* the last time, */
	uint32_t tasks[STUCK_KINDS]; /* and what came of those that brought no report */
	enum stuck_kind why; /* of most of them */
	uint32_t times;
};
/* What it says of a job that devices gave this up. */
enum stuck_kind stuck_of_abort(enum abort_reason r);
/* Notes that the round was opened again. A report since the last time was a step on: the count begins anew. */
void stuck_reopen(
    struct stuck_reopened *r, uint64_t round, uint32_t accepted, const uint32_t tasks[STUCK_KINDS]);

struct stuck_facts {
	enum job_state state;
	const char *reason; /* the job's own, */
	bool by_hand; /* and it says that a person paused it */
	bool aside;
	enum wait_reason unready; /* of the coordinator, */
	const char *detail; /* with the words for it */
	bool evaluates; /* its open round makes no model */
	const char *evaluation; /* why its last models have no figure; "" */
	uint32_t fold_failures; /* of the round at hand, in a row */
	bool is_open; /* its round takes reports: */
	uint64_t round;
	uint32_t quorum; /* of reports, of which one device gives per_device */
	uint32_t per_device;
	uint32_t accepted, out; /* reports it has, and tasks that may still bring one */
	double deadline_s;
	const struct stuck_reopened *reopened; /* perhaps of another round */
	struct standing standing;
	uint64_t elsewhere; /* tasks that other jobs have out */
	bool knows_reach;
	struct stuck_reach reach;
};
/* Would the verdict need to know whom the job reaches? */
bool stuck_wants_reach(const struct stuck_facts *f);

#define STUCK_REASON_MAX 384
struct stuck {
	enum stuck_kind kind;
	char reason[STUCK_REASON_MAX];
};
/* The verdict of these facts alone. Returns for how long, in ms, they must have spoken so before it is said. */
uint32_t stuck_judge(const struct stuck_facts *f, struct stuck *out);

/* The verdict over time, so that it is said once: it stands until what it says is over. Zero at first. */
struct stuck_watch {
	struct stuck said; /* what is said now, */
	double since; /* since when: the caller's */
	enum stuck_kind seen; /* what the facts speak for, */
	uint64_t seen_ms; /* since when */
	uint64_t round; /* when `said` began */
	uint32_t accepted; /* likewise */
};
/* True: another kind is said now, or none any more. The reason of the same kind follows the facts silently. */
bool stuck_watch_step(struct stuck_watch *w, const struct stuck_facts *f, uint64_t now_ms);

#endif
