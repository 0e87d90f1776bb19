#include "guard.h"

#include <math.h>
#include <string.h>

#include "words.h"

static bool
rises(const struct guard_spec *spec)
{
	return spec->metric == GUARD_ACCURACY || (spec->metric == GUARD_OWN && spec->rises);
}

static bool
better_or_equal(const struct guard_spec *spec, double a, double b)
{
	return rises(spec) ? a >= b : a <= b;
}

static bool
is_bad(const struct guard *g, const struct guard_spec *spec, double value)
{
	if (!isfinite(value))
		return true;
	if (g->count == 0)
		return false;
	double best = g->points[0].value;
	return rises(spec) ? value < best - spec->drop
			   : value > best + (spec->factor - 1) * fabs(best);
}

/* A model that is measured again counts by the newer figure. */
static void
drop_model(struct guard *g, const uint8_t model[32])
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < g->count; i++)
		if (memcmp(g->points[i].model, model, 32) != 0)
			g->points[kept++] = g->points[i];
	g->count = kept;
}

/* The points form a queue in which everything that a newer one matches has gone. */
static void
add(struct guard *g, const struct guard_spec *spec, const struct guard_point *p)
{
	uint64_t at = g->good++;
	uint32_t old = 0;

	drop_model(g, p->model);
	while (g->count > 0 && better_or_equal(spec, p->value, g->points[g->count - 1].value))
		g->count--;
	while (old < g->count && g->points[old].at + spec->window <= at)
		old++;
	g->count -= old;
	memmove(g->points, g->points + old, g->count * sizeof(*g->points));
	g->points[g->count] = *p;
	g->points[g->count++].at = at;
}

static enum guard_verdict
collapse(struct guard *g, const struct guard_spec *spec)
{
	g->bad = 0;
	if (spec->action == GUARD_DO_STOP)
		return GUARD_STOP;
	if (spec->action == GUARD_DO_PAUSE || g->count == 0) {
		g->anew = true;
		return GUARD_PAUSE;
	}
	if (g->rollbacks < spec->times) {
		g->rollbacks++;
		return GUARD_ROLLBACK;
	}
	g->rollbacks = 0;
	return GUARD_ROLLBACK_PAUSE;
}

enum guard_verdict
guard_step(struct guard *g, const struct guard_spec *spec, const struct guard_point *p, bool known)
{
	if (!spec->on || !known || (spec->metric != GUARD_LOSS && isnan(p->value)))
		return GUARD_CALM;
	if (g->anew)
		*g = (struct guard){.count = 0};
	if (!is_bad(g, spec, p->value)) {
		g->bad = 0;
		add(g, spec, p);
		return GUARD_CALM;
	}
	return ++g->bad < spec->rounds ? GUARD_BAD : collapse(g, spec);
}

static const char *const words[] = {[GUARD_CALM] = "",
    [GUARD_BAD] = "",
    [GUARD_STOP] = "stop",
    [GUARD_PAUSE] = "pause",
    [GUARD_ROLLBACK] = "rollback",
    [GUARD_ROLLBACK_PAUSE] = "rollback-pause",
    [GUARD_UNKNOWN] = ""};

const char *
guard_word(enum guard_verdict verdict)
{
	return words[verdict];
}

enum guard_verdict
guard_find(const char *word)
{
	return (enum guard_verdict)words_find(words, GUARD_UNKNOWN, word);
}

const struct guard_point *
guard_best(const struct guard *g)
{
	return g->count > 0 ? &g->points[0] : NULL;
}

bool
guard_holds_model(const struct guard *g, const uint8_t model[32])
{
	for (uint32_t i = 0; i < g->count; i++)
		if (memcmp(g->points[i].model, model, 32) == 0)
			return true;
	return false;
}

bool
guard_holds_state(const struct guard *g, const uint8_t state[32])
{
	for (uint32_t i = 0; i < g->count; i++)
		if (memcmp(g->points[i].state, state, 32) == 0)
			return true;
	return false;
}
