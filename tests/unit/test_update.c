/* stages: gcc clang address */
/* Steps that need the whole gradient: against exact arithmetic (tests/vectors/make_update_vectors.py), and through a network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "bytes.h"
#include "file.h"
#include "nets.h"
#include "prng.h"
#include "tensor.h"
#include "update.h"

/* Of the largest parameter: five steps in f32, each with a few roundings. */
#define TOLERANCE 1e-6

static float *
array(struct bytes_reader *r, size_t *count)
{
	*count = bytes_get_u32(r);
	assert_true(*count <= r->left / 4);
	float *x = calloc(*count + 1, sizeof(*x));
	for (size_t i = 0; i < *count; i++)
		x[i] = bytes_get_f32(r);
	assert_false(r->bad);
	return x;
}

static struct net_update
settings(const float *s, const float *shift)
{
	return (struct net_update){.type = (enum optimizer_type)s[0],
	    .rate = s[1],
	    .momentum = s[2],
	    .weight_decay = s[3],
	    .nesterov = s[4] != 0,
	    .prox = s[5],
	    .clip = (double)s[6],
	    .beta1 = (double)s[7],
	    .beta2 = (double)s[8],
	    .epsilon = (double)s[9],
	    .shift = s[10] != 0 ? shift : NULL,
	    .parts = 2};
}

static void
check_case(struct bytes_reader *r, int number)
{
	size_t n, all, k;
	float *s = array(r, &k), *params = array(r, &n), *shift = array(r, &n);
	float *gradients = array(r, &all), *after = array(r, &all);
	struct net_update how = settings(s, shift);
	const struct update_range ranges[] = {{0, 3}, {3, n - 3}};
	const struct update_ranges all_ranges = {ranges, 2};
	struct update u = {.gradient = NULL};

	assert_int_equal(k, 11);
	/* Weights, then at most four vectors of what is not yet zero; at last room for a tensor. */
	float *state = malloc(11 * n * sizeof(*state)), *other = state + 5 * n;
	memset(state, 0xff, 11 * n * sizeof(*state));
	memcpy(state, params, n * sizeof(*state));
	memcpy(other, params, n * sizeof(*state));
	assert_ptr_equal(
	    update_begin(&u, &how, state, n, n), state + (1 + update_vectors(&how)) * n);
	/* Tensor by tensor, where the norm of all is not needed. */
	struct net_update alone = how;
	struct update v = {.gradient = NULL};
	const struct update_fused fused = {&v, &alone, other};
	alone.parts = 1;
	float *behind = update_begin(&v, &alone, other, n, n);
	if (!v.whole)
		v.gradient = behind;
	for (size_t at = 0; at < all; at += n) {
		memcpy(u.gradient, gradients + at, n * sizeof(float));
		double lanes[NET_NORM_LANES] = {0};
		if (how.clip > 0)
			update_norm(&u, &how, state, &all_ranges, lanes);
		update_move(
		    &u, &how, state, &all_ranges, how.clip > 0 ? update_factor(&how, lanes) : 1);
		update_next(&v, &alone);
		for (size_t i = 0; update_collects(&alone) && !update_stores(&alone) && i < 2;
		     i++) {
			size_t first = ranges[i].first, count = ranges[i].count;
			memcpy(v.gradient, gradients + at + first, count * sizeof(float));
			update_tensor(&fused, first, v.gradient, count);
			assert_memory_equal(state + first, other + first, count * sizeof(float));
		}
		for (size_t i = 0; i < n; i++)
			if (!(fabs((double)state[i] - (double)after[at + i]) <= TOLERANCE))
				fail_msg("case %d, step %zu: [%zu] is %.9g, not %.9g", number,
				    at / n, i, (double)state[i], (double)after[at + i]);
	}
	free(state);
	free(s);
	free(params);
	free(shift);
	free(gradients);
	free(after);
}

static void
vectors(void **state)
{
	char *file;
	size_t len;
	int cases = 0;

	(void)state;
	assert_int_equal(
	    file_read("tests/vectors/model/update.vec", 1 << 20, &file, &len, NULL), ERR_OK);
	struct bytes_reader r = bytes_reader(file, len);
	for (; r.left > 0; cases++)
		check_case(&r, cases);
	assert_int_equal(cases, 12);
	free(file);
}

