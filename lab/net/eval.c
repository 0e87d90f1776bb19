#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "cmd.h"
#include "data.h"
#include "examples.h"
#include "file.h"
#include "identity.h"
#include "inputs_file.h"
#include "job.h"
#include "json.h"
#include "modelfile.h"
#include "network.h"
#include "num.h"
#include "option.h"
#include "options.h"
#include "print.h"
#include "train.h"

#define OUTPUTS_MAX ((uint64_t)1 << 28) /* values; of printed ones: */
#define PRINTED_MAX ((uint64_t)1 << 20)

/* What the command was asked for, and what it works on. */
struct eval {
	const char *job_file, *init, *input, *output, *data, *home, *config;
	bool json;
	struct job_spec job;
	struct net *net;
	struct dataset set;
};

static enum err
load_data(struct eval *v, struct why *why)
{
	char home[PATH_MAX];
	struct settings *settings = NULL;
	const struct settings_data *d = NULL;
	enum err e = identity_home(home, v->home, why);

	if (!e)
		e = settings_load(&settings, home, v->config, why);
	if (!e && !(d = settings_find_data(settings, v->data)))
		e = err_set(why, ERR_NOTFOUND, "no [data %s] in %s", v->data,
		    *settings->file ? settings->file : "the settings, for there are none");
	if (!e)
		e = data_load(&v->set, d, why);
	if (!e)
		e = data_fits(&v->set, d, &v->job.recipe, why);
	if (!e)
		e = examples_cut(&v->set, v->job.recipe.data.window, why);
	settings_free(settings);
	return e;
}

static void
print_score(const struct eval *v, const struct train_score *s)
{
	if (v->json) {
		struct json *o = json_object();
		json_add_u64(o, "examples", s->examples);
		json_add_double(o, "loss", s->loss);
		if (isfinite(s->accuracy))
			json_add_double(o, "accuracy", s->accuracy);
		cmd_print_json(o);
		json_free(o);
		return;
	}
	printf("examples %llu  loss ", (unsigned long long)s->examples);
	printf(isfinite(s->loss) ? "%.6g" : "-", s->loss);
	if (isfinite(s->accuracy))
		printf("  accuracy %.4f", s->accuracy);
	printf("\n");
}

static enum err
score(struct eval *v, struct why *why)
{
	struct train_score s;
	enum err e = train_evaluate(stepper_net(v->net), &v->set, &v->job.recipe.data, &s, why);

	if (!e)
		print_score(v, &s);
	return e;
}

/* Of one row: of a sequence, those of all steps. */
static size_t
outputs_of(const struct net *net)
{
	uint32_t shape[3];

	net_output_shape(net, shape);
	return (size_t)shape[0] * shape[1] * shape[2];
}

/* The outputs of all rows, in one block of count x outputs. */
static enum err
predict(struct eval *v, float *to, struct why *why)
{
	const struct dataset *set = &v->set;
	size_t width = outputs_of(v->net), bytes, n;
	float *x = num_mul(set->features, CMD_NETWORK_BATCH * sizeof(float), &bytes) ? malloc(bytes)
										     : NULL;
	enum err e = x ? ERR_OK : err_set(why, ERR_NOMEM, "no memory for a batch");

	for (size_t i = 0; !e && i < set->count; i += n) {
		n = set->count - i < CMD_NETWORK_BATCH ? set->count - i : CMD_NETWORK_BATCH;
		for (size_t k = 0; k < n; k++)
			dataset_fill(
			    set, &v->job.recipe.data, (uint32_t)(i + k), x + k * set->features);
		e = net_predict(v->net, x, (uint32_t)n);
		if (!e)
			memcpy(to + i * width, net_output(v->net), n * width * sizeof(float));
		else
			err_set(why, e, "the forward pass failed");
	}
	free(x);
	return e;
}

/* [rows, outputs], of a sequence [rows, steps, outputs], or [rows, channels, height, width] where the last layer gives such. */
static enum err
write_outputs(const struct eval *v, const float *values, struct why *why)
{
	struct tensor_table table = {0};
	struct buf file;
	uint32_t out[3];

	net_output_shape(v->net, out);
	const uint64_t rows = v->set.count, image[] = {rows, out[0], out[1], out[2]};
	const uint64_t line[] = {rows, out[0], out[2]};
	buf_init(&file, SIZE_MAX / 2);
	enum err e = out[1] > 1 ? tensor_table_add(&table, "output", image, 4, why)
				: tensor_table_add(&table, "output", line, out[2] > 1 ? 3 : 2, why);
	if (!e && (e = modelfile_header(&file, &table, NULL)))
		err_set(why, e, "no memory for the outputs");
	if (!e && (e = buf_append(&file, values, (size_t)table.bytes)))
		err_set(why, e, "no memory for the outputs");
	if (!e)
		e = file_write(v->output, file.data, file.len, 0644, why);
	buf_deinit(&file);
	tensor_table_deinit(&table);
	return e;
}

