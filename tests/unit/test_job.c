/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "codec.h"
#include "job.h"
#include "job_rows.h"
#include "json.h"
#include "tensor.h"

/* The FedAvg paper's MNIST 2NN. */
static const char two_nn[] =
    "{\"name\":\"mnist-2nn\",\"seed\":7,"
    "\"model\":{\"layers\":["
    "{\"type\":\"linear\",\"name\":\"fc1\",\"out\":200},{\"type\":\"relu\"},"
    "{\"type\":\"linear\",\"name\":\"fc2\",\"out\":200},{\"type\":\"relu\"},"
    "{\"type\":\"linear\",\"name\":\"fc3\",\"out\":10}],\"loss\":\"cross_entropy\"},"
    "\"data\":{\"name\":\"mnist\",\"shape\":[784],\"classes\":10},"
    "\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},"
    "\"round\":{\"goal\":10,\"quorum\":8,\"over_select\":1.3,\"deadline_s\":120,\"grace_s\":5},"
    "\"evaluate\":{\"by\":\"coordinator\",\"data\":\"mnist-test\"},"
    "\"stop\":{\"rounds\":105,\"target\":{\"accuracy\":0.97}}}";

static const char lenet[] =
    "{\"name\":\"lenet\",\"model\":{\"layers\":["
    "{\"type\":\"conv2d\",\"name\":\"conv1\",\"out\":6,\"kernel\":[5,5],\"padding\":[2,2],"
    "\"inputs\":[\"input\"]},"
    "{\"type\":\"relu\",\"name\":\"r1\",\"inputs\":[\"conv1\"]},"
    "{\"type\":\"maxpool2d\",\"name\":\"pool1\",\"inputs\":[\"r1\"],\"kernel\":[2,2]},"
    "{\"type\":\"conv2d\",\"name\":\"conv2\",\"inputs\":[\"pool1\"],\"out\":16,\"kernel\":5,"
    "\"stride\":[1,1],\"bias\":false,\"init\":\"glorot\"},"
    "{\"type\":\"relu\"},{\"type\":\"avgpool2d\",\"kernel\":[2,3],\"stride\":[2,1],\"padding\":[1,"
    "0]},"
    "{\"type\":\"flatten\"},{\"type\":\"dropout\"},{\"type\":\"linear\",\"name\":\"fc\",\"out\":10,"
    "\"init\":\"zero\"}],"
    "\"loss\":\"cross_entropy\",\"init\":\"" HEX64 "\"},"
    "\"tensors\":{\"conv1.*\":\"frozen\",\"*.bias\":\"local\",\"*\":\"train\"},"
    "\"trainer\":\"builtin\",\"params\":{\"anything\":[1,{\"goes\":null}]},"
    "\"data\":{\"name\":\"digits\",\"shape\":[1,28,28],"
    "\"classes\":[\"zero\",\"one\",\"two\",\"three\",\"four\",\"five\",\"six\",\"seven\",\"eight\","
    "\"nine\"],"
    "\"normalise\":{\"mean\":0.1307,\"std\":[0.3081]},\"validation\":0.1,\"min_examples\":100},"
    "\"local\":{\"steps\":40,\"optimizer\":{\"rate\":0.05,\"momentum\":0.9,\"weight_decay\":0.0001}"
    ","
    "\"schedule\":{\"type\":\"cosine\",\"warmup\":5,\"period\":50,\"floor\":0.1}},"
    "\"round\":{\"goal\":5,\"pick\":\"sample\",\"sample_s\":2.5},"
    "\"select\":{\"labels\":{\"site\":\"berlin\",\"gpu\":\"no\"},\"devices\":[\"north-7\",\"cam-"
    "1\",\"" HEX64 "\"],\"percent\":[0,50]},"
    "\"priority\":-3,"
    "\"aggregate\":{\"rule\":{\"name\":\"mean\"},\"server_optimizer\":{\"name\":\"sgd\",\"rate\":0."
    "5,\"momentum\":0.9},"
    "\"max_norm\":10,\"max_examples\":5000},"
    "\"upload\":{\"codec\":\"f32\"},\"evaluate\":{\"by\":\"devices\"},"
    "\"stop\":{\"rounds\":20,\"target\":{\"loss\":0.05}}}";

