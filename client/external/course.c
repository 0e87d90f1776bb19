#include "course.h"

#include <stddef.h>

static const struct row {
	enum course_state state;
	enum course_event event;
	enum course_state next;
	unsigned actions;
} rows[] = {
    {COURSE_ABSENT, COURSE_STARTED, COURSE_STARTING, 0},
    {COURSE_STARTING, COURSE_IS_READY, COURSE_READY, 0},
    {COURSE_STARTING, COURSE_WRONG, COURSE_KILLED, COURSE_KILL | COURSE_LOSE},
    {COURSE_STARTING, COURSE_STOP, COURSE_URGED, COURSE_TERMINATE | COURSE_LOSE},
    {COURSE_STARTING, COURSE_DUE, COURSE_LATE, COURSE_LOSE},
    {COURSE_STARTING, COURSE_LEAVE, COURSE_LEAVING, COURSE_CLOSE | COURSE_LOSE},
    {COURSE_STARTING, COURSE_ENDED, COURSE_ABSENT, COURSE_LOSE},
    {COURSE_LATE, COURSE_IS_READY, COURSE_READY, 0},
    {COURSE_LATE, COURSE_TASK, COURSE_STARTING, 0},
    {COURSE_LATE, COURSE_WRONG, COURSE_KILLED, COURSE_KILL},
    {COURSE_LATE, COURSE_DUE, COURSE_URGED, COURSE_TERMINATE},
    {COURSE_LATE, COURSE_LEAVE, COURSE_LEAVING, COURSE_CLOSE},
    {COURSE_LATE, COURSE_ENDED, COURSE_ABSENT, 0},
    {COURSE_READY, COURSE_TASK, COURSE_WORKING, COURSE_GIVE},
    {COURSE_READY, COURSE_WRONG, COURSE_KILLED, COURSE_KILL},
    {COURSE_READY, COURSE_DUE, COURSE_LEAVING, COURSE_CLOSE},
    {COURSE_READY, COURSE_LEAVE, COURSE_LEAVING, COURSE_CLOSE},
    {COURSE_READY, COURSE_ENDED, COURSE_ABSENT, 0},
    {COURSE_WORKING, COURSE_DONE, COURSE_READY, COURSE_TAKE},
    {COURSE_WORKING, COURSE_WRONG, COURSE_KILLED, COURSE_KILL | COURSE_LOSE},
    {COURSE_WORKING, COURSE_STOP, COURSE_PARTING, COURSE_TERMINATE},
    {COURSE_WORKING, COURSE_DUE, COURSE_FINISHING, COURSE_FINISH},
    {COURSE_WORKING, COURSE_ENDED, COURSE_ABSENT, COURSE_LOSE},
    {COURSE_FINISHING, COURSE_DONE, COURSE_READY, COURSE_TAKE},
    {COURSE_FINISHING, COURSE_WRONG, COURSE_KILLED, COURSE_KILL | COURSE_LOSE},
    {COURSE_FINISHING, COURSE_STOP, COURSE_PARTING, COURSE_TERMINATE},
    {COURSE_FINISHING, COURSE_DUE, COURSE_KILLED, COURSE_KILL | COURSE_LOSE},
    {COURSE_FINISHING, COURSE_ENDED, COURSE_ABSENT, COURSE_LOSE},
    {COURSE_PARTING, COURSE_DONE, COURSE_URGED, COURSE_TAKE},
    {COURSE_PARTING, COURSE_WRONG, COURSE_KILLED, COURSE_KILL | COURSE_LOSE},
    {COURSE_PARTING, COURSE_DUE, COURSE_KILLED, COURSE_KILL | COURSE_LOSE},
    {COURSE_PARTING, COURSE_ENDED, COURSE_ABSENT, COURSE_LOSE},
    {COURSE_LEAVING, COURSE_WRONG, COURSE_KILLED, COURSE_KILL},
    {COURSE_LEAVING, COURSE_DUE, COURSE_URGED, COURSE_TERMINATE},
    {COURSE_LEAVING, COURSE_ENDED, COURSE_ABSENT, 0},
    {COURSE_URGED, COURSE_WRONG, COURSE_KILLED, COURSE_KILL},
    {COURSE_URGED, COURSE_DUE, COURSE_KILLED, COURSE_KILL},
    {COURSE_URGED, COURSE_ENDED, COURSE_ABSENT, 0},
    {COURSE_KILLED, COURSE_ENDED, COURSE_ABSENT, 0},
};

static const char *const names[] = {
    [COURSE_ABSENT] = "absent",
    [COURSE_STARTING] = "starting",
    [COURSE_LATE] = "late",
    [COURSE_READY] = "ready",
    [COURSE_WORKING] = "working",
    [COURSE_FINISHING] = "finishing",
    [COURSE_PARTING] = "parting",
    [COURSE_LEAVING] = "leaving",
    [COURSE_URGED] = "urged",
    [COURSE_KILLED] = "killed",
};

static double
limit(const struct course *c, double now)
{
	switch (c->state) {
	case COURSE_STARTING:
	case COURSE_WORKING:
		return c->task_until;
	case COURSE_LATE:
		return c->start_until;
	case COURSE_READY:
		return c->idle_s > 0 ? now + c->idle_s : 0;
	case COURSE_FINISHING:
	case COURSE_PARTING:
		return now + c->grace_s;
	case COURSE_LEAVING:
	case COURSE_URGED:
		return now + COURSE_LEAVE_S;
	case COURSE_ABSENT:
	case COURSE_KILLED:
		break;
	}
	return 0;
}

static void
change_state(struct course *c, enum course_state next, double now)
{
	if (c->state == COURSE_ABSENT)
		c->start_until = now + COURSE_START_S;
	c->state = next;
	c->until = limit(c, now);
}

unsigned
course_step(struct course *c, enum course_event event, double now)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].state == c->state && rows[i].event == event) {
			change_state(c, rows[i].next, now);
			return rows[i].actions;
		}
	return 0;
}

bool
course_due(const struct course *c, double now)
{
	return c->until > 0 && now >= c->until;
}

const char *
course_name(enum course_state state)
{
	return names[state];
}
