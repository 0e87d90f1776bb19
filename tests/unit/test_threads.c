/* stages: gcc clang address thread */
/* Networks of each kind of layer give the same bits with any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net_trial.h"
#include "team.h"
#include "tensor.h"

#define CLASSES "\"loss\": \"cross_entropy\""

/* A step of each kind, and one by half the threads. */
static void
take_steps(struct net *net, struct team *team, const struct net_batch *batch)
{
	static const struct net_update kinds[] = {{.rate = 0.05f},
	    {.type = OPTIMIZER_ADAM,
		.rate = 0.001f,
		.beta1 = 0.9,
		.beta2 = 0.999,
		.epsilon = 1e-8,
		.prox = 0.1f},
	    {.rate = 0.01f, .momentum = 0.9f, .clip = 0.1, .prox = 0.1f, .groups = 2}};
	struct net_result result;

	for (size_t k = 0; k < 4; k++) {
		const struct net_update *how = &kinds[k % 3];
		if (k == 3)
			team_use(team, (team_size(team) + 1) / 2);
		assert_int_equal(net_prepare(net, how, NULL), ERR_OK);
		if (how->groups < 2)
			assert_int_equal(net_step(net, batch, how, &result), ERR_OK);
		for (uint32_t group = 0; group < how->groups; group++) {
			assert_int_equal(net_add(net, batch, 0.5f, &result), ERR_OK);
			net_fold(net);
		}
		if (how->groups > 1)
			net_move(net, how);
	}
}

/* Parameters after some steps by so many threads. */
static void
train_by(unsigned threads, const char *shape, const char *model, uint32_t n, float **params,
    size_t *bytes)
{
	struct recipe r;
	struct net *net = NULL;
	struct team *team = NULL;
	struct why why = {""};
	struct prng random;

	net_trial_recipe(&r, shape, model);
	assert_int_equal(team_new(&team, threads), ERR_OK);
	const struct net_part whole = {.spec = &r.net,
	    .classes = r.data.class_count,
	    .last = r.net.layer_count,
	    .max_batch = n,
	    .contexts = 1,
	    .train = true,
	    .team = team};
	if (net_new_part(&net, &whole, &why))
		fail_msg("%s: %s", model, why.text);
	net_init(net, 1);
	size_t in = net_inputs(net) * n, labels = net_labels(net) * n, words = net_vocabulary(net);
	float *x = malloc(in * sizeof(float));
	int32_t *y = malloc(labels * sizeof(int32_t));
	prng_seed(&random, 2);
	for (size_t i = 0; i < in; i++)
		x[i] = words ? (float)prng_below(&random, words) : prng_float(&random);
	for (size_t i = 0; i < labels; i++)
		y[i] = (int32_t)prng_below(&random, net_outputs(net));
	take_steps(net, team, &(struct net_batch){.x = x, .labels = y, .n = n});
	*bytes = net_tensors(net)->bytes;
	*params = malloc(*bytes);
	memcpy(*params, net_params(net), *bytes);
	free(x);
	free(y);
	net_free(net);
	team_free(team);
	recipe_deinit(&r);
}

