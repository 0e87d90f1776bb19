#ifndef WORKER_H
#define WORKER_H
#include <stdint.h>

#include "err.h"

/*
 * A pool of threads for what may take longer than microseconds: verify, hash, sync, fold, evaluate. Workers take a job,
 * run it, and forget it; the job itself tells its owner when it is done (exchange_done, a condition, ...).
 */
struct worker_pool;

ERR_MUST_USE enum err worker_pool_new(struct worker_pool **out, unsigned threads);
/* worker_pool_new with threads of lower priority: their nice value is higher by `by` (setpriority). */
ERR_MUST_USE enum err worker_pool_new_behind(struct worker_pool **out, unsigned threads, int by);
/* Runs what is queued, then joins the threads. */
void worker_pool_free(struct worker_pool *p);
/* Queues fn(arg). Never blocks. ERR_NOMEM. */
ERR_MUST_USE enum err worker_submit(struct worker_pool *p, void (*fn)(void *arg), void *arg);
/* Queues fn(arg) on behalf of `who`. The pool runs one job of each `who` at a time; jobs of others overtake the waiting ones. */
#define WORKER_FOR 32
ERR_MUST_USE enum err worker_submit_for(
    struct worker_pool *p, const uint8_t who[WORKER_FOR], void (*fn)(void *arg), void *arg);
/* Runs fn(arg, i) for i in [0, count) on up to `threads` fresh threads, the caller being one of them; returns when all are
 * done. For aggregation and evaluation, which are few and long. */
void worker_parallel(
    unsigned threads, unsigned count, void (*fn)(void *arg, unsigned i), void *arg);

#endif
