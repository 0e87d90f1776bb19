#ifndef LOOP_H
#define LOOP_H
#include <stdint.h>
#include <sys/epoll.h>

#include "err.h"

/*
 * One epoll loop per I/O thread. Descriptors carry a source; a source's function runs on the loop's thread. Other threads
 * reach the loop only through loop_post and loop_stop.
 */
struct loop;

struct loop_source {
	void (*ready)(struct loop_source *s, uint32_t events); /* may remove and free the source */
	int fd;
};

/* A message to a loop; the owner keeps it alive until fn runs, which may free it. */
struct loop_post {
	struct loop_post *next;
	void (*fn)(struct loop_post *p);
};

ERR_MUST_USE enum err loop_new(struct loop **out);
void loop_free(struct loop *l);
ERR_MUST_USE enum err loop_add(struct loop *l, struct loop_source *s, uint32_t events);
ERR_MUST_USE enum err loop_change(struct loop *l, struct loop_source *s, uint32_t events);
void loop_remove(struct loop *l, struct loop_source *s);
/* Calls fn(ctx, now_ms) about every `every_ms`. One per loop. */
void loop_on_tick(
    struct loop *l, uint64_t every_ms, void (*fn)(void *ctx, uint64_t now_ms), void *ctx);
/* The next tick is no later than this. On the loop's thread. */
void loop_tick_by(struct loop *l, uint64_t at_ms);
/* Called after each batch of events: sources freed during the batch are safe to release then. */
void loop_on_batch(struct loop *l, void (*fn)(void *ctx), void *ctx);
/* Runs until loop_stop. */
void loop_run(struct loop *l);
/* Any thread. */
void loop_post(struct loop *l, struct loop_post *p);
void loop_stop(struct loop *l);

#endif
