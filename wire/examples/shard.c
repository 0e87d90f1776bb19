#include "shard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exact.h"
#include "num.h"
#include "prng.h"

#define LABEL_PIECES 2 /* pieces of one label order that make a shard */
#define STREAM_ORDER 0 /* of a seed; class c draws from stream c + 1 */
#define STREAM_SHARE 0x7368617265 /* none that training draws from */

const char *const shard_partition_names[] = {[SHARD_IID] = "iid",
    [SHARD_LABEL] = "label",
    [SHARD_DIRICHLET] = "dirichlet",
    [SHARD_COLUMN] = "column",
    [SHARD_POWERLAW] = "powerlaw",
    NULL};

enum shard_needs
shard_needs(enum shard_partition partition)
{
	static const enum shard_needs needs[] = {[SHARD_IID] = SHARD_NEEDS_NOTHING,
	    [SHARD_LABEL] = SHARD_NEEDS_CLASSES,
	    [SHARD_DIRICHLET] = SHARD_NEEDS_CLASSES,
	    [SHARD_COLUMN] = SHARD_NEEDS_GROUPS,
	    [SHARD_POWERLAW] = SHARD_NEEDS_NOTHING};

	return needs[partition];
}

static int
compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

struct labelled {
	int32_t label;
	uint32_t index;
};

static int
compare_labelled(const void *a, const void *b)
{
	const struct labelled *x = a, *y = b;

	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* order := example indices sorted by label, equal labels in their own order. */
static enum err
sort_by_label(uint32_t *order, const int32_t *labels, size_t examples)
{
	struct labelled *items = calloc(examples, sizeof(*items));

	if (!items)
		return ERR_NOMEM;
	for (size_t i = 0; i < examples; i++)
		items[i] = (struct labelled){.label = labels[i], .index = (uint32_t)i};
	qsort(items, examples, sizeof(*items), compare_labelled);
	for (size_t i = 0; i < examples; i++)
		order[i] = items[i].index;
	free(items);
	return ERR_OK;
}

static void
identity_order(uint32_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
}

/* Appends piece `piece` of `pieces` of order to out. */
static size_t
take_piece(uint32_t *out, const uint32_t *order, size_t examples, size_t piece, size_t pieces)
{
	size_t from = examples * piece / pieces, to = examples * (piece + 1) / pieces;

	memcpy(out, order + from, (to - from) * sizeof(*out));
	return to - from;
}

/* The logarithm of a number drawn from Gamma(alpha, 1): small alphas go below what a double holds (Marsaglia and Tsang, 2000). */
static double
draw_log_gamma(struct prng *rng, double alpha)
{
	double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * d), boost = 0;

	if (alpha < 1)
		boost = exact_ln(1 - prng_double(rng)) / alpha;
	for (;;) {
		double x = exact_normal(rng), v = 1 + c * x;
		if (v <= 0)
			continue;
		v = v * v * v;
		double u = 1 - prng_double(rng);
		if (exact_ln(u) < 0.5 * x * x + d - d * v + d * exact_ln(v))
			return exact_ln(d) + exact_ln(v) + boost;
	}
}

/* --- the partitions: each writes shard s->index to out and returns how many examples it has */

struct draw {
	const struct shard *s;
	const int32_t *of;
	size_t examples;
	uint32_t *order; /* room for the examples */
	uint32_t *out;
	size_t n;
};

static enum err
pick_iid(struct draw *d)
{
	struct prng rng;

	prng_seed(&rng, d->s->seed);
	identity_order(d->order, d->examples);
	prng_shuffle(&rng, d->order, d->examples);
	d->n = take_piece(d->out, d->order, d->examples, d->s->index - 1, d->s->count);
	return ERR_OK;
}

static enum err
pick_by_label(struct draw *d)
{
	struct prng rng;
	size_t pieces = (size_t)d->s->count * LABEL_PIECES;
	uint32_t *deal = calloc(pieces, sizeof(*deal));

	prng_seed(&rng, d->s->seed);
	if (!deal || sort_by_label(d->order, d->of, d->examples)) {
		free(deal);
		return ERR_NOMEM;
	}
	identity_order(deal, pieces);
	prng_shuffle(&rng, deal, pieces);
	for (size_t i = 0; i < LABEL_PIECES; i++)
		d->n += take_piece(d->out + d->n, d->order, d->examples,
		    deal[(d->s->index - 1) * (size_t)LABEL_PIECES + i], pieces);
	free(deal);
	return ERR_OK;
}