/* The smallest document there is, by key; a row of a table below replaces one key or adds one. */
static const char *const keys[] = {"name", "model", "data", "local", "round", "seed", "tensors",
    "trainer", "params", "select", "priority", "aggregate", "upload", "evaluate", "stop"};
static const char *const minimal[] = {"\"j\"",
    "{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":\"cross_entropy\"}",
    "{\"name\":\"d\",\"shape\":[4],\"classes\":2}", "{\"optimizer\":{\"rate\":0.1}}",
    "{\"goal\":3}"};
#define MINIMAL (sizeof(minimal) / sizeof(*minimal))

static enum err
parse_row(struct job_spec *job, const struct row *row, struct why *why)
{
	struct buf text;
	bool used = false;

	buf_init(&text, 1 << 21);
	assert_int_equal(buf_append(&text, "{", 1), ERR_OK);
	for (size_t i = 0; i < MINIMAL; i++) {
		bool mine = strcmp(row->key, keys[i]) == 0;
		used = used || mine;
		const char *value = mine ? row->value : minimal[i];
		if (value)
			assert_int_equal(buf_printf(&text, "%s\"%s\":%s", text.len > 1 ? "," : "",
					     keys[i], value),
			    ERR_OK);
	}
	if (!used)
		assert_int_equal(buf_printf(&text, ",\"%s\":%s", row->key, row->value), ERR_OK);
	assert_int_equal(buf_append(&text, "}", 1), ERR_OK);
	enum err e = job_parse(job, text.data, text.len, why);
	buf_deinit(&text);
	return e;
}

static void
check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct job_spec job;
		struct why why = {""};
		enum err e = parse_row(&job, &rows[i], &why);
		bool right = rows[i].reason
		    ? e == ERR_INVALID && strcmp(why.text, rows[i].reason) == 0
		    : e == ERR_OK;
		if (!right)
			print_error("%s = %s: %s: %s\n", rows[i].key,
			    rows[i].value ? rows[i].value : "(absent)", err_name(e), why.text);
		assert_true(right);
		job_deinit(&job);
	}
}

static struct job_spec
good(const char *text)
{
	struct job_spec job;
	struct why why = {""};
	enum err e = job_parse(&job, text, strlen(text), &why);

	if (e)
		print_error("%s\n", why.text);
	assert_int_equal(e, ERR_OK);
	return job;
}

/* What a device is told. */
static void
check_two_nn(const struct recipe *r)
{
	assert_int_equal(r->net.layer_count, 5);
	assert_int_equal(r->net.layers[0].type, LAYER_LINEAR);
	assert_int_equal(r->net.layers[0].out, 200);
	assert_true(r->net.layers[0].bias);
	assert_int_equal(r->net.layers[0].init, INIT_HE);
	assert_string_equal(r->net.layers[1].name, "relu2");
	assert_int_equal(r->net.layers[0].inputs[0], LAYER_INPUT);
	for (int i = 1; i < 5; i++) {
		assert_int_equal(r->net.layers[i].input_count, 1);
		assert_int_equal(r->net.layers[i].inputs[0], i - 1);
	}
	assert_int_equal(r->net.loss, LOSS_CROSS_ENTROPY);
	assert_int_equal(r->net.input_dims, 1);
	assert_true(r->net.input[0] == 784 && r->net.input[1] == 1 && r->net.input[2] == 1);
	assert_string_equal(r->init, "");
	assert_int_equal(r->rule_count, 0);
	assert_string_equal(r->trainer, "builtin");
	assert_true(r->builtin);
	assert_string_equal(r->codec, "f32");
	assert_string_equal(r->data.name, "mnist");
	assert_int_equal(r->data.class_count, 10);
	assert_string_equal(json_string(json_at(r->data.classes, 9)), "9");
	assert_int_equal(r->data.channels, 0);
	assert_true(r->data.validation == 0);
	assert_int_equal(r->data.min_examples, 1);
	assert_int_equal(r->local.unit, LOCAL_EPOCHS);
	assert_true(r->local.amount == 1 && r->local.optimizer.rate == 0.1);
	assert_int_equal(r->local.batch, 10);
	assert_int_equal(r->local.accumulate, 1);
	assert_int_equal(r->local.random, RANDOM_STREAM);
	assert_true(r->local.prox == 0 && r->local.clip_norm == 0 && r->local.seconds == 0);
	assert_string_equal(r->local.optimizer.name, "sgd");
	assert_true(r->local.optimizer.momentum == 0 && r->local.optimizer.weight_decay == 0);
	assert_int_equal(r->local.schedule.type, SCHEDULE_CONSTANT);
	assert_int_equal(r->evaluate_by, EVALUATE_COORDINATOR);
	assert_string_equal(r->evaluate_data, "mnist-test");
}

