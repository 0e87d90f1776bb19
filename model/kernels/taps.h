#ifndef TAPS_H
#define TAPS_H
#include <stddef.h>
#include <stdint.h>

/*
 * Products of matrices whose rows lie anywhere, as convolutions meet them:
 *
 *   c[i, j] = sum over p, ascending, of a[a_row[i] + a_at[p]] * b[b_at[p] + j]
 *
 * One product after the other, each rounded once: gemm_outer's order, with the same bits on every machine. b is read in whole vectors:
 * up to TAPS_PAST floats behind the n columns, of any value.
 */
#define TAPS_PAST 16

enum taps_sum {
	TAPS_STORE, /* the sum */
	TAPS_CHAIN, /* the sum begins with what is in c */
	TAPS_ADD /* the sum is added to c */
};

struct taps {
	size_t m, n, k;
	const float *a;
	const uint32_t *a_row, *a_at;
	const float *b;
	const uint32_t *b_at;
	float *c; /* element (i, j) at c[i * c_row + j] */
	size_t c_row;
	enum taps_sum sum;
};

void taps_sum(const struct taps *t);
/* Sums in sixteen lanes (lanes.h), of k arrays with one: lanes[p][i % 16] += a[i] * b[b_at[p] + i], i < n ascending. What stands up to
 * TAPS_PAST floats behind an array of b must be finite. */
void taps_dots(
    float *lanes, const float *a, const float *b, const uint32_t *b_at, size_t k, size_t n);

#endif
