#include "fold_tile.h"

#include <math.h>
#include <string.h>

#include "control.h"
#include "prng.h"
#include "schedule.h"
#include "vec.h"

enum err
fold_tile_choose(
    struct fold_tile *f, const struct aggregate_spec *spec, uint64_t round, struct why *why)
{
	f->opt = server_opt_find(spec->optimizer);
	if (!rule_known(spec->rule.name) || !f->opt)
		return err_set(why, ERR_UNSUPPORTED, "rule %s or optimizer %s is not in this build",
		    spec->rule.name, spec->optimizer);
	f->spec = spec;
	f->rate = schedule_rate(&spec->schedule, spec->rate, round);
	f->params = (struct server_opt_params){.rate = (float)f->rate,
	    .momentum = (float)spec->momentum,
	    .nesterov = spec->nesterov,
	    .beta1 = (float)spec->beta1,
	    .beta2 = (float)spec->beta2,
	    .tau = (float)spec->tau};
	return ERR_OK;
}

_Static_assert(RULE_TILE == DIFFERENCE_TILE, "a tile of the fold is a tile of the difference");

enum err
fold_tile_download(struct fold_tile *f, const struct download_spec *spec, uint64_t job_seed,
    uint64_t round, struct why *why)
{
	struct prng r;

	f->step = (struct difference){.elements = f->table->elements};
	f->feedback = spec->feedback;
	if (!spec->codec[0])
		return ERR_OK;
	f->step.codec = codec_find_name(spec->codec);
	if (!f->step.codec || !difference_takes(f->step.codec))
		return err_set(why, ERR_UNSUPPORTED, "codec %s of downloads is not in this build",
		    spec->codec);
	/* The first number of this stream is the rule's. */
	prng_seed2(&r, job_seed, round);
	(void)prng_u64(&r);
	f->step.seed = prng_u64(&r);
	return ERR_OK;
}

void
fold_tile_scale(struct fold_tile *f, double factor)
{
	f->params.rate = (float)(f->rate * factor);
}

/* Floats of the optimizer alone. */
static uint64_t
optimizer_floats(const struct fold_tile *f)
{
	return f->opt->state_vectors(&f->params) * f->table->elements;
}

/* Floats before what the download's codec lost. */
static uint64_t
feedback_at(const struct fold_tile *f)
{
	return optimizer_floats(f) + (rule_keeps(&f->spec->rule) ? f->table->elements : 0);
}

enum err
fold_tile_begin(struct fold_tile *f, struct why *why)
{
	f->deltas.elements = f->table->elements;
	if (rule_keeps(&f->spec->rule))
		f->deltas.centre = f->state + optimizer_floats(f);
	if (!f->spec->normalise)
		return rule_new(&f->rule, &f->spec->rule, &f->deltas, why);
	enum err e = normalise_new(&f->scaled, &f->deltas, f->normalisers, f->table, why);
	if (e)
		return e;
	const struct rule_input in = normalise_input(f->scaled);
	return rule_new(&f->rule, &f->spec->rule, &in, why);
}

unsigned
fold_tile_measures(const struct fold_tile *f)
{
	return rule_measures(f->rule);
}

enum err
fold_tile_measure(const struct fold_tile *f, unsigned strip)
{
	return rule_measure(f->rule, strip);
}

enum err
fold_tile_plan(const struct fold_tile *f)
{
	return rule_plan(f->rule);
}

void
fold_tile_end(struct fold_tile *f)
{
	rule_free(f->rule);
	normalise_free(f->scaled);
	f->rule = NULL;
	f->scaled = NULL;
}

uint64_t
fold_tile_seed(uint64_t job_seed, uint64_t round)
{
	struct prng r;

	prng_seed2(&r, job_seed, round);
	return prng_u64(&r);
}

uint64_t
fold_tile_count(const struct fold_tile *f)
{
	return (f->table->elements + RULE_TILE - 1) / RULE_TILE;
}

/* Floats before the control variate. */
static uint64_t
variate_at(const struct fold_tile *f)
{
	return feedback_at(f) + (f->feedback ? f->table->elements : 0);
}

uint64_t
fold_tile_state_floats(const struct fold_tile *f)
{
	return variate_at(f) + (f->spec->variates ? f->table->elements : 0);
}

void
fold_tile_state_start(const struct fold_tile *f, float *state)
{
	uint64_t vectors = f->opt->state_vectors(&f->params), n = f->table->elements;

	for (uint64_t i = 0; i < fold_tile_state_floats(f); i++)
		state[i] = i < vectors * n ? f->opt->state_start(&f->params, (size_t)(i / n)) : 0;
}

