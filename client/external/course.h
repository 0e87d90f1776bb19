#ifndef COURSE_H
#define COURSE_H
#include <stdbool.h>

/*
 * The lifecycle of a persistent program, which stays from task to task: a state machine whose events say what happened, and whose actions
 * say what the caller must do. No I/O, no clock; the table of states and events stands in README.md.
 */
enum course_state {
	COURSE_ABSENT, /* there is no process */
	COURSE_STARTING, /* the program is not ready yet, and a task waits for it */
	COURSE_LATE, /* the program is not ready yet, and no task waits any more */
	COURSE_READY, /* the program waits for a task */
	COURSE_WORKING, /* the program has a task */
	COURSE_FINISHING, /* the program was told to finish its task, and to stay */
	COURSE_PARTING, /* the program was told to finish its task and to leave: SIGTERM */
	COURSE_LEAVING, /* the program was told to leave by end of file */
	COURSE_URGED, /* the program was told to leave by SIGTERM */
	COURSE_KILLED, /* SIGKILL was sent, and the process is not gone yet */
};
#define COURSE_STATES (COURSE_KILLED + 1)

enum course_event {
	COURSE_STARTED, /* the process was started, for a task */
	COURSE_IS_READY, /* the program says that it is ready */
	COURSE_TASK, /* there is a task for the program */
	COURSE_DROPPED, /* the task that the program was called for will not come */
	COURSE_DONE, /* the program says that its task is done */
	COURSE_WRONG, /* the program sent an invalid or too long message */
	COURSE_STOP, /* the agent is to end */
	COURSE_DUE, /* the time of the state is over */
	COURSE_LEAVE, /* the program is not needed any more */
	COURSE_ENDED, /* the process is gone */
};
#define COURSE_EVENTS (COURSE_ENDED + 1)

/* Actions of the caller, a set; COURSE_TAKE and COURSE_LOSE say what became of the task. */
enum course_action {
	COURSE_GIVE = 1 << 0, /* send the program its task */
	COURSE_FINISH = 1 << 1, /* tell the program to finish its task */
	COURSE_CLOSE = 1 << 2, /* close the pipe that the program reads */
	COURSE_TERMINATE = 1 << 3, /* send SIGTERM */
	COURSE_KILL = 1 << 4, /* send SIGKILL */
	COURSE_TAKE = 1 << 5, /* the task is done */
	COURSE_LOSE = 1 << 6, /* the task is lost */
};

#define COURSE_START_S \
	600.0 /* seconds from start to ready: frameworks load long, and a task's deadline may be shorter */
#define COURSE_LEAVE_S 5.0 /* seconds in COURSE_LEAVING, and in COURSE_URGED */

struct course {
	enum course_state state;
	double until; /* when COURSE_DUE is due; 0: never */
	double task_until; /* end of the task's time; set before COURSE_STARTED and COURSE_TASK */
	double start_until; /* end of the time to get ready, COURSE_START_S after the start */
	double grace_s, idle_s; /* time to finish; time in COURSE_READY, 0: no limit */
};

/* Steps by an event, and returns a set of course_action. An event that the table does not have for the state changes nothing. */
unsigned course_step(struct course *c, enum course_event event, double now);
bool course_due(const struct course *c, double now);
const char *course_name(enum course_state state);

#endif
