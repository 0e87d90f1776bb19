#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gemm_inside.h"
#include "prng.h"

/* Products of networks, as small as they still tell something: of convolutions, linear layers, attention and recurrent layers. */
static const struct probe {
	enum gemm_class class;
	size_t m, n, k;
} probes[] = {
    {GEMM_ROWS, 10, 256, 200},
    {GEMM_ROWS, 64, 32, 64},
    {GEMM_ROWS_LOW, 64, 200, 200},
    {GEMM_ROWS_LOW_LONG, 64, 64, 1024},
    {GEMM_ROWS_LARGE, 128, 128, 128},
    {GEMM_ROWS_LARGE, 160, 96, 384},
    {GEMM_ROWS_LONG, 96, 64, 1024},
    {GEMM_COLUMNS, 256, 256, 10},
    {GEMM_COLUMNS, 32, 32, 64},
    {GEMM_COLUMNS_LOW, 84, 120, 64},
    {GEMM_COLUMNS_LOW_LONG, 64, 64, 640},
    {GEMM_COLUMNS_LARGE, 200, 200, 64},
    {GEMM_COLUMNS_LARGE, 128, 96, 256},
    {GEMM_COLUMNS_LONG, 128, 64, 640},
    {GEMM_DOTS, 10, 128, 640},
    {GEMM_DOTS, 64, 10, 200},
    {GEMM_DOTS_LOW, 64, 128, 400},
    {GEMM_DOTS_LOW_LONG, 32, 512, 1024},
    {GEMM_DOTS_LARGE, 128, 64, 400},
    {GEMM_DOTS_LONG, 96, 40, 1024},
    {GEMM_PANELS, 10, 512, 256},
    {GEMM_PANELS, 24, 128, 128},
    {GEMM_FOUND, 32, 128, 144},
    {GEMM_FOUND, 64, 64, 288},
    {GEMM_SLABS, 48, 256, 144},
    {GEMM_SPOTS, 100, 160, 1},
    {GEMM_SPOTS_NARROW, 100, 16, 1},
    {GEMM_LANES, 9, 1024, 1},
};
#define PROBES (sizeof(probes) / sizeof(probes[0]))

#define ROOM_A ((size_t)128 * 640) /* the largest operands' floats */
#define ROOM_B ((size_t)512 * 1024)
#define ROOM_C ((size_t)256 * 256)
#define PLACES 512 /* rows of b that lie anywhere, or spots */
#define WORK 400000.0 /* multiply-adds of a timed run, about: enough for the clock */
#define ROUNDS_LEAST 3
#define ROUNDS_MOST 15
#define SECONDS 0.03 /* no further round after these */
#define CLEARLY 0.97 /* of the usual way's time, which what takes its place must be below */

struct bench {
	float *a, *b, *packed, *c;
	uint32_t places[PLACES];
};

/* Another program's turns do not count. */
static double
processor_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct gemm
product_of(const struct bench *w, const struct probe *p, bool dot)
{
	bool across = p->class >= GEMM_COLUMNS && p->class <= GEMM_COLUMNS_LONG;
	struct gemm g = {.m = p->m,
	    .n = p->n,
	    .k = p->k,
	    .a = w->a,
	    .a_row = across ? 1 : p->k,
	    .a_col = across ? p->m : 1,
	    .b = w->b,
	    .b_row = dot ? p->k : p->n,
	    .c = w->c,
	    .c_row = p->n,
	    .alpha = 1,
	    .arithmetic = GEMM_FAST};

	if (p->class == GEMM_FOUND || p->class == GEMM_SLABS)
		g.b_at = w->places;
	if (p->class == GEMM_PANELS) {
		g.own = true;
		g.packed = true;
		g.b = w->packed;
	}
	return g;
}

/* What lies anywhere, laid out first. */
static void
lay_out(const struct bench *w, const struct probe *p, struct gemm *g)
{
	for (size_t i = 0; i < p->k; i++)
		memcpy(w->packed + i * p->n, w->b + w->places[i], p->n * sizeof(float));
	g->b_at = NULL;
	g->b = w->packed;
}

