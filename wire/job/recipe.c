#include "recipe.h"
#include "field.h"
#include "json.h"
#include "recipe_inside.h"
#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys beside the recipe's in a job document, which job.c reads. */
static const char *const job_keys[] = {"name", "seed", "round", "select", "priority", "aggregate",
    "download", "stop", "guard", "kind", "monitor", "keep", "share"};

static void
read_model(struct recipe *out, struct field *doc)
{
	struct field model = field_object(doc, "model");

	if (!field_has(doc, "model"))
		field_fail(doc, "model", "missing");
	net_spec_read(&out->net, &model);
	field_hex(&model, "init", out->init, sizeof(out->init), "");
	field_end(&model);
	if (out->net.layer_count == 0 && !out->init[0])
		field_fail(doc, "model", "needs \"layers\", \"init\" or both");
}

static void
add_rule(struct recipe *out, const char *layer, const char *tensor, enum tensor_role role)
{
	struct tensor_rule *rule = &out->rules[out->rule_count++];

	snprintf(rule->pattern, sizeof(rule->pattern), "%s.%s", layer, tensor);
	rule->role = role;
}

/* Behind the job's own rules: what batch norms count is averaged, not trained; what lora is added to stays as it is. */
static void
add_rules(struct recipe *out)
{
	if (net_spec_has(&out->net, LAYER_BATCHNORM)) {
		add_rule(out, "*", "running_mean", TENSOR_AVERAGE);
		add_rule(out, "*", "running_var", TENSOR_AVERAGE);
	}
	for (size_t i = 0; i < out->net.layer_count; i++) {
		const struct layer_spec *l = &out->net.layers[i];
		if (l->rank == 0)
			continue;
		add_rule(out, l->name, "weight", TENSOR_FROZEN);
		if (l->bias)
			add_rule(out, l->name, "bias", TENSOR_FROZEN);
	}
}

static size_t
count_rules(const struct net_spec *net)
{
	size_t n = net_spec_has(net, LAYER_BATCHNORM) ? 2 : 0;

	for (size_t i = 0; i < net->layer_count; i++)
		n += net->layers[i].rank > 0 ? 1u + net->layers[i].bias : 0;
	return n;
}

static void
read_tensors(struct recipe *out, struct field *doc)
{
	const char *const roles[] = {[TENSOR_TRAIN] = tensor_role_name(TENSOR_TRAIN),
	    [TENSOR_AVERAGE] = tensor_role_name(TENSOR_AVERAGE),
	    [TENSOR_FROZEN] = tensor_role_name(TENSOR_FROZEN),
	    [TENSOR_LOCAL] = tensor_role_name(TENSOR_LOCAL),
	    NULL};
	struct field_list list;
	struct field item;
	size_t n = field_map(&list, doc, "tensors", RECIPE_RULES_MAX);

	size_t implied = count_rules(&out->net);
	if (n + implied == 0)
		return;
	out->rules = calloc(n + implied, sizeof(*out->rules));
	if (!out->rules) {
		field_no_memory(doc);
		return;
	}
	while (field_each(&list, &item)) {
		struct tensor_rule *rule = &out->rules[out->rule_count++];
		field_member(&item, FIELD_LINE, rule->pattern, sizeof(rule->pattern));
		rule->role = (enum tensor_role)field_choice(&item, NULL, roles, FIELD_MUST_CHOICE);
	}
	add_rules(out);
}

uint64_t
recipe_min_examples(const struct recipe *r, bool evaluates)
{
	uint64_t least = evaluates ? 1 : r->local.least;

	return r->data.min_examples > least ? r->data.min_examples : least;
}

bool
recipe_names_builtin(const char *trainer)
{
	return strcmp(trainer, RECIPE_BUILTIN) == 0;
}

static void
read_trainer(struct recipe *out, struct field *doc)
{
	struct field params = field_object(doc, "params"); /* its content is the trainer's */

	(void)params;
	field_string(
	    doc, "trainer", FIELD_NAME, out->trainer, sizeof(out->trainer), RECIPE_BUILTIN);
	out->builtin = recipe_names_builtin(out->trainer);
	if (out->net.layer_count == 0 && out->builtin)
		field_fail(doc, "trainer", "a model without layers needs a trainer of its own");
}

static void
check_evaluate(const struct recipe *r, const struct field *doc, struct field *o)
{
	if (r->evaluate_by == EVALUATE_COORDINATOR && r->net.layer_count == 0)
		field_fail(
		    doc, "evaluate", "the coordinator cannot evaluate a model without layers");
	if (r->evaluate_by == EVALUATE_DEVICES && field_has(o, "every"))
		field_fail(o, "every", "belongs to \"by\": \"coordinator\" or \"program\"");
	if (r->figures.regression && r->net.layer_count > 0 && net_spec_labels(&r->net))
		field_fail(
		    o, "figures", "\"regression\" goes with numbers to meet, not with labels");
}

