#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "modelfile.h"
#include "scaffold.h"
#include "simulate.h"
#include "train.h"
#include "trainer.h"
#include "training.h"
#include "variate.h"

/* As a device finds them at the start of a round: the coordinator's variate, and its own. */
static enum err
load_variates(const struct simulate_round *r, struct simulate_memory *m, struct work *w)
{
	size_t n = r->table.elements;

	if (!work_variates(w))
		return ERR_OK;
	if (!m->own)
		m->own = calloc(n, sizeof(float));
	w->own_variate = m->own;
	w->server_variate = calloc(n, sizeof(float));
	if (!w->own_variate || !w->server_variate)
		return ERR_NOMEM;
	if (r->state)
		memcpy(w->server_variate, r->state + r->state_floats - n, n * sizeof(float));
	return scaffold_correct(w, NULL);
}

static enum err
train(struct simulate_report *p, struct work *work)
{
	static const struct settings settings;
	struct trainer_out *out = calloc(1, sizeof(*out));
	const struct trainer_in in = {.work = work,
	    .train = &p->device->train,
	    .validation = &p->device->validation,
	    .settings = &settings,
	    .device = p->device->id};

	if (!out)
		return ERR_NOMEM;
	enum err e = trainer_builtin_run(&in, out, &p->why);
	p->examples = out->finish.examples;
	p->steps = out->finish.steps;
	p->normaliser = out->finish.normaliser;
	p->loss = out->finish.loss;
	free(out);
	return e;
}

static enum err
take_delta(const struct simulate_round *r, struct simulate_report *p, const struct work *work)
{
	size_t n = r->table.elements;
	float *before = malloc(n * sizeof(*before));

	p->delta = malloc(n * sizeof(*p->delta));
	if (before && p->delta) {
		modelfile_gather(before, &r->table, r->data);
		modelfile_gather(p->delta, &r->table, work->weights);
		for (size_t i = 0; i < n; i++)
			p->delta[i] -= before[i];
	}
	free(before);
	if (!before || !p->delta)
		return ERR_NOMEM;
	if (work_variates(work))
		p->change = scaffold_change(work, p->delta, p->steps);
	return work_variates(work) && !p->change ? ERR_NOMEM : ERR_OK;
}

void
simulate_device_train(struct simulate_round *r, struct simulate_report *p)
{
	struct simulate_memory *m = &r->memories[p->device - r->fleet->devices];
	struct work work = {.table = r->table, .weights = malloc(r->table.bytes)};

	work.task.recipe = r->job->recipe;
	work.task.seed = r->job->seed;
	work.task.round = r->number;
	p->e = work.weights ? load_variates(r, m, &work) : ERR_NOMEM;
	if (!p->e) {
		memcpy(work.weights, r->data, r->table.bytes);
		p->e = train(p, &work);
	}
	if (!p->e)
		p->e = take_delta(r, p, &work);
	free(work.server_variate);
	free(work.shift);
	free(work.weights);
}

/* The coordinator's checks of an upload, in its order and words. */
static void
admit(const struct simulate_round *r, struct simulate_report *p)
{
	const struct aggregate_spec *a = &r->job->aggregate;
	struct vectors *v = &p->vectors;
	uint64_t most = vectors_bytes(v);
	uint8_t carry[64] = {0};
	double squares = 0;

	v->params.table = malloc((size_t)codec_table_bytes(v->codec, v->params.elements) + 1);
	if (!v->params.table) {
		p->e = ERR_NOMEM;
		return;
	}
	if (p->examples > a->max_examples) {
		p->refused = "too-many-examples";
	} else if (v->codec->fixed_size ? p->len != most : p->len > most) {
		p->refused = "wrong-length";
	} else if (vectors_check(v, 0, p->payload, p->len, &squares, carry)) {
		p->refused = "bad-values";
	} else {
		p->norm = sqrt(squares);
		if (!isfinite(p->norm))
			p->refused = "bad-values";
		else if (a->max_norm > 0 && p->norm > a->max_norm)
			p->refused = "norm-too-large";
	}
	free(v->params.table);
	v->params.table = NULL;
}

/* What the device keeps of an accepted delta: error feedback as client/device/feedback.c does it, that is what was wanted minus what
 * arrives; and its own variate, as the coordinator counts it. */
static enum err
keep(const struct simulate_report *p, struct simulate_memory *m)
{
	size_t n = p->vectors.params.elements;
	struct codec_memory memory = {p->payload, p->len};
	const struct codec_source source = {codec_memory_read, &memory};
	float *arrives = malloc(n * sizeof(*arrives));
	enum err e = arrives ? ERR_OK : ERR_NOMEM;

	if (!e && m->residual) {
		e = vectors_read(&p->vectors, 0, &source, 0, n, arrives);
		for (size_t i = 0; !e && i < n; i++)
			m->residual[i] += p->delta[i] - arrives[i];
	}
	if (!e && p->vectors.second) {
		e = vectors_read(&p->vectors, 1, &source, 0, n, arrives);
		if (!e)
			variate_advance(m->own, arrives, n);
	}
	free(arrives);
	return e;
}

static enum err
encode(struct simulate_report *p, const float *residual)
{
	struct vectors *v = &p->vectors;
	const struct codec_params second = vectors_params(v, 1);
	size_t n = v->params.elements;
	float *sum = malloc(n * sizeof(*sum));

	if (!sum)
		return ERR_NOMEM;
	memcpy(sum, p->delta, n * sizeof(*sum));
	for (size_t i = 0; residual && i < n; i++)
		sum[i] += residual[i];
	enum err e = v->codec->encode(p->payload, &p->len, sum, &v->params);
	v->params.payload = p->len;
	if (!e && v->second) {
		uint64_t more = p->len;
		e = v->codec->encode(p->payload + p->len, &more, p->change, &second);
		p->len += more;
	}
	free(sum);
	return e;
}

void
simulate_device_encode(struct simulate_round *r, struct simulate_report *p)
{
	const struct upload_spec *upload = &r->job->recipe.upload;
	const struct codec *codec = codec_find_name(r->job->recipe.codec);
	struct simulate_memory *m = &r->memories[p->device - r->fleet->devices];
	bool feedback = recipe_upload_feedback(upload, codec);

	p->vectors = (struct vectors){.codec = codec,
	    .params = {.elements = r->table.elements,
		.block = codec->block,
		.seed = training_seed(r->job->seed, r->number, p->device->id),
		.entries = recipe_upload_entries(upload, r->table.elements)},
	    .second = p->change != NULL};
	p->payload = malloc(vectors_bytes(&p->vectors));
	if (feedback && !m->residual)
		m->residual = calloc(r->table.elements, sizeof(float));
	if (!p->payload || (feedback && !m->residual)) {
		p->e = ERR_NOMEM;
		return;
	}
	enum err e = encode(p, m->residual);
	if (e == ERR_NUMERIC)
		p->refused = "not-finite";
	else if (e)
		p->e = e;
	if (p->e || p->refused)
		return;
	simulate_attack_payload(r->fleet, p);
	admit(r, p);
	if (!p->e && !p->refused)
		p->e = keep(p, m);
}
