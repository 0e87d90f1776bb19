#ifndef LOCK_H
#define LOCK_H
#include <pthread.h>

#include "report.h"

/*
 * A mutex that knows how long it is held, and whose holder can give way to those who wait: for locks that many threads want, and
 * under which some walk over long lists.
 */
#define LOCK_TURN_SECONDS 0.0001

struct lock {
	pthread_mutex_t turn; /* of those who wait for the mutex, the next one holds it */
	pthread_mutex_t mutex;
	struct lock_report report; /* under the mutex, as all below */
	double taken_seconds, taken_cpu_seconds;
};

void lock_init(struct lock *l);
void lock_deinit(struct lock *l);
void lock_take(struct lock *l);
void lock_release(struct lock *l);
/* Lets those who wait have it first, once it was held for LOCK_TURN_SECONDS; held again afterwards. Cheap until then. */
void lock_give_way(struct lock *l);
/* Lock held. */
void lock_report(const struct lock *l, struct lock_report *out);

#endif
