/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "fingerprint.h"
#include "job.h"
#include "prng.h"
#include "rule.h"
#include "server_opt.h"

/*
 * Codecs, rules and server optimizers on numbers of every size give the same bits with every compiler, on every instruction set
 * and machine: each row holds the fingerprint that all must reproduce. Training has its own (test_train.c). A row that changes
 * means that rounds of before can no longer be recomputed.
 */
#define ELEMENTS 5003
#define DELTAS 11

enum kind {
	ORDINARY,
	SUBNORMAL,
	ZEROS, /* of both signs, some small numbers */
	HUGE_ONES, /* sums overflow f32 */
	TIES,
	ANY, /* every finite pattern of bits */
	KINDS,
};

static float inputs[DELTAS][ELEMENTS], centre[ELEMENTS];

static float
any_bits(struct prng *r)
{
	uint32_t bits;
	float x;

	do
		bits = (uint32_t)prng_u64(r);
	while ((bits & 0x7f800000) == 0x7f800000);
	memcpy(&x, &bits, sizeof(x));
	return x;
}

static float
draw(struct prng *r, enum kind kind)
{
	float x = prng_float(r) - 0.5f;
	uint64_t turn = prng_below(r, 16);

	switch (kind) {
	case SUBNORMAL:
		return x * 1e-42f;
	case ZEROS:
		return turn < 6 ? 0.0f : turn < 12 ? -0.0f : x * 1e-3f;
	case HUGE_ONES:
		return x * 3e38f;
	case TIES:
		return ((float)turn - 8) * 0.25f;
	case ANY:
		return any_bits(r);
	default:
		return x;
	}
}

static void
draw_all(enum kind kind)
{
	struct prng r;

	prng_seed(&r, 5 + (uint64_t)kind);
	for (size_t d = 0; d < DELTAS; d++)
		for (size_t i = 0; i < ELEMENTS; i++)
			inputs[d][i] = draw(&r, kind);
	for (size_t i = 0; i < ELEMENTS; i++)
		centre[i] = draw(&r, kind);
}

/* A failure is a result like any other. */
static bool
print_failed(uint64_t *print, enum err e)
{
	uint8_t code = (uint8_t)(e == ERR_OK ? 0 : e == ERR_NUMERIC ? 1 : 2);

	*print = fingerprint_add(*print, &code, 1);
	assert_true(code < 2);
	return code != 0;
}

static void
print_is(uint64_t print, uint64_t want, const char *what)
{
	if (print != want)
		print_error("%s: fingerprint 0x%016llx\n", what, (unsigned long long)print);
}

/* --- codecs */

static void
add_codec(uint64_t *print, const struct codec *c)
{
	static float out[ELEMENTS];
	struct codec_params p = {
	    .elements = ELEMENTS, .block = c->block, .seed = 9, .entries = c->fixed_size ? 0 : 400};
	uint8_t carry[64] = {0}, *payload = calloc(1, c->payload_bytes(ELEMENTS));
	double squares = 0;

	assert_non_null(payload);
	if (!print_failed(print, c->encode(payload, &p.payload, inputs[0], &p))) {
		p.table = malloc(codec_table_bytes(c, ELEMENTS) + 1);
		struct codec_memory memory = {payload, p.payload};
		struct codec_source source = {codec_memory_read, &memory};
		assert_int_equal(
		    c->check(&p, 0, payload, (size_t)p.payload, &squares, carry), ERR_OK);
		assert_int_equal(codec_read(c, &p, &source, 0, ELEMENTS, out), ERR_OK);
		*print = fingerprint_add(*print, payload, (size_t)p.payload);
		*print = fingerprint_add(*print, &squares, sizeof(squares));
		*print = fingerprint_add(*print, out, sizeof(out));
		free(p.table);
	}
	free(payload);
}

static void
codecs(void **state)
{
	static const struct {
		const char *name;
		uint64_t print;
	} rows[] = {
	    {"f32", 0x6f65aa3000604e90u},
	    {"f16", 0xb0c0c082bdf1723bu},
	    {"bf16", 0xced667a6ea879c25u},
	    {"int8", 0x8f46b71e2145af91u},
	    {"int4", 0xcfe82a2cd2450a1eu},
	    {"sign", 0x5d3ad79433b06de2u},
	    {"sparse", 0x6221028666704d01u},
	};
	bool right = true;
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t print = FINGERPRINT_START;
		for (enum kind kind = 0; kind < KINDS; kind++) {
			draw_all(kind);
			add_codec(&print, codec_find_name(rows[i].name));
		}
		print_is(print, rows[i].print, rows[i].name);
		right = right && print == rows[i].print;
	}
	assert_true(right);
}

/* --- rules */

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	(void)context;
	memcpy(out, inputs[delta] + first, count * sizeof(float));
	return ERR_OK;
}

static enum err
fold(struct rule *r, float *out)
{
	enum err e = ERR_OK;
	unsigned strips;

	while (e == ERR_OK && (strips = rule_measures(r)) > 0) {
		for (unsigned s = 0; s < strips && e == ERR_OK; s++)
			e = rule_measure(r, s);
		if (e == ERR_OK)
			e = rule_plan(r);
	}
	return e ? e : rule_fold(r, 0, ELEMENTS, out);
}

