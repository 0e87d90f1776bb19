#include "select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prng.h"
#include "stop.h"

#define NEGLIGIBLE 1e-5

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* --- Krum */

/* The sum of the `nearest` smallest squared distances of i to others that are in. */
static double
krum_score(const double *d2, size_t n, const bool *in, size_t i, size_t nearest, double *scratch)
{
	size_t count = 0;
	double sum = 0;

	for (size_t j = 0; j < n; j++)
		if (j != i && in[j])
			scratch[count++] = d2[i * n + j];
	qsort(scratch, count, sizeof(*scratch), ascending);
	for (size_t k = 0; k < nearest && k < count; k++)
		sum += scratch[k];
	return sum;
}

/* The best score among those that are in and not yet picked; n if there is none. */
static size_t
best(const double *scores, const bool *in, const bool *picked, size_t n)
{
	size_t at = n;

	for (size_t i = 0; i < n; i++)
		if (in[i] && !picked[i] && (at == n || scores[i] < scores[at]))
			at = i;
	return at;
}

struct krum {
	double *scores, *scratch;
	bool *in, *picked;
};

static enum err
krum_init(struct krum *k, size_t n)
{
	k->scores = malloc(n * sizeof(*k->scores));
	k->scratch = malloc(n * sizeof(*k->scratch));
	k->in = malloc(n * sizeof(*k->in));
	k->picked = calloc(n, sizeof(*k->picked));
	if (!k->scores || !k->scratch || !k->in || !k->picked)
		return ERR_NOMEM;
	for (size_t i = 0; i < n; i++)
		k->in[i] = true;
	return ERR_OK;
}

static void
krum_deinit(struct krum *k)
{
	free(k->scores);
	free(k->scratch);
	free(k->in);
	free(k->picked);
}

static enum err
krum_scores(struct krum *k, const double *d2, size_t n, size_t nearest, struct stop *stop)
{
	for (size_t i = 0; i < n; i++) {
		k->scores[i] = k->in[i] ? krum_score(d2, n, k->in, i, nearest, k->scratch) : 0;
		if (stop_asked(stop))
			return ERR_CLOSED;
	}
	return ERR_OK;
}

enum err
select_krum(const double *d2, size_t n, size_t f, size_t picks, double *weights)
{
	struct krum k;

	if (f > n || n < 2 * f + 3 || picks < 1 || picks > n - f)
		return ERR_INVALID;
	enum err e = krum_init(&k, n);
	if (!e)
		e = krum_scores(&k, d2, n, n - f - 2, NULL);
	if (!e) {
		for (size_t p = 0; p < picks; p++)
			k.picked[best(k.scores, k.in, k.picked, n)] = true;
		for (size_t i = 0; i < n; i++)
			weights[i] = k.picked[i] ? 1 : 0;
	}
	krum_deinit(&k);
	return e;
}

enum err
select_bulyan(const double *d2, size_t n, size_t f, bool *picked, struct stop *stop)
{
	struct krum k;

	if (f > n || n < 4 * f + 3)
		return ERR_INVALID;
	enum err e = krum_init(&k, n);
	memset(picked, 0, n * sizeof(*picked));
	for (size_t left = n; left > 2 * f && !e; left--) {
		/* Of the few that are left at the end, one neighbour is still looked at. */
		e = krum_scores(&k, d2, n, left > f + 2 ? left - f - 2 : 1, stop);
		if (e)
			break;
		size_t at = best(k.scores, k.in, k.picked, n);
		picked[at] = true;
		k.in[at] = false;
	}
	krum_deinit(&k);
	return e;
}

/* --- points given by coefficients that sum to 1 */

/* Squared distances of the point sum b_k x_k to every vector: (D b)_i - b D b / 2. */
static void
distances_to(const double *d2, size_t n, const double *b, double *out)
{
	double half = 0;

	for (size_t i = 0; i < n; i++) {
		out[i] = 0;
		for (size_t j = 0; j < n; j++)
			if (b[j] != 0)
				out[i] += b[j] * d2[i * n + j];
	}
	for (size_t i = 0; i < n; i++)
		if (b[i] != 0)
			half += b[i] * out[i] / 2;
	for (size_t i = 0; i < n; i++)
		out[i] = out[i] > half ? out[i] - half : 0;
}

/* Brings the sum to 1, without what is negligible. ERR_INVALID if nothing is left. */
static enum err
normalise(double *b, size_t n)
{
	double most = 0, sum = 0;

	for (size_t i = 0; i < n; i++)
		most = b[i] > most ? b[i] : most;
	for (size_t i = 0; i < n; i++) {
		b[i] = b[i] >= most * NEGLIGIBLE ? b[i] : 0;
		sum += b[i];
	}
	if (!(sum > 0) || !isfinite(sum))
		return ERR_INVALID;
	for (size_t i = 0; i < n; i++)
		b[i] /= sum;
	return ERR_OK;
}

static size_t
medoid(const double *d2, size_t n, const double *alpha)
{
	double least = INFINITY;
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		double sum = 0;
		for (size_t j = 0; j < n; j++)
			if (alpha[j] > 0)
				sum += alpha[j] * sqrt(d2[i * n + j]);
		if (alpha[i] > 0 && sum < least) {
			least = sum;
			at = i;
		}
	}
	return at;
}

/* The smallest distance that is not 0; 0 if there is none. */
static double
nearest_other(const double *squares, size_t n)
{
	double least = INFINITY;

	for (size_t i = 0; i < n; i++)
		if (squares[i] > 0 && squares[i] < least)
			least = squares[i];
	return isfinite(least) ? sqrt(least) : 0;
}

