#include "job.h"
#include "counts.h"
#include "difference.h"
#include "field.h"
#include "job_inside.h"
#include "json_scan.h"
#include "places.h"
#include "recipe_inside.h"
#include "training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MAX 1e6
#define MOMENTUM_MAX 0.999
#define NORM_MAX 1e30
#define BETA_MAX 0.999999
#define RULE_COUNT_MAX 1000000
#define RULE_ITERATIONS_MAX 100

static void
read_labels(struct select_spec *out, struct field *select)
{
	struct field_list list;
	struct field item;

	field_map(&list, select, "labels", JOB_LABELS_MAX);
	while (field_each(&list, &item)) {
		struct job_label *label = &out->labels[out->label_count++];
		field_member(&item, FIELD_NAME, label->key, sizeof(label->key));
		field_string(&item, NULL, FIELD_LINE, label->value, sizeof(label->value), NULL);
	}
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void
read_devices(struct select_spec *out, struct field *select)
{
	struct field_list list;
	struct field item;
	size_t n = field_array(&list, select, "devices", 0, JOB_SELECT_MAX);

	if (n == 0)
		return;
	out->devices = calloc(n, sizeof(*out->devices));
	if (!out->devices) {
		field_no_memory(select);
		return;
	}
	while (field_each(&list, &item)) {
		char *name = out->devices[out->device_count++];
		field_string(&item, NULL, FIELD_LINE, name, sizeof(*out->devices), NULL);
		if (!name[0])
			field_fail(&item, NULL, "must not be empty");
	}
	qsort(out->devices, out->device_count, sizeof(*out->devices), compare_names);
}

static bool
is_listed(const struct select_spec *s, const char *word)
{
	return bsearch(word, s->devices, s->device_count, sizeof(*s->devices), compare_names) !=
	    NULL;
}

bool
job_names_device(const struct select_spec *s, const char *id, const char *name)
{
	if (s->device_count == 0)
		return true;
	return is_listed(s, id) || (strlen(name) != strlen(id) && is_listed(s, name));
}

static void
read_select(struct select_spec *out, struct field *doc)
{
	struct field o = field_object(doc, "select");
	struct field_list list;
	struct field item;
	size_t i = 0;

	out->percent[0] = 0;
	out->percent[1] = 100;
	read_labels(out, &o);
	read_devices(out, &o);
	if (field_has(&o, "percent")) {
		field_array(&list, &o, "percent", 2, 2);
		while (field_each(&list, &item))
			out->percent[i++] = field_double(&item, NULL, 0, 100, FIELD_MUST_DOUBLE);
		if (out->percent[0] >= out->percent[1])
			field_fail(&o, "percent", "the first must be below the second");
	}
	field_end(&o);
}

/* Whose program evaluates; recipe.c has read the other keys. */
static void
read_evaluators(struct job_spec *job, struct field *doc)
{
	struct field o = field_object(doc, "evaluate");
	struct select_spec *out = &job->evaluators;

	out->percent[1] = 100;
	if (job->recipe.evaluate_by != EVALUATE_PROGRAM)
		return;
	read_labels(out, &o);
	read_devices(out, &o);
	if (out->label_count > 0 && out->device_count > 0)
		field_fail(&o, "labels", "only one of \"devices\" and \"labels\"");
	else if (out->label_count == 0 && out->device_count == 0)
		field_fail(&o, NULL, "\"devices\" or \"labels\" must not be empty");
}

static void
read_rule(struct rule_spec *out, struct field *aggregate)
{
	struct field rule = field_object(aggregate, "rule");

	field_string(&rule, "name", FIELD_NAME, out->name, sizeof(out->name), "mean");
	out->hostile = (uint32_t)field_u64(&rule, "hostile", 0, RULE_COUNT_MAX, 0);
	out->hostile_given = field_has(&rule, "hostile");
	out->picks = (uint32_t)field_u64(&rule, "picks", 1, RULE_COUNT_MAX, 1);
	out->bucket = (uint32_t)field_u64(&rule, "bucket", 1, RULE_COUNT_MAX, 1);
	out->nearest = field_bool(&rule, "nearest", false);
	bool median = strcmp(out->name, "geometric_median") == 0;
	bool clipping = strcmp(out->name, "centered_clipping") == 0;
	out->iterations =
	    (uint32_t)field_u64(&rule, "iterations", 1, RULE_ITERATIONS_MAX, median ? 8 : 1);
	out->smoothing = field_double(&rule, "smoothing", 1e-30, NORM_MAX, 1e-6);
	out->radius =
	    field_double(&rule, "radius", 1e-30, NORM_MAX, clipping ? FIELD_MUST_DOUBLE : 1);
	if (out->bucket > 1 && out->nearest)
		field_fail(&rule, "nearest", "only one of \"bucket\" and \"nearest\"");
	if (!median && field_has(&rule, "smoothing"))
		field_fail(&rule, "smoothing", "belongs to geometric_median");
	if (!clipping && field_has(&rule, "radius"))
		field_fail(&rule, "radius", "belongs to centered_clipping");
	if (strcmp(out->name, "krum") != 0 && field_has(&rule, "picks"))
		field_fail(&rule, "picks", "belongs to krum");
	if (!median && !clipping && field_has(&rule, "iterations"))
		field_fail(&rule, "iterations", "belongs to geometric_median, centered_clipping");
	field_end(&rule);
}

/* "norm_bound": a number, or "median" for that of each round. */
static void
read_bound(struct rule_spec *out, struct field *aggregate)
{
	const struct json *v =
	    field_has(aggregate, "norm_bound") ? json_get(aggregate->value, "norm_bound") : NULL;
	char word[16];

	if (v && json_kind(v) == JSON_STRING) {
		field_string(aggregate, "norm_bound", FIELD_NAME, word, sizeof(word), NULL);
		out->bound_median = strcmp(word, "median") == 0;
		if (!out->bound_median)
			field_fail(aggregate, "norm_bound", "is a number or \"median\"");
	} else {
		out->bound = field_double(aggregate, "norm_bound", 0, NORM_MAX, 0);
	}
}

static void
read_server_numbers(struct aggregate_spec *out, struct field *server)
{
	bool sgd = strcmp(out->optimizer, "sgd") == 0;
	const char *const other[] = {"beta1", "beta2", "tau"};

	out->momentum = field_double(server, "momentum", 0, MOMENTUM_MAX, 0);
	out->nesterov = field_bool(server, "nesterov", false);
	out->beta1 = field_double(server, "beta1", 0, BETA_MAX, 0.9);
	out->beta2 = field_double(server, "beta2", 0, BETA_MAX, 0.99);
	out->tau = field_double(server, "tau", 1e-15, RATE_MAX, 1e-3);
	for (size_t i = 0; sgd && i < sizeof(other) / sizeof(other[0]); i++)
		if (field_has(server, other[i]))
			field_fail(server, other[i], "belongs to adagrad, yogi, adam");
	if (!sgd && (field_has(server, "momentum") || field_has(server, "nesterov")))
		field_fail(server, "momentum", "belongs to sgd; the others have beta1");
	if (out->nesterov && !(out->momentum > 0))
		field_fail(server, "nesterov", "needs \"momentum\"");
}

bool
job_is_plain_mean(const struct rule_spec *rule)
{
	return strcmp(rule->name, "mean") == 0 && rule->bucket == 1 && !rule->nearest;
}

/* What a device says of its work would let it scale the other deltas: no rule that bears hostile ones can allow that. Where devices do
 * different amounts of work by order, it is on by itself if it may be. */
static void
read_normalise(struct aggregate_spec *out, const struct recipe *recipe, struct field *aggregate)
{
	const bool plain = job_is_plain_mean(&out->rule);
	const bool may =
	    plain && recipe->local.optimizer.type == OPTIMIZER_SGD && recipe->local.variates == 0;

	out->normalise_given = field_has(aggregate, "normalise");
	out->normalise =
	    field_bool(aggregate, "normalise", recipe->local.unit == LOCAL_SIZED && may);
	out->normalise_max = field_double(aggregate, "normalise_max", 0, JOB_FACTOR_MAX, -1);
	if (!job_factor_is_bound(out->normalise_max))
		field_fail(aggregate, "normalise_max", "is 0 (no bound), or 1 and more");
	if (!out->normalise) {
		if (field_has(aggregate, "normalise_max"))
			field_fail(aggregate, "normalise_max", "needs \"normalise\"");
		return;
	}
	if (!plain)
		field_fail(aggregate, "normalise", "goes with the plain mean only");
	if (recipe->local.optimizer.type != OPTIMIZER_SGD)
		field_fail(aggregate, "normalise", "adam and adamw have no normaliser; use sgd");
}

static void
read_aggregate(struct job_spec *job, struct field *doc)
{
	struct aggregate_spec *out = &job->aggregate;
	struct field o = field_object(doc, "aggregate");
	struct field server = field_object(&o, "server_optimizer");

	read_rule(&out->rule, &o);
	read_bound(&out->rule, &o);
	read_normalise(out, &job->recipe, &o);
	job_round_read_staleness(job, &o);
	field_string(&server, "name", FIELD_NAME, out->optimizer, sizeof(out->optimizer), "sgd");
	out->rate = field_double(&server, "rate", 1e-9, RATE_MAX, 1);
	read_server_numbers(out, &server);
	recipe_schedule_read(&out->schedule, &server);
	job_guard_read_scale(job, &server);
	field_end(&server);
	out->max_norm = field_double(&o, "max_norm", 0, NORM_MAX, 0);
	out->max_examples = field_u64(&o, "max_examples", 1, JSON_INT_MAX, 1000000);
	field_end(&o);
}

/* What a codec loses is lost for good unless it is fed back: too much of it is not the model that was aggregated. */
static void
read_download(struct download_spec *out, struct field *doc)
{
	struct field o = field_object(doc, "download");

	if (!field_has(doc, "download"))
		return;
	field_string(&o, "codec", FIELD_NAME, out->codec, sizeof(out->codec), NULL);
	out->feedback = field_bool(&o, "feedback", false);
	const struct codec *codec = codec_find_name(out->codec);
	if (!codec)
		recipe_upload_no_codec(&o, "codec");
	else if (!difference_takes(codec))
		field_fail(&o, "codec", "needs a codec of fixed size");
	else if (codec->id == CODEC_SIGN && !out->feedback)
		field_fail(&o, "codec", "\"sign\" loses too much without \"feedback\"");
	field_end(&o);
}

/* What most devices leave out is zero in the others' eyes: medians stay there, and distances between deltas that hardly overlap
 * say nothing but how long they are. */
static void
check_sparse(const struct job_spec *job, struct field *doc)
{
	static const char *const bad[] = {"median", "trimmed_mean", "krum", "bulyan"};
	const struct rule_spec *rule = &job->aggregate.rule;
	struct field aggregate = field_object(doc, "aggregate");

	if (!recipe_upload_takes(&job->recipe.upload, "sparse"))
		return;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (strcmp(rule->name, bad[i]) == 0)
			field_fail(
			    &aggregate, "rule", "%s cannot work with codec sparse", rule->name);
	if (rule->nearest)
		field_fail(&aggregate, "rule", "\"nearest\" cannot work with codec sparse");
}

/* No rule but the plain mean protects variates, too. */
static void
check_variates(struct job_spec *out, struct field *doc)
{
	const struct rule_spec *rule = &out->aggregate.rule;
	struct field o = field_object(doc, "aggregate"), local = field_object(doc, "local");

	out->aggregate.variates = out->only_evaluates ? 0 : out->recipe.local.variates;
	if (out->aggregate.variates == 0)
		return;
	if (!job_is_plain_mean(rule))
		field_fail(&o, "rule", "local.control_variates needs the plain mean");
	if (rule->bound > 0 || rule->bound_median)
		field_fail(&o, "norm_bound", "not with local.control_variates");
	if (out->aggregate.normalise)
		field_fail(&o, "normalise", "not with local.control_variates, which do without");
	/* The devices' variates do not go back with the model. */
	if (out->guard.on && out->guard.action == GUARD_DO_ROLLBACK)
		field_fail(&local, "control_variates", "not with a guard that rolls back");
	if (out->round.goal > out->aggregate.variates)
		field_fail(&local, "control_variates", "has fewer devices than round.goal");
}

/* "metrics.NAME": x, of the monitor's own metric. word must stay until the target's field_end. */
static void
read_own_target(struct job_spec *out, struct field *target, char word[JOB_MONITOR_WORD])
{
	struct monitor_spec named;

	job_monitor_word(word, &out->monitor);
	for (const struct json *v = json_first(target->value); v; v = json_next(v))
		if (job_monitor_find(&named, json_key(v)) && named.metric == MONITOR_OWN &&
		    job_monitor_takes(out, json_key(v), target, json_key(v))) {
			out->stop.has_own = field_has(target, word);
			out->stop.own = field_double(target, word, -NORM_MAX, NORM_MAX, 0);
		}
}

static void
read_stop(struct job_spec *out, struct field *doc)
{
	struct field o = field_object(doc, "stop");
	struct field target = field_object(&o, "target");
	struct stop_spec *s = &out->stop;
	char word[JOB_MONITOR_WORD];

	s->rounds = field_u64(&o, "rounds", 0, JOB_STOP_ROUNDS_MAX, 0);
	s->reports = field_u64(&o, "reports", 0, JOB_STOP_REPORTS_MAX, 0);
	s->seconds = field_double(&o, "seconds", 0, JOB_STOP_SECONDS_MAX, 0);
	s->has_accuracy = field_has(&target, "accuracy");
	s->accuracy = field_double(&target, "accuracy", 0, 1, 0);
	s->has_loss = field_has(&target, "loss");
	s->loss = field_double(&target, "loss", 0, NORM_MAX, 0);
	read_own_target(out, &target, word);
	field_end(&target);
	field_end(&o);
	if (!field_has(&o, "target"))
		return;
	if (!s->has_accuracy && !s->has_loss && !s->has_own)
		field_fail(&target, NULL, "needs \"accuracy\" or \"loss\"");
	if (out->recipe.evaluate_by == EVALUATE_NONE && (s->has_accuracy || s->has_loss))
		field_fail(&target, NULL, "needs \"evaluate\": nothing would measure it");
	if (s->has_accuracy && out->recipe.net.layer_count && !net_spec_labels(&out->recipe.net))
		field_fail(&target, "accuracy", "the job's loss has none");
}

/* What belongs to rounds that make models is none of an evaluation's. */
static void
read_kind(struct job_spec *out, struct field *doc)
{
	static const char *const kinds[] = {"train", "evaluate", NULL};
	static const char *const none[] = {"stop", "guard", "download"};
	const struct recipe *r = &out->recipe;

	out->only_evaluates = field_choice(doc, "kind", kinds, 0) == 1;
	/* Another trainer may evaluate on data of its own. */
	if (!out->only_evaluates && r->evaluate_by == EVALUATE_DEVICES && r->builtin &&
	    r->data.validation == 0)
		field_fail(doc, "evaluate", "on devices it needs data.validation above 0");
	if (!out->only_evaluates)
		return;
	if (r->evaluate_by != EVALUATE_DEVICES)
		field_fail(doc, "kind", "\"evaluate\" needs \"evaluate\": {\"by\": \"devices\"}");
	if (!r->init[0])
		field_fail(doc, "kind", "\"evaluate\" needs model.init: which model it is");
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		if (field_has(doc, none[i]))
			field_fail(doc, none[i], "an evaluation has none");
}

/* The keys of a job; what stands in the recipe was read before, and with it the unknown ones. */
static enum err
read_job(struct job_spec *out, const struct json *doc, struct why *why)
{
	struct field_reader reader = {
	    .strict = true, .why = why, .synonyms = recipe_synonym_table()};
	struct field root = field_root(&reader, doc);

	field_string(&root, "name", FIELD_NAME, out->name, sizeof(out->name), NULL);
	out->seed = field_u64(&root, "seed", 0, JSON_INT_MAX, 1);
	read_kind(out, &root);
	job_round_read(&out->round, &root);
	read_select(&out->select, &root);
	read_evaluators(out, &root);
	out->priority = field_i64(&root, "priority", -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX, 0);
	out->share = (uint32_t)field_u64(&root, "share", 1, JOB_SHARE_MAX, 1);
	read_aggregate(out, &root);
	read_download(&out->download, &root);
	check_sparse(out, &root);
	job_monitor_read(out, &root);
	job_monitor_read_keep(out, &root);
	read_stop(out, &root);
	job_guard_read(out, &root);
	check_variates(out, &root);
	job_round_check(out, &root);
	return reader.err;
}

enum err
job_bound(const char *text, size_t len, struct why *why)
{
	size_t values = json_scan_values(text, len);

	if (values <= JOB_VALUES_MAX)
		return ERR_OK;
	return err_set(why, ERR_LIMIT,
	    "%zu values, %u at most: long lists belong into the trainer's data", values,
	    JOB_VALUES_MAX);
}

enum err
job_parse(struct job_spec *out, const char *text, size_t len, struct why *why)
{
	struct json *doc = NULL;
	enum err e;

	*out = (struct job_spec){.seed = 1};
	if (len > JOB_DOCUMENT_MAX)
		return err_set(why, ERR_LIMIT, "larger than %u bytes", JOB_DOCUMENT_MAX);
	e = json_parse(&doc, text, len, why);
	/* A task message carries the recipe one level deeper. */
	if (!e && json_depth(doc) > JOB_DEPTH_MAX)
		e = err_set(why, ERR_LIMIT, "nested deeper than %d levels", JOB_DEPTH_MAX);
	if (!e)
		e = recipe_parse(&out->recipe, doc, true, why);
	if (!e)
		e = read_job(out, doc, why);
	json_free(doc);
	if (e)
		job_deinit(out);
	return e;
}

/* Who takes another rule than the mean means to bear somebody, and is to say how many. */
static enum err
check_hostile(const struct rule_spec *rule, struct why *why)
{
	static const char *const needy[] = {"trimmed_mean", "krum", "bulyan"};
	const char *name = rule->nearest ? "nearest" : rule->name;
	bool needs = rule->nearest;

	for (size_t i = 0; i < sizeof(needy) / sizeof(*needy); i++)
		needs = needs || strcmp(rule->name, needy[i]) == 0;
	if (needs && rule->hostile == 0)
		return err_set(why, ERR_INVALID,
		    "aggregate.rule.hostile: %s tolerates as many hostile reports a round as "
		    "this number; set it to at least 1",
		    name);
	if (strcmp(rule->name, "mean") != 0 && !rule->hostile_given)
		return err_set(why, ERR_INVALID,
		    "aggregate.rule.hostile: missing; set it to how many hostile reports a round "
		    "%s must tolerate, or to 0",
		    name);
	return ERR_OK;
}

/* What devices count must fit into their reports, whatever they find. */
static enum err
check_figures(const struct job_spec *job, struct why *why)
{
	const struct recipe *r = &job->recipe;
	size_t n = r->data.class_count;
	/* A program's labels, which nobody knows here, are as many as it finds room for. */
	uint64_t labels = r->builtin && r->data.window > 0 ? r->data.window : 1;
	uint64_t examples = job->aggregate.max_examples;
	uint64_t most = examples > JSON_INT_MAX / labels ? JSON_INT_MAX : labels * examples;
	uint64_t bytes = figure_set_bytes(&r->figures, n, most);

	if (bytes <= FIGURE_SET_BYTES_MAX && !counts_exceed(&r->figures, n))
		return ERR_OK;
	if (bytes <= FIGURE_SET_BYTES_MAX)
		return err_set(why, ERR_INVALID,
		    "evaluate.figures: %zu classes are too many for what is asked for", n);
	return err_set(why, ERR_INVALID,
	    "evaluate.figures: with %zu classes and up to %llu %s (aggregate.max_examples) "
	    "a report could need %llu bytes for them, and has %d",
	    n, (unsigned long long)most, labels > 1 ? "labels" : "examples",
	    (unsigned long long)bytes, FIGURE_SET_BYTES_MAX);
}

/* A batch norm has no variance of a single value. */
static enum err
check_piece(const struct recipe *r, struct why *why)
{
	if (r->local.least <= 1 || training_piece(&r->local) != 1)
		return ERR_OK;
	return err_set(why, ERR_INVALID,
	    "%s: of 1 example batchnorm \"%s\" sees one value of each channel, without variance; "
	    "take 2 or more",
	    r->local.batch == 1 ? "local.batch" : "parallel.micro_batch",
	    net_places_single(&r->net)->name);
}

enum err
job_check(const struct job_spec *job, struct why *why)
{
	const struct recipe *r = &job->recipe;
	enum err e = check_figures(job, why);

	if (e)
		return e;

	if (r->net.layer_count > 0 && !net_spec_labels(&r->net) && r->data.class_count > 0)
		return err_set(why, ERR_INVALID,
		    "data.classes: mse and bce are for numbers; use cross_entropy, or leave "
		    "classes out");
	e = job->only_evaluates ? ERR_OK : check_piece(r, why);
	return e ? e : check_hostile(&job->aggregate.rule, why);
}

bool
job_measures(const struct job_spec *job, uint64_t round, bool last)
{
	const struct recipe *r = &job->recipe;

	return (r->evaluate_by == EVALUATE_COORDINATOR || r->evaluate_by == EVALUATE_PROGRAM) &&
	    (round % r->evaluate_every == 0 || last);
}

bool
job_measures_base(const struct job_spec *job, bool own)
{
	return job->recipe.evaluate_by == EVALUATE_DEVICES ||
	    (own && job->recipe.evaluate_by != EVALUATE_PROGRAM);
}

void
job_deinit(struct job_spec *job)
{
	recipe_deinit(&job->recipe);
	free(job->select.devices);
	free(job->evaluators.devices);
	*job = (struct job_spec){.seed = 1};
}