static void
test_two_nn(void **state)
{
	(void)state;
	struct job_spec j = good(two_nn);

	assert_string_equal(j.name, "mnist-2nn");
	assert_int_equal(j.seed, 7);
	check_two_nn(&j.recipe);
	assert_int_equal(j.round.goal, 10);
	assert_int_equal(j.round.quorum, 8);
	assert_true(
	    j.round.over_select == 1.3 && j.round.deadline_s == 120 && j.round.grace_s == 5);
	assert_true(j.round.sample_s == 1 && !j.round.sample);
	assert_string_equal(j.aggregate.rule.name, "mean");
	assert_string_equal(j.aggregate.optimizer, "sgd");
	assert_true(
	    j.aggregate.rate == 1 && j.aggregate.momentum == 0 && j.aggregate.max_norm == 0);
	assert_int_equal(j.aggregate.max_examples, 1000000);
	assert_int_equal(j.stop.rounds, 105);
	assert_true(j.stop.has_accuracy && j.stop.accuracy == 0.97 && !j.stop.has_loss);
	assert_true(j.select.percent[0] == 0 && j.select.percent[1] == 100);
	assert_int_equal(j.select.label_count, 0);
	assert_int_equal(j.select.device_count, 0);
	assert_int_equal(j.priority, 0);
	job_deinit(&j);
	job_deinit(&j);
}

static void
check_select(const struct select_spec *select)
{
	assert_true(select->label_count == 2 && select->device_count == 3);
	assert_string_equal(select->labels[0].key, "site");
	assert_string_equal(select->labels[0].value, "berlin");
	char other[] = HEX64;
	other[0] = 'f';
	assert_true(
	    job_names_device(select, other, "north-7") && job_names_device(select, other, "cam-1"));
	assert_true(job_names_device(select, HEX64, "cam-2"));
	assert_false(
	    job_names_device(select, other, "cam-2") || job_names_device(select, other, HEX64));
	assert_true(select->percent[1] == 50);
}

