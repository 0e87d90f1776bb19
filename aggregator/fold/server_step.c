#include "server_step.h"

#include <string.h>

#include "control.h"
#include "err.h"
#include "job.h"
#include "rule.h"
#include "schedule.h"
#include "server_opt.h"
#include "stop.h"
#include "tensor.h"

#define PIECE ((uint64_t)4 << 20) /* floats between two looks whether to stop */

enum err
server_step_choose(struct server_step *s, const struct aggregate_spec *spec, uint64_t round)
{
	s->opt = server_opt_find(spec->optimizer);
	if (!s->opt)
		return ERR_UNSUPPORTED;
	s->spec = spec;
	s->rate = schedule_rate(&spec->schedule, spec->rate, round);
	s->params = (struct server_opt_params){.rate = (float)s->rate,
	    .momentum = (float)spec->momentum,
	    .nesterov = spec->nesterov,
	    .beta1 = (float)spec->beta1,
	    .beta2 = (float)spec->beta2,
	    .tau = (float)spec->tau};
	return ERR_OK;
}

enum err
server_step_download(struct server_step *s, const struct download_spec *spec, uint64_t job_seed,
    uint64_t round, struct why *why)
{
	return download_step_choose(
	    &s->download, spec, s->table->elements, download_step_seed(job_seed, round), why);
}

void
server_step_scale(struct server_step *s, double factor)
{
	s->params.rate = (float)(s->rate * factor);
}

/* --- the state: where each part begins, in floats */

static uint64_t
centre_at(const struct server_step *s)
{
	return s->opt->state_vectors(&s->params) * s->table->elements;
}

static uint64_t
lost_at(const struct server_step *s)
{
	return centre_at(s) + (rule_keeps(&s->spec->rule) ? s->table->elements : 0);
}

static uint64_t
variate_at(const struct server_step *s)
{
	return lost_at(s) + (s->download.feedback ? s->table->elements : 0);
}

uint64_t
server_step_floats(const struct server_step *s)
{
	return variate_at(s) + (s->spec->variates ? s->table->elements : 0);
}

uint64_t
server_step_bytes(const struct aggregate_spec *aggregate, const struct download_spec *download,
    const struct tensor_table *table)
{
	struct server_step s = {.table = table};

	if (server_step_choose(&s, aggregate, 1) || server_step_download(&s, download, 1, 1, NULL))
		return 0;
	return server_step_floats(&s) * sizeof(float);
}

enum err
server_step_start(const struct server_step *s, float *state, struct stop *stop)
{
	const uint64_t optimizer = centre_at(s), n = s->table->elements;
	const uint64_t floats = server_step_floats(s);

	for (uint64_t i = 0; i < floats;) {
		const uint64_t end = floats - i < PIECE ? floats : i + PIECE;
		for (; i < end; i++)
			state[i] =
			    i < optimizer ? s->opt->state_start(&s->params, (size_t)(i / n)) : 0;
		if (stop_asked(stop))
			return ERR_CLOSED;
	}
	return ERR_OK;
}

const float *
server_step_centre(const struct server_step *s)
{
	return rule_keeps(&s->spec->rule) ? s->state + centre_at(s) : NULL;
}

/* --- a tile */

/* Moves one tensor's share of a tile. Weights pass through a buffer: a foreign model file may not align them. */
static enum err
move_piece(const struct server_step *s, const struct tensor_piece *p, const float *update)
{
	static const struct server_opt_params plain = {.rate = 1};
	float weights[RULE_TILE], *state[SERVER_OPT_VECTORS] = {NULL};
	uint8_t *at = s->data + p->at;
	bool train = p->tensor->role == TENSOR_TRAIN;

	memcpy(weights, at, p->count * sizeof(float));
	for (size_t v = 0; train && v < s->opt->state_vectors(&s->params); v++)
		state[v] = s->state + v * s->table->elements + p->first;
	enum err e = train ? s->opt->step(&s->params, weights, update, state, p->count)
			   : server_opt_find("sgd")->step(&plain, weights, update, NULL, p->count);
	memcpy(at, weights, p->count * sizeof(float));
	return e;
}

static enum err
move(const struct server_step *s, uint64_t first, size_t count, const float *update)
{
	struct tensor_piece p;
	enum err e = ERR_OK;

	for (size_t i = 0; !e && tensor_table_piece(s->table, &i, first, count, &p);)
		e = move_piece(s, &p, update + (p.first - first));
	return e;
}

static void
gather(const struct server_step *s, uint64_t first, size_t count, float *out)
{
	struct tensor_piece p;

	for (size_t i = 0; tensor_table_piece(s->table, &i, first, count, &p);)
		memcpy(out + (p.first - first), s->data + p.at, p.count * sizeof(float));
}

static void
scatter(const struct server_step *s, uint64_t first, size_t count, const float *in)
{
	struct tensor_piece p;

	for (size_t i = 0; tensor_table_piece(s->table, &i, first, count, &p);)
		memcpy(s->data + p.at, in + (p.first - first), p.count * sizeof(float));
}

static enum err
move_lossy(const struct server_step *s, uint64_t first, size_t count, const float *update)
{
	float old[RULE_TILE] = {0}, weights[RULE_TILE] = {0};
	float *lost = s->download.feedback ? s->state + lost_at(s) + first : NULL;

	gather(s, first, count, old);
	enum err e = move(s, first, count, update);
	if (e)
		return e;
	gather(s, first, count, weights);
	e = download_step_run(&s->download, first, old, weights, lost);
	if (!e)
		scatter(s, first, count, weights);
	return e;
}

enum err
server_step_run(const struct server_step *s, uint64_t first, size_t count, const float *update)
{
	if (rule_keeps(&s->spec->rule))
		memcpy(s->state + centre_at(s) + first, update, count * sizeof(float));
	return s->download.difference.codec ? move_lossy(s, first, count, update)
					    : move(s, first, count, update);
}

enum err
server_step_control(const struct server_step *s, uint64_t first, size_t count, const double *sum)
{
	return control_step(s->state + variate_at(s) + first, sum, count, s->spec->variates);
}
