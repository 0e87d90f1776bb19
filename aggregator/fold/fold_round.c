#include "fold_round.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bytes.h"
#include "job.h"
#include "stop.h"
#include "tensor.h"
#include "vec.h"
#include "worker.h"

enum err
fold_round_plan(struct fold_round *r, struct why *why)
{
	const struct aggregate_spec *a = &r->job->aggregate;

	r->step.table = r->table;
	if (!rule_known(a->rule.name) || server_step_choose(&r->step, a, r->number))
		return err_set(why, ERR_UNSUPPORTED, "rule %s or optimizer %s is not in this build",
		    a->rule.name, a->optimizer);
	server_step_scale(&r->step, r->factor);
	return server_step_download(&r->step, &r->job->download, r->job->seed, r->number, why);
}

enum err
fold_round_add(struct fold_round *r, double weight, double normaliser, double scale)
{
	double **const all[] = {&r->weights, &r->normalisers, &r->scales};
	const double values[] = {weight, normaliser, scale};
	size_t room = r->room;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		room = r->room;
		double *grown = bytes_grow(*all[i], r->count, &room, sizeof(*grown));
		if (!grown)
			return ERR_NOMEM;
		*all[i] = grown;
		grown[r->count] = values[i];
	}
	r->room = room;
	r->count++;
	return ERR_OK;
}

/* --- reading */

static enum err
read_delta(void *round, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct fold_round *r = round;

	return r->read(r->context, 0, delta, first, count, out);
}

static enum err
read_change(void *round, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct fold_round *r = round;

	return r->read(r->context, 1, delta, first, count, out);
}

enum err
fold_round_begin(struct fold_round *r, struct why *why)
{
	struct fold_sum *s = &r->sum;

	s->spec = &r->job->aggregate;
	s->table = r->table;
	s->normalisers = r->normalisers;
	s->scales = r->job->round.max_staleness > 0 ? r->scales : NULL;
	s->deltas = (struct rule_input){.read_tile = read_delta,
	    .context = r,
	    .deltas = r->count,
	    .weights = r->weights,
	    .centre = server_step_centre(&r->step),
	    .seed = fold_sum_seed(r->job->seed, r->number),
	    .stop = r->stop};
	s->changes = s->deltas;
	s->changes.read_tile = read_change;
	return fold_sum_begin(s, why);
}

/* --- on all threads */

#define NO_FAILURE UINT64_MAX

struct pass {
	struct fold_round *round;
	enum err (*piece)(const struct pass *p, unsigned i);
	double *squares; /* of each tile's update */
	_Atomic uint64_t failed; /* the first piece that failed, and its error below */
};

static void
run_piece(void *arg, unsigned i)
{
	struct pass *p = arg;
	uint64_t was = atomic_load(&p->failed);

	if (was >> 32 < i)
		return;
	const enum err e = stop_asked(p->round->stop) ? ERR_CLOSED : p->piece(p, i);
	const uint64_t now = (uint64_t)i << 32 | e;
	while (e && now < was && !atomic_compare_exchange_weak(&p->failed, &was, now))
		continue;
}

static enum err
run_all(struct pass *p, unsigned count)
{
	atomic_init(&p->failed, NO_FAILURE);
	worker_parallel(p->round->threads, count, run_piece, p);
	const uint64_t failed = atomic_load(&p->failed);
	return failed == NO_FAILURE ? ERR_OK : (enum err)(uint32_t)failed;
}

static enum err
run_strip(const struct pass *p, unsigned i)
{
	return fold_sum_measure(&p->round->sum, i);
}

static enum err
run_control(const struct fold_round *r, uint64_t first, size_t count)
{
	double sum[RULE_TILE];

	enum err e = fold_sum_changes(&r->sum, first, count, sum);
	return e ? e : server_step_control(&r->step, first, count, sum);
}

static enum err
run_tile(const struct pass *p, unsigned i)
{
	const struct fold_round *r = p->round;
	const uint64_t first = (uint64_t)i * RULE_TILE, left = r->table->elements - first;
	const size_t count = left < RULE_TILE ? (size_t)left : RULE_TILE;
	float update[RULE_TILE];

	enum err e = fold_sum_run(&r->sum, first, count, update);
	if (e)
		return e;
	p->squares[i] = vec_sum_squares(update, count);
	e = server_step_run(&r->step, first, count, update);
	return !e && r->sum.spec->variates ? run_control(r, first, count) : e;
}

enum err
fold_round_compare(struct fold_round *r)
{
	struct pass p = {.round = r, .piece = run_strip};
	enum err e = ERR_OK;

	for (unsigned strips; !e && (strips = fold_sum_measures(&r->sum)) > 0;) {
		e = run_all(&p, strips);
		if (!e)
			e = fold_sum_plan(&r->sum);
	}
	return e;
}

enum err
fold_round_run(struct fold_round *r)
{
	const uint64_t tiles = (r->table->elements + RULE_TILE - 1) / RULE_TILE;
	struct pass p = {.round = r, .piece = run_tile};
	double sum = 0;

	enum err e = fold_round_compare(r);
	if (e)
		return e;
	p.squares = tiles < UINT32_MAX ? calloc((size_t)tiles + 1, sizeof(double)) : NULL;
	e = p.squares ? run_all(&p, (unsigned)tiles) : ERR_NOMEM;
	for (uint64_t i = 0; !e && i < tiles; i++)
		sum += p.squares[i];
	r->norm = sqrt(sum);
	free(p.squares);
	return e;
}

void
fold_round_deinit(struct fold_round *r)
{
	fold_sum_end(&r->sum);
	free(r->weights);
	free(r->normalisers);
	free(r->scales);
	r->weights = r->normalisers = r->scales = NULL;
	r->count = r->room = 0;
}