static void
test_lenet(void **state)
{
	(void)state;
	struct job_spec j = good(lenet);
	const struct recipe *r = &j.recipe;
	const struct layer_spec *l = r->net.layers;

	assert_int_equal(j.seed, 1);
	assert_int_equal(r->net.layer_count, 9);
	assert_true(l[0].kernel[0] == 5 && l[0].kernel[1] == 5 && l[0].padding[0] == 2);
	assert_true(l[0].stride[0] == 1 && l[0].stride[1] == 1);
	assert_int_equal(l[0].inputs[0], LAYER_INPUT);
	assert_int_equal(l[2].type, LAYER_MAXPOOL2D);
	assert_true(l[2].stride[0] == 2 && l[2].stride[1] == 2 && l[2].padding[0] == 0);
	assert_int_equal(l[3].inputs[0], 2);
	assert_true(l[3].kernel[0] == 5 && l[3].kernel[1] == 5);
	assert_true(!l[3].bias && l[3].init == INIT_GLOROT);
	assert_true(l[5].kernel[0] == 2 && l[5].kernel[1] == 3 && l[5].stride[1] == 1 &&
	    l[5].padding[0] == 1);
	assert_string_equal(l[5].name, "avgpool2d6");
	assert_true(l[7].type == LAYER_DROPOUT && l[7].rate == 0.5f);
	assert_int_equal(l[8].init, INIT_ZERO);
	assert_string_equal(r->init, HEX64);
	assert_int_equal(r->rule_count, 3);
	assert_string_equal(r->rules[0].pattern, "conv1.*");
	assert_true(r->rules[0].role == TENSOR_FROZEN && r->rules[1].role == TENSOR_LOCAL);
	assert_string_equal(r->rules[2].pattern, "*");
	assert_int_equal(r->data.dims, 3);
	assert_true(r->net.input[0] == 1 && r->net.input[1] == 28 && r->net.input[2] == 28);
	assert_int_equal(r->data.class_count, 10);
	assert_string_equal(json_string(json_at(r->data.classes, 1)), "one");
	assert_int_equal(r->data.channels, 1);
	assert_true(r->data.mean[0] == 0.1307f && r->data.std[0] == 0.3081f);
	assert_true(r->data.validation == 0.1 && r->data.min_examples == 100);
	assert_true(r->local.unit == LOCAL_STEPS && r->local.amount == 40);
	assert_true(
	    r->local.optimizer.momentum == 0.9 && r->local.optimizer.weight_decay == 0.0001);
	assert_int_equal(r->local.schedule.type, SCHEDULE_COSINE);
	assert_true(r->local.schedule.warmup == 5 && r->local.schedule.period == 50 &&
	    r->local.schedule.floor == 0.1);
	assert_int_equal(r->evaluate_by, EVALUATE_DEVICES);
	assert_true(j.round.sample && j.round.sample_s == 2.5 && j.round.quorum == 5);
	check_select(&j.select);
	assert_int_equal(j.priority, -3);
	assert_true(j.aggregate.rate == 0.5 && j.aggregate.momentum == 0.9);
	assert_true(j.aggregate.max_norm == 10 && j.aggregate.max_examples == 5000);
	assert_true(j.stop.has_loss && j.stop.loss == 0.05 && !j.stop.has_accuracy);
	job_deinit(&j);
}

static void
test_residual(void **state)
{
	(void)state;
	static const struct row row = {"model",
	    "{\"layers\":[{\"type\":\"conv2d\",\"name\":\"a\",\"out\":8,\"kernel\":3,\"padding\":1}"
	    ","
	    "{\"type\":\"conv2d\",\"name\":\"b\",\"out\":8,\"kernel\":3,\"padding\":1},"
	    "{\"type\":\"add\",\"name\":\"sum\",\"inputs\":[\"a\",\"b\",\"a\"]},"
	    "{\"type\":\"flatten\"},{\"type\":\"linear\",\"out\":2}],\"loss\":\"cross_entropy\"}",
	    NULL};
	struct job_spec j;

	assert_int_equal(parse_row(&j, &row, NULL), ERR_OK);
	const struct layer_spec *sum = &j.recipe.net.layers[2];
	assert_int_equal(sum->type, LAYER_ADD);
	assert_int_equal(sum->input_count, 3);
	assert_true(sum->inputs[0] == 0 && sum->inputs[1] == 1 && sum->inputs[2] == 0);
	assert_int_equal(j.recipe.net.layers[3].inputs[0], 2);
	job_deinit(&j);
}

/* What a task message carries is what was submitted, and nothing else. */
static void
test_document(void **state)
{
	(void)state;
	struct job_spec j = good(two_nn);

	assert_string_equal(recipe_text_all(j.recipe.text),
	    "{\"model\":{\"layers\":["
	    "{\"type\":\"linear\",\"name\":\"fc1\",\"out\":200},{\"type\":\"relu\"},"
	    "{\"type\":\"linear\",\"name\":\"fc2\",\"out\":200},{\"type\":\"relu\"},"
	    "{\"type\":\"linear\",\"name\":\"fc3\",\"out\":10}],\"loss\":\"cross_entropy\"},"
	    "\"data\":{\"name\":\"mnist\",\"shape\":[784],\"classes\":10},"
	    "\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},"
	    "\"evaluate\":{\"by\":\"coordinator\",\"data\":\"mnist-test\"}}");
	assert_int_equal(recipe_text_bytes(j.recipe.text), strlen(recipe_text_all(j.recipe.text)));
	job_deinit(&j);
}

