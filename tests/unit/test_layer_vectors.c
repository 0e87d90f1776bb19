/* stages: gcc clang address */
/* Each type of layer and each form of loss against PyTorch: see tests/vectors/make_layer_vectors.py for the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "file.h"
#include "json.h"
#include "net.h"
#include "recipe.h"
#include "tensor.h"

#define FOLDER "tests/vectors/layers"
#define TOLERANCE 2e-5 /* of the largest element of a tensor, */
#define FLOOR \
	0.02 /* which counts as at least this share of the largest of all: a gradient may be zero */
#define BATCH 3

struct vectors {
	const char *name;
	char *file;
	struct bytes_reader reader;
	struct recipe recipe;
	struct net *net;
	size_t params;
	float *x, *target, *start;
	int32_t *labels;
};

static char *
text(struct vectors *v)
{
	uint32_t n = bytes_get_u32(&v->reader);
	assert_true(n <= v->reader.left);
	char *out = malloc(n + 1);

	bytes_get(&v->reader, out, n);
	out[n] = 0;
	return out;
}

static float *
array(struct vectors *v, size_t *count)
{
	*count = bytes_get_u32(&v->reader);
	assert_true(*count <= v->reader.left / 4);
	float *x = malloc(*count * sizeof(*x) + 1);
	for (size_t i = 0; i < *count; i++)
		x[i] = bytes_get_f32(&v->reader);
	assert_false(v->reader.bad);
	return x;
}

static double
largest(const float *x, size_t n)
{
	double top = 0;

	for (size_t i = 0; i < n; i++)
		top = fmax(top, fabs((double)x[i]));
	return top;
}

static void
compare_run(const struct vectors *v, const char *what, const float *got, const float *want,
    size_t n, double top)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabs((double)got[i] - (double)want[i]) <= TOLERANCE * top))
			fail_msg("%s: %s[%zu] is %.9g, PyTorch has %.9g; the largest is %g",
			    v->name, what, i, (double)got[i], (double)want[i], top);
}

static void
compare(struct vectors *v, const char *what, const float *got, size_t count)
{
	size_t n;
	float *want = array(v, &n);

	assert_int_equal(n, count);
	compare_run(v, what, got, want, n, largest(want, n));
	free(want);
}

/* Parameters or their gradient, tensor by tensor. */
static void
compare_tensors(struct vectors *v, const char *what, const float *got)
{
	const struct tensor_table *t = net_tensors(v->net);
	size_t n;
	float *want = array(v, &n);
	double least = FLOOR * largest(want, n);

	assert_int_equal(n, v->params);
	for (size_t i = 0; i < t->count; i++) {
		char says[160];
		size_t at = (size_t)(t->items[i].begin / sizeof(float)),
		       some = t->items[i].elements;
		snprintf(says, sizeof(says), "%s of %s", what, t->items[i].name);
		compare_run(
		    v, says, got + at, want + at, some, fmax(least, largest(want + at, some)));
	}
	free(want);
}

static void
read_recipe(struct vectors *v)
{
	char *job = text(v);
	struct json *doc = NULL;
	struct why why = {""};

	if (json_parse(&doc, job, strlen(job), &why) || recipe_parse(&v->recipe, doc, true, &why))
		fail_msg("%s: %s", v->name, why.text);
	json_free(doc);
	free(job);
}

/* Tensors are called as in a state_dict, in its order. */
static void
check_names(struct vectors *v)
{
	const struct tensor_table *t = net_tensors(v->net);
	char *names = text(v), *rest = names;

	for (size_t i = 0; i < t->count; i++) {
		const char *name = strsep(&rest, " ");
		assert_non_null(name);
		assert_string_equal(t->items[i].name, name);
	}
	assert_null(rest);
	free(names);
}

static void
begin(struct vectors *v, const char *name)
{
	char path[320];
	size_t len, n, targets;
	struct why why = {""};

	*v = (struct vectors){.name = name};
	snprintf(path, sizeof(path), FOLDER "/%s", name);
	assert_int_equal(file_read(path, 1 << 20, &v->file, &len, NULL), ERR_OK);
	v->reader = bytes_reader(v->file, len);
	read_recipe(v);
	if (net_new(&v->net, &v->recipe.net, v->recipe.data.class_count, BATCH, true, 0, &why))
		fail_msg("%s: %s", name, why.text);
	check_names(v);
	v->params = (size_t)net_tensors(v->net)->elements;
	v->x = array(v, &n);
	assert_int_equal(n, BATCH * net_inputs(v->net));
	v->target = array(v, &targets);
	assert_int_equal(targets, BATCH * (net_labels(v->net) + net_targets(v->net)));
	v->labels = calloc(targets + 1, sizeof(*v->labels));
	for (size_t i = 0; i < targets && net_labels(v->net) > 0; i++)
		v->labels[i] = (int32_t)v->target[i];
	v->start = array(v, &n);
	assert_int_equal(n, v->params);
	memcpy(net_params(v->net), v->start, n * sizeof(float));
}

static void
end(struct vectors *v)
{
	assert_int_equal(v->reader.left, 0);
	net_free(v->net);
	recipe_deinit(&v->recipe);
	free(v->x);
	free(v->target);
	free(v->labels);
	free(v->start);
	free(v->file);
}

static void
compare_output(struct vectors *v, const char *what)
{
	size_t steps = net_labels(v->net) > 0 ? net_labels(v->net) : 1;

	compare(v, what, net_output(v->net), BATCH * steps * net_outputs(v->net));
}

static void
evaluate(struct vectors *v, const struct net_batch *b, bool first)
{
	struct net_result result;

	assert_int_equal(net_eval(v->net, b, &result), ERR_OK);
	compare_output(v, first ? "output" : "last output");
	float loss = (float)(result.loss / result.weight);
	if (first)
		compare(v, "loss", &loss, 1);
}

static void
check(const char *name)
{
	const struct net_update sgd = {.rate = 0.05f, .momentum = 0.9f, .weight_decay = 0.01f};
	struct vectors v;
	struct net_result result;
	struct why why = {""};

	begin(&v, name);
	const struct net_batch b = {.x = v.x, .labels = v.labels, .targets = v.target, .n = BATCH};
	evaluate(&v, &b, true);
	float *gradient = calloc(v.params, sizeof(*gradient));
	assert_int_equal(net_forward(v.net, 0, &b), ERR_OK);
	compare_output(&v, "output in training");
	assert_int_equal(net_gradient(v.net, &b, gradient), ERR_OK);
	/* That pass moved running statistics. */
	memcpy(net_params(v.net), v.start, v.params * sizeof(float));
	assert_int_equal(net_prepare(v.net, &sgd, &why), ERR_OK);
	assert_int_equal(net_step(v.net, &b, &sgd, &result), ERR_OK);
	float loss = (float)(result.loss / result.weight);
	compare(&v, "loss in training", &loss, 1);
	compare_tensors(&v, "gradient", gradient);
	for (int i = 1; i < 3; i++)
		assert_int_equal(net_step(v.net, &b, &sgd, &result), ERR_OK);
	compare_tensors(&v, "value", net_params(v.net));
	evaluate(&v, &b, false);
	free(gradient);
	end(&v);
}

static void
like_pytorch(void **state)
{
	struct dirent *entry;
	DIR *folder = opendir(FOLDER);
	size_t count = 0;

	(void)state;
	assert_non_null(folder);
	while ((entry = readdir(folder)))
		if (strstr(entry->d_name, ".vec")) {
			check(entry->d_name);
			count++;
		}
	closedir(folder);
	assert_true(count >= 50);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(like_pytorch)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
