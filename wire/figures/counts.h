#ifndef COUNTS_H
#define COUNTS_H
#include "err.h"
#include "figure_set.h"
#include "json.h"

/*
 * Counts, from which figures are computed: sums over examples, so that the sum of the counts of several devices is the counts of all their
 * examples together. round/policy/figures.h makes figures (ratios) of counts.
 */
#define COUNTS_BINS 256
#define COUNTS_MAX JSON_INT_MAX /* a sum goes no further */

struct counts_class {
	uint64_t examples; /* labelled with this class */
	uint64_t predicted; /* predicted as this class */
	uint64_t right; /* labelled with and predicted as this class */
};

/* Sums over all target numbers y and their errors e = prediction - y. */
struct counts_regression {
	uint64_t values;
	double absolute, squares; /* sums of |e| and e^2 */
	double sum, sum_squares; /* sums of y and y^2 */
};

struct counts_bin {
	/* Examples of class 1 and of class 0 with a score in this bin. */
	uint64_t positive, negative;
};

struct counts {
	struct figure_set wanted; /* what is not wanted is zero or NULL */
	size_t class_count;
	/* examples: how many examples counted, with classes how many labels. reports: how many counts were added up; 0: one device's */
	uint64_t examples, reports;
	struct counts_class *classes; /* class_count */
	/* class_count x class_count: a row for each true class, a column for each predicted class. */
	uint64_t *confusion;
	/* For each k of wanted.tops: examples with the true class among the first k. */
	uint64_t top[FIGURE_SET_TOPS_MAX];
	struct counts_regression regression;
	struct counts_bin *bins; /* COUNTS_BINS, by rising score */
};

/* Would counts of one example for each pair of true and predicted class be too long for a report (FIGURE_SET_BYTES_MAX)? */
bool counts_exceed(const struct figure_set *wanted, size_t classes);
/* Makes counts that are all zero. ERR_LIMIT if counts_exceed; ERR_NOMEM. */
ERR_MUST_USE enum err counts_new(
    struct counts **out, const struct figure_set *wanted, size_t classes, struct why *why);
void counts_free(struct counts *c);
/* Adds `from` to `to`, which has the same figures and classes. A count that reaches COUNTS_MAX stays there. */
void counts_add(struct counts *to, const struct counts *from);
/* How many examples and labels a device reports for its evaluation. */
struct counts_said {
	uint64_t examples;
	bool has_labels; /* false: the report does not say how many labels counted */
	uint64_t labels; /* that counted */
};
/* Checks that one device's counts agree with each other and with *said; sets c->examples. ERR_INVALID: `why` says what contradicts what. */
ERR_MUST_USE enum err counts_check(
    struct counts *c, const struct counts_said *said, struct why *why);

#endif