/* Moves one tensor's share of a tile. Weights pass through a buffer: a foreign model file may not align them. */
static enum err
move_piece(const struct fold_tile *f, const struct tensor *t, uint64_t first, size_t count,
    const float *update)
{
	static const struct server_opt_params plain = {.rate = 1};
	float weights[RULE_TILE], *state[SERVER_OPT_VECTORS] = {NULL};
	uint8_t *at = f->data + t->begin + (first - t->first) * sizeof(float);
	bool train = t->role == TENSOR_TRAIN;

	memcpy(weights, at, count * sizeof(float));
	for (size_t v = 0; train && v < f->opt->state_vectors(&f->params); v++)
		state[v] = f->state + v * f->table->elements + first;
	enum err e = train ? f->opt->step(&f->params, weights, update, state, count)
			   : server_opt_find("sgd")->step(&plain, weights, update, NULL, count);
	memcpy(at, weights, count * sizeof(float));
	return e;
}

static void
gather(const struct fold_tile *f, uint64_t first, size_t count, float *out)
{
	struct tensor_piece p;

	for (size_t i = 0; tensor_table_piece(f->table, &i, first, count, &p);)
		memcpy(out + (p.first - first), f->data + p.at, p.count * sizeof(float));
}

static void
scatter(const struct fold_tile *f, uint64_t first, size_t count, const float *in)
{
	struct tensor_piece p;

	for (size_t i = 0; tensor_table_piece(f->table, &i, first, count, &p);)
		memcpy(f->data + p.at, in + (p.first - first), p.count * sizeof(float));
}

static enum err
move(const struct fold_tile *f, uint64_t first, size_t count, const float *update)
{
	struct tensor_piece p;
	enum err e = ERR_OK;

	for (size_t i = 0; !e && tensor_table_piece(f->table, &i, first, count, &p);)
		e = move_piece(f, p.tensor, p.first, p.count, update + (p.first - first));
	return e;
}

/* The new weights are the old ones plus what arrives of the difference. */
static enum err
move_lossy(const struct fold_tile *f, uint64_t number, const float *update)
{
	struct difference_tile t = difference_tile(&f->step, number);
	float *lost = f->feedback ? f->state + feedback_at(f) + t.first : NULL;
	float weights[RULE_TILE] = {0}, wanted[RULE_TILE] = {0}, sent[RULE_TILE];
	uint8_t spare[DIFFERENCE_TILE_BYTES];
	uint8_t *bytes = f->payload ? f->payload + t.at : spare;

	gather(f, t.first, t.count, weights);
	enum err e = move(f, t.first, t.count, update);
	if (e)
		return e;
	gather(f, t.first, t.count, wanted);
	for (size_t i = 0; i < t.count; i++)
		wanted[i] -= weights[i];
	for (size_t i = 0; lost && i < t.count; i++)
		wanted[i] += lost[i];
	e = difference_tile_encode(&f->step, &t, wanted, bytes);
	if (!e)
		e = difference_tile_decode(&f->step, &t, bytes, sent);
	if (e)
		return e == ERR_INVALID ? ERR_NUMERIC : e;
	for (size_t i = 0; lost && i < t.count; i++)
		lost[i] = wanted[i] - sent[i];
	difference_add(weights, sent, t.count);
	scatter(f, t.first, t.count, weights);
	return vec_all_finite(weights, t.count) ? ERR_OK : ERR_NUMERIC;
}

enum err
fold_tile_run(const struct fold_tile *f, uint64_t tile, double *squares)
{
	uint64_t first = tile * RULE_TILE, left = f->table->elements - first;
	size_t count = left < RULE_TILE ? (size_t)left : RULE_TILE;
	float update[RULE_TILE];

	enum err e = rule_fold(f->rule, first, count, update);
	*squares = e ? 0 : vec_sum_squares(update, count);
	if (!e && rule_keeps(&f->spec->rule))
		memcpy(f->state + optimizer_floats(f) + first, update, count * sizeof(float));
	if (!e)
		e = f->step.codec ? move_lossy(f, tile, update) : move(f, first, count, update);
	if (!e && f->spec->variates)
		e = control_fold(
		    &f->changes, f->spec->variates, first, count, f->state + variate_at(f) + first);
	return e;
}

double
fold_tile_norm(const double *squares, uint64_t tiles)
{
	double sum = 0;

	for (uint64_t i = 0; i < tiles; i++)
		sum += squares[i];
	return sqrt(sum);
}
