#ifndef TAILS_H
#define TAILS_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "abort_reason.h"

/*
 * What devices said last of tasks that they gave back: in memory only, and no more than TAILS_MAX texts of messages, however many
 * jobs and devices there are. The newest of each device and job is kept, for the last TAILS_OF_JOB devices. Any thread.
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
	uint64_t serial; /* grows; 0: free */
};
struct tails {
	pthread_mutex_t lock;
	uint64_t serial;
	struct tails_item items[TAILS_MAX];
};
void tails_init(struct tails *t);
void tails_deinit(struct tails *t);
/* Copies the text, unless there is no memory for it. */
void tails_note(struct tails *t, const struct tail *tail);
/* Those of a job, the newest first; how many. The caller frees their texts. */
size_t tails_of(struct tails *t, const uint8_t job[16], struct tail out[TAILS_OF_JOB]);
void tails_forget_job(struct tails *t, const uint8_t job[16]);
void tails_forget_device(struct tails *t, const uint8_t device[32]);

#endif
