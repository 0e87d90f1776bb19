#ifndef COMPANION_H
#define COMPANION_H
#include "backoff.h"
#include "course.h"
#include "last_words.h"
#include "lines.h"
#include "nursery.h"

/*
 * A program that stays from task to task ([trainer NAME] persistent = yes): its process, and what is said. What happens to it is for
 * course.h, who gets it which task for companions.h. Nothing here blocks but companion_free.
 */
#define COMPANION_LOG_MAX 2048

/* Where it lives; what is pointed to outlives it. */
struct companion_place {
	const struct settings *settings;
	const char *home; /* the agent's */
	const struct apart *apart; /* NULL: programs have the agent's user */
	struct nursery *nursery; /* makes spawners; NULL: this process forks them */
	const struct events *events; /* NULL: nobody is told */
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
	struct course course;
	struct spawner spawner; /* fd -1: none yet */
	int words_in, words_out; /* what it reads, and what it writes; -1: closed */
	int output;
	struct buf pending; /* still to be written to words_in */
	struct lines lines;
	struct last_words said; /* since it was called last */
	char log[COMPANION_LOG_MAX];
	struct backoff backoff;
	double not_before; /* a new start */
	double closed_at; /* it closed words_out; 0: it did not */
	/* What it was started for. */
	char job[33];
	const struct settings_data *data;
	uint64_t stamp; /* of its program's files then */
	/* The task in hand; NULL: none. */
	const struct companion_task *task;
	const char *directory;
	bool taken, lost, asked; /* done; or given up, by what follows; it was told to finish */
	enum course_event lost_by;
	struct spawner_end end;
	struct why wrong; /* what was wrong with what it said */
};

/* Not started yet. NULL if memory is short. */
struct companion *companion_new(
    const struct companion_place *place, const struct settings_trainer *trainer);
/* Kills what runs, and waits for its end. */
void companion_free(struct companion *c);
/* Starts it for c->job and c->data; the state must be COURSE_ABSENT. */
ERR_MUST_USE enum err companion_start(struct companion *c, struct why *why);
/* Lets the event happen, and does what is to be done then. */
void companion_step(struct companion *c, enum course_event event);
/* Everything that may have happened, after at most timeout_ms of waiting for it. */
void companion_pump(struct companion *c, int timeout_ms);
/* Is something awaited of it? */
bool companion_must_speak(const struct companion *c);

#endif
