#ifndef TEAM_H
#define TEAM_H
#include <stddef.h>

#include "err.h"

/*
 * Threads that work on pieces of one pass. What is cut up are outputs, never sums, so the bits do not hang on how many there are. They
 * sleep between calls that do not follow each other at once; whoever calls works along, so that a call is never later than without them
 * on a machine that has other things to do, but for the piece that a thread is at when the machine takes it away. Small work is not worth
 * waking them, and is shared only while they are awake.
 */
struct team;

/* `threads` in all, the caller's included, 1 to TEAM_MAX. */
#define TEAM_MAX 64
ERR_MUST_USE enum err team_new(struct team **out, unsigned threads);
void team_free(struct team *t);
/* Lanes. 1 for NULL. */
unsigned team_size(const struct team *t);
/* How many of them work, the first ones: all, until team_use says otherwise; it takes 1 or more, between calls. NULL: always 1. */
unsigned team_active(const struct team *t);
void team_use(struct team *t, unsigned threads);
/* fn(arg, piece, lane) for each piece in [0, count), in any order; returns when all are done. No two calls with one lane, which is below
 * team_size, run at once: a lane may have memory of its own. One call at a time. t NULL: the caller alone, pieces ascending, lane 0. */
void team_run(
    struct team *t, size_t count, void (*fn)(void *arg, size_t piece, unsigned lane), void *arg);
/* How many pieces work of so many multiply-adds, of at most `most` parts, is worth. */
size_t team_pieces(struct team *t, double work, size_t most);
/* t, or NULL where so much is worth one piece: for pieces that are what they are. */
struct team *team_worth(struct team *t, double work);

/* Equal things in a row, each worth `each` multiply-adds. */
struct team_work {
	size_t n, least; /* of a piece, but where n is less; above 0 */
	double each;
	void (*fn)(void *arg, size_t first, size_t count, unsigned lane);
	void *arg;
};
/* As team_run, in as many pieces as it is worth. */
void team_share(struct team *t, const struct team_work *w);
/* The same of n elements of arrays, `each` of them worth so many multiply-adds. */
#define TEAM_MOVE 8.0 /* one that is moved or added to */
void team_elements(struct team *t, size_t n, double each,
    void (*fn)(void *arg, size_t first, size_t count, unsigned lane), void *arg);
/* How many groups n things make, at most so many in each: as many groups for each thread, if there are enough. */
size_t team_groups(const struct team *t, size_t n, size_t most);

#endif
