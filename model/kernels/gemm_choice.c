#include "gemm_choice.h"

#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gemm_inside.h"
#include "num.h"
#include "prng.h"

/* The usual way is what was quickest on Zen 3 and on a Xeon with AVX-512. */
static const struct {
	const char *name;
	enum gemm_way usual;
	bool large; /* OpenBLAS can take it */
	/* If none is clearly quicker it is OpenBLAS's, which gains more by larger products than are measured. */
	bool even;
} classes[GEMM_CLASSES] = {
    [GEMM_ROWS] = {"rows", GEMM_FUSED, false, false},
    [GEMM_ROWS_LOW] = {"rows-low", GEMM_FUSED, true, true},
    [GEMM_ROWS_LOW_LONG] = {"rows-low-long", GEMM_FUSED, true, false},
    [GEMM_ROWS_LARGE] = {"rows-large", GEMM_FUSED, true, false},
    [GEMM_ROWS_LONG] = {"rows-long", GEMM_OPENBLAS, true, false},
    [GEMM_COLUMNS] = {"columns", GEMM_FUSED, false, false},
    [GEMM_COLUMNS_LOW] = {"columns-low", GEMM_FUSED, true, false},
    [GEMM_COLUMNS_LOW_LONG] = {"columns-low-long", GEMM_FUSED, true, false},
    [GEMM_COLUMNS_LARGE] = {"columns-large", GEMM_FUSED, true, false},
    [GEMM_COLUMNS_LONG] = {"columns-long", GEMM_OPENBLAS, true, false},
    [GEMM_DOTS] = {"dots", GEMM_FUSED, false, false},
    [GEMM_DOTS_LOW] = {"dots-low", GEMM_FUSED, true, false},
    [GEMM_DOTS_LOW_LONG] = {"dots-low-long", GEMM_FUSED, true, true},
    [GEMM_DOTS_LARGE] = {"dots-large", GEMM_FUSED, true, false},
    [GEMM_DOTS_LONG] = {"dots-long", GEMM_OPENBLAS, true, false},
    [GEMM_PANELS] = {"panels", GEMM_FUSED, false, false},
    [GEMM_FOUND] = {"found", GEMM_FUSED, false, false},
    [GEMM_SLABS] = {"slabs", GEMM_FUSED, true, true},
    [GEMM_SPOTS] = {"spots", GEMM_FUSED, false, false},
    [GEMM_SPOTS_NARROW] = {"spots-narrow", GEMM_FUSED, false, false},
    [GEMM_LANES] = {"lanes", GEMM_FUSED, false, false},
};
static const char *const way_names[GEMM_WAYS] = {
    [GEMM_ROUNDED] = "rounded", [GEMM_FUSED] = "fused", [GEMM_OPENBLAS] = "openblas"};

/* Of the process. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct gemm_choice chosen;
static bool forced;
static unsigned bits = 512;

struct gemm_choice
gemm_choice_usual(void)
{
	struct gemm_choice c;

	for (size_t i = 0; i < GEMM_CLASSES; i++)
		c.way[i] = classes[i].usual;
	return c;
}

/* A word that is none forces nothing: a program does not end for it. */
static void
read_environment(void)
{
	const char *words = getenv("RIVULET_KERNELS"), *widest = getenv("RIVULET_VECTORS");
	uint64_t n;

	chosen = gemm_choice_usual();
	forced = words && !gemm_choice_read(&chosen, words, NULL);
	if (widest && num_u64(widest, 512, &n) && n >= 128)
		bits = (unsigned)n;
}

void
gemm_choice_set(const struct gemm_choice *choice)
{
	pthread_once(&once, read_environment);
	if (!forced)
		chosen = *choice;
}

struct gemm_choice
gemm_choice_get(void)
{
	pthread_once(&once, read_environment);
	return chosen;
}

bool
gemm_choice_forced(void)
{
	pthread_once(&once, read_environment);
	return forced;
}

unsigned
gemm_choice_bits(void)
{
	pthread_once(&once, read_environment);
	return bits;
}

bool
gemm_choice_can(enum gemm_class class, enum gemm_way way)
{
	return way != GEMM_OPENBLAS || classes[class].large;
}

/* The way of a class in which no way is clearly quicker: mostly the usual one. */
static enum gemm_way usual_way(enum gemm_class class)
{
	return classes[class].even ? GEMM_OPENBLAS : classes[class].usual;
}

const char *gemm_choice_class_name(enum gemm_class class)
{
	return classes[class].name;
}

const char *
gemm_choice_way_name(enum gemm_way way)
{
	return way_names[way];
}

/* --- words */

static bool
is_name(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && memcmp(name, text, len) == 0;
}

static bool
find_way(enum gemm_way *out, const char *text, size_t len)
{
	for (size_t i = 0; i < GEMM_WAYS; i++)
		if (is_name(way_names[i], text, len)) {
			*out = (enum gemm_way)i;
			return true;
		}
	return false;
}

