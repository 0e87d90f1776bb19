#ifndef LOCK_H
#define LOCK_H
#include <pthread.h>

#include "report.h"

/*
 * A mutex that knows how long it is held, and that gives way: a thread that releases it and takes it again at once comes after
 * those that were waiting already. For locks that many threads want, whose holders walk over long lists.
 */
struct lock {
	pthread_mutex_t turn; /* held while waiting for the mutex */
	pthread_mutex_t mutex;
	struct lock_report report; /* under the mutex, as all below */
	double taken_seconds, taken_cpu_seconds;
};

void lock_init(struct lock *l);
void lock_deinit(struct lock *l);
void lock_take(struct lock *l);
void lock_release(struct lock *l);
/* Lock held. */
void lock_report(const struct lock *l, struct lock_report *out);

#endif
