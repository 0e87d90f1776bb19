#ifndef JOBS_INSIDE_H
#define JOBS_INSIDE_H
#include <stddef.h>

#include "change.h"
#include "choice.h"
#include "job_facts.h"
#include "job_needs.h"
#include "late.h"
#include "lock.h"
#include "report.h"
#include "share.h"
#include "tails.h"

/* Inside of the room. Fields are under the engine's lock unless said otherwise. */

/* A device whose control variate counts in the coordinator's. */
struct engine_member {
	uint8_t device[32];
	uint64_t round; /* the last committed one that its delta is in */
};

struct job {
	union {
		const struct job_facts facts;
		struct job_facts changing; /* change_facts alone */
	};
	struct engine *set; /* that it is linked into, or NULL */
	uint64_t counted; /* its facts that count, when they were last looked at: change.c */
	struct job_work *work; /* facts.work */
	struct job_pace pace;
	struct job *next; /* by priority, then age */
	struct job *chain; /* of its bucket */
	struct share_member
	    member; /* of g->order, while it is not over; its priority is that in force */
	unsigned users; /* who has it without the lock */
	unsigned readers; /* who reads its work without the lock */
	bool deleting; /* somebody does */
	bool asked; /* since the coordinator started, by a device that its rounds can use */
	uint8_t (*evaluators)[32]; /* of those, who evaluates: sorted, no more than the quorum */
	size_t evaluator_count, evaluator_room;
	struct invite *invites; /* in no order */
	size_t invite_count, invite_room;
	/* Where each of them is, by device; 0: nowhere, else its place and one. roster.c */
	uint32_t *slots;
	unsigned slot_bits; /* of the number of slots, which is above that of invitations twice */
	uint64_t slot_factor;
	struct choice_ticket *candidates; /* gathered askers, the first to be drawn first */
	size_t candidate_count, candidate_room;
	struct engine_member *members; /* of a job with control variates: those it has, by device */
	size_t member_count; /* at most spec.aggregate.variates, for which there is room */
	/* Of a job that takes late deltas: the rounds whose tasks may still be answered, the newest first. */
	struct late_point *points;
	size_t point_count;
	uint64_t rest; /* rounds that its devices rest (roster.h) */
	struct job_refusals refusals;
};
_Static_assert(offsetof(struct job, facts) == 0, "job_facts");

/* The counter of changes, and who waits for the next one: change.c. */
struct changes {
	uint64_t counter;
	struct job
	    *touched; /* the only one whose facts may have changed since they were looked at */
	struct change_reader *readers;
	unsigned reader_count;
	bool awaited; /* somebody has begun to wait since the last ring */
	uint64_t refused_total;
};

struct engine {
	const struct services *services;
	uint8_t task_key[32];
	struct lock lock;
	struct job *jobs;
	/* The same by the first byte of their ids, which are hashes. */
	struct job *buckets[256];
	struct job *last; /* of them */
	struct share_order
	    order; /* of those that are not over: who is asked first for a device's work */
	uint64_t serial; /* of the newest */
	size_t job_count, gone_count;
	bool
	    dated; /* each job that is over has an end; one that ended while the clock was doubted has none */
	struct engine_report report; /* that of the lock apart */
	struct engine_reservation *reserved; /* the oldest first */
	struct tails tails; /* under a lock of its own */
	struct engine_pace pace;
	struct changes changes;
};

/* The facts of a job, to be changed: the one way to them, so that no change can be forgotten. What counts of them is looked at before the
 * lock is released, or once another job is to be changed: the pointer is for the change at hand. */
struct job_facts *change_facts(struct job *j);
/* Looks at the job that was changed last, and counts. Lock held. */
void jobs_change_settle(struct engine *g);
/* The jobs of a start are no changes: begins the counter. */
void jobs_change_begin(struct engine *g);

#endif
