/* stages: gcc clang address */
/* Trained networks of each newer type of layer and form of loss: the same bits with every compiler, on every instruction set and machine.
 * A row that changes breaks the promise of net.h; model/ARITHMETIC.md has the order of each sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fingerprint.h"
#include "net_trial.h"
#include "tensor.h"

#define BATCH 29
#define STEPS 5

#define FLAT "\"shape\": [37], \"classes\": 5"
#define PLANES "\"shape\": [3, 9, 19], \"classes\": 5"
#define SERIES "\"shape\": [5, 37], \"classes\": 5"
#define WORDS "\"window\": 21"
#define CONV "{\"type\": \"conv2d\", \"out\": 6, \"kernel\": 3, \"padding\": 1}, "
#define EMBEDDING "{\"type\": \"embedding\", \"vocabulary\": 23, \"out\": 18}, "
#define TANH "{\"type\": \"tanh\"}, "
#define POOLED "{\"type\": \"global_avgpool\"}, {\"type\": \"linear\", \"out\": 5}"
#define WIDE "{\"type\": \"linear\", \"out\": 145}, "
#define CLOSE "{\"type\": \"linear\", \"out\": 5}"
#define CROSS "\"loss\": \"cross_entropy\""

static const struct row {
	const char *data, *layers, *loss;
	uint64_t print;
} rows[] = {
    {WORDS, EMBEDDING "{\"type\": \"lstm\", \"out\": 19, \"layers\": 2}, " CLOSE, CROSS,
	0x0c2b3e23a66ccfabu},
    {WORDS, EMBEDDING "{\"type\": \"gru\", \"out\": 19, \"layers\": 2}, " CLOSE, CROSS,
	0x6dd1d766bf752faeu},
    {WORDS, EMBEDDING "{\"type\": \"lstm\", \"out\": 7, \"output\": \"last\"}, " CLOSE, CROSS,
	0x158439c04a2f3e2bu},
    {WORDS,
	EMBEDDING "{\"type\": \"gru\", \"out\": 7, \"bias\": false, \"output\": \"last\"}, " CLOSE,
	CROSS, 0x8306801ec2493752u},
    {WORDS,
	EMBEDDING "{\"type\": \"attention\", \"heads\": 3, \"causal\": true, \"positions\": "
		  "\"rotary\"}, " CLOSE,
	CROSS, 0x4519b474c9ca3ba6u},
    {"\"window\": 131",
	EMBEDDING "{\"type\": \"positions\"}, {\"type\": \"attention\", \"heads\": 2}, " CLOSE,
	CROSS, 0xbb829b2668ec70c3u},
    {PLANES, CONV "{\"type\": \"groupnorm\", \"groups\": 2}, " TANH POOLED, CROSS,
	0x4cf16e92834bd661u},
    {PLANES, CONV "{\"type\": \"batchnorm\"}, " TANH POOLED, CROSS, 0xc9c7f0d6da849d4fu},
    {FLAT, WIDE "{\"type\": \"batchnorm\"}, " TANH CLOSE, CROSS, 0xcdfaca1f82df1a98u},
    {SERIES, WIDE "{\"type\": \"layernorm\"}, " TANH POOLED, CROSS, 0xc3fb88bdac8e387cu},
    {SERIES, WIDE "{\"type\": \"rmsnorm\"}, " TANH POOLED, CROSS, 0x2babfb2959c95038u},
    {PLANES,
	CONV
	"{\"type\": \"conv2d\", \"out\": 6, \"kernel\": 3, \"stride\": 2, \"groups\": 6}, " TANH
	    POOLED,
	CROSS, 0x94ff0a59164ebeb5u},
    {PLANES,
	CONV "{\"type\": \"conv2d\", \"out\": 4, \"kernel\": [2, 3], \"padding\": 1, \"groups\": "
	     "2}, " TANH POOLED,
	CROSS, 0x93a769e0c4f3dae3u},
    {SERIES, "{\"type\": \"conv1d\", \"out\": 7, \"kernel\": 4, \"stride\": 2}, " TANH POOLED,
	CROSS, 0xb52639ae9e6b8442u},
    {FLAT, WIDE "{\"type\": \"gelu\"}, " WIDE CLOSE, CROSS, 0xc51a0b7a41d6777au},
    {FLAT, WIDE "{\"type\": \"gelu\", \"approximate\": \"tanh\"}, " CLOSE, CROSS,
	0xcdbeaf63da25fac8u},
    {FLAT, WIDE "{\"type\": \"silu\"}, " WIDE CLOSE, CROSS, 0xb51959b7108d44dau},
    {FLAT,
	WIDE "{\"type\": \"leaky_relu\", \"slope\": 0.3}, " WIDE
	     "{\"type\": \"elu\", \"alpha\": 1.5}, " CLOSE,
	CROSS, 0x1658758ffa460362u},
    {WORDS,
	EMBEDDING "{\"type\": \"reverse\"}, " TANH
		  "{\"type\": \"pool_steps\", \"by\": \"mean\", \"name\": \"a\"}, "
		  "{\"type\": \"pool_steps\", \"by\": \"max\", \"name\": \"b\", \"inputs\": "
		  "[\"tanh3\"]}, {\"type\": \"concat\", \"inputs\": [\"a\", \"b\"]}, " CLOSE,
	CROSS, 0x8d924cb9d036f7fdu},
    {FLAT, WIDE "{\"type\": \"sigmoid\"}, {\"type\": \"relu6\"}, {\"type\": \"hardswish\"}, " CLOSE,
	CROSS, 0x30907a3f0c4b285cu},
    {PLANES,
	"{\"type\": \"conv2d\", \"name\": \"a\", \"out\": 6, \"kernel\": 3}, {\"type\": "
	"\"global_avgpool\"}, {\"type\": \"linear\", \"out\": 6}, "
	"{\"type\": \"sigmoid\", \"name\": \"gate\"}, {\"type\": \"multiply\", \"inputs\": [\"a\", "
	"\"gate\"], \"name\": \"m\"}, "
	"{\"type\": \"concat\", \"inputs\": [\"a\", \"m\"]}, " POOLED,
	CROSS, 0x57e78670d0a1ebd0u},
    {FLAT,
	"{\"type\": \"linear\", \"out\": 145, \"lora\": {\"rank\": 9, \"alpha\": 5}}, " TANH CLOSE,
	CROSS, 0x5daa82e4bacf20adu},
    {SERIES,
	"{\"type\": \"linear\", \"out\": 35, \"bias\": false, \"lora\": {\"rank\": 19}}, " TANH
	    POOLED,
	CROSS, 0xb2ba49faa52852ebu},
    {WORDS,
	"{\"type\": \"embedding\", \"name\": \"e\", \"vocabulary\": 23, \"out\": 18}, {\"type\": "
	"\"gru\", \"out\": 18}, {\"type\": \"linear\", \"out\": 23, \"weights\": \"e\"}",
	CROSS, 0x0f7b0a05d8cac700u},
    {FLAT,
	"{\"type\": \"linear\", \"name\": \"a\", \"out\": 37}, " TANH
	"{\"type\": \"linear\", \"out\": 37, \"weights\": \"a\"}, " TANH
	"{\"type\": \"linear\", \"out\": 37, \"weights\": \"a\", \"bias\": false}, " CLOSE,
	CROSS, 0xebc254b0f93e6f89u},
    {FLAT, WIDE TANH CLOSE, CROSS ", \"label_smoothing\": 0.1", 0xb4f2d685600fd79cu},
    {FLAT, WIDE TANH CLOSE,
	CROSS
	", \"ignore_index\": 2, \"class_weights\": [1, 0.5, 2, 0.25, 3], \"label_smoothing\": 0.1",
	0x57d368cc8444696bu},
    {"\"shape\": [37]", WIDE TANH CLOSE, "\"loss\": \"bce\"", 0x1554cdc66c48536cu},
    {"\"shape\": [37]", WIDE TANH "{\"type\": \"linear\", \"out\": 37}",
	"\"loss\": \"bce\", \"target\": \"input\"", 0x5e66955bb4bf7013u},
};

/* Like weights that trained a while: norms scale, biases shift. */
static void
shake(struct net *net)
{
	float *w = net_params(net);
	struct prng r;

	prng_seed(&r, 7);
	for (size_t i = 0; i < net_tensors(net)->elements; i++)
		w[i] = w[i] + 0.125f * prng_float(&r);
}

