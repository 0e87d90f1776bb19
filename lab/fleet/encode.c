#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "manifest.h"
#include "task.h"
#include "training.h"
#include "variate.h"

/* The coordinator's checks of an upload, in its order and words. */
static enum err
admit(const struct fleet_setup *s, struct fleet_task *t)
{
	const struct aggregate_spec *a = &s->job->aggregate;
	struct vectors *v = &t->vectors;
	uint64_t most = vectors_bytes(v);
	uint8_t carry[64] = {0};
	double squares = 0;

	v->params.table = malloc((size_t)codec_table_bytes(v->codec, v->params.elements) + 1);
	if (!v->params.table)
		return ERR_NOMEM;
	if (t->examples > a->max_examples) {
		t->refused = "too-many-examples";
	} else if (v->codec->fixed_size ? t->len != most : t->len > most) {
		t->refused = "wrong-length";
	} else if (vectors_check(v, 0, t->payload, (size_t)t->len, &squares, carry)) {
		t->refused = "bad-values";
	} else {
		t->norm = sqrt(squares);
		if (!isfinite(t->norm))
			t->refused = "bad-values";
		else if (a->max_norm > 0 && t->norm > a->max_norm)
			t->refused = "norm-too-large";
	}
	free(v->params.table);
	v->params.table = NULL;
	return ERR_OK;
}

static const float *
arrived(const struct fleet_task *t, unsigned which, float *room, enum err *e)
{
	struct codec_memory memory = {t->payload, t->len};
	const struct codec_source source = {codec_memory_read, &memory};

	if (!room)
		*e = ERR_NOMEM;
	if (!*e)
		*e = vectors_read(
		    &t->vectors, which, &source, 0, (size_t)t->vectors.params.elements, room);
	return room;
}

/* Error feedback as client/device/feedback.c does it: what was wanted minus what arrives. */
static enum err
next_residual(const struct fleet_setup *s, struct fleet_task *t, float *room)
{
	const float *before = s->memories[t->device].residual;
	size_t n = (size_t)t->vectors.params.elements;
	enum err e = ERR_OK;
	const float *there = arrived(t, 0, room, &e);

	t->after.residual = malloc(n * sizeof(float));
	if (!e && !t->after.residual)
		e = ERR_NOMEM;
	for (size_t i = 0; !e && i < n; i++)
		t->after.residual[i] = (before ? before[i] : 0) + (t->delta[i] - there[i]);
	return e;
}

/* Its own variate, as the coordinator counts it. */
static enum err
next_own(const struct fleet_setup *s, struct fleet_task *t, float *room)
{
	const float *before = s->memories[t->device].own;
	size_t n = (size_t)t->vectors.params.elements;
	enum err e = ERR_OK;
	const float *there = arrived(t, 1, room, &e);

	t->after.own = calloc(n, sizeof(float));
	if (!e && !t->after.own)
		e = ERR_NOMEM;
	if (!e && before)
		memcpy(t->after.own, before, n * sizeof(float));
	if (!e)
		variate_advance(t->after.own, there, n);
	return e;
}

static enum err
keep(const struct fleet_setup *s, struct fleet_task *t, bool feedback)
{
	size_t n = (size_t)t->vectors.params.elements;
	enum err e = ERR_OK;

	if (!feedback && !t->vectors.second)
		return ERR_OK;
	float *room = malloc(n * sizeof(*room));
	if (feedback)
		e = next_residual(s, t, room);
	if (!e && t->vectors.second)
		e = next_own(s, t, room);
	free(room);
	return e;
}

static enum err
encode(struct fleet_task *t, const float *residual)
{
	struct vectors *v = &t->vectors;
	const struct codec_params second = vectors_params(v, 1);
	size_t n = (size_t)v->params.elements;
	float *sum = malloc(n * sizeof(*sum));

	if (!sum)
		return ERR_NOMEM;
	memcpy(sum, t->delta, n * sizeof(*sum));
	for (size_t i = 0; residual && i < n; i++)
		sum[i] += residual[i];
	enum err e = v->codec->encode(t->payload, &t->len, sum, &v->params);
	v->params.payload = t->len;
	if (!e && v->second) {
		uint64_t more = t->len;
		e = v->codec->encode(t->payload + t->len, &more, t->change, &second);
		t->len += more;
	}
	free(sum);
	return e;
}

static void
describe(const struct fleet_setup *s, struct fleet_task *t, const struct codec *codec)
{
	const uint8_t *id = s->fleet->devices[t->device].id;

	t->vectors = (struct vectors){.codec = codec,
	    .params = {.elements = s->table->elements,
		.block = codec->block,
		.seed = training_seed(s->job->seed, t->round, id),
		.entries = recipe_upload_entries(&s->job->recipe.upload, s->table->elements)},
	    .second = t->change != NULL};
}

static enum err
make_payload(const struct fleet_setup *s, struct fleet_task *t)
{
	const struct codec *codec = codec_find_name(s->job->recipe.codec);
	bool feedback = recipe_upload_feedback(&s->job->recipe.upload, codec);

	describe(s, t, codec);
	t->payload = malloc((size_t)vectors_bytes(&t->vectors));
	if (!t->payload)
		return ERR_NOMEM;
	enum err e = encode(t, feedback ? s->memories[t->device].residual : NULL);
	if (e == ERR_NUMERIC)
		t->refused = "not-finite";
	if (e)
		return e == ERR_NUMERIC ? ERR_OK : e;
	fleet_attack_payload(fleet_profile_of(s->fleet, t->device)->attack,
	    s->fleet->devices[t->device].number, t->payload, &t->len);
	e = admit(s, t);
	return e || t->refused ? e : keep(s, t, feedback);
}

void
fleet_task_encode(const struct fleet_setup *s, struct fleet_task *t)
{
	if (t->e || t->outcome != FLEET_DONE || t->kind != TASK_TRAIN)
		return;
	t->e = make_payload(s, t);
	if (t->refused)
		t->outcome = FLEET_REFUSED;
	free(t->change);
	t->change = NULL;
}

uint64_t
fleet_task_payload(const struct job_spec *job, uint64_t elements)
{
	const struct codec *codec = codec_find_name(job->recipe.codec);
	uint64_t one = recipe_upload_bytes(&job->recipe.upload, codec, elements);

	return vectors_times(one, job->aggregate.variates > 0);
}
