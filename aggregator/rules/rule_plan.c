#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "distance.h"
#include "rule_inside.h"
#include "select.h"
#include "stop.h"
#include "vec.h"

/* What stands for a distance beyond f32's range: far from everything, and still a number to calculate with. */
#define VERY_FAR 1e80

/* --- measuring */

unsigned
rule_measures(const struct rule *r)
{
	return r->pass == RULE_READY ? 0 : r->strips;
}

static enum err
measure_norms(const struct rule *r, double *sums, uint64_t first, size_t count, float *tile)
{
	for (size_t i = 0; i < r->in.deltas; i++) {
		enum err e = rule_read(r, i, first, count, tile);
		if (e)
			return e;
		sums[i] += vec_sum_squares(tile, count);
	}
	return ERR_OK;
}

static enum err
measure_distances(
    const struct rule *r, double *sums, uint64_t first, size_t count, size_t width, float *tiles)
{
	for (size_t i = 0; i < r->points; i++) {
		enum err e = rule_read(r, i, first, count, tiles + i * width);
		if (e)
			return e;
	}
	distance_add(sums, tiles, r->points, width, count);
	return ERR_OK;
}

enum err
rule_measure(struct rule *r, unsigned strip)
{
	bool norms = r->pass == RULE_NORMS;
	size_t width = norms ? RULE_TILE : rule_width(r->points);
	float *tiles = malloc((norms ? 1 : r->points) * width * sizeof(float));
	double *sums = r->partial + strip * r->points * r->points;
	enum err e = tiles ? ERR_OK : ERR_NOMEM;
	uint64_t first, end;

	rule_strip(r, strip, &first, &end);
	while (first < end && !e) {
		size_t n = end - first < width ? (size_t)(end - first) : width;
		e = norms ? measure_norms(r, sums, first, n, tiles)
			  : measure_distances(r, sums, first, n, width, tiles);
		first += n;
		if (!e && stop_asked(r->in.stop))
			e = ERR_CLOSED;
	}
	free(tiles);
	return e;
}

/* Adds the strips' sums up into the first, in order. */
static void
add_strips(struct rule *r, size_t count)
{
	for (unsigned s = 1; s < r->strips; s++)
		for (size_t i = 0; i < count; i++)
			r->partial[i] += r->partial[s * r->points * r->points + i];
}

/* --- norms */

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static enum err
median_of(const double *x, size_t n, double *out)
{
	double *sorted = malloc(n * sizeof(*sorted));

	if (!sorted)
		return ERR_NOMEM;
	memcpy(sorted, x, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), ascending);
	*out = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
	free(sorted);
	return ERR_OK;
}

static enum err
plan_scales(struct rule *r)
{
	size_t n = r->in.deltas;
	double bound = r->spec.bound;
	enum err e = ERR_OK;

	add_strips(r, n);
	r->scales = malloc(n * sizeof(*r->scales));
	if (!r->scales)
		return ERR_NOMEM;
	for (size_t i = 0; i < n; i++)
		r->partial[i] = sqrt(r->partial[i]);
	if (r->spec.bound_median)
		e = median_of(r->partial, n, &bound);
	for (size_t i = 0; i < n; i++)
		r->scales[i] = r->partial[i] > bound ? (float)(bound / r->partial[i]) : 1;
	memset(r->partial, 0, r->strips * r->points * r->points * sizeof(*r->partial));
	return e;
}

/* --- rows */

/* The squared distances among the deltas alone, without the centre. */
static double *
among_deltas(const struct rule *r, const double *d2)
{
	size_t n = r->in.deltas;
	double *out = malloc(n * n * sizeof(*out));

	for (size_t i = 0; out && i < n; i++)
		memcpy(out + i * n, d2 + i * r->points, n * sizeof(*out));
	return out;
}

/* The mix of the deltas as shares of points; the centre stays a row of its own. (Tables have one element more than they need, so
 * that none is empty for an analyser that does not know the limits.) */
