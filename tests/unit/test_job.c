#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

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
    "\"stride\":[1,1],"
    "\"bias\":false,\"init\":\"glorot\"},"
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
    "\"select\":{\"labels\":{\"site\":\"berlin\",\"gpu\":\"no\"},\"devices\":[\"cam-1\",\"" HEX64
    "\"],\"percent\":[0,50]},"
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

struct row {
	const char *key, *value; /* value NULL: left out */
	const char *reason; /* NULL: a good document */
};

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

static void
test_two_nn(void **state)
{
	(void)state;
	struct job_spec j = good(two_nn);
	const struct recipe *r = &j.recipe;

	assert_string_equal(j.name, "mnist-2nn");
	assert_int_equal(j.seed, 7);
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
	assert_string_equal(r->local.optimizer.name, "sgd");
	assert_true(r->local.optimizer.momentum == 0 && r->local.optimizer.weight_decay == 0);
	assert_int_equal(r->local.schedule.type, SCHEDULE_CONSTANT);
	assert_int_equal(r->evaluate_by, EVALUATE_COORDINATOR);
	assert_string_equal(r->evaluate_data, "mnist-test");
	assert_int_equal(j.round.goal, 10);
	assert_int_equal(j.round.quorum, 8);
	assert_true(
	    j.round.over_select == 1.3 && j.round.deadline_s == 120 && j.round.grace_s == 5);
	assert_true(j.round.sample_s == 1 && !j.round.sample);
	assert_string_equal(j.aggregate.rule, "mean");
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
	assert_false(l[3].bias);
	assert_int_equal(l[3].init, INIT_GLOROT);
	assert_true(l[5].kernel[0] == 2 && l[5].kernel[1] == 3 && l[5].stride[1] == 1 &&
	    l[5].padding[0] == 1);
	assert_string_equal(l[5].name, "avgpool2d6");
	assert_true(l[7].type == LAYER_DROPOUT && l[7].rate == 0.5f);
	assert_int_equal(l[8].init, INIT_ZERO);
	assert_string_equal(r->init, HEX64);
	assert_int_equal(r->rule_count, 3);
	assert_string_equal(r->rules[0].pattern, "conv1.*");
	assert_int_equal(r->rules[0].role, TENSOR_FROZEN);
	assert_int_equal(r->rules[1].role, TENSOR_LOCAL);
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
	assert_int_equal(j.select.label_count, 2);
	assert_string_equal(j.select.labels[0].key, "site");
	assert_string_equal(j.select.labels[0].value, "berlin");
	assert_int_equal(j.select.device_count, 2);
	assert_string_equal(j.select.devices[1], HEX64);
	assert_true(j.select.percent[1] == 50);
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
	struct buf b;

	buf_init(&b, 10000);
	assert_int_equal(json_print(&b, j.recipe.document, false), ERR_OK);
	assert_string_equal(buf_str(&b),
	    "{\"model\":{\"layers\":["
	    "{\"type\":\"linear\",\"name\":\"fc1\",\"out\":200},{\"type\":\"relu\"},"
	    "{\"type\":\"linear\",\"name\":\"fc2\",\"out\":200},{\"type\":\"relu\"},"
	    "{\"type\":\"linear\",\"name\":\"fc3\",\"out\":10}],\"loss\":\"cross_entropy\"},"
	    "\"data\":{\"name\":\"mnist\",\"shape\":[784],\"classes\":10},"
	    "\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},"
	    "\"evaluate\":{\"by\":\"coordinator\",\"data\":\"mnist-test\"}}");
	buf_deinit(&b);
	job_deinit(&j);
}

