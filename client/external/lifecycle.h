#ifndef LIFECYCLE_H
#define LIFECYCLE_H
#include <stdbool.h>

/*
 * The lifecycle of a persistent program, which stays from task to task: a state machine whose events say what happened, and whose actions
 * say what the caller must do. No I/O, no clock; the table of states and events stands in README.md.
 */
enum lifecycle_state {
	LIFECYCLE_ABSENT, /* there is no process */
	LIFECYCLE_STARTING, /* the program is not ready yet, and a task waits for it */
	LIFECYCLE_LATE, /* the program is not ready yet, and no task waits any more */
	LIFECYCLE_READY, /* the program waits for a task */
	LIFECYCLE_WORKING, /* the program has a task */
	LIFECYCLE_FINISHING, /* the program was told to finish its task, and to stay */
	LIFECYCLE_PARTING, /* the program was told to finish its task and to leave: SIGTERM */
	LIFECYCLE_LEAVING, /* the program was told to leave by end of file */
	LIFECYCLE_URGED, /* the program was told to leave by SIGTERM */
	LIFECYCLE_KILLED, /* SIGKILL was sent, and the process is not gone yet */
};
#define LIFECYCLE_STATES (LIFECYCLE_KILLED + 1)

enum lifecycle_event {
	LIFECYCLE_STARTED, /* the process was started, for a task */
	LIFECYCLE_IS_READY, /* the program says that it is ready */
	LIFECYCLE_TASK, /* there is a task for the program */
	LIFECYCLE_DROPPED, /* the task that the program was called for will not come */
	LIFECYCLE_DONE, /* the program says that its task is done */
	LIFECYCLE_WRONG, /* the program sent an invalid or too long message */
	LIFECYCLE_STOP, /* the agent is to end */
	LIFECYCLE_DUE, /* the time of the state is over */
	LIFECYCLE_LEAVE, /* the program is not needed any more */
	LIFECYCLE_ENDED, /* the process is gone */
};
#define LIFECYCLE_EVENTS (LIFECYCLE_ENDED + 1)

/* Actions of the caller, a set; LIFECYCLE_TAKE and LIFECYCLE_LOSE say what became of the task. */
enum lifecycle_action {
	LIFECYCLE_GIVE = 1 << 0, /* send the program its task */
	LIFECYCLE_FINISH = 1 << 1, /* tell the program to finish its task */
	LIFECYCLE_CLOSE = 1 << 2, /* close the pipe that the program reads */
	LIFECYCLE_TERMINATE = 1 << 3, /* send SIGTERM */
	LIFECYCLE_KILL = 1 << 4, /* send SIGKILL */
	LIFECYCLE_TAKE = 1 << 5, /* the task is done */
	LIFECYCLE_LOSE = 1 << 6, /* the task is lost */
};

#define LIFECYCLE_START_S \
	600.0 /* seconds from start to ready: frameworks load long, and a task's deadline may be shorter */
#define LIFECYCLE_LEAVE_S 5.0 /* seconds in LIFECYCLE_LEAVING, and in LIFECYCLE_URGED */

struct lifecycle {
	enum lifecycle_state state;
	double until; /* when LIFECYCLE_DUE is due; 0: never */
	double
	    task_until; /* end of the task's time; set before LIFECYCLE_STARTED and LIFECYCLE_TASK */
	double start_until; /* end of the time to get ready, LIFECYCLE_START_S after the start */
	double grace_s, idle_s; /* time to finish; time in LIFECYCLE_READY, 0: no limit */
};

/* Steps by an event, and returns a set of lifecycle_action. An event that the table does not have for the state changes nothing. */
unsigned lifecycle_step(struct lifecycle *c, enum lifecycle_event event, double now);
bool lifecycle_due(const struct lifecycle *c, double now);
const char *lifecycle_name(enum lifecycle_state state);

#endif
