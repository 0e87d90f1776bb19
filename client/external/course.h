#ifndef COURSE_H
#define COURSE_H
#include <stdbool.h>

/*
 * The course of a program that stays from task to task: what happens to it, and what is to be done then. No I/O, no clock; the table of
 * states and events stands in README.md.
 */
enum course_state {
	COURSE_ABSENT, /* there is no process */
	COURSE_STARTING, /* it has not said that it is ready, and a task waits for that */
	COURSE_LATE, /* it has not said so, and the task could not wait */
	COURSE_READY, /* it waits for a task */
	COURSE_WORKING, /* it has one */
	COURSE_FINISHING, /* it was told to finish it, and to stay */
	COURSE_PARTING, /* it was told to finish it and to leave: SIGTERM */
	COURSE_LEAVING, /* it was told to leave: there is nothing more for it to read */
	COURSE_URGED, /* so by SIGTERM */
	COURSE_KILLED,
};
#define COURSE_STATES (COURSE_KILLED + 1)

enum course_event {
	COURSE_STARTED, /* for a task */
	COURSE_IS_READY, /* it says so */
	COURSE_TASK, /* there is one for it */
	COURSE_DROPPED, /* the one that it was called for will not come */
	COURSE_DONE, /* it says so of its task */
	COURSE_WRONG, /* it said what makes no sense, or too much */
	COURSE_STOP, /* the agent is to end */
	COURSE_DUE, /* the time of the state is over */
	COURSE_LEAVE, /* it is wanted no more */
	COURSE_ENDED, /* the process is gone */
};
#define COURSE_EVENTS (COURSE_ENDED + 1)

/* What is to be done, together; the last two say what became of the task. */
enum course_action {
	COURSE_GIVE = 1 << 0, /* send it its task */
	COURSE_FINISH = 1 << 1, /* tell it to finish that */
	COURSE_CLOSE = 1 << 2, /* close what it reads */
	COURSE_TERMINATE = 1 << 3, /* SIGTERM */
	COURSE_KILL = 1 << 4, /* SIGKILL */
	COURSE_TAKE = 1 << 5, /* the task is done */
	COURSE_LOSE = 1 << 6, /* it is not, and never will be */
};

#define COURSE_START_S \
	600.0 /* until it is ready: frameworks load long, and a task's deadline may be shorter */
#define COURSE_LEAVE_S 5.0 /* for each step of leaving */

struct course {
	enum course_state state;
	double until; /* when COURSE_DUE comes; 0: never */
	double
	    task_until; /* the same for the task in hand: set it before COURSE_STARTED and COURSE_TASK */
	double start_until; /* when it is late for good */
	double grace_s, idle_s; /* idle_s 0: it may wait for ever */
};

/* An event that means nothing in this state changes nothing. Returns the actions. */
unsigned course_step(struct course *c, enum course_event event, double now);
bool course_due(const struct course *c, double now);
const char *course_name(enum course_state state);

#endif
