/* stages: gcc clang openssl address */
/* The ratios against numbers computed by hand and by scikit-learn 1.x (the calls stand beside them), to 1e-12. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "figures.h"
#include "scoring.h"

static struct counts *
make(const struct figure_set *set, size_t classes)
{
	struct counts *c;

	assert_int_equal(counts_new(&c, set, classes, NULL), ERR_OK);
	return c;
}

static bool
near(double a, double b)
{
	return fabs(a - b) < 1e-12;
}

/* Outputs whose largest is the class. */
static void
predict(struct counts *c, int32_t truth, size_t taken, size_t width)
{
	float row[8] = {0};

	row[taken] = 1;
	scoring_classes(c, row, &truth, 1, width);
}

/* y = [0]*5 + [1]*4 + [2]*3; p = [0,0,0,1,2, 1,1,0,1, 2,1,1]; precision_recall_fscore_support(y, p, labels=range(4), zero_division=0)
 * and the same with average="macro", which leaves class 3 out: it occurs nowhere. */
static void
of_classes(void **state)
{
	static const int truths[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2};
	static const int taken[] = {0, 0, 0, 1, 2, 1, 1, 0, 1, 2, 1, 1};
	static const double recall[] = {0.6, 0.75, 1.0 / 3}, precision[] = {0.75, 0.5, 0.5},
			    f1[] = {2.0 / 3, 0.6, 0.4};
	static const uint64_t matrix[] = {3, 1, 1, 0, 1, 3, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0};
	const struct figure_set set = {.classes = true, .confusion = true};
	struct counts *c = make(&set, 4);
	struct figures f;

	(void)state;
	for (size_t i = 0; i < 12; i++)
		predict(c, truths[i], (size_t)taken[i], 4);
	assert_int_equal(figures_of(&f, c), ERR_OK);
	for (size_t i = 0; i < 3; i++)
		assert_true(near(f.classes[i].recall, recall[i]) &&
		    near(f.classes[i].precision, precision[i]) && near(f.classes[i].f1, f1[i]));
	assert_true(
	    isnan(f.classes[3].recall) && isnan(f.classes[3].precision) && isnan(f.classes[3].f1));
	assert_true(near(f.macro.precision, 0.5833333333333334) &&
	    near(f.macro.recall, 0.5611111111111111) && near(f.macro.f1, 0.5555555555555555));
	assert_memory_equal(c->confusion, matrix, sizeof(matrix));
	assert_int_equal(counts_check(c, &(struct counts_said){.examples = 12}, NULL), ERR_OK);
	figures_deinit(&f);
	counts_free(c);
}

/* Equal outputs go by their index, as the argmax of the loss. */
static void
top_k(void **state)
{
	static const float rows[][4] = {{1, 2, 3, 4}, {4, 3, 2, 1}, {1, 1, 1, 1}};
	static const int32_t labels[] = {2, 2, 1};
	const struct figure_set set = {.tops = {1, 2, 3}, .top_count = 3};
	struct counts *c = make(&set, 4);
	struct figures f;

	(void)state;
	scoring_classes(c, rows[0], labels, 3, 4);
	assert_int_equal(figures_of(&f, c), ERR_OK);
	assert_true(f.top[0] == 0 && near(f.top[1], 2.0 / 3) && f.top[2] == 1);
	figures_deinit(&f);
	counts_free(c);
}

/* mean_absolute_error and r2_score of ([3, -0.5, 2, 7], [2.5, 0, 2, 8]), the example of scikit-learn's documentation. */
static void
of_numbers(void **state)
{
	static const float y[] = {3, -0.5F, 2, 7}, p[] = {2.5F, 0, 2, 8}, flat[] = {2, 2, 2, 2};
	const struct figure_set set = {.regression = true};
	struct counts *c = make(&set, 0), *none = make(&set, 0);
	struct figures f;

	(void)state;
	scoring_values(c, p, y, 2, 2);
	assert_int_equal(figures_of(&f, c), ERR_OK);
	assert_true(near(f.mae, 0.5) && near(f.r2, 0.9486081370449679));
	assert_int_equal(counts_check(c, &(struct counts_said){.examples = 2}, NULL), ERR_OK);
	assert_int_equal(figures_of(&f, none), ERR_OK);
	assert_true(isnan(f.mae) && isnan(f.r2));
	scoring_values(none, p, flat, 4, 1);
	assert_int_equal(figures_of(&f, none), ERR_OK);
	assert_true(isnan(f.r2) && near(f.mae, (0.5 + 2 + 0 + 6) / 4));
	counts_free(c);
	counts_free(none);
}

/* roc_auc_score([0,0,1,1,1,0], [1,2,2,3,1,1]) = 13/18: ties count half. */
static void
area_under_the_curve(void **state)
{
	static const int32_t labels[] = {0, 0, 1, 1, 1, 0};
	static const float scores[] = {1, 2, 2, 3, 1, 1};
	const struct figure_set set = {.auc = true};
	struct counts *c = make(&set, 2);
	struct figures f;

	(void)state;
	assert_int_equal(figures_of(&f, c), ERR_OK);
	assert_true(isnan(f.auc));
	for (size_t i = 0; i < 6; i++)
		scoring_classes(c, (const float[]){0, scores[i]}, &labels[i], 1, 2);
	assert_int_equal(figures_of(&f, c), ERR_OK);
	assert_true(near(f.auc, 13.0 / 18));
	counts_free(c);
}

/* The bins rise with the score and stay inside, whatever the outputs. */
static void
bins_of_scores(void **state)
{
	static const float z[] = {-3.4e38F, -100, -1, -0.01F, 0, 0.01F, 1, 100, 3.4e38F};
	const struct figure_set set = {.auc = true};
	size_t before = 0;

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		struct counts *c = make(&set, 2);
		size_t at = 0;
		scoring_classes(c, (const float[]){-z[i] / 2, z[i] / 2}, &(int32_t){1}, 1, 2);
		while (c->bins[at].positive == 0)
			at++;
		assert_true(i == 0 ? at == 0 : at > before || i == 8);
		before = at;
		counts_free(c);
	}
	assert_int_equal(before, COUNTS_BINS - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(of_classes),
	    cmocka_unit_test(top_k),
	    cmocka_unit_test(of_numbers),
	    cmocka_unit_test(area_under_the_curve),
	    cmocka_unit_test(bins_of_scores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
