/*
 * fold_rule: the coordinator's rules on vectors of anybody's. Standard input has, for each fold, a line
 *     RULE HOSTILE PICKS NEAREST ITERATIONS SMOOTHING RADIUS VECTORS ELEMENTS
 * and VECTORS x ELEMENTS floats in the machine's order; standard output gets ELEMENTS floats. Weights are equal, the last update zero.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "recipe.h"
#include "rule.h"

#define ELEMENTS_MAX RULE_TILE

_Static_assert(RECIPE_NAME_MAX >= 64, "room for the name that scanf reads");

struct vectors {
	float *data;
	size_t elements;
};

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct vectors *v = context;

	memcpy(out, v->data + delta * v->elements + first, count * sizeof(*out));
	return ERR_OK;
}

static enum err
fold(const struct rule_spec *spec, const struct rule_input *in, float *out, struct why *why)
{
	struct rule *r;
	unsigned strips;

	enum err e = rule_new(&r, spec, in, why);
	if (e)
		return e;
	while (!e && (strips = rule_measures(r)) > 0) {
		for (unsigned i = 0; i < strips && !e; i++)
			e = rule_measure(r, i);
		if (!e)
			e = rule_plan(r);
	}
	if (!e)
		e = rule_fold(r, 0, (size_t)in->elements, out);
	rule_free(r);
	return e;
}

/* false: the input has ended or is none. */
static bool
read_question(struct rule_spec *spec, size_t *n, size_t *d)
{
	unsigned nearest;

	*spec = (struct rule_spec){.bucket = 1, .hostile_given = true};
	if (scanf("%63s %" SCNu32 " %" SCNu32 " %u %" SCNu32 " %lf %lf %zu %zu", spec->name,
		&spec->hostile, &spec->picks, &nearest, &spec->iterations, &spec->smoothing,
		&spec->radius, n, d) != 9 ||
	    getchar() != '\n')
		return false;
	spec->nearest = nearest != 0;
	return *n >= 1 && *n <= RULE_DELTAS_MAX && *d >= 1 && *d <= ELEMENTS_MAX;
}

static bool
answer(const struct rule_spec *spec, size_t n, size_t d)
{
	struct vectors v = {malloc(n * d * sizeof(float)), d};
	float *centre = calloc(d, sizeof(*centre)), *out = malloc(d * sizeof(*out));
	double *weights = malloc(n * sizeof(*weights));
	struct why why = {""};
	bool good = v.data && centre && out && weights &&
	    fread(v.data, sizeof(float), n * d, stdin) == n * d;

	for (size_t i = 0; good && i < n; i++)
		weights[i] = 1;
	const struct rule_input in = {.read_tile = read_tile,
	    .context = &v,
	    .elements = d,
	    .deltas = n,
	    .weights = weights,
	    .centre = centre,
	    .seed = 1};
	if (good && fold(spec, &in, out, &why)) {
		fprintf(stderr, "fold_rule: %s: %s\n", spec->name, why.text);
		good = false;
	}
	good = good && fwrite(out, sizeof(*out), d, stdout) == d && fflush(stdout) == 0;
	free(v.data);
	free(centre);
	free(out);
	free(weights);
	return good;
}

int
main(void)
{
	struct rule_spec spec;
	size_t n, d;

	while (read_question(&spec, &n, &d))
		if (!answer(&spec, n, d))
			return 1;
	return feof(stdin) ? 0 : 1;
}
