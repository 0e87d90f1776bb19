#ifndef WINDOW_H
#define WINDOW_H
#include "layout.h"
#include "rank.h"
#include "world.h"

/* A network's parameters, which lie at the ranks, as one vector in the order of net_tensors: some elements of one stage are read ahead, or
 * wait to be sent. */
struct window {
	struct world *world;
	const struct layout *layout;
	struct rank *own; /* rank 0's, set by the caller */
	uint64_t stage_first[LINK_RANKS_MAX + 2]; /* of each stage: the first of its elements */
	/* What is at hand. */
	unsigned stage;
	uint64_t first; /* of the stage's */
	size_t n;
	bool written; /* not yet sent */
	float *values;
};

/* `whole` is not kept, `layout` is. ERR_NOMEM. */
ERR_MUST_USE enum err window_init(
    struct window *w, struct world *world, const struct layout *layout, const struct net *whole);
void window_deinit(struct window *w);
/* Elements [first, first + n). Block. Errors are the courier's. */
ERR_MUST_USE enum err window_get(struct window *w, uint64_t first, size_t n, float *values);
ERR_MUST_USE enum err window_set(struct window *w, uint64_t first, size_t n, const float *values);
/* Sends what was set, and drops what was read: the ranks are about to change it. */
ERR_MUST_USE enum err window_forget(struct window *w);

#endif
