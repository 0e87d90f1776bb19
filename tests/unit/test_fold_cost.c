/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "fold_cost.h"
#include "job.h"
#include "tensor.h"

/* The new model, what is kept, and the rule's tiles; more of each for more of it. */
static void
costs(void **state)
{
	struct aggregate_spec spec = {.rule.name = "mean", .optimizer = "sgd", .rate = 1};
	const struct download_spec whole = {.feedback = false};
	struct tensor_table table = {.items = NULL};
	static const uint64_t shape[] = {1000, 1000};

	(void)state;
	assert_int_equal(tensor_table_add(&table, "fc.weight", shape, 2, NULL), ERR_OK);
	struct fold_cost plain = fold_cost(&spec, &whole, &table, 10, 2);
	assert_true(plain.work == 1e6 * 18);
	assert_true(plain.bytes > 4000000 && plain.bytes < 4000000 + (3 << 20));
	snprintf(spec.optimizer, sizeof(spec.optimizer), "adam");
	spec.beta1 = 0.9;
	spec.beta2 = 0.99;
	spec.tau = 1e-3;
	struct fold_cost adam = fold_cost(&spec, &whole, &table, 10, 2);
	assert_true(adam.work == plain.work + 8e6 && adam.bytes == plain.bytes + 8000000);
	snprintf(spec.rule.name, sizeof(spec.rule.name), "median");
	struct fold_cost median = fold_cost(&spec, &whole, &table, 10, 2);
	assert_true(median.work > adam.work && median.bytes == adam.bytes + (14 << 20));
	snprintf(spec.rule.name, sizeof(spec.rule.name), "none");
	assert_true(fold_cost(&spec, &whole, &table, 10, 2).work < plain.work);
	snprintf(spec.optimizer, sizeof(spec.optimizer), "none");
	assert_true(fold_cost(&spec, &whole, &table, 10, 2).bytes == 0);
	tensor_table_deinit(&table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(costs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
