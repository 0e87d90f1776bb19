#ifndef COMPANION_H
#define COMPANION_H
#include "backoff.h"
#include "last_words.h"
#include "lifecycle.h"
#include "lines.h"
#include "spawner_pool.h"

/*
 * A persistent program, which stays from task to task ([trainer NAME] persistent = yes): its process, and the messages to and from it. The
 * lifecycle of the program is in lifecycle.h; which program gets which task is in companions.h. Only companion_free blocks.
 */
#define COMPANION_LOG_MAX 2048

/* What persistent programs need of the agent; all pointers outlive the programs. */
struct companion_place {
	const struct settings *settings;
	const char *home; /* the agent's */
	const struct apart *apart; /* NULL: programs have the agent's user */
	struct spawner_pool *pool; /* makes spawners; NULL: this process forks them */
	const struct events *events; /* NULL: no events are emitted */
};

struct companion_task {
	const struct settings_trainer *trainer;
	const char *task, *kind, *job;
	const struct settings_data *data; /* may be NULL */
	double seconds; /* time budget; <= 0: none */
	bool (*stop)(void *context); /* true: the agent is to end; may be NULL */
	void *context;
};

struct companion {
	const struct companion_place *place;
	const struct settings_trainer *trainer;
	struct lifecycle lifecycle;
	struct spawner spawner; /* fd -1: none yet */
	/* Pipes for messages to the program, and from it; -1: closed. */
	int words_in, words_out;
	int output; /* pipe of the program's standard output and error */
	struct buf pending; /* bytes still to be written to words_in */
	struct lines lines;
	struct last_words said; /* the program's output since companions_call, kept in log */
	char log[COMPANION_LOG_MAX];
	struct backoff backoff;
	double not_before; /* when the program may be started again */
	double closed_at; /* when the program closed words_out; 0: it did not */
	/* The job and the data set that the program was started for. */
	char job[33];
	const struct settings_data *data;
	uint64_t stamp; /* program_stamp at that start */
	/* The task in hand; NULL: none. */
	const struct companion_task *task;
	const char *directory;
	/* The task: is done; is lost, by lost_by; the program was told to finish it. */
	bool taken, lost, asked;
	enum lifecycle_event lost_by;
	struct spawner_end end; /* how the process ended */
	struct why wrong; /* what is wrong with the program's last message */
};

/* A program that is not started yet. NULL if memory is short. */
struct companion *companion_new(
    const struct companion_place *place, const struct settings_trainer *trainer);
/* Kills the program if it runs, waits for its end, and frees c. */
void companion_free(struct companion *c);
/* Starts the program for c->job and c->data; the state must be LIFECYCLE_ABSENT. */
ERR_MUST_USE enum err companion_start(struct companion *c, struct why *why);
/* Steps c->lifecycle by the event, and does the actions that follow. */
void companion_step(struct companion *c, enum lifecycle_event event);
/* Waits at most timeout_ms for something to happen (messages, output, end, time over), and handles all that has. */
void companion_pump(struct companion *c, int timeout_ms);
/* Is an answer of the program awaited, so that end of file from it is an error? */
bool companion_must_speak(const struct companion *c);

#endif
