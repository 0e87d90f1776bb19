#ifndef COUNTS_H
#define COUNTS_H
#include "err.h"
#include "figure_set.h"
#include "json.h"

/*
 * What figures are made of, as sums over examples, so that adding what devices counted gives the counts of all their examples
 * together. One device's, or a fleet's. round/policy/figures.h makes ratios of them.
 */
#define COUNTS_BINS 256
#define COUNTS_MAX JSON_INT_MAX /* a sum goes no further */

struct counts_class {
	uint64_t examples; /* of this class, */
	uint64_t predicted; /* taken for it, */
	uint64_t right; /* and both */
};

/* Over all numbers that were to be predicted: y, and the error e = prediction - y. */
struct counts_regression {
	uint64_t values;
	double absolute, squares; /* sums of |e| and e^2 */
	double sum, sum_squares; /* of y and y^2 */
};

struct counts_bin {
	uint64_t positive, negative; /* of class 1, of class 0 */
};

struct counts {
	struct figure_set wanted; /* what is not wanted is zero or NULL */
	size_t class_count;
	/* examples: how many counted, of classes labels; reports: how many were added up, 0 of one device */
	uint64_t examples, reports;
	struct counts_class *classes; /* class_count */
	uint64_t *
	    confusion; /* class_count rows, by what the examples are, of as many, by what they were taken for */
	uint64_t top[FIGURE_SET_TOPS_MAX]; /* right by each of wanted.tops */
	struct counts_regression regression;
	struct counts_bin *bins; /* COUNTS_BINS, by rising score */
};

/* Would such counts of one example each not fit into a report? */
bool counts_exceed(const struct figure_set *wanted, size_t classes);
/* All zero. ERR_LIMIT if such counts of one example each would not fit into a report (FIGURE_SET_BYTES_MAX); ERR_NOMEM. */
ERR_MUST_USE enum err counts_new(
    struct counts **out, const struct figure_set *wanted, size_t classes, struct why *why);
void counts_free(struct counts *c);
/* Both are of the same figures and classes. Counts stay at COUNTS_MAX. */
void counts_add(struct counts *to, const struct counts *from);
/* What a device says that its evaluation is of. */
struct counts_said {
	uint64_t examples;
	bool has_labels; /* else it does not say how many of theirs counted */
	uint64_t labels;
};
/* Can one device, which says this of its evaluation, have counted so? c->examples becomes how many counted. ERR_INVALID says what
 * contradicts what. */
ERR_MUST_USE enum err counts_check(
    struct counts *c, const struct counts_said *said, struct why *why);

#endif
