#ifndef AGENT_H
#define AGENT_H
#include <signal.h>

#include "rivulet.h"

/*
 * The device agent: serves every job that its settings name data and trainers for, until cancelled. Written on the
 * functions of rivulet.h; it adds data sets, gates, trainers and evaluation.
 */
struct events_log;
struct agent_options {
	struct rivulet_options rivulet; /* trainer, data, examples and event are left empty */
	struct events_log *log; /* events.h: who hears what happens */
	uint64_t rounds; /* end after so many deltas were taken; 0: never */
	int trainer_user; /* programs of the owner have a user of their own, APART_USER */
	int once; /* end after one task, whatever became of it */
	/* *reload is set, for instance by a signal handler, to have the settings read again once no task is in hand; the agent clears it.
	 * NULL: never. Settings with a mistake change nothing, and the log says so. */
	volatile sig_atomic_t *reload;
	void (*ready)(void *context); /* called once, when everything is open; may be NULL */
	/* Called with what the agent is doing, for a service manager; may be NULL. */
	void (*status)(void *context, const char *line);
};

/* RIVULET_OK when cancelled or done; otherwise the error of opening, or with `once` that of the task. */
int agent_run(const struct agent_options *options, char *why, size_t why_size);

#endif