static enum err
make_shares(struct rule *r, const double *d2, double *shares)
{
	size_t n = r->in.deltas;

	if (n == 0 || n > RULE_DELTAS_MAX)
		return ERR_INVALID;
	double *among = d2 ? among_deltas(r, d2) : NULL;
	double *mix = calloc(n * n + 1, sizeof(*mix));
	enum err e = mix && (among || !d2) ? ERR_OK : ERR_NOMEM;

	r->rows = n;
	if (!e)
		e = r->spec.nearest ? select_nearest(among, n, r->spec.hostile, mix)
				    : select_buckets(n, r->spec.bucket, r->in.seed, mix, &r->rows);
	for (size_t i = 0; !e && i < r->rows; i++)
		memcpy(shares + i * r->points, mix + i * n, n * sizeof(*shares));
	for (size_t i = n; !e && i < r->points; i++)
		shares[r->rows++ * r->points + i] = 1;
	free(among);
	free(mix);
	return e;
}

/* Mixes the deltas: members of each row, and the rows' distances in *d2 if it is there. */
static enum err
plan_mix(struct rule *r, double **d2)
{
	size_t n = r->points;
	double *shares = calloc(n * n + 1, sizeof(*shares)), *mixed = NULL;
	enum err e = shares ? make_shares(r, *d2, shares) : ERR_NOMEM;

	if (!e && (r->rows == 0 || r->rows > n || n > RULE_DELTAS_MAX + 1))
		e = ERR_INVALID;
	if (!e) {
		mixed = calloc(r->rows * r->rows + 1, sizeof(*mixed));
		r->mix = calloc(r->rows * n + 1, 1);
		e = mixed && r->mix ? ERR_OK : ERR_NOMEM;
	}
	if (!e && *d2)
		e = select_mixed(*d2, n, shares, r->rows, mixed, r->in.stop);
	for (size_t i = 0; !e && i < r->rows * n; i++)
		r->mix[i] = shares[i] > 0;
	free(shares);
	if (!*d2) {
		free(mixed);
		return e;
	}
	free(*d2);
	*d2 = mixed;
	return e;
}

/* The points that count, from the weights of rows. */
static enum err
set_members(struct rule *r, const double *row_weights)
{
	double *w = calloc(r->points, sizeof(*w));

	r->members = malloc(r->points * sizeof(*r->members));
	r->weights = malloc(r->points * sizeof(*r->weights));
	if (!w || !r->members || !r->weights) {
		free(w);
		return ERR_NOMEM;
	}
	for (size_t i = 0; i < r->rows; i++) {
		size_t size = 0;
		for (size_t k = 0; r->mix && k < r->points; k++)
			size += r->mix[i * r->points + k];
		for (size_t k = 0; r->mix && k < r->points; k++)
			w[k] += r->mix[i * r->points + k] ? row_weights[i] / (double)size : 0;
		if (!r->mix)
			w[i] = row_weights[i];
	}
	r->member_count = 0;
	for (size_t i = 0; i < r->points; i++) {
		if (!(w[i] > 0))
			continue;
		r->members[r->member_count] = i;
		r->weights[r->member_count++] = w[i];
	}
	free(w);
	return r->member_count > 0 ? ERR_OK : ERR_NUMERIC;
}

/* --- rules */

static bool
is(const struct rule *r, const char *name)
{
	return strcmp(r->spec.name, name) == 0;
}

/* Weights of the rows for the rules that sum up. */
static enum err
plan_sum(struct rule *r, const double *d2, double *weights)
{
	double total = 0;
	/* Who may be hostile could claim most of the weight. */
	bool equal = r->mix || r->spec.hostile > 0;

	for (size_t i = 0; i < r->rows; i++) {
		/* A centre stands behind the deltas and has no weight of its own. */
		weights[i] = equal ? 1 : i < r->in.deltas ? r->in.weights[i] : 0;
		total += weights[i];
	}
	if (is(r, "krum"))
		return select_krum(d2, r->rows, r->spec.hostile, r->spec.picks, weights);
	if (is(r, "centered_clipping"))
		return select_clip(
		    d2, r->rows, r->spec.radius, r->spec.iterations, weights, r->in.stop);
	if (!is(r, "geometric_median"))
		return ERR_OK;
	double *alpha = malloc(r->rows * sizeof(*alpha));
	if (!alpha)
		return ERR_NOMEM;
	for (size_t i = 0; i < r->rows; i++)
		alpha[i] = weights[i] / total;
	enum err e = select_median(
	    d2, r->rows, alpha, r->spec.smoothing, r->spec.iterations, weights, r->in.stop);
	free(alpha);
	return e;
}