static uint64_t
print_of(const struct row *row)
{
	static const struct net_update how = {
	    .rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f};
	char model[2048];
	struct net_trial t;
	struct net_result result;
	struct why why = {""};

	snprintf(model, sizeof(model), "{\"layers\": [%s], %s}", row->layers, row->loss);
	net_trial_begin(&t, BATCH, row->data, model);
	shake(t.net);
	assert_int_equal(net_prepare(t.net, &how, &why), ERR_OK);
	for (int i = 0; i < STEPS; i++)
		assert_int_equal(net_step(t.net, &t.batch, &how, &result), ERR_OK);
	uint64_t print = fingerprint(net_params(t.net), net_tensors(t.net)->bytes);
	assert_int_equal(net_eval(t.net, &t.batch, &result), ERR_OK);
	size_t outputs = net_outputs(t.net) * (net_labels(t.net) > 0 ? net_labels(t.net) : 1);
	print = fingerprint_add(print, net_output(t.net), BATCH * outputs * sizeof(float));
	net_trial_end(&t);
	return print;
}

static void
same_bits_everywhere(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t print = print_of(&rows[i]);
		if (print != rows[i].print)
			print_error("row %zu: 0x%016llx\n", i, (unsigned long long)print);
		wrong += print != rows[i].print;
	}
	assert_int_equal(wrong, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_everywhere)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
