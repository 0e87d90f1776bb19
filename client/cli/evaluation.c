#include "evaluation.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_HERE 63 /* bytes of a job's name */
#define MODEL_SHOWN 12

/* In the order of a document that people write. */
static const char *const kept[] = {
    "tensors", "trainer", "params", "data", "local", "select", "priority", "upload"};

static struct json *
named(const struct cmd_evaluation *v)
{
	const char *name = json_string(json_get(v->like, "name"));
	char text[NAME_MAX_HERE + 1], end[32];

	if (v->name)
		return json_new_string(v->name);
	int len = snprintf(end, sizeof(end), "-evaluate-%.*s", MODEL_SHOWN, v->model);
	snprintf(text, sizeof(text), "%.*s%s", NAME_MAX_HERE - len, name ? name : "job", end);
	return json_new_string(text);
}

/* All but its beginning. */
static struct json *
model_of(const struct cmd_evaluation *v)
{
	const struct json *from = json_get(v->like, "model");
	struct json *model = json_object();

	for (const struct json *m = json_first(from); m; m = json_next(m))
		if (strcmp(json_key(m), "init") != 0)
			json_add(model, json_key(m), json_copy(m));
	json_add_string(model, "init", v->model);
	return model;
}

/* Devices measure it, whoever measures the models of `like`. */
static struct json *
evaluate_of(const struct cmd_evaluation *v)
{
	const struct json *from = json_get(v->like, "evaluate");
	const char *by = json_string(json_get(from, "by"));
	bool devices = by && strcmp(by, "devices") == 0;
	struct json *evaluate = json_object();

	json_add_string(evaluate, "by", "devices");
	for (const struct json *m = json_first(from); m; m = json_next(m)) {
		const char *key = json_key(m);
		bool own = strcmp(key, "data") == 0 || strcmp(key, "every") == 0 ||
		    strcmp(key, "deadline_s") == 0 || strcmp(key, "devices") == 0 ||
		    strcmp(key, "labels") == 0;
		if (strcmp(key, "by") != 0 && (devices || !own))
			json_add(evaluate, key, json_copy(m));
	}
	return evaluate;
}

static struct json *
round_of(const struct cmd_evaluation *v)
{
	const struct json *from = json_get(v->like, "round");
	struct json *round = json_object();

	if (v->goal > 0)
		json_add_u64(round, "goal", v->goal);
	for (const struct json *m = json_first(from); m; m = json_next(m)) {
		const char *key = json_key(m);
		bool counted = strcmp(key, "goal") == 0 || strcmp(key, "quorum") == 0;
		if (v->goal == 0 || !counted)
			json_add(round, key, json_copy(m));
	}
	return round;
}

/* Of the rule what says whom the metric must bear; of the rest how much a device may claim. */
static struct json *
aggregate_of(const struct json *from)
{
	const struct json *rule = json_get(from, "rule"), *most = json_get(from, "max_examples");
	struct json *aggregate = json_object();

	if (rule)
		json_add(aggregate, "rule", json_copy(rule));
	if (most)
		json_add(aggregate, "max_examples", json_copy(most));
	return aggregate;
}

enum err
cmd_evaluation_document(struct buf *out, const struct cmd_evaluation *v, struct why *why)
{
	const struct json *seed = json_get(v->like, "seed");

	if (json_kind(json_get(v->like, "model")) != JSON_OBJECT ||
	    json_kind(json_get(v->like, "round")) != JSON_OBJECT)
		return err_set(why, ERR_INVALID, "that is no job's document");
	struct json *doc = json_object();
	json_add(doc, "name", named(v));
	json_add_string(doc, "kind", "evaluate");
	if (seed)
		json_add(doc, "seed", json_copy(seed));
	json_add(doc, "model", model_of(v));
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		const struct json *part = json_get(v->like, kept[i]);
		if (part)
			json_add(doc, kept[i], json_copy(part));
	}
	json_add(doc, "evaluate", evaluate_of(v));
	json_add(doc, "round", round_of(v));
	json_add(doc, "aggregate", aggregate_of(json_get(v->like, "aggregate")));
	enum err e = json_print(out, doc, false);
	json_free(doc);
	return e ? err_set(why, e, "no memory for a document") : ERR_OK;
}
