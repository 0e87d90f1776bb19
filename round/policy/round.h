#ifndef ROUND_H
#define ROUND_H
#include <stdbool.h>
#include <stdint.h>

struct job_spec;

/*
 * One job's round as a machine without I/O, clock or memory of devices: it counts. Who drives it tells it what happened (round_step),
 * does what the returned actions say, steps it again at round_next_ms, and folds what round_close says of a round that is full.
 * The table of states and events stands in README.md; tests go through it row by row. Times are milliseconds of one monotonic clock.
 */
#define ROUND_FAILURES 3 /* what round_policy gives every job */

struct round_policy {
	uint32_t goal; /* reports wanted, >= 1 */
	uint32_t quorum; /* reports needed, 1..goal */
	uint32_t hostile; /* devices whose word alone ends no round */
	uint32_t invite_max; /* tasks handed out at once: ceil(goal * over_select) */
	uint64_t deadline_ms, grace_ms, sample_ms;
	/* Deltas of earlier rounds' tasks are taken, and those that come once it has closed go into the next one. */
	bool late;
	bool buffered; /* tasks outlive their round: invite_max bounds those that are out */
	bool sample; /* gather askers and draw instead of first come, first served */
	bool once; /* the deadline closes the round, however few reports it has */
	uint32_t failures; /* failed rounds in a row that pause the job */
};

enum round_state {
	ROUND_IDLE, /* no round yet */
	ROUND_GATHER, /* open; sample policy: askers are gathered for the draw */
	ROUND_OPEN, /* tasks go out, deltas come in */
	ROUND_GRACE, /* quorum reached; waiting for the goal a little longer */
	ROUND_CLOSING, /* no more deltas; those being committed finish */
	ROUND_FOLDING, /* the aggregator works */
	ROUND_ENDED, /* the job is over */
};

enum round_event {
	ROUND_BEGIN, /* a round opens; arg = deltas it already has (after a restart) */
	ROUND_ASK, /* an eligible device that holds no task of this round asks for one */
	ROUND_DRAWN, /* the draw was made; arg = devices drawn; the deadline runs from here */
	ROUND_TAKE, /* a complete, checked delta is about to be committed; arg: enum round_take */
	ROUND_ACCEPTED, /* a delta is durable; arg = 1 if it is of the next round */
	ROUND_LOST, /* a delta's commit failed; arg = 1 if it was of the next round */
	ROUND_EXPIRED, /* a task has been out for too long, or its delta is lost: its place is free */
	ROUND_EARLY, /* after a restart; arg = deltas that the next round has already */
	ROUND_OUT, /* after a restart; arg = tasks of a buffered job that are out */
	ROUND_GAVE_UP, /* an invited device aborted its task; arg = 1 if because the base gives no finite numbers, and a
			 guard wants to know */
	ROUND_TICK, /* time passed */
	ROUND_FOLDED, /* the new model is committed */
	ROUND_NOT_FINITE, /* the round was committed as failed */
	ROUND_PAUSE,
	ROUND_RESUME,
	ROUND_STOP, /* the job ends now: stop condition or command */
};

/* Bits that say of a delta: */
enum round_take {
	ROUND_TAKE_FRESH = 1u
	    << 0, /* its device was not invited in this opening: the task is of an earlier opening, of before a
				     * restart, or was given up */
	ROUND_TAKE_NEXT = 1u << 1, /* the delta is for the next round, even if this one is open */
};

enum round_action {
	ROUND_DO_INVITE = 1u << 0, /* the asker gets a task */
	ROUND_DO_TAKE = 1u << 1, /* the delta may be committed */
	ROUND_DO_DRAW = 1u << 2, /* draw invite_max of the gathered askers, then send ROUND_DRAWN */
	/* The round is closed: fold its deltas, or fail it, as round_close says. */
	ROUND_DO_FOLD = 1u << 3,
	ROUND_DO_REOPEN =
	    1u << 4, /* abandoned for lack of reports: forget who was invited, wake askers */
	ROUND_DO_BEGIN = 1u << 5, /* open the next round, then send ROUND_BEGIN */
	ROUND_DO_PAUSE = 1u << 6, /* too many failures in a row: the job is paused now */
	ROUND_DO_TAKE_NEXT = 1u << 7, /* with ROUND_DO_TAKE: the delta goes into the next round */
};

/* The state of a job's round. Others read it; only the functions below change it. */
struct round {
	struct round_policy policy;
	enum round_state state;
	bool paused; /* no tasks go out and the round does not close; deltas are still taken */
	/* Tasks out or answered in this opening, aborted ones not counted; buffered: out, or answered and not yet in a model. */
	uint32_t invited;
	uint32_t accepted; /* durable deltas */
	uint32_t committing; /* taken, not yet durable */
	/* Accepted and committing deltas of the next round. */
	uint32_t next_accepted, next_committing;
	uint32_t aborted; /* tasks that devices aborted, in all openings */
	uint32_t aborted_before; /* tasks aborted before this opening */
	/* Devices that aborted in this opening because of the base: see ROUND_GAVE_UP. */
	uint32_t no_numbers;
	uint32_t reopened; /* how often the round was reopened */
	uint32_t failed_in_row; /* rounds */
	uint64_t opened_ms;
	uint64_t deadline_ms;
	uint64_t grace_until_ms;
	uint64_t gather_until_ms; /* 0 until the first asker of a gathering */
};

/* What a closed round comes to. */
struct round_close {
	uint32_t invited, aborted, reopened;
	/* 0: the accepted deltas are folded. Else the round has failed: fewer than the quorum were accepted because so many devices found
	 * that the base gives no finite numbers. */
	uint32_t no_numbers;
	bool lacks; /* fewer deltas than the quorum were accepted */
};

/* The policy of the rounds of a job. */
struct round_policy round_policy(const struct job_spec *job);
/* The policy of a job's evaluation: a round whose reports measure its base. */
struct round_policy round_evaluation(const struct job_spec *job);
/* failed: how many rounds failed in a row until now. Each time that policy->failures rounds had failed, the job was paused and the count
 * began anew. */
void round_init(struct round *r, const struct round_policy *policy, uint32_t failed);
/* Changes the policy to another of the same kind: the open round ends so much later or sooner, or with the new number of reports; a grace
 * that began with a smaller quorum than the new one ends. round_next_ms may then lie in the past. */
void round_amend(struct round *r, const struct round_policy *policy);
/* Returns a set of round_action. */
unsigned round_step(struct round *r, enum round_event event, uint32_t arg, uint64_t now_ms);
/* When ROUND_TICK is next needed, if nothing else happens before; UINT64_MAX if never. */
uint64_t round_next_ms(const struct round *r);
struct round_close round_close(const struct round *r);
/* Is this round closed for deltas, and the next one not yet open? */
bool round_has_closed(const struct round *r);
/* Does the round refuse every delta, also one for the next round? */
bool round_refuses(const struct round *r);
/* Is the round open, and short of its goal even if all deltas that are being committed are accepted? */
bool round_wants(const struct round *r);
/* Tasks that are out: handed out and not yet answered. */
uint32_t round_out(const struct round *r);
/* How many more tasks may go out. */
uint32_t round_places(const struct round *r);
const char *round_state_name(const struct round *r);

#endif
