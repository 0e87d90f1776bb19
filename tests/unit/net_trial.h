#ifndef NET_TRIAL_H
#define NET_TRIAL_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "net.h"
#include "prng.h"
#include "recipe.h"

/* Networks as jobs describe them, and a batch for them, for tests. */
struct net_trial {
	struct recipe recipe;
	struct net *net;
	float *x, *targets;
	int32_t *labels;
	struct net_batch batch;
};

/* data: keys beside the name, such as "shape". */
static inline void
net_trial_recipe(struct recipe *out, const char *data, const char *model)
{
	char text[4096];
	struct json *doc = NULL;
	struct why why = {""};

	snprintf(text, sizeof(text),
	    "{\"model\": %s, \"data\": {\"name\": \"d\", %s}, \"local\": {\"epochs\": 1, "
	    "\"random\": \"counter\", \"optimizer\": {\"name\": \"sgd\", \"rate\": 0.1}}}",
	    model, data);
	if (json_parse(&doc, text, strlen(text), &why) || recipe_parse(out, doc, true, &why))
		fail_msg("%s: %s", model, why.text);
	json_free(doc);
}

static inline void
net_trial_begin(struct net_trial *t, uint32_t n, const char *data, const char *model)
{
	struct why why = {""};
	struct prng r;

	*t = (struct net_trial){0};
	net_trial_recipe(&t->recipe, data, model);
	if (net_new(&t->net, &t->recipe.net, t->recipe.data.class_count, n, true, 0, &why))
		fail_msg("%s: %s", model, why.text);
	net_init(t->net, 5);
	size_t in = net_inputs(t->net) * n, labels = net_labels(t->net) * n;
	size_t targets = net_targets(t->net) * n, words = net_vocabulary(t->net);
	t->x = malloc(in * sizeof(float));
	t->labels = malloc((labels + 1) * sizeof(int32_t));
	t->targets = malloc((targets + 1) * sizeof(float));
	prng_seed(&r, 6);
	for (size_t i = 0; i < in; i++)
		t->x[i] = words ? (float)prng_below(&r, words) : 2 * prng_float(&r) - 1;
	for (size_t i = 0; i < labels; i++)
		t->labels[i] = (int32_t)prng_below(&r, net_outputs(t->net));
	for (size_t i = 0; i < targets; i++)
		t->targets[i] = prng_float(&r);
	t->batch =
	    (struct net_batch){.x = t->x, .labels = t->labels, .targets = t->targets, .n = n};
}

/* The same network with tensors frozen. */
static inline void
net_trial_freeze(struct net_trial *t, const struct tensor_rule *rules, size_t count)
{
	const struct net_part part = {.spec = &t->recipe.net,
	    .classes = t->recipe.data.class_count,
	    .last = t->recipe.net.layer_count,
	    .max_batch = t->batch.n,
	    .contexts = 1,
	    .train = true,
	    .rules = rules,
	    .rule_count = count};
	struct why why = {""};

	net_free(t->net);
	if (net_new_part(&t->net, &part, &why))
		fail_msg("%s", why.text);
	net_init(t->net, 5);
}

static inline void
net_trial_end(struct net_trial *t)
{
	net_free(t->net);
	recipe_deinit(&t->recipe);
	free(t->x);
	free(t->labels);
	free(t->targets);
}

#endif
