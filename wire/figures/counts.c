#include "counts.h"

#include <math.h>
#include <stdlib.h>

/* Sums of binary64 over up to 2^53 values, in any order: so much may a bound that they obey be missed. */
#define ROUNDING 1e-6

bool
counts_exceed(const struct figure_set *wanted, size_t classes)
{
	return figure_set_bytes(wanted, classes, classes * classes) > FIGURE_SET_BYTES_MAX;
}

enum err
counts_new(struct counts **out, const struct figure_set *wanted, size_t classes, struct why *why)
{
	*out = NULL;
	if (counts_exceed(wanted, classes))
		return err_set(
		    why, ERR_LIMIT, "evaluate.figures: too many for %zu classes", classes);
	struct counts *c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(why, ERR_NOMEM, "no memory for figures");
	c->wanted = *wanted;
	c->class_count = classes;
	if (wanted->classes)
		c->classes = calloc(classes, sizeof(*c->classes));
	if (wanted->confusion)
		c->confusion = calloc(classes * classes, sizeof(*c->confusion));
	if (wanted->auc)
		c->bins = calloc(COUNTS_BINS, sizeof(*c->bins));
	if ((wanted->classes && !c->classes) || (wanted->confusion && !c->confusion) ||
	    (wanted->auc && !c->bins)) {
		counts_free(c);
		return err_set(why, ERR_NOMEM, "no memory for figures");
	}
	*out = c;
	return ERR_OK;
}

void
counts_free(struct counts *c)
{
	if (!c)
		return;
	free(c->classes);
	free(c->confusion);
	free(c->bins);
	free(c);
}

static void
add(uint64_t *to, uint64_t n)
{
	*to = n > COUNTS_MAX - *to ? COUNTS_MAX : *to + n;
}

static void
add_regression(struct counts_regression *to, const struct counts_regression *from)
{
	add(&to->values, from->values);
	to->absolute += from->absolute;
	to->squares += from->squares;
	to->sum += from->sum;
	to->sum_squares += from->sum_squares;
}

void
counts_add(struct counts *to, const struct counts *from)
{
	add(&to->examples, from->examples);
	add(&to->reports, from->reports > 0 ? from->reports : 1);
	for (size_t i = 0; to->classes && i < to->class_count; i++) {
		add(&to->classes[i].examples, from->classes[i].examples);
		add(&to->classes[i].predicted, from->classes[i].predicted);
		add(&to->classes[i].right, from->classes[i].right);
	}
	for (size_t i = 0; to->confusion && i < to->class_count * to->class_count; i++)
		add(&to->confusion[i], from->confusion[i]);
	for (size_t i = 0; i < to->wanted.top_count; i++)
		add(&to->top[i], from->top[i]);
	add_regression(&to->regression, &from->regression);
	for (size_t i = 0; to->bins && i < COUNTS_BINS; i++) {
		add(&to->bins[i].positive, from->bins[i].positive);
		add(&to->bins[i].negative, from->bins[i].negative);
	}
}

/* --- what one device may say */

/* How many all counts are to add up to, and who says so. */
struct basis {
	uint64_t count;
	const char *name;
};

static uint64_t
all_classes(const struct counts *c)
{
	uint64_t all = 0;

	for (size_t i = 0; c->classes && i < c->class_count; i++)
		add(&all, c->classes[i].examples);
	for (size_t i = 0; !c->classes && c->confusion && i < c->class_count * c->class_count; i++)
		add(&all, c->confusion[i]);
	for (size_t i = 0; !c->classes && !c->confusion && i < COUNTS_BINS; i++) {
		add(&all, c->bins[i].positive);
		add(&all, c->bins[i].negative);
	}
	return all;
}

/* Labels, where it says how many counted; else all examples, unless these may be fewer and the counts themselves show it. */
static struct basis
basis_of(const struct counts *c, const struct counts_said *said)
{
	bool shows = c->classes || c->confusion || c->bins;

	if (said->has_labels && !c->wanted.regression)
		return (struct basis){said->labels, "evaluate.labels"};
	if (c->wanted.skips && shows)
		return (struct basis){all_classes(c), "what the others add up to"};
	return (struct basis){said->examples, "evaluate.examples"};
}

static enum err
check_basis(const struct counts *c, const struct basis *b, uint64_t examples, struct why *why)
{
	uint64_t most = c->wanted.labels > 1 ? c->wanted.labels : 1;

	if (b->count / most < examples || (b->count / most == examples && b->count % most == 0))
		return ERR_OK;
	return err_set(why, ERR_INVALID,
	    "more was counted than evaluate.examples times %llu labels: data.shape or data.window "
	    "says "
	    "how many an example can have",
	    (unsigned long long)most);
}

