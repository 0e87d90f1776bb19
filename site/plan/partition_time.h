#ifndef PARTITION_TIME_H
#define PARTITION_TIME_H
#include "partition.h"

/*
 * The terms of partition_time, for the search: a step's time follows from three figures of a division (P, S and the gradient behind E) and
 * grows with each. Pure.
 */
struct partition_shape {
	const struct partition_in *in;
	struct layout layout; /* its cuts do not count */
	/* By stage. */
	double factors[LINK_RANKS_MAX + 1]; /* of the slowest replica */
	double feeds[LINK_RANKS_MAX + 1]; /* seconds of a piece's input and answer on the link */
};
struct partition_shape partition_time_shape(
    const struct partition_in *in, const struct layout *layout);

/* A place where stages may meet: in front of a layer. */
struct partition_point {
	size_t layer;
	/* Of all layers before. */
	double seconds;
	double gradient; /* bytes; exact up to 2^53 */
	unsigned work; /* how many do */
	/* What crosses here of a piece, in each direction; 0 at both ends. */
	uint64_t bytes;
	double cross_s;
};
/* *at moves on to a layer behind it; {0} is the first point. */
void partition_time_move(const struct partition_in *in, struct partition_point *at, size_t layer);

/* What a stage adds to the figures of its rank and of the division. */
struct partition_load {
	double compute_s, link_s, gradient;
	double through_s; /* to S, its first cut included */
	bool works;
};
struct partition_load partition_time_load(const struct partition_shape *s, unsigned stage,
    const struct partition_point *first, const struct partition_point *last);
/* Of a rank with two stages. */
struct partition_load partition_time_both(
    const struct partition_load *a, const struct partition_load *b);
double partition_time_period(const struct partition_load *load);

double partition_time_step(
    const struct partition_shape *s, double period, double gradient, double through_s);

/* What the rank of a stage of a replica has in memory. */
struct partition_range partition_time_range(const struct partition_shape *s, unsigned replica,
    unsigned stage, size_t first, size_t last, size_t tail_first);

#endif