static void
run_once(const struct bench *w, const struct probe *p, enum gemm_way way)
{
	const struct gemm_kernels *kernels = gemm_kernels_of(way);
	const struct gemm_spots spots = {p->m, w->places, w->a};
	bool dot = p->class >= GEMM_DOTS && p->class <= GEMM_DOTS_LONG;
	struct gemm g;

	switch (p->class) {
	case GEMM_SPOTS:
	case GEMM_SPOTS_NARROW:
		kernels->gather(w->c, w->b, &spots, p->n);
		kernels->scatter(w->c, w->b, &spots, p->n);
		return;
	case GEMM_LANES:
		kernels->dots(w->c, w->a, w->b, w->places, p->m, p->n);
		return;
	default:
		g = product_of(w, p, dot);
		if (p->class == GEMM_SLABS && way == GEMM_OPENBLAS)
			lay_out(w, p, &g);
		gemm_run(&g, dot, way);
	}
}

static double
time_of(const struct bench *w, const struct probe *p, enum gemm_way way)
{
	double work = (double)p->m * (double)p->n * (double)p->k;
	size_t times = 1 + (size_t)(WORK / work);
	double began = processor_seconds();

	for (size_t i = 0; i < times; i++)
		run_once(w, p, way);
	return 1000 * (processor_seconds() - began) / (double)times;
}

static void
time_all(const struct bench *w, double least[PROBES][GEMM_WAYS])
{
	for (size_t i = 0; i < PROBES; i++)
		for (size_t way = 0; way < GEMM_WAYS; way++) {
			if (!gemm_choice_can(probes[i].class, (enum gemm_way)way))
				continue;
			double t = time_of(w, &probes[i], (enum gemm_way)way);
			if (least[i][way] <= 0 || t < least[i][way])
				least[i][way] = t;
		}
}

struct gemm_choice
gemm_choice_of(const struct gemm_times *times)
{
	struct gemm_choice c = gemm_choice_usual();

	for (size_t i = 0; i < GEMM_CLASSES; i++) {
		const double *ms = times->ms[i];
		double bound = CLEARLY * ms[c.way[i]];
		for (size_t way = 0; way < GEMM_WAYS; way++)
			if (ms[way] > 0 && ms[way] < bound) {
				c.way[i] = (enum gemm_way)way;
				bound = ms[way];
			}
	}
	return c;
}

static enum err
make_bench(struct bench *w)
{
	struct prng r;
	size_t floats = ROOM_A + 2 * ROOM_B + ROOM_C;

	w->a = malloc(floats * sizeof(float));
	if (!w->a)
		return ERR_NOMEM;
	w->b = w->a + ROOM_A;
	w->packed = w->b + ROOM_B;
	w->c = w->packed + ROOM_B;
	prng_seed(&r, 1);
	for (size_t i = 0; i < floats; i++)
		w->a[i] = prng_float(&r) - 0.5f;
	for (uint32_t i = 0; i < PLACES; i++)
		w->places[i] = i * 48;
	return ERR_OK;
}

/* Ways and products take turns, so that whatever else the machine does hurts all alike; the least of some runs is what stays. */
enum err
gemm_choice_measure(struct gemm_choice *choice, struct gemm_times *times)
{
	static const struct gemm_times none;
	double least[PROBES][GEMM_WAYS] = {{0}}, began = processor_seconds();
	struct bench w;

	if (make_bench(&w))
		return ERR_NOMEM;
	for (int i = 0; i < ROUNDS_MOST; i++) {
		if (i >= ROUNDS_LEAST && processor_seconds() - began > SECONDS)
			break;
		time_all(&w, least);
	}
	*times = none;
	for (size_t i = 0; i < PROBES; i++)
		for (size_t way = 0; way < GEMM_WAYS; way++)
			times->ms[probes[i].class][way] += least[i][way];
	*choice = gemm_choice_of(times);
	free(w.a);
	return ERR_OK;
}

const char *
gemm_choice_vectors(void)
{
#if GEMM_X86
	unsigned bits = gemm_choice_bits();

	if (bits >= 512 && __builtin_cpu_supports("avx512f"))
		return "512 fused";
	if (bits >= 256 && __builtin_cpu_supports("avx2"))
		return __builtin_cpu_supports("fma") ? "256 fused" : "256";
#endif
	return GEMM_NEON ? "128 fused" : "128";
}

void
gemm_choice_blas(char *out, size_t size)
{
	snprintf(out, size, "%s for %s", openblas_get_config(), openblas_get_corename());
}
