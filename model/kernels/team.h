#ifndef TEAM_H
#define TEAM_H
#include <stddef.h>

#include "err.h"

/*
 * Threads that work on pieces of one pass. Outputs are divided into pieces, never sums, so the bits do not depend on the number of threads.
 * Threads sleep if the next call does not follow at once. The caller works, too, so that on a busy machine a call takes no longer than
 * without threads, except for the piece of a thread that the machine has suspended. Small work is not worth waking threads, and is shared
 * only while they are awake.
 */
struct team;

/* `threads` in all, the caller's included, 1 to TEAM_MAX. */
#define TEAM_MAX 64
ERR_MUST_USE enum err team_new(struct team **out, unsigned threads);
void team_free(struct team *t);
/* The number of lanes (threads, the caller's included); 1 for NULL. */
unsigned team_size(const struct team *t);
/* How many threads work: all, until team_use sets another number, 1 or more, between calls. 1 for NULL. */
unsigned team_active(const struct team *t);
void team_use(struct team *t, unsigned threads);
/* Calls fn(arg, piece, lane) for each piece in [0, count), in any order; returns when all are done. No two calls of fn with the same lane
 * (below team_size) run at once: a lane may have memory of its own. One team_run at a time. t NULL: the caller alone, pieces ascending,
 * lane 0. */
void team_run(
    struct team *t, size_t count, void (*fn)(void *arg, size_t piece, unsigned lane), void *arg);
/* Into how many pieces, at most `most`, work of so many multiply-adds should be divided. */
size_t team_pieces(struct team *t, double work, size_t most);
/* Returns t, or NULL if the work is too small to share: for work whose pieces are fixed. */
struct team *team_worth(struct team *t, double work);

/* n equal items, which may be divided anywhere. */
struct team_work {
	size_t n, least; /* least: the fewest items of a piece, above 0 */
	double each; /* multiply-adds of an item */
	void (*fn)(void *arg, size_t first, size_t count, unsigned lane);
	void *arg;
};
/* As team_run, in as many pieces as the work is worth. */
void team_share(struct team *t, const struct team_work *w);
/* team_share for n elements of arrays, `each` multiply-adds an element. */
#define TEAM_MOVE 8.0 /* `each` of an element that is moved or added to */
void team_elements(struct team *t, size_t n, double each,
    void (*fn)(void *arg, size_t first, size_t count, unsigned lane), void *arg);
/* Into how many groups of at most `most` items to divide n items: a multiple of the number of threads, if n is large enough. */
size_t team_groups(const struct team *t, size_t n, size_t most);

#endif
