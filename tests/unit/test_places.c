/* stages: gcc clang address */
/* Batch norms with one value of each channel: as the description says, against the shapes of the network that is built. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "backend_cpu.h"
#include "graph.h"
#include "nets.h"
#include "places.h"
#include "prng.h"

#define NETWORKS 20000

static const struct layer_spec *
built_single(const struct net_spec *spec, const struct graph *g)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->layers[i].spec.type == LAYER_BATCHNORM &&
		    g->layers[i].in[0].size == g->layers[i].in[0].c)
			return &spec->layers[i];
	return NULL;
}

static void
draw_layer(struct nets *n, struct prng *r)
{
	char name[16];

	snprintf(name, sizeof(name), "l%zu", n->spec.layer_count);
	int at = (int)n->spec.layer_count;
	struct layer_spec *l = nets_add(n, (enum layer_type)prng_below(r, LAYER_TYPES), name);

	if (prng_below(r, 4) == 0)
		l->type = LAYER_BATCHNORM;
	l->out = 1 + (uint32_t)prng_below(r, 4);
	for (int i = 0; i < 2; i++) {
		l->kernel[i] = 1 + (uint32_t)prng_below(r, 3);
		l->stride[i] = 1 + (uint32_t)prng_below(r, 2);
		l->padding[i] = (uint32_t)prng_below(r, 2);
	}
	if (l->type == LAYER_CONV1D) {
		l->kernel[0] = l->stride[0] = 1;
		l->padding[0] = 0;
	}
	l->epsilon = 1e-5f;
	l->vocabulary = 5;
	l->stack = l->heads = 1;
	l->last = prng_below(r, 2);
	l->dim = 1 + (uint32_t)prng_below(r, 2);
	bool joins = l->type == LAYER_ADD || l->type == LAYER_CONCAT || l->type == LAYER_MULTIPLY;
	l->input_count = joins ? 2 : 1;
	for (size_t k = prng_below(r, 3) ? 1 : 0; k < l->input_count; k++)
		l->inputs[k] = (int)prng_below(r, (uint64_t)at + 1) - 1;
}

static void
as_built(void **state)
{
	const char *given = getenv("SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
	size_t built = 0, with = 0, without = 0;
	struct prng r;

	(void)state;
	prng_seed(&r, seed);
	for (size_t i = 0; i < NETWORKS; i++) {
		struct nets n;
		struct graph g;
		uint32_t side = 1 + (uint32_t)prng_below(&r, 4);
		nets_start(&n, 1 + (uint32_t)prng_below(&r, 3), side, side, LOSS_MSE);
		n.spec.input_dims = 1 + (unsigned)prng_below(&r, 3);
		if (n.spec.input_dims < 3)
			n.spec.input[1] = 1;
		if (n.spec.input_dims < 2)
			n.spec.input[2] = 1;
		for (uint64_t k = 1 + prng_below(&r, 5); k > 0; k--)
			draw_layer(&n, &r);
		const struct net_part whole = {.spec = &n.spec, .last = n.spec.layer_count};
		const struct layer_spec *said = net_places_single(&n.spec);
		if (graph_build(&g, &whole, &backend_cpu, NULL))
			continue;
		const struct layer_spec *is = built_single(&n.spec, &g);
		if (said != is)
			fail_msg("seed %llu, network %zu: \"%s\", and it is \"%s\"",
			    (unsigned long long)seed, i, said ? said->name : "",
			    is ? is->name : "");
		built++;
		with += is != NULL;
		without += !is && net_spec_has(&n.spec, LAYER_BATCHNORM);
		graph_deinit(&g);
	}
	assert_true(built > NETWORKS / 20 && with > built / 20 && without > built / 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(as_built)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
