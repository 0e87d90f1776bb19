/* stages: gcc clang address */
/* The randomness inside a step, drawn by place: what a number depends on, and on what it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "draw.h"
#include "net.h"
#include "nets.h"

#define SIZE 7
#define EXAMPLES 9
#define ALL ((size_t)SIZE * EXAMPLES)

static const struct draw origin = {
    .seed = 0x299f31d0a4093822, .step = 0x037013198a2e, .micro_batch = 0x7344};

/* The known answer of Philox (test_prng.c) for counter 243f6a88 85a308d3 13198a2e 03707344: block 0x08d3243f6a88 of "layer" 0x85a3. */
static void
layout(void **state)
{
	static const uint32_t words[] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
	uint64_t block = 0x08d3243f6a88;
	struct draw d = origin;
	float got[6];

	(void)state;
	d.example = block * 4 - 1;
	draw_floats(&d, 0x85a3, 1, got, 6);
	for (int i = 0; i < 4; i++)
		assert_true(got[i + 1] == (float)(words[i] >> 8) * 0x1p-24f);
}

/* A micro-batch drawn at once, or cut anywhere into passes, in any order. */
static void
any_cut(void **state)
{
	float whole[ALL], parts[ALL];

	(void)state;
	draw_floats(&origin, 3, SIZE, whole, ALL);
	for (uint32_t cut = 0; cut <= EXAMPLES; cut++) {
		struct draw d = origin;
		d.example = cut;
		draw_floats(&d, 3, SIZE, parts + (size_t)cut * SIZE, ALL - (size_t)cut * SIZE);
		d.example = 0;
		draw_floats(&d, 3, SIZE, parts, (size_t)cut * SIZE);
		assert_memory_equal(whole, parts, sizeof(whole));
	}
}

static void
every_part_of_a_place_counts(void **state)
{
	float got[8][ALL];
	struct draw d[8];

	(void)state;
	for (size_t i = 0; i < 8; i++)
		d[i] = origin;
	d[1].seed ^= 1;
	d[2].seed ^= (uint64_t)1 << 63;
	d[3].step ^= 1;
	d[4].step ^= (uint64_t)1 << 47;
	d[5].micro_batch ^= 1;
	d[6].example = 4; /* whole blocks of four: 28 elements */
	for (size_t i = 0; i < 8; i++) {
		draw_floats(&d[i], i == 7 ? 4 : 3, SIZE, got[i], ALL);
		for (size_t k = 0; k < i; k++)
			for (size_t j = 0; j + 4 <= ALL; j++)
				assert_memory_not_equal(got[i] + j, got[k] + j, 4 * sizeof(float));
	}
}

/* Of 2^20 draws at a rate of 0.3, within five standard deviations; neighbours within a mask, and masks of neighbouring steps and layers,
 * agree as often as independent ones: 0.58. */
static void
rates(void **state)
{
	enum { N = 1 << 20, TURNS = 3 };
	static float first[N + 1], other[N + 1];
	struct draw d = {.seed = 1};
	const double n = N, sd = sqrt(n * 0.3 * 0.7), agree_sd = sqrt(n * 0.58 * 0.42);

	(void)state;
	draw_floats(&d, 0, 1, first, N + 1);
	for (int turn = 0; turn < TURNS; turn++) {
		double zeros = 0, same = 0;
		d.step = turn == 1;
		draw_floats(&d, turn == 2, 1, other, N + 1);
		for (size_t i = 0; i < N; i++) {
			zeros += other[i] < 0.3f;
			same += (first[i + (turn == 0)] < 0.3f) == (other[i] < 0.3f);
		}
		assert_true(fabs(zeros - 0.3 * n) < 5 * sd);
		assert_true(fabs(same - 0.58 * n) < 5 * agree_sd);
	}
}

/* Two dropouts of one network have masks of their own, and a batch worked on in two passes gets the masks of the whole. */
static void
in_a_network(void **state)
{
	enum { WIDTH = 100, N = 6 };
	static float x[N * WIDTH], whole[N * WIDTH];
	struct nets n;
	struct net *net;
	struct draw d = {.seed = 5};
	struct net_batch b = {.x = x, .targets = x, .n = N, .draw = &d};
	size_t passed = 0;

	(void)state;
	nets_start(&n, WIDTH, 1, 1, LOSS_MSE);
	nets_add(&n, LAYER_DROPOUT, "a")->rate = 0.5f;
	nets_add(&n, LAYER_DROPOUT, "b")->rate = 0.5f;
	assert_int_equal(net_new(&net, &n.spec, 0, N, true, 0, NULL), ERR_OK);
	for (size_t i = 0; i < N * WIDTH; i++)
		x[i] = 1;
	assert_int_equal(net_forward(net, 0, &b), ERR_OK);
	memcpy(whole, net_output(net), sizeof(whole));
	for (size_t i = 0; i < N * WIDTH; i++)
		passed += whole[i] == 4;
	/* A quarter; half if both were one mask. */
	assert_in_range(passed, 100, 200);
	for (uint32_t at = 0; at < N; at += 2) {
		d.example = at;
		b.n = 2;
		assert_int_equal(net_forward(net, 0, &b), ERR_OK);
		assert_memory_equal(
		    net_output(net), whole + (size_t)at * WIDTH, 2 * WIDTH * sizeof(float));
	}
	net_free(net);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(layout),
	    cmocka_unit_test(any_cut),
	    cmocka_unit_test(every_part_of_a_place_counts),
	    cmocka_unit_test(rates),
	    cmocka_unit_test(in_a_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
