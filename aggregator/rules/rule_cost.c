#include <string.h>

#include "job.h"
#include "rule.h"

#define TILE ((uint64_t)1 << 20) /* of a thread that reads one delta after the other, */
#define TILES ((uint64_t)8 << 20) /* and of one that has some of all, and sorts them */
#define STRIPS_BYTES ((uint64_t)32 << 20)

static bool
is(const struct rule_spec *spec, const char *name)
{
	return strcmp(spec->name, name) == 0;
}

/* log2 n, rounded up. */
static double
depth(double n)
{
	double steps = 0;

	while (n > 1) {
		n /= 2;
		steps++;
	}
	return steps;
}

/* Distances among n points, and what is concluded from them alone. */
static void
add_distances(struct rule_cost *c, const struct rule_spec *spec, double n)
{
	c->each += n + n * n / 2;
	/* A matrix of each strip, and the mixed ones. */
	c->bytes += STRIPS_BYTES + (uint64_t)(5 * n * n * sizeof(double));
	if (spec->nearest)
		c->once += 2 * n * n * n;
	if (is(spec, "bulyan"))
		c->once += n * n * n * depth(n);
	else if (is(spec, "krum"))
		c->once += n * n * depth(n);
	else
		c->once += n * n * (spec->iterations + 1);
}

struct rule_cost
rule_cost(const struct rule_spec *spec, size_t deltas, unsigned threads)
{
	const bool bounds = spec->bound_median || spec->bound > 0;
	const bool sorts = is(spec, "median") || is(spec, "trimmed_mean") || is(spec, "bulyan");
	const bool compares = spec->nearest || is(spec, "krum") || is(spec, "bulyan") ||
	    is(spec, "geometric_median") || is(spec, "centered_clipping");
	const double n = (double)deltas + (rule_keeps(spec) ? 1 : 0);
	struct rule_cost c = {.each = n};

	if (rule_check(spec, deltas, NULL))
		return (struct rule_cost){0};
	if (bounds)
		c.each += n;
	if (bounds && !compares)
		c.bytes += STRIPS_BYTES + (uint64_t)(n * n * sizeof(double));
	if (compares)
		add_distances(&c, spec, n);
	if (sorts)
		c.each += n * depth(n) * depth(n) / 4;
	if (sorts && (spec->nearest || spec->bucket > 1))
		c.each += n * n;
	c.bytes += threads * (sorts || compares ? TILES : TILE);
	return c;
}
