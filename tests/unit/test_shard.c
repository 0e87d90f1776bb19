/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "prng.h"
#include "shard.h"

#define EXAMPLES 1003
#define CLASSES 10
#define DIRICHLET_COUNT 172
#define DIRICHLET_SUM UINT64_C(8024788892007330124)

static int32_t labels[EXAMPLES];

static int
draw_labels(void **state)
{
	struct prng rng;

	(void)state;
	prng_seed(&rng, 5);
	for (size_t i = 0; i < EXAMPLES; i++)
		labels[i] = (int32_t)prng_below(&rng, CLASSES);
	return 0;
}

/* Each example belongs to exactly one of the shards, and sizes differ by at most `spread`. */
static void
check_partition(uint32_t count, bool by_label, uint64_t seed, size_t spread)
{
	uint8_t seen[EXAMPLES] = {0};
	size_t least = EXAMPLES, most = 0;

	for (uint32_t i = 1; i <= count; i++) {
		const struct shard shard = {.index = i,
		    .count = count,
		    .partition = by_label ? SHARD_LABEL : SHARD_IID,
		    .seed = seed};
		uint32_t *keep;
		size_t n;
		assert_int_equal(shard_pick(&keep, &n, &shard, labels, EXAMPLES, NULL), ERR_OK);
		for (size_t k = 0; k < n; k++) {
			assert_true(keep[k] < EXAMPLES);
			assert_true(k == 0 || keep[k] > keep[k - 1]);
			seen[keep[k]]++;
		}
		least = n < least ? n : least;
		most = n > most ? n : most;
		free(keep);
	}
	for (size_t i = 0; i < EXAMPLES; i++)
		assert_int_equal(seen[i], 1);
	assert_true(most - least <= spread);
}

static void
test_partition(void **state)
{
	static const uint32_t counts[] = {1, 2, 3, 7, 100, 500};

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		check_partition(counts[i], false, 1 + i, 1);
		check_partition(counts[i], true, 1 + i, 2);
	}
	check_partition(EXAMPLES, false, 3, 0);
}

static size_t
classes_of(const struct shard *shard)
{
	bool seen[CLASSES] = {false};
	uint32_t *keep;
	size_t n, distinct = 0;

	assert_int_equal(shard_pick(&keep, &n, shard, labels, EXAMPLES, NULL), ERR_OK);
	for (size_t k = 0; k < n; k++)
		seen[labels[keep[k]]] = true;
	for (size_t c = 0; c < CLASSES; c++)
		distinct += seen[c];
	free(keep);
	return distinct;
}

/* Two pieces of the label order: with many shards a piece spans at most two classes, so a shard at most four; an iid shard
 * of this size has far more. */
static void
test_by_label(void **state)
{
	size_t labelled = 0, iid = 0;

	(void)state;
	for (uint32_t i = 1; i <= 50; i++) {
		struct shard shard = {.index = i, .count = 50, .partition = SHARD_LABEL, .seed = 1};
		size_t distinct = classes_of(&shard);
		assert_in_range(distinct, 1, 4);
		labelled += distinct;
		shard.partition = SHARD_IID;
		iid += classes_of(&shard);
	}
	assert_true(iid > 2 * labelled);
}

static void
test_seed(void **state)
{
	struct shard shard = {.index = 2, .count = 5, .seed = 1};
	uint32_t *a, *b, *c;
	size_t n, m, k;

	(void)state;
	for (int by_label = 0; by_label < 2; by_label++) {
		shard.partition = by_label ? SHARD_LABEL : SHARD_IID;
		shard.seed = 1;
		assert_int_equal(shard_pick(&a, &n, &shard, labels, EXAMPLES, NULL), ERR_OK);
		assert_int_equal(shard_pick(&b, &m, &shard, labels, EXAMPLES, NULL), ERR_OK);
		shard.seed = 2;
		assert_int_equal(shard_pick(&c, &k, &shard, labels, EXAMPLES, NULL), ERR_OK);
		assert_int_equal(n, m);
		assert_memory_equal(a, b, n * sizeof(*a));
		assert_true(n != k || memcmp(a, c, n * sizeof(*a)) != 0);
		free(a);
		free(b);
		free(c);
	}
}

static void
test_refused(void **state)
{
	static const struct shard bad[] = {{.index = 0, .count = 4}, {.index = 5, .count = 4},
	    {.index = 1, .count = 0}, {.index = 1, .count = EXAMPLES + 1},
	    {.index = 1, .count = EXAMPLES, .partition = SHARD_LABEL}};
	uint32_t *keep;
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(
		    shard_pick(&keep, &n, &bad[i], labels, EXAMPLES, NULL), ERR_INVALID);
	const struct shard no_labels = {.index = 1, .count = 2, .partition = SHARD_LABEL};
	assert_int_equal(shard_pick(&keep, &n, &no_labels, NULL, EXAMPLES, NULL), ERR_INVALID);
}

static bool
lies_in(const uint32_t *items, size_t n, uint32_t item)
{
	while (n > 0 && items[n - 1] != item)
		n--;
	return n > 0;
}