/* ARITHMETIC.md: element i of each tensor to lane i mod 8, all tensors in the same lanes, which are added ascending. */
static void
lanes_of_a_norm(void **state)
{
	enum { N = 61, FIRST = 29 };
	const struct update_range ranges[] = {{0, FIRST}, {FIRST + 1, N - FIRST - 1}};
	const struct net_update how = {.rate = 1, .clip = 0.5, .parts = 2};
	float vectors[2 * N];
	double lanes[8] = {0}, got[NET_NORM_LANES] = {0}, sum = 0;
	struct update u;
	struct prng r;

	(void)state;
	prng_seed(&r, 5);
	(void)update_begin(&u, &how, vectors, N, N);
	for (size_t i = 0; i < N; i++)
		u.gradient[i] = prng_float(&r) * (float)(1 << (i % 20));
	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < ranges[t].count; i++) {
			double x = (double)u.gradient[ranges[t].first + i];
			lanes[i % 8] += x * x;
		}
	update_norm(&u, &how, vectors, &(struct update_ranges){ranges, 1}, got);
	update_norm(&u, &how, vectors, &(struct update_ranges){ranges + 1, 1}, got);
	assert_memory_equal(got, lanes, sizeof(lanes));
	for (size_t k = 0; k < 8; k++)
		sum += lanes[k];
	assert_true(update_factor(&how, got) == (float)(0.5 / (sqrt(sum) + 1e-6)));
}

/* --- through a network: 6 inputs, 5 hidden, 3 outputs, whose parameters are fc1.weight, fc1.bias, fc2.weight, fc2.bias */

#define BATCH 8

struct fixture {
	struct net *net;
	float x[BATCH * 6], *start, *gradient;
	int32_t labels[BATCH];
	size_t n;
};

static void
begin(struct fixture *f, uint64_t max_bytes, const struct tensor_rule *rules, size_t rule_count)
{
	struct nets n;
	struct prng r;

	nets_start(&n, 6, 1, 1, LOSS_CROSS_ENTROPY);
	nets_linear(&n, "fc1", 5);
	nets_add(&n, LAYER_RELU, "relu");
	nets_linear(&n, "fc2", 3);
	const struct net_part whole = {.spec = &n.spec,
	    .classes = 3,
	    .last = n.spec.layer_count,
	    .max_batch = BATCH,
	    .contexts = 1,
	    .train = true,
	    .rules = rules,
	    .rule_count = rule_count,
	    .max_bytes = max_bytes};
	assert_int_equal(net_new_part(&f->net, &whole, NULL), ERR_OK);
	net_init(f->net, 1);
	prng_seed(&r, 5);
	for (size_t i = 0; i < BATCH * 6; i++)
		f->x[i] = prng_float(&r) - 0.5f;
	for (size_t i = 0; i < BATCH; i++)
		f->labels[i] = (int32_t)(i % 3);
	f->n = net_tensors(f->net)->elements;
	f->start = malloc(f->n * sizeof(float));
	f->gradient = calloc(f->n, sizeof(float));
	memcpy(f->start, net_params(f->net), f->n * sizeof(float));
	assert_int_equal(
	    net_gradient(f->net, &(struct net_batch){.x = f->x, .labels = f->labels, .n = BATCH},
		f->gradient),
	    ERR_OK);
}

static void
end(struct fixture *f)
{
	net_free(f->net);
	free(f->start);
	free(f->gradient);
}

static enum err
step(struct fixture *f, const struct net_update *how)
{
	struct net_result result;

	return net_step(
	    f->net, &(struct net_batch){.x = f->x, .labels = f->labels, .n = BATCH}, how, &result);
}

