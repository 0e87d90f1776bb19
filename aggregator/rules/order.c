#include "order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "cpu.h"

#define LINE 16 /* floats that come together from memory */
#define WIDTH 64 /* coordinates sorted at a time: with 100 vectors they fit the first cache */

struct pair {
	uint16_t low, high;
};

struct order {
	size_t n, from, to;
	size_t count, room;
	struct pair *pairs;
};

static enum err
add(struct order *o, size_t low, size_t high)
{
	struct pair *pairs = bytes_grow(o->pairs, o->count, &o->room, sizeof(*pairs));
	if (!pairs)
		return ERR_NOMEM;
	o->pairs = pairs;
	o->pairs[o->count++] = (struct pair){(uint16_t)low, (uint16_t)high};
	return ERR_OK;
}

/* Knuth's names: one pass of merge exchange for p compares x[i] with x[i + d] where i has bit p as r has. */
static enum err
add_pass(struct order *o, size_t p, size_t top)
{
	size_t q = top, r = 0, d = p;
	enum err e = ERR_OK;

	for (;;) {
		for (size_t i = 0; i + d < o->n && !e; i++)
			if ((i & p) == r)
				e = add(o, i, i + d);
		if (e || q == p)
			return e;
		d = q - p;
		q /= 2;
		r = p;
	}
}

/* Walking back from the wanted ranks, leaves out every pair none of whose ends is needed. */
static void
prune(struct order *o, bool *needed)
{
	size_t kept = o->count;

	for (size_t i = 0; i < o->n; i++)
		needed[i] = i >= o->from && i < o->to;
	for (size_t i = o->count; i-- > 0;) {
		struct pair c = o->pairs[i];
		if (!needed[c.low] && !needed[c.high])
			continue;
		needed[c.low] = needed[c.high] = true;
		o->pairs[--kept] = c;
	}
	o->count -= kept;
	memmove(o->pairs, o->pairs + kept, o->count * sizeof(*o->pairs));
}

enum err
order_new(struct order **out, size_t n, size_t from, size_t to)
{
	size_t top = 1;

	if (n < 1 || n > ORDER_MAX || from >= to || to > n)
		return ERR_INVALID;
	struct order *o = calloc(1, sizeof(*o));
	bool *needed = calloc(n, sizeof(*needed));
	enum err e = o && needed ? ERR_OK : ERR_NOMEM;
	if (!e)
		*o = (struct order){.n = n, .from = from, .to = to};
	while (top * 2 < n)
		top *= 2;
	for (size_t p = n > 1 ? top : 0; p > 0 && !e; p /= 2)
		e = add_pass(o, p, top);
	if (!e && o->count > 0)
		prune(o, needed);
	free(needed);
	if (e)
		order_free(o);
	else
		*out = o;
	return e;
}

void
order_free(struct order *o)
{
	if (o)
		free(o->pairs);
	free(o);
}

size_t
order_comparators(const struct order *o)
{
	return o->count;
}

size_t
order_scratch(const struct order *o)
{
	return 2 * o->n * WIDTH; /* order_around keeps the values beside the keys */
}

/* The order of floats as that of integers: compilers make vector minima of integers, but not of floats, for which a
 * comparison with NaN or between zeros of either sign says otherwise. It is its own inverse. */
static inline int32_t
flip(int32_t bits)
{
	uint32_t negative = 0u - ((uint32_t)bits >> 31);

	return bits ^ (int32_t)(negative & INT32_MAX);
}

CPU_CLONES static void
load_columns(int32_t *restrict x, const float *restrict row, size_t n)
{
	int32_t bits[WIDTH] = {0};

	memcpy(bits, row, n * sizeof(float));
	for (size_t k = 0; k < WIDTH; k++)
		x[k] = flip(bits[k]);
}

CPU_CLONES static void
sort_columns(int32_t *x, const struct pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int32_t *restrict a = x + (size_t)pairs[i].low * WIDTH;
		int32_t *restrict b = x + (size_t)pairs[i].high * WIDTH;
		for (size_t k = 0; k < WIDTH; k++) {
			int32_t u = a[k], v = b[k];
			a[k] = u < v ? u : v;
			b[k] = u < v ? v : u;
		}
	}
}