/* Who evaluates, job.c reads. What a program measures on, and counts, is its own. */
static void
check_program(const struct recipe *r, struct field *o)
{
	static const char *const program[] = {"devices", "labels"},
				 *const none[] = {"data", "figures"};
	const bool by = r->evaluate_by == EVALUATE_PROGRAM;
	bool named = false;

	for (size_t i = 0; i < sizeof(program) / sizeof(*program); i++) {
		named |= field_has(o, program[i]);
		if (!by && field_has(o, program[i]))
			field_fail(o, program[i], "belongs to \"by\": \"program\"");
	}
	if (by && !named)
		field_fail(o, NULL,
		    "by \"program\" needs \"devices\" or \"labels\": whose program evaluates");
	for (size_t i = 0; by && i < sizeof(none) / sizeof(*none); i++)
		if (field_has(o, none[i]))
			field_fail(o, none[i],
			    "not with \"by\": \"program\", which has a set of its own and reports "
			    "\"metrics\"");
}

static double
default_deadline(enum evaluate_by by)
{
	return by == EVALUATE_COORDINATOR ? RECIPE_EVALUATE_COORDINATOR
	    : by == EVALUATE_PROGRAM	  ? RECIPE_EVALUATE_PROGRAM
					  : 0;
}

static void
read_evaluate(struct recipe *out, struct field *doc)
{
	static const char *const by[] = {[EVALUATE_NONE] = "none",
	    [EVALUATE_COORDINATOR] = "coordinator",
	    [EVALUATE_DEVICES] = "devices",
	    [EVALUATE_PROGRAM] = "program",
	    NULL};

	out->evaluate_by = EVALUATE_NONE;
	out->evaluate_every = 1;
	if (!field_has(doc, "evaluate"))
		return;
	struct field o = field_object(doc, "evaluate");
	out->evaluate_by =
	    (enum evaluate_by)(field_choice(&o, "by", by + 1, FIELD_MUST_CHOICE) + 1);
	field_string(
	    &o, "data", FIELD_NAME, out->evaluate_data, sizeof(out->evaluate_data), out->data.name);
	out->evaluate_every =
	    (uint32_t)field_u64(&o, "every", 1, RECIPE_ROUNDS_MAX, out->evaluate_every);
	out->evaluate_deadline_s = field_double(&o, "deadline_s", RECIPE_EVALUATE_MIN,
	    RECIPE_EVALUATE_MAX, default_deadline(out->evaluate_by));
	figure_set_read(&out->figures, &o);
	out->figures.labels = (uint64_t)recipe_labels_most(out);
	out->figures.skips = out->builtin && (out->net.ignores || out->data.window > 0);
	figure_set_check(&out->figures, &o, out->data.class_count);
	check_program(out, &o);
	check_evaluate(out, doc, &o);
	field_end(&o);
}

enum err
recipe_parse(struct recipe *out, const struct json *doc, bool strict, struct why *why)
{
	struct field_reader reader = {
	    .strict = strict, .why = why, .synonyms = recipe_synonym_table()};
	struct field root = field_root(&reader, doc);

	*out = (struct recipe){.text = NULL};
	for (size_t i = 0; i < sizeof(job_keys) / sizeof(*job_keys); i++)
		field_has(&root, job_keys[i]);
	read_model(out, &root);
	read_tensors(out, &root);
	read_trainer(out, &root);
	recipe_data_read(out, &root);
	recipe_local_read(out, &root);
	read_evaluate(out, &root);
	recipe_upload_read(out, &root);
	recipe_local_check(out, &root);
	field_end(&root);
	if (!reader.err)
		reader.err =
		    recipe_text_new(&out->text, doc, out->evaluate_by == EVALUATE_PROGRAM, why);
	if (reader.err)
		recipe_deinit(out);
	return reader.err;
}

void
recipe_deinit(struct recipe *r)
{
	recipe_text_free(r->text);
	json_free(r->data.classes);
	net_spec_deinit(&r->net);
	free(r->rules);
	*r = (struct recipe){.text = NULL};
}

const char *
recipe_warning(const struct recipe *r)
{
	bool local = false;

	for (size_t i = 0; i < r->rule_count; i++)
		local |= r->rules[i].role == TENSOR_LOCAL;
	/* Devices keep theirs: what the model has of them stays as the job began. */
	if (local && r->evaluate_by == EVALUATE_PROGRAM)
		return "evaluate.by is \"program\", and tensors of role \"local\" are trained and "
		       "kept on "
		       "devices alone: it measures the model with those that the job began with";
	return local && r->evaluate_by == EVALUATE_COORDINATOR
	    ? "evaluate.by is \"coordinator\", and tensors of role \"local\" are trained and kept "
	      "on "
	      "devices alone: it measures the model with those that the job began with. \"by\": "
	      "\"devices\" measures each device's own"
	    : NULL;
}