static enum err
check_classes(const struct counts *c, const struct basis *b, struct why *why)
{
	uint64_t all = 0, predicted = 0;

	for (size_t i = 0; i < c->class_count; i++) {
		const struct counts_class *k = &c->classes[i];
		if (k->right > k->examples || k->right > k->predicted)
			return err_set(why, ERR_INVALID,
			    "evaluate.classes: of class %zu more are right than there are", i);
		add(&all, k->examples);
		add(&predicted, k->predicted);
	}
	return all == b->count && predicted == b->count
	    ? ERR_OK
	    : err_set(why, ERR_INVALID, "evaluate.classes does not add up to %s", b->name);
}

static enum err
check_confusion(const struct counts *c, const struct basis *b, struct why *why)
{
	uint64_t all = 0;

	for (size_t i = 0; i < c->class_count; i++) {
		uint64_t row = 0, column = 0;
		for (size_t k = 0; k < c->class_count; k++) {
			add(&row, c->confusion[i * c->class_count + k]);
			add(&column, c->confusion[k * c->class_count + i]);
		}
		add(&all, row);
		const struct counts_class *of = c->classes ? &c->classes[i] : NULL;
		if (of &&
		    (row != of->examples || column != of->predicted ||
			c->confusion[i * c->class_count + i] != of->right))
			return err_set(why, ERR_INVALID,
			    "evaluate.confusion and evaluate.classes differ in class %zu", i);
	}
	return all == b->count
	    ? ERR_OK
	    : err_set(why, ERR_INVALID, "evaluate.confusion does not add up to %s", b->name);
}

static enum err
check_top(const struct counts *c, const struct basis *b, struct why *why)
{
	uint64_t before = 0;

	for (size_t i = 0; i < c->wanted.top_count; i++) {
		if (c->top[i] > b->count || c->top[i] < before)
			return err_set(why, ERR_INVALID,
			    "evaluate.top: falls with k, or is more than %s", b->name);
		before = c->top[i];
	}
	return ERR_OK;
}

/* Cauchy and Schwarz: the square of a sum of n numbers is at most n times the sum of their squares. */
static bool
is_sum(double sum, double squares, uint64_t n)
{
	return squares >= 0 && fabs(sum) <= sqrt((double)n * squares) * (1 + ROUNDING);
}

static enum err
check_regression(const struct counts *c, uint64_t examples, struct why *why)
{
	const struct counts_regression *r = &c->regression;
	uint64_t outputs = c->wanted.outputs > 0 ? c->wanted.outputs : FIGURE_SET_OUTPUTS_MAX;

	if (examples == 0 ? r->values != 0 : r->values == 0 || r->values % examples != 0)
		return err_set(why, ERR_INVALID,
		    "evaluate.regression.values is no multiple of evaluate.examples");
	if (examples > 0 && r->values / examples > outputs)
		return err_set(why, ERR_INVALID,
		    "evaluate.regression.values is more than evaluate.examples times %llu outputs",
		    (unsigned long long)outputs);
	if (r->absolute < 0 || !is_sum(r->absolute, r->squares, r->values) ||
	    !is_sum(r->sum, r->sum_squares, r->values))
		return err_set(why, ERR_INVALID,
		    "evaluate.regression: a sum is larger than its sum of squares allows");
	return ERR_OK;
}

static enum err
check_bins(const struct counts *c, const struct basis *b, struct why *why)
{
	uint64_t all = 0, positive = 0;

	for (size_t i = 0; i < COUNTS_BINS; i++) {
		add(&all, c->bins[i].positive);
		add(&all, c->bins[i].negative);
		add(&positive, c->bins[i].positive);
	}
	if (all != b->count)
		return err_set(why, ERR_INVALID, "evaluate.auc does not add up to %s", b->name);
	if (c->classes && positive != c->classes[1].examples)
		return err_set(
		    why, ERR_INVALID, "evaluate.auc and evaluate.classes differ in class 1");
	return ERR_OK;
}

enum err
counts_check(struct counts *c, const struct counts_said *said, struct why *why)
{
	const struct basis b = basis_of(c, said);
	enum err e = check_basis(c, &b, said->examples, why);

	c->examples = b.count;
	if (!e && c->classes)
		e = check_classes(c, &b, why);
	if (!e && c->confusion)
		e = check_confusion(c, &b, why);
	if (!e)
		e = check_top(c, &b, why);
	if (!e && c->wanted.regression)
		e = check_regression(c, said->examples, why);
	if (!e && c->bins)
		e = check_bins(c, &b, why);
	return e;
}