#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof(*rows))

static void
test_rows(void **state)
{
	(void)state;
	CHECK(top_rows);
	CHECK(model_rows);
	CHECK(data_rows);
	CHECK(local_rows);
	CHECK(job_rows);
}

static void
test_layers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(layer_rows) / sizeof(*layer_rows); i++) {
		char model[512], reason[256];
		struct row row = {"model", model, layer_rows[i].reason ? reason : NULL};
		snprintf(model, sizeof(model),
		    "{\"layers\":[{\"type\":\"relu\",\"name\":\"first\"},%s],\"loss\":\"mse\"}",
		    layer_rows[i].value);
		if (layer_rows[i].reason)
			snprintf(
			    reason, sizeof(reason), "model.layers[1].%s", layer_rows[i].reason);
		check_rows(&row, 1);
	}
}

/* Limits on how many there may be, at the limit and one above. */
static void
test_counts(void **state)
{
	(void)state;
	static const struct {
		const char *key, *open, *item, *close;
		size_t most;
	} lists[] = {
	    {"model", "{\"loss\":\"mse\",\"layers\":[", "{\"type\":\"relu\"}", "]}",
		RECIPE_LAYERS_MAX},
	    {"tensors", "{", "\"p%zu\":\"train\"", "}", RECIPE_RULES_MAX},
	    {"select", "{\"labels\":{", "\"k%zu\":\"v\"", "}}", JOB_LABELS_MAX},
	    {"select", "{\"devices\":[", "\"d%zu\"", "]}", JOB_SELECT_MAX},
	    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":[", "\"c%zu\"", "]}",
		RECIPE_CLASSES_MAX},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		for (size_t n = lists[i].most; n <= lists[i].most + 1; n++) {
			struct buf text;
			struct job_spec job;
			struct row row = {.key = lists[i].key};
			buf_init(&text, 1 << 20);
			assert_int_equal(buf_printf(&text, "%s", lists[i].open), ERR_OK);
			for (size_t k = 0; k < n; k++) {
				char item[64];
				const char *number = strstr(lists[i].item, "%zu");
				if (number)
					snprintf(item, sizeof(item), "%.*s%zu%s",
					    (int)(number - lists[i].item), lists[i].item, k,
					    number + 3);
				else
					snprintf(item, sizeof(item), "%s", lists[i].item);
				assert_int_equal(
				    buf_printf(&text, "%s%s", k ? "," : "", item), ERR_OK);
			}
			assert_int_equal(buf_printf(&text, "%s", lists[i].close), ERR_OK);
			row.value = text.data;
			assert_int_equal(
			    parse_row(&job, &row, NULL), n > lists[i].most ? ERR_INVALID : ERR_OK);
			job_deinit(&job);
			buf_deinit(&text);
		}
}

static void
test_init_only(void **state)
{
	(void)state;
	static const char format[] =
	    "{\"name\":\"j\",\"model\":{\"init\":\"" HEX64 "\"},\"trainer\":\"torch\","
	    "\"data\":{\"name\":\"d\"},\"round\":{\"goal\":1}%s}";
	char text[512];
	struct job_spec job;
	struct why why;

	snprintf(text, sizeof(text), format, "");
	job = good(text);
	assert_int_equal(job.recipe.net.layer_count, 0);
	assert_int_equal(job.recipe.net.input_dims, 0);
	assert_true(job.recipe.local.optimizer.rate == 0);
	job_deinit(&job);
	snprintf(text, sizeof(text), format,
	    ",\"evaluate\":{\"by\":\"devices\"},\"stop\":{\"target\":{\"accuracy\":0.5}},"
	    "\"local\":{\"optimizer\":{\"name\":\"adam\"}}");
	job = good(text);
	assert_string_equal(job.recipe.local.optimizer.name, "adam");
	job_deinit(&job);
	snprintf(text, sizeof(text), format, ",\"evaluate\":{\"by\":\"coordinator\"}");
	assert_int_equal(job_parse(&job, text, strlen(text), &why), ERR_INVALID);
	assert_string_equal(
	    why.text, "evaluate: the coordinator cannot evaluate a model without layers");
}