/* Appends this shard's part of a class, whose n examples stand in random order. */
static void
deal_class(struct draw *d, struct prng *rng, const uint32_t *order, size_t n, double *shares)
{
	double top = -INFINITY, sum = 0, before = 0;
	size_t mine = d->s->index - 1;

	for (size_t i = 0; i < d->s->count; i++) {
		shares[i] = draw_log_gamma(rng, d->s->alpha);
		top = shares[i] > top ? shares[i] : top;
	}
	for (size_t i = 0; i < d->s->count; i++) {
		double share = exact_exp(shares[i] - top);
		before += i < mine ? share : 0;
		shares[i] = share;
		sum += share;
	}
	size_t from = (size_t)((double)n * (before / sum));
	size_t to =
	    mine + 1 == d->s->count ? n : (size_t)((double)n * ((before + shares[mine]) / sum));
	to = to > n ? n : to;
	for (size_t i = from; i < to; i++)
		d->out[d->n++] = order[i];
}

static enum err
pick_dirichlet(struct draw *d)
{
	double *shares = calloc(d->s->count, sizeof(*shares));

	if (!shares || sort_by_label(d->order, d->of, d->examples)) {
		free(shares);
		return ERR_NOMEM;
	}
	for (size_t from = 0, to; from < d->examples; from = to) {
		int32_t class = d->of[d->order[from]];
		struct prng rng;
		for (to = from; to < d->examples && d->of[d->order[to]] == class;)
			to++;
		prng_seed2(&rng, d->s->seed, (uint64_t) class + 1);
		prng_shuffle(&rng, d->order + from, to - from);
		deal_class(d, &rng, d->order + from, to - from, shares);
	}
	free(shares);
	return ERR_OK;
}

static enum err
pick_column(struct draw *d)
{
	struct prng rng;
	size_t groups = 0;

	for (size_t i = 0; i < d->examples; i++)
		if ((size_t)d->of[i] >= groups)
			groups = (size_t)d->of[i] + 1;
	uint32_t *turn = calloc(groups + 1, sizeof(*turn));
	uint32_t *place = calloc(groups + 1, sizeof(*place));
	if (turn && place) {
		identity_order(turn, groups);
		prng_seed2(&rng, d->s->seed, STREAM_ORDER);
		prng_shuffle(&rng, turn, groups);
		for (size_t i = 0; i < groups; i++)
			place[turn[i]] = (uint32_t)i;
		for (size_t i = 0; i < d->examples; i++)
			if (place[d->of[i]] % d->s->count == d->s->index - 1)
				d->out[d->n++] = (uint32_t)i;
	}
	enum err e = turn && place ? ERR_OK : ERR_NOMEM;
	free(turn);
	free(place);
	return e;
}

static enum err
pick_powerlaw(struct draw *d)
{
	struct prng rng;
	double sum = 0, before = 0, mine = 0;
	size_t free_ones = d->examples - d->s->count; /* one is everybody's */

	prng_seed2(&rng, d->s->seed, STREAM_ORDER);
	identity_order(d->order, d->examples);
	prng_shuffle(&rng, d->order, d->examples);
	for (uint32_t rank = 1; rank <= d->s->count; rank++) {
		double size = exact_exp(-d->s->alpha * exact_ln(rank));
		before += rank < d->s->index ? size : 0;
		mine = rank == d->s->index ? size : mine;
		sum += size;
	}
	size_t from = (size_t)((double)free_ones * (before / sum)) + d->s->index - 1;
	size_t to = (size_t)((double)free_ones * ((before + mine) / sum)) + d->s->index;
	if (d->s->index == d->s->count || to > d->examples)
		to = d->examples;
	d->n = to - from;
	memcpy(d->out, d->order + from, d->n * sizeof(*d->out));
	return ERR_OK;
}

