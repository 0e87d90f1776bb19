#ifndef ROSTER_H
#define ROSTER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wait_reason.h"

struct job_spec;
struct late_point;
struct round;

/*
 * What one device has of one job, its place, as a machine without I/O, clock or memory of other devices. Who holds the places tells one
 * what happened to it (roster_step), does what the returned actions say, and steps the round (round.h) where they name an event of it.
 * The table of states and events stands in README.md; tests go through it row by row. Times are milliseconds of one monotonic clock.
 */
#define ROSTER_HEARD_MS 3600000 /* who has asked within this counts among the devices that ask */

enum roster_state {
	ROSTER_NONE, /* it has no task; there may be deltas of it */
	ROSTER_OUT, /* it has a task, or may have it */
	ROSTER_COMMITTING, /* buffered: the task's delta is on its way to the disk */
	ROSTER_ACCEPTED, /* the task is answered */
	ROSTER_ABORTED, /* given back: no task again in this opening of its round */
	ROSTER_STOPPED, /* given back for a moment's reason: it may ask again */
	ROSTER_EXPIRED, /* buffered, out for too long: another device has its place, its delta is taken all the same */
};

/* All zero: nothing. Others read it; roster_step alone changes it. */
struct roster_place {
	enum roster_state state;
	uint32_t now, next; /* deltas of the device in the open round, and for the next one */
	uint64_t round; /* of the task; 0: there was none */
	uint64_t until_ms; /* buffered: then the task expires */
	/* Of jobs whose devices rest (roster_rests): when it asked last, 0: never; and the last round that took a delta of it; 0: none. */
	uint64_t asked_ms, folded;
};

/* The open round, as far as places depend on it. */
struct roster_round {
	const struct round *machine;
	uint64_t number;
	uint64_t timeout_ms; /* buffered: until a task expires */
	uint32_t per_device, max_staleness; /* of the job's document */
	bool lives; /* the job is running or paused */
	bool evaluates; /* the round makes no model, but measures one */
	/* The job's guard may go back with this round: the next one takes nothing before it is open, for that might start from a model
	 * that is given up. */
	bool defers;
	/* Of a job that takes late deltas: the rounds whose tasks may still be answered, this one first. */
	const struct late_point *points;
	size_t point_count;
	uint64_t rest; /* rounds that a device waits after the one that took its delta: late_rest */
};

enum roster_event_kind {
	ROSTER_ASK, /* the device asks for a task; unsent: it holds the delta of the one that it has */
	ROSTER_HEAR, /* it asked then, and was told to wait */
	ROSTER_GIVE, /* the round has a place for it: invited, or drawn */
	ROSTER_TAKE, /* a complete, checked delta of the task of `round` is about to be committed */
	ROSTER_SETTLED, /* that is durable; round, folded and fresh as it was taken */
	ROSTER_LOST, /* its commit failed; likewise */
	ROSTER_GIVE_UP, /* the device gives its task back; passes: for a moment's reason */
	ROSTER_EXPIRE, /* time passed */
	ROSTER_REOPEN, /* the round is abandoned for lack of reports, and opens again */
	ROSTER_TURN, /* the round is over, folded or failed: before the next one's number is in force */
	ROSTER_FOUND, /* after a restart: a delta of the task of `round` that waits in the round `folded` */
	ROSTER_FOUND_OUT, /* after a restart: the task of `round` is out until until_ms */
	ROSTER_FOUND_FOLDED, /* after a restart: the last round that took a delta of it was `folded` */
};

struct roster_event {
	enum roster_event_kind kind;
	uint64_t round, folded, until_ms;
	bool unsent, fresh, passes;
};

enum roster_action {
	ROSTER_DO_HAND = 1u << 0, /* the task of the place goes to the device */
	ROSTER_DO_RENAME =
	    1u << 1, /* the task is another one than before: what is known of that one goes */
	ROSTER_DO_ENTER =
	    1u << 2, /* ROUND_ASK; if the round has a place for it, now or in a draw, ROSTER_GIVE */
	ROSTER_DO_REPORTED = 1u << 3, /* no task: it has done its part, or rests; */
	ROSTER_DO_UNSENT = 1u << 4, /* it is to send what it has first; */
	ROSTER_DO_ABORTED = 1u << 5, /* it gave up; */
	ROSTER_DO_WAIT = 1u << 6, /* its delta would come too late */
	ROSTER_DO_TAKE = 1u << 7, /* ROUND_TAKE, which takes it; */
	ROSTER_DO_FRESH = 1u << 8, /* with ROUND_TAKE_FRESH; */
	ROSTER_DO_NEXT = 1u
	    << 9, /* with ROUND_TAKE_NEXT: the next round takes it. Of SETTLED and LOST: it is of the next round */
	ROSTER_DO_LATER = 1u << 10, /* it is not taken now, but may be once the round is folded */
	ROSTER_DO_SETTLE = 1u << 11, /* ROUND_ACCEPTED or ROUND_LOST */
	ROSTER_DO_FREE = 1u << 12, /* ROUND_EXPIRED, after those */
	ROSTER_DO_GAVE_UP = 1u << 13, /* ROUND_GAVE_UP */
	ROSTER_DO_END = 1u << 14, /* the device works on the task no more */
	ROSTER_DO_HEARD =
	    1u << 15, /* of TURN, where devices rest: it counts among those that ask */
	ROSTER_DO_FORGET = 1u << 16, /* nothing is left of the place */
};

/* Returns a set of roster_action; 0: nothing is to be done, and of TAKE that the delta is not taken. The caller gives TAKE to a round
 * only that stands as r says. */
unsigned roster_step(struct roster_place *p, const struct roster_round *r,
    const struct roster_event *e, uint64_t now_ms);
/* What the device is told instead of a task; WAIT_NONE: these actions of an ASK give it one, or ask the round. */
enum wait_reason roster_wait(unsigned actions);

/* Does ASK want to know whether the delta of the task is unsent? */
bool roster_wants_unsent(const struct roster_place *p, const struct roster_round *r);
/* Does it hold, or has it answered or given up, a task? */
bool roster_is_invited(const struct roster_place *p);
/* May its task still be answered, or given back? */
bool roster_is_unanswered(const struct roster_place *p);
/* What a job's document says of its rounds, with the timeout that is in force; the rest is zero. */
struct roster_round roster_round_of(const struct job_spec *job, double timeout_s);
/* Do this round's devices rest after a delta (late.h)? */
bool roster_rests(const struct round *r);

#endif