static void
test_mse_accuracy(void **state)
{
	(void)state;
	static const char text[] =
	    "{\"name\":\"j\",\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":1}],\"loss\":"
	    "\"mse\"},"
	    "\"data\":{\"name\":\"d\",\"shape\":[4]},\"local\":{\"optimizer\":{\"rate\":1}},"
	    "\"round\":{\"goal\":1},"
	    "\"evaluate\":{\"by\":\"coordinator\"},\"stop\":{\"target\":{\"accuracy\":0.5}}}";
	struct job_spec job;
	struct why why;

	assert_int_equal(job_parse(&job, text, sizeof(text) - 1, &why), ERR_INVALID);
	assert_string_equal(why.text, "stop.target.accuracy: the job's loss has none");
}

static void
test_syntax(void **state)
{
	(void)state;
	static const char *const texts[] = {
	    "", "[]", "7", "{", "{}", "null", "{\"name\":\"a\",\"name\":\"b\"}"};
	struct job_spec job;
	struct why why;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		why.text[0] = '\0';
		assert_int_equal(job_parse(&job, texts[i], strlen(texts[i]), &why), ERR_INVALID);
		assert_true(why.text[0]);
		job_deinit(&job);
	}
}

static void
test_sizes(void **state)
{
	(void)state;
	static const char tail[] = "[]}";
	struct job_spec job;
	struct buf text;
	struct why why;

	for (size_t depth = 20; depth < 40; depth++) {
		char params[128] = "{\"a\":";
		struct row row = {"params", params, NULL};
		for (size_t i = 0; i < depth - 3; i++)
			strcat(params, "[");
		for (size_t i = 0; i < depth - 3; i++)
			strcat(params, "]");
		strcat(params, "}");
		/* The document nests one deeper than its recipe's params: {"params": {"a": [...]}}. */
		enum err e = parse_row(&job, &row, &why);
		assert_int_equal(e, depth - 3 + 2 <= JOB_DEPTH_MAX ? ERR_OK : ERR_LIMIT);
		job_deinit(&job);
	}
	buf_init(&text, 4 << 20);
	for (size_t i = 0; i < 40000; i++)
		assert_int_equal(buf_printf(&text, "%s1e15", i ? "," : "{\"a\":["), ERR_OK);
	assert_int_equal(buf_append(&text, tail + 1, 2), ERR_OK);
	struct row row = {"params", text.data, NULL};
	assert_int_equal(parse_row(&job, &row, NULL), ERR_OK);
	job_deinit(&job);
	/* Fits as it stands, but not when its numbers are written out. */
	text.len -= 2;
	for (size_t i = 0; i < 60000; i++)
		assert_int_equal(buf_printf(&text, ",1e15"), ERR_OK);
	assert_int_equal(buf_append(&text, tail + 1, 2), ERR_OK);
	row.value = text.data;
	assert_int_equal(parse_row(&job, &row, &why), ERR_LIMIT);
	assert_non_null(strstr(why.text, "recipe"));
	char *large = calloc(1, JOB_DOCUMENT_MAX + 1);
	assert_non_null(large);
	memset(large, ' ', JOB_DOCUMENT_MAX + 1);
	memcpy(large, two_nn, sizeof(two_nn) - 1);
	assert_int_equal(job_parse(&job, large, JOB_DOCUMENT_MAX + 1, NULL), ERR_LIMIT);
	assert_int_equal(job_parse(&job, large, JOB_DOCUMENT_MAX, NULL), ERR_OK);
	job_deinit(&job);
	free(large);
	buf_deinit(&text);
}

