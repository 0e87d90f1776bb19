#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "modelfile.h"
#include "simulate.h"
#include "train.h"
#include "trainer.h"

static enum err
train(const struct simulate_round *r, struct simulate_report *p, uint8_t *weights)
{
	static const struct settings settings;
	struct work work = {.table = r->table, .weights = weights};
	struct trainer_out *out = calloc(1, sizeof(*out));
	const struct trainer_in in = {.work = &work,
	    .train = &p->device->train,
	    .validation = &p->device->validation,
	    .settings = &settings,
	    .device = p->device->id};

	if (!out)
		return ERR_NOMEM;
	work.task.recipe = r->job->recipe;
	work.task.seed = r->job->seed;
	work.task.round = r->number;
	enum err e = trainer_builtin_run(&in, out, &p->why);
	p->examples = out->finish.examples;
	p->normaliser = out->finish.normaliser;
	p->loss = out->finish.loss;
	free(out);
	return e;
}

void
simulate_device_train(const struct simulate_round *r, struct simulate_report *p)
{
	size_t n = r->table.elements;
	uint8_t *weights = malloc(r->table.bytes);
	float *before = malloc(n * sizeof(*before));

	p->delta = malloc(n * sizeof(*p->delta));
	if (!weights || !before || !p->delta) {
		p->e = ERR_NOMEM;
	} else {
		memcpy(weights, r->data, r->table.bytes);
		p->e = train(r, p, weights);
	}
	if (!p->e) {
		modelfile_gather(before, &r->table, r->data);
		modelfile_gather(p->delta, &r->table, weights);
		for (size_t k = 0; k < n; k++)
			p->delta[k] -= before[k];
	}
	free(weights);
	free(before);
}

/* The coordinator's checks of an upload, in its order and words. */
static void
admit(const struct simulate_round *r, struct simulate_report *p, const struct codec *codec)
{
	const struct aggregate_spec *a = &r->job->aggregate;
	uint64_t most = codec->payload_bytes(p->params.elements);
	uint8_t carry[64] = {0};
	double squares = 0;

	p->params.payload = p->len; /* as the manifest would say */
	p->params.table = malloc((size_t)codec_table_bytes(codec, p->params.elements) + 1);
	if (!p->params.table) {
		p->e = ERR_NOMEM;
		return;
	}
	if (p->examples > a->max_examples) {
		p->refused = "too-many-examples";
	} else if (codec->fixed_size ? p->len != most : p->len > most) {
		p->refused = "wrong-length";
	} else if (codec->check(&p->params, 0, p->payload, p->len, &squares, carry)) {
		p->refused = "bad-values";
	} else {
		p->norm = sqrt(squares);
		if (!isfinite(p->norm))
			p->refused = "bad-values";
		else if (a->max_norm > 0 && p->norm > a->max_norm)
			p->refused = "norm-too-large";
	}
	free(p->params.table);
	p->params.table = NULL;
}

/* Error feedback as client/feedback.c does it: what was wanted minus what arrives is added to the next delta. */
static enum err
keep_loss(const struct codec *codec, const struct simulate_report *p, float *residual)
{
	size_t n = p->params.elements;
	struct codec_memory memory = {p->payload, p->len};
	const struct codec_source source = {codec_memory_read, &memory};
	float *arrives = malloc(n * sizeof(*arrives));

	enum err e = arrives ? codec_read(codec, &p->params, &source, 0, n, arrives) : ERR_NOMEM;
	for (size_t i = 0; !e && i < n; i++)
		residual[i] += p->delta[i] - arrives[i];
	free(arrives);
	return e;
}

static enum err
encode(const struct codec *codec, struct simulate_report *p, const float *residual)
{
	size_t n = p->params.elements;
	float *sum = malloc(n * sizeof(*sum));

	if (!sum)
		return ERR_NOMEM;
	memcpy(sum, p->delta, n * sizeof(*sum));
	for (size_t i = 0; residual && i < n; i++)
		sum[i] += residual[i];
	enum err e = codec->encode(p->payload, &p->len, sum, &p->params);
	p->params.payload = p->len;
	free(sum);
	return e;
}

void
simulate_device_encode(struct simulate_round *r, struct simulate_report *p)
{
	const struct upload_spec *upload = &r->job->recipe.upload;
	const struct codec *codec = codec_find_name(r->job->recipe.codec);
	float **residual = &r->residuals[p->device - r->fleet->devices];

	p->params = (struct codec_params){.elements = r->table.elements,
	    .block = codec->block,
	    .seed = train_seed(r->job->seed, r->number, p->device->id),
	    .entries = recipe_upload_entries(upload, r->table.elements)};
	p->len = codec->payload_bytes(p->params.elements);
	p->payload = malloc(p->len);
	if (!*residual && recipe_upload_feedback(upload, codec))
		*residual = calloc(p->params.elements, sizeof(float));
	if (!p->payload || (!*residual && recipe_upload_feedback(upload, codec))) {
		p->e = ERR_NOMEM;
		return;
	}
	enum err e = encode(codec, p, *residual);
	if (e == ERR_NUMERIC)
		p->refused = "not-finite";
	else if (e)
		p->e = e;
	if (p->e || p->refused)
		return;
	simulate_attack_payload(r->fleet, p);
	admit(r, p, codec);
	if (!p->e && !p->refused && *residual)
		p->e = keep_loss(codec, p, *residual);
}
