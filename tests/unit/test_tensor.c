/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tensor.h"

static void
names_and_sizes(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t size;
	} known[] = {{"F32", 4}, {"F64", 8}, {"F16", 2}, {"BF16", 2}, {"I8", 1}, {"U8", 1},
	    {"I16", 2}, {"U16", 2}, {"I32", 4}, {"U32", 4}, {"I64", 8}, {"U64", 8}, {"BOOL", 1}};
	enum tensor_dtype d;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_true(tensor_dtype_find(known[i].name, &d));
		assert_int_equal(tensor_dtype_size(d), known[i].size);
		assert_string_equal(tensor_dtype_name(d), known[i].name);
	}
	assert_false(tensor_dtype_find("F8_E4M3", &d));
	assert_false(tensor_dtype_find("f32", &d));
}

static void
make(struct tensor_table *t)
{
	*t = (struct tensor_table){0};
	assert_int_equal(tensor_table_add(t, "fc1.weight", (uint64_t[]){3, 4}, 2, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(t, "fc1.bias", (uint64_t[]){3}, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(t, "scale", NULL, 0, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(t, "fc2.weight", (uint64_t[]){2, 3}, 2, NULL), ERR_OK);
}

static void
add(void **state)
{
	(void)state;
	struct tensor_table t;
	struct why why;

	make(&t);
	assert_int_equal(t.count, 4);
	assert_int_equal(t.elements, 22);
	assert_int_equal(t.bytes, 88);
	const struct tensor *scale = tensor_table_find(&t, "scale");
	assert_non_null(scale);
	assert_int_equal(scale->elements, 1);
	assert_int_equal(scale->begin, 60);
	assert_int_equal(scale->end, 64);
	assert_int_equal(scale->first, 15);
	assert_true(scale->in_delta);
	assert_null(tensor_table_find(&t, "nope"));
	assert_int_equal(tensor_table_add(&t, "scale", NULL, 0, &why), ERR_EXISTS);
	assert_non_null(strstr(why.text, "scale"));
	assert_int_equal(t.count, 4);
	tensor_table_deinit(&t);
	assert_null(t.items);
}

static void
add_refused(void **state)
{
	(void)state;
	struct tensor_table t = {0};
	char name[TENSOR_NAME_MAX + 1];
	uint64_t ones[TENSOR_DIMS_MAX + 1];

	for (size_t i = 0; i < TENSOR_DIMS_MAX + 1; i++)
		ones[i] = 1;
	memset(name, 'a', TENSOR_NAME_MAX);
	name[TENSOR_NAME_MAX] = '\0';
	assert_int_equal(tensor_table_add(&t, name, ones, 1, NULL), ERR_LIMIT);
	assert_int_equal(
	    tensor_table_add(&t, name + 1, ones, TENSOR_DIMS_MAX + 1, NULL), ERR_LIMIT);
	assert_int_equal(tensor_table_add(&t, "", ones, 1, NULL), ERR_INVALID);
	assert_int_equal(tensor_table_add(&t, "a\nb", ones, 1, NULL), ERR_INVALID);
	assert_int_equal(tensor_table_add(&t, "__metadata__", ones, 1, NULL), ERR_INVALID);
	assert_int_equal(
	    tensor_table_add(&t, "a", (uint64_t[]){1ull << 40, 1ull << 40}, 2, NULL), ERR_LIMIT);
	assert_int_equal(
	    tensor_table_add(&t, "a", (uint64_t[]){1ull << 33, 1ull << 33, 0}, 3, NULL), ERR_LIMIT);
	assert_int_equal(t.count, 0);
	assert_int_equal(tensor_table_add(&t, name + 1, ones, TENSOR_DIMS_MAX, NULL), ERR_OK);
	assert_int_equal(
	    tensor_table_add(&t, "a", (uint64_t[]){TENSOR_BYTES_MAX / 4}, 1, NULL), ERR_LIMIT);
	assert_int_equal(
	    tensor_table_add(&t, "a", (uint64_t[]){TENSOR_BYTES_MAX / 4 - 1}, 1, NULL), ERR_OK);
	tensor_table_deinit(&t);
}

static void
count_limit(void **state)
{
	(void)state;
	struct tensor_table t = {0};
	char name[16];

	for (unsigned i = 0; i < TENSOR_COUNT_MAX; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		assert_int_equal(tensor_table_add(&t, name, NULL, 0, NULL), ERR_OK);
	}
	assert_int_equal(tensor_table_add(&t, "more", NULL, 0, NULL), ERR_LIMIT);
	assert_int_equal(t.elements, TENSOR_COUNT_MAX);
	tensor_table_deinit(&t);
}

static void
assign(void **state)
{
	(void)state;
	static const struct tensor_rule rules[] = {
	    {"fc1.bias", TENSOR_AVERAGE},
	    {"fc1.*", TENSOR_FROZEN},
	    {"s*l*", TENSOR_LOCAL},
	};
	struct tensor_table t;

	make(&t);
	assert_int_equal(tensor_table_assign(&t, rules, 3, NULL), ERR_OK);
	assert_int_equal(t.items[0].role, TENSOR_FROZEN);
	assert_int_equal(t.items[1].role, TENSOR_AVERAGE);
	assert_int_equal(t.items[2].role, TENSOR_LOCAL);
	assert_int_equal(t.items[3].role, TENSOR_TRAIN);
	assert_false(t.items[0].in_delta);
	assert_true(t.items[1].in_delta);
	assert_int_equal(t.items[1].first, 0);
	assert_int_equal(t.items[3].first, 3);
	assert_int_equal(t.elements, 9);
	assert_int_equal(t.bytes, 88);
	assert_int_equal(tensor_table_assign(&t, NULL, 0, NULL), ERR_OK);
	assert_int_equal(t.elements, 22);
	tensor_table_deinit(&t);
}

static void
assign_wrong_type(void **state)
{
	(void)state;
	struct tensor_rule rule = {"*", TENSOR_TRAIN};
	struct tensor_table t;
	struct why why;

	make(&t);
	t.items[2].dtype = TENSOR_I32;
	assert_int_equal(tensor_table_assign(&t, &rule, 1, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "scale"));
	assert_int_equal(t.elements, 22);
	rule.role = TENSOR_AVERAGE;
	assert_int_equal(tensor_table_assign(&t, &rule, 1, NULL), ERR_INVALID);
	assert_int_equal(tensor_table_assign(&t, NULL, 0, NULL), ERR_OK);
	assert_int_equal(t.items[2].role, TENSOR_FROZEN);
	tensor_table_deinit(&t);
}

static void
patterns(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *name;
		bool match;
	} cases[] = {{"*", "x", true}, {"a", "a", true}, {"a", "ab", false}, {"ab", "a", false},
	    {"a*", "a", true}, {"*b", "aab", true}, {"*b", "aba", false},
	    {"a*b*c", "axxbyyc", true}, {"a*b*c", "axxbyyd", false}, {"*ab", "aaab", true},
	    {"*aab*", "aaaab", true}, {"**", "x", true}, {"", "x", false}, {"?", "x", false},
	    {"A", "a", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tensor_rule rule = {.role = TENSOR_FROZEN};
		struct tensor_table t = {0};
		snprintf(rule.pattern, sizeof(rule.pattern), "%s", cases[i].pattern);
		assert_int_equal(tensor_table_add(&t, cases[i].name, NULL, 0, NULL), ERR_OK);
		assert_int_equal(tensor_table_assign(&t, &rule, 1, NULL), ERR_OK);
		assert_int_equal(t.items[0].role == TENSOR_FROZEN, cases[i].match);
		tensor_table_deinit(&t);
	}
}

static void
same_and_copy(void **state)
{
	(void)state;
	struct tensor_table a, b;

	make(&a);
	assert_int_equal(tensor_table_copy(&b, &a), ERR_OK);
	assert_true(tensor_table_same(&a, &b));
	assert_int_equal(b.elements, 22);
	assert_ptr_not_equal(a.items, b.items);
	b.items[0].role = TENSOR_FROZEN;
	assert_true(tensor_table_same(&a, &b));
	b.items[0].shape[0] = 4;
	b.items[0].shape[1] = 3;
	assert_false(tensor_table_same(&a, &b));
	b.items[0] = a.items[0];
	b.items[2].dims = 1;
	b.items[2].shape[0] = 1;
	assert_false(tensor_table_same(&a, &b));
	b.items[2] = a.items[2];
	assert_int_equal(tensor_table_add(&b, "fifth", NULL, 0, NULL), ERR_OK);
	assert_false(tensor_table_same(&a, &b));
	tensor_table_deinit(&a);
	tensor_table_deinit(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_and_sizes),
	    cmocka_unit_test(add),
	    cmocka_unit_test(add_refused),
	    cmocka_unit_test(count_limit),
	    cmocka_unit_test(assign),
	    cmocka_unit_test(assign_wrong_type),
	    cmocka_unit_test(patterns),
	    cmocka_unit_test(same_and_copy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