/* What a later coordinator adds to a recipe does not stop an older device; nulls mean absent there. */
static void
test_not_strict(void **state)
{
	(void)state;
	static const char text[] = "{\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2,"
				   "\"groups\":3}],\"loss\":\"mse\",\"new\":1,\"init\":null},"
				   "\"data\":{\"name\":\"d\",\"shape\":[4],\"x\":{}},\"local\":{"
				   "\"optimizer\":{\"rate\":1,\"amsgrad\":true}},"
				   "\"later\":[1]}";
	struct recipe r;
	struct why why;
	struct json *doc = NULL;

	assert_int_equal(json_parse(&doc, text, sizeof(text) - 1, NULL), ERR_OK);
	assert_int_equal(recipe_parse(&r, doc, false, &why), ERR_OK);
	assert_ptr_equal(strstr(recipe_text_all(r.text), "later"), NULL);
	recipe_deinit(&r);
	assert_int_equal(recipe_parse(&r, doc, true, &why), ERR_INVALID);
	assert_null(r.text);
	assert_null(r.net.layers);
	assert_string_equal(why.text, "model.layers[0].groups: unknown key");
	recipe_deinit(&r);
	json_free(doc);
}

static void
test_layer_names(void **state)
{
	(void)state;
	const char *const *names = net_spec_type_names();
	size_t n = 0;

	for (; names[n]; n++)
		assert_string_equal(names[n], net_spec_type_name((enum layer_type)n));
	assert_int_equal(n, LAYER_TYPES);
}

#define PICTURES "{\"name\":\"d\",\"shape\":[1,8,4],\"classes\":2,\"augment\":"

/* What changes pictures needs pictures, and stays within them. */
static void
test_augment(void **state)
{
	static const struct row rows[] = {
	    {"data", PICTURES "{\"flip\":true,\"crop\":4,\"noise\":0.1,\"cutout\":4}}", NULL},
	    {"data", PICTURES "{}}", NULL},
	    {"data", PICTURES "{\"crop\":5}}",
		"data.augment.crop: must be a whole number from 0 to 4"},
	    {"data", PICTURES "{\"cutout\":5}}",
		"data.augment.cutout: must be a whole number from 0 to 4"},
	    {"data", PICTURES "{\"noise\":11}}",
		"data.augment.noise: must be a number from 0 to 10"},
	    {"data", PICTURES "{\"turn\":1}}", "data.augment.turn: unknown key"},
	    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"augment\":{}}",
		"data.augment: needs a data.shape of channels, height, width"},
	    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"window\":4}",
		"data.window: only an embedding layer takes tokens"},
	};

	(void)state;
	check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

/* An agent that would pass over the key gets no such task; a trainer of its owner's judges for itself. */
static void
test_data_features(void **state)
{
	static const struct row pictures = {"data", PICTURES "{\"crop\":1}}", NULL};
	static const char offered[1][RECIPE_NAME_MAX] = {"augment"};
	const struct codec *f32 = codec_find_name("f32");
	struct job_spec job;
	(void)state;
	assert_int_equal(parse_row(&job, &pictures, NULL), ERR_OK);
	assert_string_equal(recipe_feature_missing(&job.recipe, f32, NULL, 0), "augment");
	assert_null(recipe_feature_missing(&job.recipe, f32, offered, 1));
	job.recipe.data.augment = (struct augment_spec){.crop = 0};
	assert_null(recipe_feature_missing(&job.recipe, f32, NULL, 0));
	job.recipe.data.window = 8;
	job.recipe.builtin = false;
	assert_string_equal(recipe_feature_missing(&job.recipe, f32, NULL, 0), "window");
	job_deinit(&job);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_augment),
	    cmocka_unit_test(test_data_features),
	    cmocka_unit_test(test_two_nn),
	    cmocka_unit_test(test_lenet),
	    cmocka_unit_test(test_residual),
	    cmocka_unit_test(test_document),
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_layers),
	    cmocka_unit_test(test_counts),
	    cmocka_unit_test(test_init_only),
	    cmocka_unit_test(test_mse_accuracy),
	    cmocka_unit_test(test_syntax),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_not_strict),
	    cmocka_unit_test(test_layer_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