static const struct row top_rows[] = {
    {"seed", "1", NULL},
    {"name", NULL, "name: missing"},
    {"name", "\"\"", "name: must be letters, digits, '_', '.' and '-'"},
    {"name", "\"a b\"", "name: must be letters, digits, '_', '.' and '-'"},
    {"name", "\"../x\"", "name: must be letters, digits, '_', '.' and '-'"},
    {"name", "\"\xc3\xa9\"", "name: must be letters, digits, '_', '.' and '-'"},
    {"name", "7", "name: must be a string"},
    {"name", "null", "name: must be a string"},
    {"name", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", NULL},
    {"name", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
	"name: longer than 63 bytes"},
    {"seed", "0", NULL},
    {"seed", "9007199254740991", NULL},
    {"seed", "9007199254740992", "seed: must be a whole number from 0 to 9007199254740991"},
    {"seed", "9007199254740993", "seed: must be a whole number from 0 to 9007199254740991"},
    {"seed", "18446744073709551615", "seed: must be a whole number from 0 to 9007199254740991"},
    {"seed", "-1", "seed: must be a whole number from 0 to 9007199254740991"},
    {"seed", "1.5", "seed: must be a whole number from 0 to 9007199254740991"},
    {"seed", "\"1\"", "seed: must be a whole number from 0 to 9007199254740991"},
    {"prioritty", "1", "prioritty: unknown key (did you mean \"priority\"?)"},
    {"Seed", "1", "Seed: unknown key (did you mean \"seed\"?)"},
    {"selects", "{}", "selects: unknown key (did you mean \"select\"?)"},
    {"roudn", "{}", "roudn: unknown key (did you mean \"round\"?)"},
    {"seeeed", "1", "seeeed: unknown key (did you mean \"seed\"?)"},
    {"whatever", "1", "whatever: unknown key"},
    {"x\\n\xc3\xa9", "1", "x???: unknown key"},
    {"priority", "-1000000", NULL},
    {"priority", "1000001", "priority: must be a whole number from -1000000 to 1000000"},
    {"priority", "0.5", "priority: must be a whole number from -1000000 to 1000000"},
    {"tensors", "{}", NULL},
    {"tensors", "[]", "tensors: must be an object"},
    {"tensors", "{\"a\":\"trained\"}",
	"tensors.a: must be one of \"train\", \"average\", \"frozen\", \"local\""},
    {"tensors", "{\"\":\"train\"}", "tensors.: a key of at most 127 bytes must be printable text"},
    {"trainer", "\"my-torch.1\"", NULL},
    {"trainer", "\"/bin/sh\"", "trainer: must be letters, digits, '_', '.' and '-'"},
    {"trainer", "[]", "trainer: must be a string"},
    {"params", "{\"a\":{\"b\":[1,null,\"\\n\"]}}", NULL},
    {"params", "[]", "params: must be an object"},
    {"upload", "{}", NULL},
    {"upload", "{\"codec\":\"f32\"}", NULL},
    {"upload", "{\"codec\":\"zip\"}", "upload.codec: no such codec"},
    {"upload", "{\"codecs\":\"f32\"}", "upload.codecs: unknown key (did you mean \"codec\"?)"},
    {"evaluate", "{\"by\":\"coordinator\"}", NULL},
    {"evaluate", "{\"by\":\"devices\"}", "evaluate: on devices it needs data.validation above 0"},
    {"evaluate", "{}", "evaluate.by: missing"},
    {"evaluate", "{\"by\":\"me\"}", "evaluate.by: must be one of \"coordinator\", \"devices\""},
    {"evaluate", "{\"by\":\"coordinator\",\"data\":\"a b\"}",
	"evaluate.data: must be letters, digits, '_', '.' and '-'"},
    {"evaluate", "{\"by\":\"coordinator\",\"every\":1}", "evaluate.every: unknown key"},
};

static const struct row model_rows[] = {
    {"model", NULL, "model: missing"},
    {"model", "[]", "model: must be an object"},
    {"model", "{}", "model: needs \"layers\", \"init\" or both"},
    {"model", "{\"init\":\"" HEX64 "\"}",
	"trainer: a model without layers needs a trainer of its own"},
    {"model", "{\"init\":\"ABCDEF\"}", "model.init: must be 64 lower-case hex digits"},
    {"model", "{\"layers\":[],\"loss\":\"mse\"}", "model.layers: must not be empty"},
    {"model", "{\"layers\":{},\"loss\":\"mse\"}", "model.layers: must be an array"},
    {"model", "{\"layers\":[{\"type\":\"relu\"}]}", "model.loss: missing"},
    {"model", "{\"layers\":[{\"type\":\"relu\"}],\"los\":\"mse\"}",
	"model.los: unknown key (did you mean \"loss\"?)"},
    {"model", "{\"layers\":[{\"type\":\"relu\"}],\"loss\":\"hinge\"}",
	"model.loss: must be one of \"cross_entropy\", \"mse\""},
    {"model", "{\"layers\":[{\"type\":\"relu\"}],\"loss\":\"mse\",\"optimizer\":1}",
	"model.optimizer: unknown key"},
    {"model", "{\"layers\":[7],\"loss\":\"mse\"}", "model.layers[0]: must be an object"},
    {"model", "{\"layers\":[{}],\"loss\":\"mse\"}", "model.layers[0].type: missing"},
    {"model", "{\"layers\":[{\"type\":\"relu\"},{\"type\":\"gelu\"}],\"loss\":\"mse\"}",
	"model.layers[1].type: must be one of \"linear\", \"conv2d\", \"maxpool2d\", "
	"\"avgpool2d\", "
	"\"relu\", \"flatten\", \"dropout\", \"add\""},
};

/* The fields of one layer; the row's value stands for the layer list. */
static const struct row layer_rows[] = {
    {"linear", "{\"type\":\"linear\"}", "out: missing"},
    {"linear", "{\"type\":\"linear\",\"out\":0}", "out: must be a whole number from 1 to 1000000"},
    {"linear", "{\"type\":\"linear\",\"out\":1000001}",
	"out: must be a whole number from 1 to 1000000"},
    {"linear", "{\"type\":\"linear\",\"out\":1000000,\"bias\":false,\"init\":\"glorot\"}", NULL},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"bias\":1}", "bias: must be true or false"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"init\":\"ones\"}",
	"init: must be one of \"he\", \"glorot\", \"zero\""},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"kernel\":[1,1]}", "kernel: unknown key"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"name\":\"a/b\"}",
	"name: must be letters, digits, '_', '.' and '-'"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"name\":\"input\"}", "name: \"input\" is taken"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"name\":\"first\"}", "name: \"first\" is taken"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"inputs\":[\"first\"]}", NULL},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"inputs\":[\"input\"]}", NULL},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"inputs\":[]}", "inputs: must not be empty"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"inputs\":\"first\"}", "inputs: must be an array"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"inputs\":[\"first\",\"input\"]}",
	"inputs: must have 0 to 1 items"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"inputs\":[\"later\"]}",
	"inputs[0]: \"later\" is no earlier layer"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"inputs\":[\"linear2\"]}",
	"inputs[0]: \"linear2\" is no earlier layer"},
    {"linear", "{\"type\":\"linear\",\"out\":1,\"inputs\":[1]}", "inputs[0]: must be a string"},
    {"conv", "{\"type\":\"conv2d\",\"out\":1}", "kernel: missing"},
    {"conv", "{\"type\":\"conv2d\",\"kernel\":1}", "out: missing"},
    {"conv", "{\"type\":\"conv2d\",\"out\":1,\"kernel\":[3,5]}", NULL},
    {"conv", "{\"type\":\"conv2d\",\"out\":1,\"kernel\":0}",
	"kernel: must be a whole number from 1 to 1024"},
    {"conv", "{\"type\":\"conv2d\",\"out\":1,\"kernel\":[3]}", "kernel: must have 2 to 2 items"},
    {"conv", "{\"type\":\"conv2d\",\"out\":1,\"kernel\":[1,2,3]}",
	"kernel: must have 2 to 2 items"},
    {"conv", "{\"type\":\"conv2d\",\"out\":1,\"kernel\":\"3x3\"}", "kernel: must be an array"},
    {"conv", "{\"type\":\"conv2d\",\"out\":1,\"kernel\":[3,1025]}",
	"kernel[1]: must be a whole number from 1 to 1024"},
    {"conv", "{\"type\":\"conv2d\",\"out\":1,\"kernel\":3,\"stride\":[0,1]}",
	"stride[0]: must be a whole number from 1 to 1024"},
    {"conv", "{\"type\":\"conv2d\",\"out\":1,\"kernel\":3,\"padding\":[-1,0]}",
	"padding[0]: must be a whole number from 0 to 1024"},
    {"conv", "{\"type\":\"conv2d\",\"out\":1,\"kernel\":3,\"dilation\":2}",
	"dilation: unknown key"},
    {"pool", "{\"type\":\"maxpool2d\",\"kernel\":2,\"padding\":[1,1]}", NULL},
    {"pool", "{\"type\":\"maxpool2d\",\"kernel\":3,\"padding\":[1,2]}",
	"padding: must be at most half the kernel"},
    {"pool", "{\"type\":\"avgpool2d\"}", "kernel: missing"},
    {"pool", "{\"type\":\"avgpool2d\",\"kernel\":2,\"out\":3}", "out: unknown key"},
    {"relu", "{\"type\":\"relu\",\"rate\":1}", "rate: unknown key"},
    {"flatten", "{\"type\":\"flatten\"}", NULL},
    {"dropout", "{\"type\":\"dropout\",\"rate\":0.25}", NULL},
    {"dropout", "{\"type\":\"dropout\",\"rate\":1}", "rate: must be a number from 0 to 0.999"},
    {"dropout", "{\"type\":\"dropout\",\"rate\":-0.1}", "rate: must be a number from 0 to 0.999"},
    {"add", "{\"type\":\"add\"}", "inputs: missing"},
    {"add", "{\"type\":\"add\",\"inputs\":[\"first\"]}", "inputs: must have 2 to 8 items"},
    {"add", "{\"type\":\"add\",\"inputs\":[\"first\",\"input\"]}", NULL},
};

