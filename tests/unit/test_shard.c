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
		const struct shard shard = {
		    .index = i, .count = count, .by_label = by_label, .seed = seed};
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
		struct shard shard = {.index = i, .count = 50, .by_label = true, .seed = 1};
		size_t distinct = classes_of(&shard);
		assert_in_range(distinct, 1, 4);
		labelled += distinct;
		shard.by_label = false;
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
		shard.by_label = by_label;
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
	    {.index = 1, .count = EXAMPLES, .by_label = true}};
	uint32_t *keep;
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(
		    shard_pick(&keep, &n, &bad[i], labels, EXAMPLES, NULL), ERR_INVALID);
	const struct shard no_labels = {.index = 1, .count = 2, .by_label = true};
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_partition),
	    cmocka_unit_test(test_by_label),
	    cmocka_unit_test(test_seed),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_hold),
	};

	return cmocka_run_group_tests(tests, draw_labels, NULL);
}
