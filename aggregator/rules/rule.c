#include "rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "distance.h"
#include "job.h"
#include "mean.h"
#include "rule_inside.h"

_Static_assert(MEAN_TILE == RULE_TILE, "a mean reads what a rule may read");
_Static_assert(RULE_DELTAS_MAX < ORDER_MAX && RULE_DELTAS_MAX < DISTANCE_MAX, "room for a centre");

#define MEMORY ((size_t)4 << 20) /* of the tiles of all deltas, per thread */
#define CODEC_BLOCK 4096 /* of the rotated codecs: a cut within one decodes it twice */

static const struct known {
	const char *name;
	bool distances; /* it compares whole deltas */
	size_t factor, more; /* it takes factor * hostile + more rows at least */
} rules[] = {
    {"mean", false, 0, 1},
    {"median", false, 2, 1},
    {"trimmed_mean", false, 2, 1},
    {"krum", true, 2, 3},
    {"bulyan", true, 4, 3},
    {"geometric_median", true, 2, 1},
    {"centered_clipping", true, 2, 1},
};

static const struct known *
find(const char *name)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].name, name) == 0)
			return &rules[i];
	return NULL;
}

static bool
is(const struct rule_spec *spec, const char *name)
{
	return strcmp(spec->name, name) == 0;
}

static bool
bounds(const struct rule_spec *spec)
{
	return spec->bound_median || spec->bound > 0;
}

/* The plain mean has no limit of deltas: nothing of it grows with them. */
static bool
is_plain(const struct rule_spec *spec)
{
	return is(spec, "mean") && spec->bucket <= 1 && !spec->nearest && !bounds(spec);
}

bool
rule_known(const char *name)
{
	return find(name) != NULL;
}

bool
rule_keeps(const struct rule_spec *spec)
{
	return is(spec, "centered_clipping");
}

enum err
rule_check(const struct rule_spec *spec, size_t deltas, struct why *why)
{
	const struct known *k = find(spec->name);
	size_t bucket = spec->bucket > 1 ? spec->bucket : 1;
	size_t rows = (deltas + bucket - 1) / bucket, f = spec->hostile;

	if (!k)
		return err_set(why, ERR_INVALID, "\"%s\" is not a rule of this build", spec->name);
	if (is_plain(spec))
		return f == 0 ? ERR_OK
			      : err_set(why, ERR_INVALID, "the mean tolerates no hostile delta");
	if (deltas > RULE_DELTAS_MAX)
		return err_set(why, ERR_LIMIT, "%s takes at most %d reports a round", spec->name,
		    RULE_DELTAS_MAX);
	if (rows < k->factor * f + k->more)
		return err_set(why, ERR_INVALID,
		    "%s with %zu hostile needs at least %zu %s a round, and may get %zu",
		    spec->name, f, k->factor * f + k->more, bucket > 1 ? "buckets" : "reports",
		    rows);
	if (spec->nearest && deltas <= 2 * f)
		return err_set(why, ERR_INVALID,
		    "nearest with %zu hostile needs more than %zu reports", f, 2 * f);
	if (is(spec, "krum") && spec->picks > rows - f)
		return err_set(
		    why, ERR_INVALID, "krum may pick %zu of %zu at most", rows - f, rows);
	return ERR_OK;
}

/* --- life */

/* Few enough that the strips' sums take little memory, and a number that depends on nothing but the rule's input. */
static unsigned
strip_count(const struct rule *r)
{
	size_t each = r->points * r->points * sizeof(double);
	size_t n = each > 0 ? ((size_t)32 << 20) / each : 1;

	return n < 1 ? 1 : n > 32 ? 32 : (unsigned)n;
}

static enum err
check_weights(const struct rule_input *in)
{
	double total = 0;

	for (size_t i = 0; i < in->deltas; i++) {
		if (!(in->weights[i] >= 0))
			return ERR_INVALID;
		total += in->weights[i];
	}
	return total > 0 && isfinite(total) ? ERR_OK : ERR_INVALID;
}

enum err
rule_new(
    struct rule **out, const struct rule_spec *spec, const struct rule_input *in, struct why *why)
{
	enum err e = rule_check(spec, in->deltas, why);

	if (!e && check_weights(in))
		e = err_set(why, ERR_INVALID, "the weights of the deltas do not add up");
	if (e)
		return e;
	struct rule *r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(why, ERR_NOMEM, "no memory");
	r->spec = *spec;
	r->in = *in;
	r->points = in->deltas + (rule_keeps(spec) ? 1 : 0);
	r->compares = find(spec->name)->distances || spec->nearest;
	r->pass = bounds(spec) ? RULE_NORMS : r->compares ? RULE_DISTANCES : RULE_READY;
	if (r->pass != RULE_READY) {
		r->strips = strip_count(r);
		r->partial = calloc(r->strips * r->points * r->points, sizeof(*r->partial));
		if (!r->partial)
			e = ERR_NOMEM;
	}
	if (!e && r->pass == RULE_READY)
		e = rule_plan(r);
	if (e) {
		rule_free(r);
		return err_set(why, e, "no memory for the rule");
	}
	*out = r;
	return ERR_OK;
}

void
rule_free(struct rule *r)
{
	if (!r)
		return;
	free(r->partial);
	free(r->scales);
	free(r->members);
	free(r->weights);
	free(r->mix);
	order_free(r->order);
	free(r);
}

/* --- reading */

size_t
rule_width(size_t n)
{
	size_t most = MEMORY / sizeof(float) / n;
	size_t unit = most < CODEC_BLOCK ? DISTANCE_RUN : CODEC_BLOCK, width = most / unit * unit;

	return width < DISTANCE_RUN ? DISTANCE_RUN : width > RULE_TILE ? RULE_TILE : width;
}

void
rule_strip(const struct rule *r, unsigned strip, uint64_t *first, uint64_t *end)
{
	uint64_t runs = (r->in.elements + RULE_TILE - 1) / RULE_TILE;

	*first = runs * strip / r->strips * RULE_TILE;
	*end = runs * (strip + 1) / r->strips * RULE_TILE;
	*end = *end < r->in.elements ? *end : r->in.elements;
}

CPU_CLONES static void
shorten(float *x, float scale, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] *= scale;
}

enum err
rule_read(const struct rule *r, size_t point, uint64_t first, size_t count, float *out)
{
	if (point >= r->in.deltas) {
		memcpy(out, r->in.centre + first, count * sizeof(float));
		return ERR_OK;
	}
	enum err e = r->in.read_tile(r->in.context, point, first, count, out);
	if (!e && r->scales && r->scales[point] < 1)
		shorten(out, r->scales[point], count);
	return e;
}

/* --- folding */

static enum err
read_member(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct rule *r = context;

	return rule_read(r, r->members[delta], first, count, out);
}

static enum err
fold_sum(const struct rule *r, uint64_t first, size_t count, float *update)
{
	/* The plain mean reads what it is given without a detour. */
	struct mean_input in = {r->in.read_tile, r->in.context, r->in.deltas, r->in.weights};

	if (r->members)
		in = (struct mean_input){
		    read_member, (void *)(uintptr_t)r, r->member_count, r->weights};
	return mean_fold(&in, first, count, update);
}

enum err
rule_fold(const struct rule *r, uint64_t first, size_t count, float *update)
{
	return r->form == RULE_SUM ? fold_sum(r, first, count, update)
				   : rule_sort(r, first, count, update);
}
