#ifndef AGENT_H
#define AGENT_H
#include <signal.h>

#include "rivulet.h"

/*
 * The device agent: serves every job that its settings name data and trainers for, until cancelled. Written on the
 * functions of rivulet.h; it adds data sets, gates, trainers and evaluation.
 */
struct agent_options {
	struct rivulet_options rivulet; /* trainer, data and examples are left empty */
	uint64_t rounds; /* end after so many deltas were taken; 0: never */
	int trainer_user; /* programs of the owner have a user of their own, APART_USER */
	int once; /* end after one task, whatever became of it */
	/* Set, by a signal handler for instance, to have the settings read again once no task is in hand; set back then. NULL: never.
	 * Settings with a mistake change nothing, and the log says so. */
	volatile sig_atomic_t *reload;
	void (*ready)(void *context); /* once, when everything is open; may be NULL */
	void (*status)(void *context,
	    const char *line); /* what it is doing, for a service manager; may be NULL */
};

/* RIVULET_OK when cancelled or done; otherwise the error of opening, or with `once` that of the task. */
int agent_run(const struct agent_options *options, char *why, size_t why_size);

#endif