static enum err
plan_bulyan(struct rule *r, const double *d2)
{
	bool *picked = calloc(r->rows, sizeof(*picked));
	double *weights = calloc(r->rows, sizeof(*weights));
	size_t count = 0;
	enum err e = picked && weights
	    ? select_bulyan(d2, r->rows, r->spec.hostile, picked, r->in.stop)
	    : ERR_NOMEM;

	r->form = RULE_AROUND;
	for (size_t i = 0; !e && i < r->rows; i++) {
		weights[i] = picked[i];
		if (picked[i] && r->mix)
			memmove(r->mix + count * r->points, r->mix + i * r->points, r->points);
		count += picked[i];
	}
	if (!e && !r->mix)
		e = set_members(r, weights);
	free(picked);
	free(weights);
	if (e)
		return e;
	r->rows = count;
	r->keep = count - 2 * (size_t)r->spec.hostile;
	return order_new(&r->order, count, 0, count);
}

static enum err
plan_ranks(struct rule *r)
{
	size_t n = r->rows, f = r->spec.hostile;
	double *all = malloc(n * sizeof(*all));
	enum err e = all ? ERR_OK : ERR_NOMEM;

	for (size_t i = 0; !e && i < n; i++)
		all[i] = 1;
	/* Nothing trimmed is the mean of equal weights, to the bit. */
	bool sum = is(r, "trimmed_mean") && f == 0;
	r->form = sum ? RULE_SUM : RULE_RANKS;
	if (!e && (sum || !r->mix))
		e = set_members(r, all);
	free(all);
	if (e || sum)
		return e;
	return is(r, "median") ? order_new(&r->order, n, (n - 1) / 2, n / 2 + 1)
			       : order_new(&r->order, n, f, n - f);
}

static enum err
plan_rule(struct rule *r, const double *d2)
{
	if (is(r, "median") || is(r, "trimmed_mean"))
		return plan_ranks(r);
	if (is(r, "bulyan"))
		return plan_bulyan(r, d2);
	r->form = RULE_SUM;
	/* The plain mean reads what it is given, in the weights given. */
	if (is(r, "mean") && !r->mix && !r->scales)
		return ERR_OK;
	double *weights = malloc(r->rows * sizeof(*weights));
	enum err e = weights ? plan_sum(r, d2, weights) : ERR_NOMEM;
	if (!e)
		e = set_members(r, weights);
	free(weights);
	return e;
}

/* Takes the distances over, as numbers throughout. */
static double *
take_distances(struct rule *r)
{
	size_t n = r->points;

	add_strips(r, n * n);
	distance_mirror(r->partial, n);
	for (size_t i = 0; i < n * n; i++)
		if (!(r->partial[i] < VERY_FAR))
			r->partial[i] = VERY_FAR;
	double *d2 = r->partial;
	r->partial = NULL;
	return d2;
}

enum err
rule_plan(struct rule *r)
{
	double *d2 = NULL;
	enum err e = ERR_OK;

	if (r->pass == RULE_NORMS) {
		e = plan_scales(r);
		if (e || r->compares) {
			r->pass = RULE_DISTANCES;
			return e;
		}
	}
	if (r->pass == RULE_DISTANCES)
		d2 = take_distances(r);
	r->pass = RULE_READY;
	r->rows = r->points;
	if (r->spec.bucket > 1 || r->spec.nearest)
		e = plan_mix(r, &d2);
	if (!e)
		e = plan_rule(r, d2);
	free(d2);
	return e;
}