CPU_CLONES static void
mean_ranks(float *restrict out, const int32_t *restrict x, size_t ranks)
{
	double sum[WIDTH], number = (double)ranks;

	for (size_t k = 0; k < WIDTH; k++)
		sum[k] = -0.0; /* from +0.0 a sum of negative zeros would lose its sign */
	for (size_t r = 0; r < ranks; r++) {
		int32_t bits[WIDTH];
		float values[WIDTH];
		for (size_t k = 0; k < WIDTH; k++)
			bits[k] = flip(x[r * WIDTH + k]);
		memcpy(values, bits, sizeof(values));
		for (size_t k = 0; k < WIDTH; k++)
			sum[k] += (double)values[k];
	}
	for (size_t k = 0; k < WIDTH; k++)
		out[k] = (float)(sum[k] / number);
}

CPU_CLONES static void
unflip_columns(float *restrict out, const int32_t *restrict x)
{
	int32_t bits[WIDTH];

	for (size_t k = 0; k < WIDTH; k++)
		bits[k] = flip(x[k]);
	memcpy(out, bits, sizeof(bits));
}

/* Where the run of `keep` sorted values nearest to the median begins, in each column of x: n x WIDTH. */
CPU_CLONES static void
nearest_runs(int32_t *restrict start, const float *restrict x, size_t n, size_t keep)
{
	const float *low = x + (n - 1) / 2 * WIDTH, *high = x + n / 2 * WIDTH;
	float least[WIDTH], middle[WIDTH];

	for (size_t k = 0; k < WIDTH; k++) {
		middle[k] = low[k] / 2 + high[k] / 2;
		start[k] = 0;
	}
	for (size_t s = 0; s + keep <= n; s++)
		for (size_t k = 0; k < WIDTH; k++) {
			float below = middle[k] - x[s * WIDTH + k];
			float above = x[(s + keep - 1) * WIDTH + k] - middle[k];
			float far = below > above ? below : above;
			bool better = s == 0 || far < least[k];
			least[k] = better ? far : least[k];
			start[k] = better ? (int32_t)s : start[k];
		}
}

CPU_CLONES static void
mean_runs(float *restrict out, const float *restrict x, const int32_t *restrict start, size_t n,
    size_t keep)
{
	double sum[WIDTH] = {0}, number = (double)keep;
	int32_t run = (int32_t)keep;

	for (size_t r = 0; r < n; r++)
		for (size_t k = 0; k < WIDTH; k++) {
			int32_t at = (int32_t)r - start[k];
			sum[k] += at >= 0 && at < run ? (double)x[r * WIDTH + k] : 0;
		}
	for (size_t k = 0; k < WIDTH; k++)
		out[k] = (float)(sum[k] / number);
}

/* Sorts the first columns of `left`, at most WIDTH. */
static void
sort_strip(const struct order *o, const float *rows, size_t stride, size_t left, int32_t *scratch)
{
	size_t n = left < WIDTH ? left : WIDTH;

	for (size_t i = 0; i < o->n; i++) {
		load_columns(scratch + i * WIDTH, rows + i * stride, n);
		/* The next columns of so many rows would come too late: while these are sorted there is time. */
		for (size_t k = WIDTH; k < left && k < 2 * WIDTH; k += LINE)
			__builtin_prefetch(rows + i * stride + k);
	}
	sort_columns(scratch, o->pairs, o->count);
}

void
order_around(const struct order *o, const float *rows, size_t stride, size_t count, size_t keep,
    int32_t *scratch, float *out)
{
	float *sorted = (float *)(scratch + o->n * WIDTH);
	float result[WIDTH];
	int32_t start[WIDTH];

	for (size_t at = 0; at < count; at += WIDTH) {
		size_t n = count - at < WIDTH ? count - at : WIDTH;
		sort_strip(o, rows + at, stride, count - at, scratch);
		for (size_t i = 0; i < o->n; i++)
			unflip_columns(sorted + i * WIDTH, scratch + i * WIDTH);
		nearest_runs(start, sorted, o->n, keep);
		mean_runs(result, sorted, start, o->n, keep);
		memcpy(out + at, result, n * sizeof(float));
	}
}

void
order_mean(const struct order *o, const float *rows, size_t stride, size_t count, int32_t *scratch,
    float *out)
{
	float result[WIDTH];

	for (size_t at = 0; at < count; at += WIDTH) {
		size_t n = count - at < WIDTH ? count - at : WIDTH;
		sort_strip(o, rows + at, stride, count - at, scratch);
		mean_ranks(result, scratch + o->from * WIDTH, o->to - o->from);
		memcpy(out + at, result, n * sizeof(float));
	}
}