/* What a control variate does: every gradient is moved by it, and by no more. */
static void
shifts(void **state)
{
	struct net_update how = {.rate = 0.5f};
	struct fixture f;

	(void)state;
	begin(&f, 0, NULL, 0);
	float *shift = malloc(f.n * sizeof(float));
	for (size_t i = 0; i < f.n; i++)
		shift[i] = 0.01f * (float)i;
	how.shift = shift;
	assert_int_equal(net_prepare(f.net, &how, NULL), ERR_OK);
	assert_int_equal(step(&f, &how), ERR_OK);
	for (size_t i = 0; i < f.n; i++)
		assert_true(net_params(f.net)[i] == f.start[i] - 0.5f * (f.gradient[i] + shift[i]));
	free(shift);
	end(&f);
}

/* A bound that no gradient reaches changes nothing, one that all exceed sets the length of the step. */
static void
clips(void **state)
{
	struct net_update how = {.rate = 1, .clip = 1e-3};
	struct fixture f;
	double moved = 0;

	(void)state;
	begin(&f, 0, NULL, 0);
	assert_int_equal(net_prepare(f.net, &how, NULL), ERR_OK);
	assert_int_equal(step(&f, &how), ERR_OK);
	for (size_t i = 0; i < f.n; i++) {
		double d = (double)net_params(f.net)[i] - (double)f.start[i];
		moved += d * d;
	}
	assert_true(fabs(sqrt(moved) - 1e-3) < 2e-6);
	memcpy(net_params(f.net), f.start, f.n * sizeof(float));
	how.clip = 1e30;
	assert_int_equal(step(&f, &how), ERR_OK);
	for (size_t i = 0; i < f.n; i++)
		assert_true(net_params(f.net)[i] == f.start[i] - f.gradient[i]);
	end(&f);
}

/* Tensors on hold stay, whatever moves the others, and their gradients do not count in the norm. */
static void
holds(void **state)
{
	const struct tensor_rule outer[] = {
	    {"fc1.weight", TENSOR_FROZEN}, {"fc2.bias", TENSOR_FROZEN}};
	struct net_update ways[] = {
	    {.rate = 0.1f, .weight_decay = 0.1f},
	    {.rate = 0.1f, .weight_decay = 0.1f, .momentum = 0.9f},
	    {.rate = 0.1f, .clip = 1e-3, .prox = 0.5f},
	    {.type = OPTIMIZER_ADAMW,
		.rate = 0.1f,
		.weight_decay = 0.1f,
		.beta1 = 0.9,
		.beta2 = 0.99,
		.epsilon = 1e-8},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
		struct fixture f;
		begin(&f, 0, outer, 2);
		assert_int_equal(net_prepare(f.net, &ways[k], NULL), ERR_OK);
		for (int i = 0; i < 3; i++)
			assert_int_equal(step(&f, &ways[k]), ERR_OK);
		const float *now = net_params(f.net);
		assert_memory_equal(now, f.start, 30 * sizeof(float));
		assert_memory_equal(now + f.n - 3, f.start + f.n - 3, 3 * sizeof(float));
		assert_memory_not_equal(now + 30, f.start + 30, 5 * sizeof(float));
		assert_memory_not_equal(now + 35, f.start + 35, 15 * sizeof(float));
		end(&f);
	}
	struct fixture f;
	double moved = 0;
	begin(&f, 0, outer, 1);
	struct net_update how = {.rate = 1, .clip = 1e-3};
	assert_int_equal(net_prepare(f.net, &how, NULL), ERR_OK);
	assert_int_equal(step(&f, &how), ERR_OK);
	for (size_t i = 0; i < f.n; i++) {
		double d = (double)net_params(f.net)[i] - (double)f.start[i];
		moved += d * d;
	}
	assert_true(fabs(sqrt(moved) - 1e-3) < 2e-6);
	end(&f);
}