static void
add_rule(uint64_t *print, struct rule_spec spec, size_t deltas)
{
	static float out[ELEMENTS];
	double weights[DELTAS];
	struct rule_input in = {.read_tile = read_tile,
	    .elements = ELEMENTS,
	    .deltas = deltas,
	    .weights = weights,
	    .centre = centre,
	    .seed = 77};
	struct rule *r = NULL;
	struct why why;

	spec.bucket += spec.bucket == 0;
	for (size_t d = 0; d < deltas; d++)
		weights[d] = 100 + 37 * (double)d;
	if (rule_new(&r, &spec, &in, &why) != ERR_OK)
		fail_msg("%s: %s", spec.name, why.text);
	if (!print_failed(print, fold(r, out)))
		*print = fingerprint_add(*print, out, sizeof(out));
	rule_free(r);
}

static void
rules(void **state)
{
	static const struct {
		const char *what;
		struct rule_spec spec;
		uint64_t print;
	} rows[] = {
#define ROW(what, print, ...) \
	{what, {.picks = 3, .iterations = 2, .smoothing = 1e-6, .radius = 0.7, __VA_ARGS__}, print}
	    ROW("mean", 0xb665272bfcde683eu, .name = "mean"),
	    ROW("mean, bounded", 0xc2baea771a383410u, .name = "mean", .bound = 20),
	    ROW("mean, bounded by the median", 0x04a025bd2c50ec73u, .name = "mean",
		.bound_median = true),
	    ROW("median", 0x12fb868dfe4702f4u, .name = "median", .hostile = 2),
	    ROW("median of buckets", 0xb12839b94c67d1f2u, .name = "median", .hostile = 1,
		.bucket = 2),
	    ROW("median of nearest", 0x9398df2a773e663cu, .name = "median", .hostile = 2,
		.nearest = true),
	    ROW("trimmed mean", 0x99224bd49c96e4b4u, .name = "trimmed_mean", .hostile = 2),
	    ROW("krum", 0xd4f8a5bd84673f1au, .name = "krum", .hostile = 2),
	    ROW("bulyan", 0xff735ebf11ff5001u, .name = "bulyan", .hostile = 1),
	    ROW("geometric median, weighted", 0xe4e11163aefce4a9u, .name = "geometric_median"),
	    ROW("geometric median", 0x4f7ae25f968a66f0u, .name = "geometric_median", .hostile = 2),
	    ROW("centered clipping", 0xe53cbfdb27c1c287u, .name = "centered_clipping",
		.hostile = 2),
	    ROW("centered clipping of buckets", 0xbd626a3c752889e6u, .name = "centered_clipping",
		.hostile = 1, .bucket = 2),
#undef ROW
	};
	bool right = true;
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t print = FINGERPRINT_START;
		for (enum kind kind = 0; kind < KINDS; kind++) {
			draw_all(kind);
			add_rule(&print, rows[i].spec, DELTAS);
			add_rule(&print, rows[i].spec, DELTAS - 3);
		}
		print_is(print, rows[i].print, rows[i].what);
		right = right && print == rows[i].print;
	}
	assert_true(right);
}

/* --- server optimizers */

static void
add_optimizer(uint64_t *print, const struct server_opt *o, const struct server_opt_params *p)
{
	static float w[ELEMENTS], kept[SERVER_OPT_VECTORS][ELEMENTS];
	float *vectors[SERVER_OPT_VECTORS];
	size_t count = o->state_vectors(p);
	enum err e = ERR_OK;

	for (size_t k = 0; k < SERVER_OPT_VECTORS; k++)
		vectors[k] = kept[k];
	for (size_t k = 0; k < count; k++)
		for (size_t i = 0; i < ELEMENTS; i++)
			kept[k][i] = o->state_start(p, k);
	memcpy(w, centre, sizeof(w));
	for (size_t round = 0; round < 3 && e == ERR_OK; round++)
		e = o->step(p, w, inputs[round], vectors, ELEMENTS);
	if (print_failed(print, e))
		return;
	*print = fingerprint_add(*print, w, sizeof(w));
	*print = fingerprint_add(*print, kept, count * sizeof(kept[0]));
}

static void
optimizers(void **state)
{
	static const struct {
		const char *name;
		struct server_opt_params params;
		uint64_t print;
	} rows[] = {
	    {"sgd", {.rate = 0.3f}, 0xeb7518bf4d9f5f87u},
	    {"sgd", {.rate = 0.3f, .momentum = 0.9f}, 0xcb78ee6b19cbdbeau},
	    {"sgd", {.rate = 0.3f, .momentum = 0.9f, .nesterov = true}, 0xcc3a8d4a4b362f4cu},
	    {"adagrad", {.rate = 0.3f, .beta1 = 0.9f, .beta2 = 0.99f, .tau = 1e-3f},
		0x440879c1da027d9eu},
	    {"yogi", {.rate = 0.3f, .beta1 = 0.9f, .beta2 = 0.99f, .tau = 1e-3f},
		0x95b8c3edc44fb82au},
	    {"adam", {.rate = 0.3f, .beta1 = 0.9f, .beta2 = 0.99f, .tau = 1e-3f},
		0x2418da1f0d9c6ab1u},
	};
	bool right = true;
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t print = FINGERPRINT_START;
		for (enum kind kind = 0; kind < KINDS; kind++) {
			draw_all(kind);
			add_optimizer(&print, server_opt_find(rows[i].name), &rows[i].params);
		}
		print_is(print, rows[i].print, rows[i].name);
		right = right && print == rows[i].print;
	}
	assert_true(right);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(codecs),
	    cmocka_unit_test(rules),
	    cmocka_unit_test(optimizers),
	};
	return cmocka_run_group_tests_name("same_bits", tests, NULL, NULL);
}