enum err
select_median(const double *d2, size_t n, const double *alpha, double nu, unsigned iterations,
    double *weights, struct stop *stop)
{
	double *far = malloc(n * sizeof(*far));
	enum err e = far ? ERR_OK : ERR_NOMEM;

	if (!(nu > 0) || n == 0)
		e = ERR_INVALID;
	if (!e) {
		memset(weights, 0, n * sizeof(*weights));
		weights[medoid(d2, n, alpha)] = 1;
	}
	for (unsigned t = 0; t < iterations && !e; t++) {
		distances_to(d2, n, weights, far);
		/* Weiszfeld's step never leaves a vector that it stands on: its share would be 1 / nu. */
		double least = t == 0 ? nearest_other(far, n) : 0;
		if (least < nu)
			least = nu;
		for (size_t i = 0; i < n; i++) {
			double d = sqrt(far[i]);
			weights[i] = alpha[i] / (d > least ? d : least);
		}
		e = normalise(weights, n);
		if (!e && stop_asked(stop))
			e = ERR_CLOSED;
	}
	free(far);
	return e;
}

enum err
select_clip(
    const double *d2, size_t n, double tau, unsigned iterations, double *weights, struct stop *stop)
{
	double *far = malloc(n * sizeof(*far));
	enum err e = far ? ERR_OK : ERR_NOMEM;

	if (!(tau > 0) || n < 2)
		e = ERR_INVALID;
	if (!e) {
		memset(weights, 0, n * sizeof(*weights));
		weights[n - 1] = 1;
	}
	for (unsigned t = 0; t < iterations && !e; t++) {
		double moved = 0;
		distances_to(d2, n, weights, far);
		for (size_t i = 0; i + 1 < n; i++) {
			double d = sqrt(far[i]);
			double share = d > tau ? tau / d : 1;
			far[i] = share >= NEGLIGIBLE ? share / (double)(n - 1) : 0;
			moved += far[i];
		}
		for (size_t i = 0; i < n; i++)
			weights[i] = weights[i] * (1 - moved) + (i + 1 < n ? far[i] : 0);
		if (stop_asked(stop))
			e = ERR_CLOSED;
	}
	free(far);
	return e;
}

/* --- mixes */

struct neighbour {
	double d2;
	size_t at;
};

static int
nearer(const void *a, const void *b)
{
	const struct neighbour *x = a, *y = b;

	if (x->d2 != y->d2)
		return x->d2 < y->d2 ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

enum err
select_nearest(const double *d2, size_t n, size_t f, double *mix)
{
	if (n <= f)
		return ERR_INVALID;
	struct neighbour *order = malloc(n * sizeof(*order));
	if (!order)
		return ERR_NOMEM;
	memset(mix, 0, n * n * sizeof(*mix));
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++)
			order[j] = (struct neighbour){j == i ? -1 : d2[i * n + j], j};
		qsort(order, n, sizeof(*order), nearer);
		for (size_t k = 0; k < n - f; k++)
			mix[i * n + order[k].at] = 1 / (double)(n - f);
	}
	free(order);
	return ERR_OK;
}

enum err
select_buckets(size_t n, size_t s, uint64_t seed, double *mix, size_t *rows)
{
	struct prng r;

	if (n < 1 || s < 1 || n > UINT32_MAX)
		return ERR_INVALID;
	uint32_t *order = malloc(n * sizeof(*order));
	if (!order)
		return ERR_NOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	prng_seed(&r, seed);
	prng_shuffle(&r, order, n);
	*rows = (n + s - 1) / s;
	memset(mix, 0, *rows * n * sizeof(*mix));
	for (size_t i = 0; i < n; i++) {
		size_t row = i / s, begin = row * s;
		size_t in_row = n - begin < s ? n - begin : s;
		mix[row * n + order[i]] = 1 / (double)in_row;
	}
	free(order);
	return ERR_OK;
}

/* mix D, a row at a time. */
static enum err
mix_distances(
    const double *d2, size_t n, const double *mix, size_t rows, double *product, struct stop *stop)
{
	for (size_t i = 0; i < rows; i++) {
		for (size_t k = 0; k < n; k++)
			for (size_t j = 0; j < n && mix[i * n + k] != 0; j++)
				product[i * n + j] += mix[i * n + k] * d2[k * n + j];
		if (stop_asked(stop))
			return ERR_CLOSED;
	}
	return ERR_OK;
}

/* mix D mix'. */
static enum err
mix_both(
    const double *product, size_t n, const double *mix, size_t rows, double *out, struct stop *stop)
{
	for (size_t i = 0; i < rows; i++) {
		for (size_t j = 0; j < rows; j++) {
			out[i * rows + j] = 0;
			for (size_t k = 0; k < n; k++)
				if (mix[j * n + k] != 0)
					out[i * rows + j] += product[i * n + k] * mix[j * n + k];
		}
		if (stop_asked(stop))
			return ERR_CLOSED;
	}
	return ERR_OK;
}

/* The square of a difference a - b of points with coefficients a and b is -(a - b) D (a - b) / 2 = aDb - aDa/2 - bDb/2. */
enum err
select_mixed(
    const double *d2, size_t n, const double *mix, size_t rows, double *out, struct stop *stop)
{
	double *product = calloc(rows * n, sizeof(*product));
	enum err e = product ? mix_distances(d2, n, mix, rows, product, stop) : ERR_NOMEM;

	if (!e)
		e = mix_both(product, n, mix, rows, out, stop);
	free(product);
	if (e)
		return e;
	for (size_t i = 0; i < rows; i++)
		for (size_t j = i + 1; j < rows; j++) {
			double d = out[i * rows + j] - (out[i * rows + i] + out[j * rows + j]) / 2;
			out[i * rows + j] = out[j * rows + i] = d > 0 ? d : 0;
		}
	for (size_t i = 0; i < rows; i++)
		out[i * rows + i] = 0;
	return ERR_OK;
}