/* Two batches of a half each make the step of the whole. */
static void
parts(void **state)
{
	struct net_update how = {.rate = 0.5f, .momentum = 0.5f, .weight_decay = 0.01f, .parts = 2};
	struct net_update whole = {.rate = 0.5f, .momentum = 0.5f, .weight_decay = 0.01f};
	struct net_result result;
	struct fixture f, g;

	(void)state;
	begin(&f, 0, NULL, 0);
	begin(&g, 0, NULL, 0);
	assert_int_equal(net_add(f.net, &(struct net_batch){.x = f.x, .labels = f.labels, .n = 2},
			     0.25f, &result),
	    ERR_STATE);
	assert_int_equal(net_prepare(f.net, &how, NULL), ERR_OK);
	assert_int_equal(net_prepare(g.net, &whole, NULL), ERR_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
		    net_add(f.net, &(struct net_batch){.x = f.x, .labels = f.labels, .n = 2}, 0.25f,
			&result),
		    ERR_OK);
		assert_int_equal(
		    net_add(f.net,
			&(struct net_batch){.x = f.x + 12, .labels = f.labels + 2, .n = BATCH - 2},
			0.75f, &result),
		    ERR_OK);
		net_move(f.net, &how);
		assert_int_equal(step(&g, &whole), ERR_OK);
	}
	for (size_t i = 0; i < f.n; i++)
		assert_true(fabsf(net_params(f.net)[i] - net_params(g.net)[i]) < 1e-6f);
	end(&f);
	end(&g);
}

/* Everything a step keeps is counted before any of it is allocated; nothing that was not prepared is made up. */
static void
memory(void **state)
{
	static const struct {
		struct net_update how;
		size_t vectors, tensors; /* a gradient of the largest tensor */
	} rows[] = {
	    {{.rate = 1}, 0, 0},
	    {{.rate = 1, .momentum = 0.5f}, 1, 0},
	    {{.rate = 1, .momentum = 0.5f, .nesterov = true}, 1, 1},
	    {{.rate = 1, .clip = 1}, 1, 0},
	    {{.rate = 1, .prox = 1}, 1, 1},
	    {{.rate = 1, .parts = 2}, 1, 0},
	    {{.rate = 1, .parts = 2, .groups = 2}, 2, 0},
	    {{.rate = 1, .parts = 2, .momentum = 0.5f, .prox = 1}, 3, 0},
	    {{.type = OPTIMIZER_ADAM, .rate = 1}, 2, 1},
	    {{.type = OPTIMIZER_ADAMW, .rate = 1, .prox = 1}, 3, 1},
	    {{.type = OPTIMIZER_ADAM, .rate = 1, .clip = 1}, 3, 0},
	};
	struct fixture f;

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct why why = {""};
		uint64_t bytes = 0;
		assert_int_equal(update_vectors(&rows[k].how), rows[k].vectors);
		/* The least that the net alone is content with. */
		for (struct net *net = NULL; !net; bytes += 4) {
			struct nets n;
			nets_start(&n, 6, 1, 1, LOSS_MSE);
			nets_linear(&n, "fc1", 5);
			if (net_new(&net, &n.spec, 0, BATCH, true, bytes + 4, NULL) != ERR_OK)
				continue;
			enum err e = net_prepare(net, &rows[k].how, &why);
			assert_int_equal(e, rows[k].vectors > 0 ? ERR_LIMIT : ERR_OK);
			net_free(net);
		}
		struct nets n;
		struct net *net;
		nets_start(&n, 6, 1, 1, LOSS_MSE);
		nets_linear(&n, "fc1", 5);
		/* 35 floats, on cache lines; the weight has 30. */
		bytes += rows[k].vectors * 192 + rows[k].tensors * 128;
		assert_int_equal(net_new(&net, &n.spec, 0, BATCH, true, bytes, NULL), ERR_OK);
		assert_int_equal(net_prepare(net, &rows[k].how, &why), ERR_OK);
		net_free(net);
	}
	begin(&f, 0, NULL, 0);
	assert_int_equal(step(&f, &rows[4].how), ERR_STATE);
	assert_int_equal(step(&f, &rows[8].how), ERR_STATE);
	/* Room for a tensor is none for the whole gradient. */
	assert_int_equal(net_prepare(f.net, &rows[8].how, NULL), ERR_OK);
	assert_int_equal(step(&f, &rows[8].how), ERR_OK);
	assert_int_equal(step(&f, &rows[10].how), ERR_STATE);
	end(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(vectors),
	    cmocka_unit_test(lanes_of_a_norm),
	    cmocka_unit_test(shifts),
	    cmocka_unit_test(clips),
	    cmocka_unit_test(holds),
	    cmocka_unit_test(parts),
	    cmocka_unit_test(memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