static bool
take_one(struct gemm_choice *c, const char *word, size_t name, size_t len)
{
	enum gemm_way way;

	for (size_t i = 0; i < GEMM_CLASSES; i++)
		if (is_name(classes[i].name, word, name) &&
		    find_way(&way, word + name + 1, len - name - 1) &&
		    gemm_choice_can((enum gemm_class)i, way)) {
			c->way[i] = way;
			return true;
		}
	return false;
}

static bool
take_word(struct gemm_choice *c, const char *word, size_t len)
{
	const char *equals = memchr(word, '=', len);
	enum gemm_way way;

	if (equals)
		return take_one(c, word, (size_t)(equals - word), len);
	if (is_name("usual", word, len))
		return true;
	if (!find_way(&way, word, len))
		return false;
	for (size_t i = 0; i < GEMM_CLASSES; i++)
		if (gemm_choice_can((enum gemm_class)i, way))
			c->way[i] = way;
	return true;
}

enum err
gemm_choice_read(struct gemm_choice *choice, const char *words, struct why *why)
{
	struct gemm_choice c = *choice;

	for (;;) {
		words += strspn(words, " ");
		size_t len = strcspn(words, " ");
		if (len == 0)
			break;
		if (!take_word(&c, words, len))
			return err_set(why, ERR_INVALID, "\"%.*s\" names no kernel",
			    len < 40 ? (int)len : 40, words);
		words += len;
	}
	*choice = c;
	return ERR_OK;
}

/* --- products */

/* Of the five classes of a layout. */
static enum gemm_class
class_by_size(const struct gemm *g, enum gemm_class first, size_t is_long)
{
	if (!gemm_blas_can(g))
		return first;
	return first + (g->m < (size_t)2 * GEMM_BLAS_ROWS ? 1 : 3) + (g->k >= is_long);
}

static enum gemm_class
class_of(const struct gemm *g, bool dot)
{
	if (dot)
		return class_by_size(g, GEMM_DOTS, GEMM_DOT_BLOCK);
	if (g->b_at)
		return GEMM_FOUND;
	if (g->packed || g->own)
		return GEMM_PANELS;
	return class_by_size(g, g->a_col == 1 ? GEMM_ROWS : GEMM_COLUMNS, GEMM_BLAS_LONG);
}

enum gemm_way
gemm_choice_way_of(enum gemm_arithmetic how, enum gemm_class class)
{
	pthread_once(&once, read_environment);
	return how == GEMM_FAST ? chosen.way[class] : GEMM_ROUNDED;
}

enum gemm_way
gemm_choice_way(const struct gemm *g, bool dot)
{
	if (g->arithmetic == GEMM_MIXED)
		return gemm_blas_can(g) ? GEMM_OPENBLAS : GEMM_ROUNDED;
	return gemm_choice_way_of(g->arithmetic, class_of(g, dot));
}

/* --- by the clock */

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
    {GEMM_DOTS_LOW_LONG, 64, 128, 3136},
    {GEMM_DOTS_LARGE, 128, 64, 400},
    {GEMM_DOTS_LONG, 96, 40, 1024},
    {GEMM_PANELS, 10, 512, 256},
    {GEMM_PANELS, 24, 128, 128},
    {GEMM_FOUND, 32, 128, 144},
    {GEMM_FOUND, 64, 64, 288},
    {GEMM_SLABS, 32, 784, 25},
    {GEMM_SLABS, 64, 196, 400},
    {GEMM_SPOTS, 100, 160, 1},
    {GEMM_SPOTS_NARROW, 100, 16, 1},
    {GEMM_LANES, 9, 1024, 1},
};
#define PROBES (sizeof(probes) / sizeof(probes[0]))

#define ROOM_A ((size_t)64 * 3136) /* the largest operands' floats */
#define ROOM_B ((size_t)128 * 3136)
#define ROOM_C ((size_t)256 * 256)
#define PLACES 512 /* rows of b that lie anywhere, or spots */
#define WORK 400000.0 /* multiply-adds of a timed run, about: enough for the clock */
#define ROUNDS_LEAST 2
#define ROUNDS_MOST 15
#define SECONDS 0.03 /* no further round after these */
#define CLEARLY 0.97 /* of usual_way's time, which what takes its place must be below */

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
		/* Short rows are laid out in any case. */
		if (p->class == GEMM_SLABS && (way == GEMM_OPENBLAS || p->n % GEMM_PANEL))
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
		enum gemm_way even = usual_way((enum gemm_class)i);
		double bound = CLEARLY * ms[even];
		c.way[i] = bound > 0 ? even : c.way[i];
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
	unsigned most = gemm_choice_bits();

	if (most >= 512 && __builtin_cpu_supports("avx512f"))
		return "512 fused";
	if (most >= 256 && __builtin_cpu_supports("avx2"))
		return __builtin_cpu_supports("fma") ? "256 fused" : "256";
#endif
	return GEMM_NEON ? "128 fused" : "128";
}

void
gemm_choice_blas(char *out, size_t size)
{
	snprintf(out, size, "%s for %s", openblas_get_config(), openblas_get_corename());
}