/* Every example is on one side, both ascending, and only the seed decides on which. */
static void
test_hold(void **state)
{
	uint32_t *order, *again, *other;
	size_t held, held_again;

	(void)state;
	assert_int_equal(shard_hold(&order, &held, EXAMPLES, 0.25, 7), ERR_OK);
	assert_int_equal(shard_hold(&again, &held_again, EXAMPLES, 0.25, 7), ERR_OK);
	assert_int_equal(shard_hold(&other, &held_again, EXAMPLES, 0.25, 8), ERR_OK);
	assert_int_equal(held, EXAMPLES / 4);
	assert_memory_equal(order, again, EXAMPLES * sizeof(*order));
	assert_memory_not_equal(order, other, EXAMPLES * sizeof(*order));
	for (size_t i = 1; i < EXAMPLES; i++)
		assert_true(i == held || order[i - 1] < order[i]);
	for (uint32_t i = 0; i < EXAMPLES; i++)
		assert_true(lies_in(order, held, i) != lies_in(order + held, EXAMPLES - held, i));
	free(order);
	free(again);
	free(other);
	assert_int_equal(shard_held(100, 0), 0);
	assert_int_equal(shard_held(1, 0.5), 0);
	assert_int_equal(shard_held(2, 0.001), 1);
	assert_int_equal(shard_held(10, 0.25), 2);
	assert_int_equal(shard_hold(&order, &held, 0, 0.5, 1), ERR_OK);
	assert_int_equal(held, 0);
	free(order);
	if (sizeof(size_t) > 4)
		assert_int_equal(
		    shard_hold(&order, &held, (size_t)UINT32_MAX + 1, 0.5, 1), ERR_LIMIT);
}

/* Every example is in exactly one shard, whichever way the sizes go; returns the largest one's size. */
static size_t
check_cover(struct shard s, const int32_t *of)
{
	uint8_t seen[EXAMPLES] = {0};
	size_t most = 0;

	for (s.index = 1; s.index <= s.count; s.index++) {
		uint32_t *keep;
		size_t n;
		struct why why = {""};
		enum err e = shard_pick(&keep, &n, &s, of, EXAMPLES, &why);
		if (e) {
			assert_non_null(strstr(why.text, "is empty"));
			continue;
		}
		for (size_t k = 0; k < n; k++)
			seen[keep[k]]++;
		most = n > most ? n : most;
		free(keep);
	}
	for (size_t i = 0; i < EXAMPLES; i++)
		assert_int_equal(seen[i], 1);
	return most;
}

/* How many examples the shard has, and of how many classes. */
static size_t
size_of(const struct shard *s, const int32_t *of, size_t *classes)
{
	bool has[CLASSES] = {false};
	uint32_t *keep;
	size_t n;

	if (shard_pick(&keep, &n, s, of, EXAMPLES, NULL))
		return 0;
	*classes = 0;
	for (size_t k = 0; k < n; k++) {
		*classes += !has[labels[keep[k]]];
		has[labels[keep[k]]] = true;
	}
	free(keep);
	return n;
}

static void
test_dirichlet(void **state)
{
	struct shard s = {.count = 7, .partition = SHARD_DIRICHLET, .seed = 3};
	size_t few = 0, many = 0, classes;

	(void)state;
	static const double alphas[] = {0.001, 0.05, 1, 1000};
	for (size_t i = 0; i < 4; i++) {
		s.alpha = alphas[i];
		check_cover(s, labels);
	}
	for (s.index = 1; s.index <= 7; s.index++) {
		s.alpha = 0.1;
		few += size_of(&s, labels, &classes) ? classes : 0;
		s.alpha = 1000;
		size_t n = size_of(&s, labels, &classes);
		assert_in_range(n, 115, 170);
		many += classes;
	}
	assert_int_equal(many, 70);
	assert_true(few < 50);
	s.alpha = 0;
	s.index = 1;
	assert_int_equal(
	    shard_pick(&(uint32_t *){NULL}, &classes, &s, labels, EXAMPLES, NULL), ERR_INVALID);
}

/* What every machine must work out; the numbers are those of this code on x86-64. */
static void
test_dirichlet_same_everywhere(void **state)
{
	const struct shard s = {
	    .index = 2, .count = 4, .partition = SHARD_DIRICHLET, .alpha = 0.3, .seed = 11};
	uint32_t *keep;
	size_t n;
	uint64_t sum = 0;

	(void)state;
	assert_int_equal(shard_pick(&keep, &n, &s, labels, EXAMPLES, NULL), ERR_OK);
	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + keep[i];
	free(keep);
	assert_int_equal(n, DIRICHLET_COUNT);
	assert_true(sum == DIRICHLET_SUM);
}

static void
test_column(void **state)
{
	struct shard s = {.count = CLASSES, .partition = SHARD_COLUMN, .seed = 3};
	size_t classes;

	(void)state;
	check_cover(s, labels);
	for (s.index = 1; s.index <= CLASSES; s.index++) {
		assert_true(size_of(&s, labels, &classes) > 0);
		assert_int_equal(classes, 1);
	}
	s.count = 3;
	check_cover(s, labels);
	s.count = CLASSES + 1;
	check_cover(s, labels);
}

static void
test_powerlaw(void **state)
{
	struct shard s = {.count = 9, .partition = SHARD_POWERLAW, .alpha = 1.5, .seed = 3};
	size_t before = EXAMPLES, classes;

	(void)state;
	check_cover(s, NULL);
	for (s.index = 1; s.index <= 9; s.index++) {
		size_t n = size_of(&s, NULL, &classes);
		assert_true(n > 0 && n <= before + 1);
		before = n;
	}
	s.alpha = 0;
	assert_in_range(check_cover(s, NULL), EXAMPLES / 9, EXAMPLES / 9 + 2);
	s.alpha = 1000;
	assert_int_equal(check_cover(s, NULL), EXAMPLES - 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_partition),
	    cmocka_unit_test(test_by_label),
	    cmocka_unit_test(test_seed),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_hold),
	    cmocka_unit_test(test_dirichlet),
	    cmocka_unit_test(test_dirichlet_same_everywhere),
	    cmocka_unit_test(test_column),
	    cmocka_unit_test(test_powerlaw),
	};

	return cmocka_run_group_tests(tests, draw_labels, NULL);
}
