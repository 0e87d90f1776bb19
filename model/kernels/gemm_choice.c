#include "gemm_choice.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_blas.h"
#include "num.h"

/* The usual way is what was quickest on Zen 3 and on a Xeon with AVX-512. */
static const struct {
	const char *name;
	enum gemm_way usual;
	bool large; /* OpenBLAS can take it */
} classes[GEMM_CLASSES] = {
    [GEMM_ROWS] = {"rows", GEMM_FUSED, false},
    [GEMM_ROWS_LOW] = {"rows-low", GEMM_FUSED, true},
    [GEMM_ROWS_LOW_LONG] = {"rows-low-long", GEMM_FUSED, true},
    [GEMM_ROWS_LARGE] = {"rows-large", GEMM_FUSED, true},
    [GEMM_ROWS_LONG] = {"rows-long", GEMM_OPENBLAS, true},
    [GEMM_COLUMNS] = {"columns", GEMM_FUSED, false},
    [GEMM_COLUMNS_LOW] = {"columns-low", GEMM_FUSED, true},
    [GEMM_COLUMNS_LOW_LONG] = {"columns-low-long", GEMM_FUSED, true},
    [GEMM_COLUMNS_LARGE] = {"columns-large", GEMM_FUSED, true},
    [GEMM_COLUMNS_LONG] = {"columns-long", GEMM_OPENBLAS, true},
    [GEMM_DOTS] = {"dots", GEMM_FUSED, false},
    [GEMM_DOTS_LOW] = {"dots-low", GEMM_FUSED, true},
    [GEMM_DOTS_LOW_LONG] = {"dots-low-long", GEMM_FUSED, true},
    [GEMM_DOTS_LARGE] = {"dots-large", GEMM_FUSED, true},
    [GEMM_DOTS_LONG] = {"dots-long", GEMM_OPENBLAS, true},
    [GEMM_PANELS] = {"panels", GEMM_FUSED, false},
    [GEMM_FOUND] = {"found", GEMM_FUSED, false},
    [GEMM_SLABS] = {"slabs", GEMM_FUSED, true},
    [GEMM_SPOTS] = {"spots", GEMM_FUSED, false},
    [GEMM_SPOTS_NARROW] = {"spots-narrow", GEMM_FUSED, false},
    [GEMM_LANES] = {"lanes", GEMM_FUSED, false},
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