static struct json *
rows_json(const struct eval *v, const float *values, size_t width)
{
	struct json *rows = json_array();

	for (size_t i = 0; i < v->set.count; i++) {
		struct json *row = json_array();
		for (size_t k = 0; k < width; k++)
			json_push(row, json_new_double((double)values[i * width + k]));
		json_push(rows, row);
	}
	return rows;
}

static void
print_json(const struct eval *v, const float *values, size_t width)
{
	struct json *o = json_object();

	json_add_u64(o, "examples", v->set.count);
	json_add_u64(o, "outputs", width);
	if (v->output)
		json_add_string(o, "file", v->output);
	else
		json_add(o, "values", rows_json(v, values, width));
	cmd_print_json_line(o);
	json_free(o);
}

/* Nine digits: what is read back is the same number. */
static void
print_rows(const struct eval *v, const float *values, size_t width)
{
	for (size_t i = 0; i < v->set.count; i++)
		for (size_t k = 0; k < width; k++)
			printf("%.9g%c", (double)values[i * width + k], k + 1 < width ? ' ' : '\n');
}

static enum err
outputs(struct eval *v, struct why *why)
{
	size_t width = outputs_of(v->net), bytes;
	uint64_t most = v->output ? OUTPUTS_MAX : PRINTED_MAX;

	if (width > most / v->set.count || !num_mul(v->set.count * width, sizeof(float), &bytes))
		return err_set(why, ERR_LIMIT,
		    "%zu x %zu outputs are more than the %llu that can be %s", v->set.count, width,
		    (unsigned long long)most,
		    v->output ? "written" : "printed; --output writes more");
	float *values = malloc(bytes);
	if (!values)
		return err_set(why, ERR_NOMEM, "no memory for the outputs");
	enum err e = predict(v, values, why);
	if (!e && v->output)
		e = write_outputs(v, values, why);
	if (!e && v->json)
		print_json(v, values, width);
	else if (!e && v->output)
		cmd_print_line("%zu rows of %zu outputs %s", v->set.count, width, v->output);
	else if (!e)
		print_rows(v, values, width);
	free(values);
	return e;
}

static enum err
work(struct eval *v, struct why *why)
{
	enum err e =
	    cmd_network_load(&v->net, &v->job.recipe, v->init, v->job.seed, CMD_NETWORK_BATCH, why);

	if (!e && v->data) {
		e = load_data(v, why);
		return e ? e : score(v, why);
	}
	if (!e)
		e = cmd_inputs_load(&v->set, v->input, &v->job.recipe.data, why);
	return e ? e : outputs(v, why);
}

static int
go(struct eval *v)
{
	struct why why = {""};
	enum err e = cmd_network_read_job(&v->job, v->job_file, &why);

	if (e)
		return cmd_options_fail(e, &why);
	e = work(v, &why);
	dataset_deinit(&v->set);
	net_free(v->net);
	job_deinit(&v->job);
	return e ? cmd_options_fail(e, &why) : CMD_OK;
}

int
cmd_eval_main(int argc, char **argv)
{
	struct eval v = {.job_file = NULL};
	const struct option_entry table[] = {
	    {"init", 0, "FILE", "the model: a safetensors file with the layers' tensors", &v.init,
		NULL},
	    {"input", 0, "FILE", "rows to put through it: a safetensors file of one tensor, or NPY",
		&v.input, NULL},
	    {"output", 'o', "FILE", "write the outputs there, as a safetensors file", &v.output,
		NULL},
	    {"data", 0, "NAME", "a data set of the settings to measure it on instead", &v.data,
		NULL},
	    {"home", 0, "DIR", "for settings", &v.home, NULL},
	    {"config", 0, "FILE", "settings (default: rivulet.conf in the home)", &v.config, NULL},
	    {"json", 0, NULL, "print JSON", NULL, &v.json},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "eval JOBFILE --init FILE (--input FILE [--output FILE] | --data NAME) [--json]",
	    "Puts rows through a job's network and gives its outputs, or measures loss and "
	    "accuracy "
	    "on a data set.",
	    1, 1};
	struct option_words words;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (!v.init || !v.input == !v.data || (v.output && !v.input)) {
		cmd_print_error("eval wants --init, and --input or --data; see eval --help");
		return CMD_USAGE;
	}
	v.job_file = words.words[0];
	return go(&v);
}
