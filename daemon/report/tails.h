#ifndef TAILS_H
#define TAILS_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "abort_reason.h"

/*
 * The last messages of devices about tasks that they gave back, in memory only: at most TAILS_MAX, however many jobs and devices there
 * are. For each job the newest message of each of the last TAILS_OF_JOB devices is kept. Any thread.
 */
#define TAILS_MAX 512
#define TAILS_OF_JOB 8

struct tail {
	uint8_t job[16], device[32];
	uint64_t round;
	double at_seconds; /* Unix time */
	char reason[ABORT_WORD_MAX];
	char *text; /* NULL: none */
};
struct tails_item {
	struct tail tail;
	uint64_t serial; /* a later message has a higher one; 0: the item is free */
};
struct tails {
	pthread_mutex_t lock;
	uint64_t serial;
	struct tails_item items[TAILS_MAX];
};
void tails_init(struct tails *t);
void tails_deinit(struct tails *t);
/* Notes a message; the text is copied, or left out if there is no memory. */
void tails_note(struct tails *t, const struct tail *tail);
/* The messages of a job, the newest first; returns how many. The caller frees the texts. */
size_t tails_of(struct tails *t, const uint8_t job[16], struct tail out[TAILS_OF_JOB]);
void tails_forget_job(struct tails *t, const uint8_t job[16]);
void tails_forget_device(struct tails *t, const uint8_t device[32]);

#endif