static const struct {
	const char *shape, *model;
} rows[] = {{"\"shape\": [8, 24, 24], \"classes\": 10",
		"{\"layers\": [{\"type\": \"conv2d\", \"out\": 24, \"kernel\": 3, \"padding\": 1}, "
		"{\"type\": \"relu\"}, {\"type\": \"conv2d\", \"out\": 17, \"kernel\": 3}, "
		"{\"type\": "
		"\"maxpool2d\", \"kernel\": 2}, {\"type\": \"flatten\"}, {\"type\": \"linear\", "
		"\"out\": 300}, {\"type\": \"linear\", \"out\": 10}], " CLASSES "}"},
    /* Norms and groups, large enough to be cut, and gradients without zeros. */
    {"\"shape\": [24, 40, 40], \"classes\": 10",
	"{\"layers\": [{\"type\": \"conv2d\", \"out\": 24, \"kernel\": 3, \"padding\": 1, "
	"\"groups\": 24}, {\"type\": \"batchnorm\"}, {\"type\": \"conv2d\", \"out\": 12, "
	"\"kernel\": 3, \"stride\": 2}, {\"type\": \"groupnorm\", \"groups\": 3}, "
	"{\"type\": "
	"\"global_avgpool\"}, {\"type\": \"linear\", \"out\": 10}], " CLASSES "}"},
    /* Points, cut by input channels. */
    {"\"shape\": [90, 9, 9], \"classes\": 10",
	"{\"layers\": [{\"type\": \"conv2d\", \"out\": 90, \"kernel\": 1}, {\"type\": "
	"\"batchnorm\"}, {\"type\": \"conv2d\", \"out\": 100, \"kernel\": 1}, {\"type\": "
	"\"batchnorm\"}, {\"type\": \"global_avgpool\"}, {\"type\": \"linear\", \"out\": "
	"10}], " CLASSES "}"},
    /* Small maps, examples side by side. */
    {"\"shape\": [96, 6, 5], \"classes\": 10",
	"{\"layers\": [{\"type\": \"conv2d\", \"out\": 96, \"kernel\": 3, \"padding\": 1}, "
	"{\"type\": \"batchnorm\"}, {\"type\": \"conv2d\", \"out\": 90, \"kernel\": 3, "
	"\"stride\": 2}, {\"type\": \"groupnorm\", \"groups\": 3}, {\"type\": \"conv2d\", "
	"\"out\": 300, \"kernel\": 1}, {\"type\": \"global_avgpool\"}, {\"type\": "
	"\"linear\", \"out\": 10}], " CLASSES "}"},
    /* Pools, and signs that are kept. */
    {"\"shape\": [16, 32, 32], \"classes\": 10",
	"{\"layers\": [{\"type\": \"maxpool2d\", \"kernel\": 3, \"stride\": 1, "
	"\"padding\": 1}, {\"type\": \"conv2d\", \"out\": 16, \"kernel\": 1}, {\"type\": "
	"\"relu\"}, {\"type\": \"maxpool2d\", \"kernel\": 2}, {\"type\": \"conv2d\", "
	"\"out\": "
	"16, \"kernel\": 1}, {\"type\": \"avgpool2d\", \"kernel\": 2, \"stride\": 1}, "
	"{\"type\": "
	"\"flatten\"}, {\"type\": \"linear\", \"out\": 10}], " CLASSES "}"},
    {"\"window\": 9",
	"{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 50, \"out\": 100}, "
	"{\"type\": "
	"\"lstm\", \"out\": 250}, {\"type\": \"gru\", \"out\": 260}, {\"type\": "
	"\"linear\", "
	"\"out\": 50}], " CLASSES "}"},
    {"\"window\": 130",
	"{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 50, \"out\": 96}, "
	"{\"type\": "
	"\"attention\", \"heads\": 3, \"causal\": true, \"positions\": \"rotary\"}, "
	"{\"type\": "
	"\"linear\", \"out\": 50}], " CLASSES "}"},
    {"\"window\": 130",
	"{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 50, \"out\": 200}, "
	"{\"type\": \"layernorm\"}, {\"type\": \"rmsnorm\"}, {\"type\": "
	"\"linear\", \"out\": 50}], " CLASSES "}"},
    {"\"window\": 130",
	"{\"layers\": [{\"type\": \"embedding\", \"name\": \"e\", \"vocabulary\": 50, "
	"\"out\": "
	"96}, {\"type\": \"linear\", \"out\": 96, \"lora\": {\"rank\": 40}}, {\"type\": "
	"\"linear\", \"out\": 50, \"weights\": \"e\"}], " CLASSES "}"}};

/* What is cut up are outputs, never sums. A sanitizer that watches threads needs no more than some. */
static void
any_number_of_threads(void **state)
{
#ifdef __SANITIZE_THREAD__
	static const unsigned counts[] = {3};
#else
	static const unsigned counts[] = {2, 3, 5};
#endif
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		float *one, *many;
		size_t bytes;
		train_by(1, rows[i].shape, rows[i].model, 11, &one, &bytes);
		for (size_t t = 0; t < sizeof(counts) / sizeof(counts[0]); t++) {
			train_by(counts[t], rows[i].shape, rows[i].model, 11, &many, &bytes);
			assert_memory_equal(one, many, bytes);
			free(many);
		}
		free(one);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(any_number_of_threads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