static const struct row data_rows[] = {
    {"data", NULL, "data: missing"},
    {"data", "{\"shape\":[4],\"classes\":2}", "data.name: missing"},
    {"data", "{\"name\":\"d\",\"classes\":2}", "data.shape: missing"},
    {"data", "{\"name\":\"d\",\"shape\":[],\"classes\":2}", "data.shape: must have 1 to 3 items"},
    {"data", "{\"name\":\"d\",\"shape\":[2,2],\"classes\":2}",
	"data.shape: must have 1 or 3 numbers"},
    {"data", "{\"name\":\"d\",\"shape\":[0],\"classes\":2}",
	"data.shape[0]: must be a whole number from 1 to 65536"},
    {"data", "{\"name\":\"d\",\"shape\":[3,65536,65536],\"classes\":2}",
	"data.shape: more than 16777216 values per example"},
    {"data", "{\"name\":\"d\",\"shape\":[4]}", "data.classes: cross_entropy needs at least 2"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":1}",
	"data.classes: cross_entropy needs at least 2"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":4096}", NULL},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":4097}",
	"data.classes: must be a whole number from 1 to 4096"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":[\"a\",\"b\"]}", NULL},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":[\"a\",\"b\",\"a\"]}",
	"data.classes: \"a\" is there twice"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":[\"a\",1]}",
	"data.classes[1]: must be a string"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":[\"a\",\"\"]}",
	"data.classes[1]: must not be empty"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":[\"a\",\"b\\n\"]}",
	"data.classes[1]: must be printable text"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":\"all\"}",
	"data.classes: must be an array"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"normalize\":{}}",
	"data.normalize: unknown key (did you mean \"normalise\"?)"},
    {"data",
	"{\"name\":\"d\",\"shape\":[3,2,2],\"classes\":2,"
	"\"normalise\":{\"mean\":[0,0.1,-0.2],\"std\":0.5}}",
	NULL},
    {"data",
	"{\"name\":\"d\",\"shape\":[3,2,2],\"classes\":2,\"normalise\":{\"mean\":[0,1],\"std\":[1,"
	"1]}}",
	"data.normalise: needs one value, or one per channel"},
    {"data",
	"{\"name\":\"d\",\"shape\":[3,2,2],\"classes\":2,\"normalise\":{\"mean\":[0,1],\"std\":[1,"
	"1,1]}}",
	"data.normalise: needs one value, or one per channel"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"normalise\":{\"mean\":0}}",
	"data.normalise.std: missing"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"normalise\":{\"mean\":0,\"std\":0}}",
	"data.normalise.std: must be a number from 1e-06 to 1e+09"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"normalise\":{\"mean\":0,\"std\":[-1]}}",
	"data.normalise.std[0]: must be a number from 1e-06 to 1e+09"},
    {"data",
	"{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"normalise\":{\"mean\":0,\"std\":1,\"max\":1}"
	"}",
	"data.normalise.max: unknown key"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"validation\":1}",
	"data.validation: must be a number from 0 to 0.999"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"min_examples\":0}",
	"data.min_examples: must be a whole number from 1 to 9007199254740991"},
    {"data", "{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"path\":\"/etc/passwd\"}",
	"data.path: unknown key"},
};

