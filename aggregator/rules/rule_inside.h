#ifndef RULE_INSIDE_H
#define RULE_INSIDE_H
#include "job.h"
#include "order.h"
#include "rule.h"

/* Inside of a rule: for rule*.c only. */

enum rule_form {
	RULE_SUM, /* a weighted mean of points */
	RULE_RANKS, /* coordinate by coordinate: the rows' values are sorted, and some ranks averaged (median, trimmed mean) */
	RULE_AROUND /* of each coordinate of the rows, the mean of those nearest to the median */
};
enum rule_pass { RULE_NORMS, RULE_DISTANCES, RULE_READY };

struct rule {
	struct rule_spec spec;
	struct rule_input in;
	bool compares; /* the rule compares whole deltas with each other */
	enum rule_pass pass;
	size_t points; /* deltas, and the centre behind them if there is one */
	unsigned strips;
	double *partial; /* of each strip: norms (points) or distances (points x points) */
	float *scales; /* of each delta; NULL: none is shortened */
	/* the plan */
	enum rule_form form;
	size_t *members; /* RULE_SUM: the points that count */
	double *weights; /* of the members */
	size_t member_count;
	size_t rows; /* RULE_RANKS, RULE_AROUND: how many rows are sorted */
	/* rows x points; 1: the point is one of those whose mean is the row. NULL: rows are the members. */
	uint8_t *mix;
	struct order *order;
	size_t keep; /* RULE_AROUND */
};

/* Reads a point with its scale. count <= RULE_TILE. */
ERR_MUST_USE enum err rule_read(
    const struct rule *r, size_t point, uint64_t first, size_t count, float *out);
/* The elements of strip `strip`: [*first, *end). */
void rule_strip(const struct rule *r, unsigned strip, uint64_t *first, uint64_t *end);
/* How many coordinates of n points are processed at a time: a multiple of 1024, at most RULE_TILE. */
size_t rule_width(size_t n);
/* rule_fold of the forms that sort. */
ERR_MUST_USE enum err rule_sort(const struct rule *r, uint64_t first, size_t count, float *update);

#endif