static enum err
check(const struct shard *s, const int32_t *of, size_t examples, struct why *why)
{
	size_t least = (size_t)s->count * (s->partition == SHARD_LABEL ? LABEL_PIECES : 1);
	enum shard_needs needs = shard_needs(s->partition);
	int32_t most = 0;

	if (s->count < 1 || s->index < 1 || s->index > s->count)
		return err_set(why, ERR_INVALID, "shard %u/%u does not exist", s->index, s->count);
	if (needs == SHARD_NEEDS_CLASSES && !of)
		return err_set(why, ERR_INVALID, "a partition by %s needs class labels",
		    shard_partition_names[s->partition]);
	if (needs == SHARD_NEEDS_GROUPS && !of)
		return err_set(why, ERR_INVALID, "a partition by column needs a column");
	if (examples < least || examples > UINT32_MAX)
		return err_set(why, ERR_INVALID, "%zu examples cannot be split into %zu pieces",
		    examples, least);
	for (size_t i = 0; needs && i < examples; i++) {
		if (of[i] < 0)
			return err_set(why, ERR_INVALID, "a class is negative");
		most = of[i] > most ? of[i] : most;
	}
	if (s->partition == SHARD_DIRICHLET && !(s->alpha > 0))
		return err_set(why, ERR_INVALID, "a Dirichlet partition needs an alpha above 0");
	if (s->partition == SHARD_DIRICHLET && ((uint64_t)most + 1) * s->count > SHARD_CELLS_MAX)
		return err_set(
		    why, ERR_LIMIT, "too many shards and classes for a Dirichlet partition");
	return ERR_OK;
}

/* The pieces of these may be empty. */
static enum err
empty(const struct shard *s, struct why *why)
{
	if (s->partition == SHARD_COLUMN)
		return err_set(why, ERR_INVALID,
		    "shard %u/%u is empty: the column has fewer values than there are shards",
		    s->index, s->count);
	return err_set(why, ERR_INVALID,
	    "shard %u/%u of this partition is empty: try a larger alpha, or another seed", s->index,
	    s->count);
}

enum err
shard_pick(uint32_t **keep, size_t *keep_count, const struct shard *shard, const int32_t *of,
    size_t examples, struct why *why)
{
	static enum err (*const picks[])(struct draw *) = {[SHARD_IID] = pick_iid,
	    [SHARD_LABEL] = pick_by_label,
	    [SHARD_DIRICHLET] = pick_dirichlet,
	    [SHARD_COLUMN] = pick_column,
	    [SHARD_POWERLAW] = pick_powerlaw};
	enum err e = check(shard, of, examples, why);
	struct draw d = {.s = shard, .of = of, .examples = examples};

	if (e)
		return e;
	d.out = calloc(examples, sizeof(*d.out));
	d.order = calloc(examples, sizeof(*d.order));
	e = d.out && d.order ? picks[shard->partition](&d) : ERR_NOMEM;
	free(d.order);
	if (e)
		err_set(why, e, "no memory for %zu examples", examples);
	else if (d.n == 0)
		e = empty(shard, why);
	if (e) {
		free(d.out);
		return e;
	}
	qsort(d.out, d.n, sizeof(*d.out), compare_u32);
	/* What is left over goes back: a shard may be one example of millions. */
	uint32_t *less = realloc(d.out, d.n * sizeof(*d.out));
	if (less)
		d.out = less;
	*keep = d.out;
	*keep_count = d.n;
	return ERR_OK;
}

size_t
shard_held(size_t examples, double share)
{
	size_t held = (size_t)(share * (double)examples);

	return share > 0 && held == 0 && examples >= 2 ? 1 : held;
}

enum err
shard_hold(uint32_t **order, size_t *held, size_t examples, double share, uint64_t seed)
{
	struct prng rng;

	if (examples > UINT32_MAX)
		return ERR_LIMIT;
	*held = shard_held(examples, share);
	*order = calloc(examples ? examples : 1, sizeof(**order));
	if (!*order)
		return ERR_NOMEM;
	identity_order(*order, examples);
	prng_seed(&rng, seed);
	prng_shuffle(&rng, *order, examples);
	/* Ascending order keeps copies sequential and the result readable. */
	qsort(*order, *held, sizeof(**order), compare_u32);
	qsort(*order + *held, examples - *held, sizeof(**order), compare_u32);
	return ERR_OK;
}

enum err
shard_share(uint32_t **keep, size_t *kept, size_t examples, uint64_t most, uint64_t seed)
{
	struct prng rng;

	if (examples > UINT32_MAX)
		return ERR_LIMIT;
	*kept = examples < most ? examples : (size_t)most;
	*keep = calloc(examples ? examples : 1, sizeof(**keep));
	if (!*keep)
		return ERR_NOMEM;
	identity_order(*keep, examples);
	if (*kept == examples)
		return ERR_OK;
	prng_seed2(&rng, seed, STREAM_SHARE);
	prng_shuffle(&rng, *keep, examples);
	qsort(*keep, *kept, sizeof(**keep), compare_u32);
	return ERR_OK;
}