static const struct row local_rows[] = {
    {"local", NULL, "local.optimizer.rate: missing"},
    {"local", "{\"optimizer\":{\"lr\":0.1}}", "local.optimizer.rate: missing"},
    {"local", "{\"optimizer\":{\"rate\":0.1,\"lr\":0.1}}", "local.optimizer.lr: unknown key"},
    {"local", "{\"optimizer\":{\"rates\":0.1}}",
	"local.optimizer.rates: unknown key (did you mean \"rate\"?)"},
    {"local", "{\"optimizer\":{\"rate\":-1}}",
	"local.optimizer.rate: must be a number from 0 to 1e+06"},
    {"local", "{\"optimizer\":{\"rate\":\"0.1\"}}",
	"local.optimizer.rate: must be a number from 0 to 1e+06"},
    {"local", "{\"optimizer\":{\"rate\":1,\"momentum\":1}}",
	"local.optimizer.momentum: must be a number from 0 to 0.999"},
    {"local", "{\"optimizer\":{\"rate\":1,\"weight_decay\":-1}}",
	"local.optimizer.weight_decay: must be a number from 0 to 1e+06"},
    {"local", "{\"optimizer\":{\"rate\":1,\"name\":\"adam\"}}",
	"local.optimizer.name: the built-in trainer has \"sgd\" only"},
    {"local", "{\"optimizer\":\"sgd\"}", "local.optimizer: must be an object"},
    {"local", "{\"epochs\":3,\"batch\":0,\"optimizer\":{\"rate\":1}}", NULL},
    {"local", "{\"seconds\":0.5,\"optimizer\":{\"rate\":1}}", NULL},
    {"local", "{\"epochs\":1.5,\"optimizer\":{\"rate\":1}}",
	"local.epochs: must be a whole number from 1 to 1000000"},
    {"local", "{\"steps\":0,\"optimizer\":{\"rate\":1}}",
	"local.steps: must be a whole number from 1 to 1000000000"},
    {"local", "{\"seconds\":0,\"optimizer\":{\"rate\":1}}",
	"local.seconds: must be a number from 0.001 to 1e+07"},
    {"local", "{\"epochs\":1,\"steps\":1,\"optimizer\":{\"rate\":1}}",
	"local.steps: only one of epochs, steps and seconds"},
    {"local", "{\"batch\":1048577,\"optimizer\":{\"rate\":1}}",
	"local.batch: must be a whole number from 0 to 1048576"},
    {"local", "{\"epoch\":1,\"optimizer\":{\"rate\":1}}",
	"local.epoch: unknown key (did you mean \"epochs\"?)"},
    {"local", "{\"optimizer\":{\"rate\":1},\"schedule\":{}}", NULL},
    {"local", "{\"optimizer\":{\"rate\":1},\"schedule\":{\"type\":\"linear\"}}",
	"local.schedule.type: must be one of \"constant\", \"step\", \"cosine\""},
    {"local", "{\"optimizer\":{\"rate\":1},\"schedule\":{\"warmup\":-1}}",
	"local.schedule.warmup: must be a whole number from 0 to 1000000000"},
    {"local",
	"{\"optimizer\":{\"rate\":1},\"schedule\":{\"type\":\"step\",\"every\":3,\"gamma\":0.5}}",
	NULL},
    {"local", "{\"optimizer\":{\"rate\":1},\"schedule\":{\"type\":\"step\",\"gamma\":0.5}}",
	"local.schedule.every: missing"},
    {"local", "{\"optimizer\":{\"rate\":1},\"schedule\":{\"type\":\"step\",\"every\":3}}",
	"local.schedule.gamma: missing"},
    {"local",
	"{\"optimizer\":{\"rate\":1},\"schedule\":{\"type\":\"step\",\"every\":3,\"gamma\":11}}",
	"local.schedule.gamma: must be a number from 0 to 10"},
    {"local", "{\"optimizer\":{\"rate\":1},\"schedule\":{\"type\":\"cosine\"}}",
	"local.schedule.period: missing"},
    {"local",
	"{\"optimizer\":{\"rate\":1},\"schedule\":{\"type\":\"cosine\",\"period\":9,\"floor\":2}}",
	"local.schedule.floor: must be a number from 0 to 1"},
    {"local",
	"{\"optimizer\":{\"rate\":1},\"schedule\":{\"type\":\"cosine\",\"period\":9,\"gamma\":2}}",
	"local.schedule.gamma: unknown key"},
};

