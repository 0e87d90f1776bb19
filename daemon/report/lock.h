#ifndef LOCK_H
#define LOCK_H
#include <pthread.h>

#include "report.h"

/*
 * A mutex that measures how long it is held, and whose holder can give way to waiting threads: for locks that many threads want, and
 * under which some threads walk over long lists.
 */
#define LOCK_TURN_SECONDS 0.0001

struct lock {
	pthread_mutex_t turn; /* held by the thread that gets `mutex` next */
	pthread_mutex_t mutex;
	struct lock_report report; /* under the mutex, as all below */
	double taken_seconds, taken_cpu_seconds;
};

void lock_init(struct lock *l);
void lock_deinit(struct lock *l);
void lock_take(struct lock *l);
void lock_release(struct lock *l);
/* If the lock was held for LOCK_TURN_SECONDS, lets waiting threads have it and takes it again; before, costs little. */
void lock_give_way(struct lock *l);
/* Copies the lock's measurements. Lock held. */
void lock_report(const struct lock *l, struct lock_report *out);

#endif