static const struct row job_rows[] = {
    {"round", NULL, "round: missing"},
    {"round", "{}", "round.goal: missing"},
    {"round", "{\"goal\":0}", "round.goal: must be a whole number from 1 to 1000000"},
    {"round", "{\"goal\":3,\"quorum\":4}", "round.quorum: must be a whole number from 1 to 3"},
    {"round", "{\"goal\":3,\"quorum\":0}", "round.quorum: must be a whole number from 1 to 3"},
    {"round", "{\"goal\":3,\"over_select\":0.9}",
	"round.over_select: must be a number from 1 to 100"},
    {"round", "{\"goal\":3,\"deadline_s\":0}",
	"round.deadline_s: must be a number from 0.1 to 1e+08"},
    {"round", "{\"goal\":3,\"grace_s\":-1}", "round.grace_s: must be a number from 0 to 1e+06"},
    {"round", "{\"goal\":3,\"sample_s\":3601}", "round.sample_s: must be a number from 0 to 3600"},
    {"round", "{\"goal\":3,\"pick\":\"random\"}",
	"round.pick: must be one of \"arrival\", \"sample\""},
    {"round", "{\"goal\":3,\"deadline\":5}",
	"round.deadline: unknown key (did you mean \"deadline_s\"?)"},
    {"select", "{}", NULL},
    {"select", "{\"labels\":{\"a b\":\"c\"}}",
	"select.labels.a b: a key of at most 63 bytes must be letters, digits, '_', '.' and '-'"},
    {"select", "{\"labels\":{\"a\":1}}", "select.labels.a: must be a string"},
    {"select", "{\"devices\":[]}", NULL},
    {"select", "{\"devices\":[\"\"]}", "select.devices[0]: must not be empty"},
    {"select", "{\"devices\":[\"" HEX64 "0\"]}", "select.devices[0]: longer than 64 bytes"},
    {"select", "{\"devices\":[\"a\\u202eb\"]}", "select.devices[0]: must be printable text"},
    {"select", "{\"devices\":{}}", "select.devices: must be an array"},
    {"select", "{\"percent\":[10,20]}", NULL},
    {"select", "{\"percent\":[20,20]}", "select.percent: the first must be below the second"},
    {"select", "{\"percent\":[0,101]}", "select.percent[1]: must be a number from 0 to 100"},
    {"select", "{\"percent\":[5]}", "select.percent: must have 2 to 2 items"},
    {"select", "{\"label\":{}}", "select.label: unknown key (did you mean \"labels\"?)"},
    {"aggregate", "{}", NULL},
    {"aggregate", "{\"rule\":\"mean\"}", "aggregate.rule: must be an object"},
    {"aggregate", "{\"rule\":{\"trim\":1}}", "aggregate.rule.trim: unknown key"},
    {"aggregate", "{\"server_optimizer\":{\"rate\":0}}",
	"aggregate.server_optimizer.rate: must be a number from 1e-09 to 1e+06"},
    {"aggregate", "{\"server_optimizer\":{\"momentum\":1}}",
	"aggregate.server_optimizer.momentum: must be a number from 0 to 0.999"},
    {"aggregate", "{\"server_optimizer\":{\"beta\":1}}",
	"aggregate.server_optimizer.beta: unknown key"},
    {"aggregate", "{\"max_norm\":-1}", "aggregate.max_norm: must be a number from 0 to 1e+30"},
    {"aggregate", "{\"max_examples\":0}",
	"aggregate.max_examples: must be a whole number from 1 to 9007199254740991"},
    {"aggregate", "{\"max_norms\":1}",
	"aggregate.max_norms: unknown key (did you mean \"max_norm\"?)"},
    {"stop", "{}", NULL},
    {"stop", "{\"rounds\":-1}", "stop.rounds: must be a whole number from 0 to 1000000000"},
    {"stop", "{\"target\":{}}", "stop.target: needs \"accuracy\" or \"loss\""},
    {"stop", "{\"target\":{\"accuracy\":0.9}}",
	"stop.target: needs \"evaluate\": nothing would measure it"},
    {"stop", "{\"target\":{\"accuracy\":1.1}}",
	"stop.target.accuracy: must be a number from 0 to 1"},
    {"stop", "{\"target\":{\"f1\":1}}", "stop.target.f1: unknown key"},
    {"stop", "{\"round\":3}", "stop.round: unknown key (did you mean \"rounds\"?)"},
};

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
	assert_string_equal(why.text, "stop.target.accuracy: the mse loss has none");
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
				   "\"optimizer\":{\"rate\":1,\"nesterov\":true}},"
				   "\"later\":[1]}";
	struct recipe r;
	struct why why;
	struct json *doc = NULL;

	assert_int_equal(json_parse(&doc, text, sizeof(text) - 1, NULL), ERR_OK);
	assert_int_equal(recipe_parse(&r, doc, false, &why), ERR_OK);
	assert_int_equal(json_count(r.document), 3);
	recipe_deinit(&r);
	assert_int_equal(recipe_parse(&r, doc, true, &why), ERR_INVALID);
	assert_null(r.document);
	assert_null(r.net.layers);
	assert_string_equal(why.text, "model.layers[0].groups: unknown key");
	recipe_deinit(&r);
	json_free(doc);
}

static void
test_layer_names(void **state)
{
	(void)state;
	const char *const *names = recipe_layer_names();
	size_t n = 0;

	for (; names[n]; n++)
		assert_string_equal(names[n], recipe_layer_type_name((enum layer_type)n));
	assert_int_equal(n, LAYER_ADD + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
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
