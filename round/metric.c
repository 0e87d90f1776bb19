#include "metric.h"

#include <math.h>
#include <stdlib.h>

static int
by_weight(const void *a, const void *b)
{
	double x = ((const struct metric_value *)a)->weight,
	       y = ((const struct metric_value *)b)->weight;

	return (x > y) - (x < y);
}

static int
by_value(const void *a, const void *b)
{
	double x = ((const struct metric_value *)a)->value,
	       y = ((const struct metric_value *)b)->value;

	return (x > y) - (x < y);
}

/* The sum of the weights, were none above `cap`. */
static double
weigh(const struct metric_value *s, size_t count, double cap)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += s[i].weight < cap ? s[i].weight : cap;
	return sum;
}

/* The least of all weights is always a cap that serves, since there are more than 2 x hostile. */
static void
cap_weights(struct metric_value *s, size_t count, uint32_t hostile)
{
	size_t at = count / 2;

	qsort(s, count, sizeof(*s), by_weight);
	while (at > 0 && 2.0 * hostile * s[at].weight >= weigh(s, count, s[at].weight))
		at--;
	for (size_t i = at + 1; i < count; i++)
		s[i].weight = s[at].weight;
}

static double
median(struct metric_value *s, size_t count, uint32_t hostile)
{
	double below = 0;
	size_t at = 0;

	if (count <= 2 * (size_t)hostile)
		return NAN;
	cap_weights(s, count, hostile);
	double half = weigh(s, count, INFINITY) / 2;
	qsort(s, count, sizeof(*s), by_value);
	while (at + 1 < count && below + s[at].weight < half)
		below += s[at++].weight;
	bool between = at + 1 < count && below + s[at].weight == half;
	return between ? s[at].value / 2 + s[at + 1].value / 2 : s[at].value;
}

static double
mean(const struct metric_value *s, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += s[i].weight * s[i].value;
	return sum / weigh(s, count, INFINITY);
}

double
metric_own(const struct job_spec *spec, struct metric_value *values, size_t count)
{
	uint32_t hostile = spec->aggregate.rule.hostile;

	if (count == 0)
		return NAN;
	double value = hostile > 0 ? median(values, count, hostile) : mean(values, count);
	return isfinite(value) ? value : (double)NAN;
}

static double
loss_of(struct metric_value *s, const struct metric_report *r, size_t count, uint32_t hostile)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		bool number = fabs(r[i].loss) <= METRIC_LOSS_MAX;
		if (number || hostile > 0)
			s[n++] = (struct metric_value){r[i].weight, number ? r[i].loss : INFINITY};
	}
	if (2 * n < count)
		return NAN;
	double loss = hostile > 0 ? median(s, n, hostile) : mean(s, n);
	return isfinite(loss) ? loss : NAN;
}

static bool
is_silent(const struct metric_report *r)
{
	return !isfinite(r->loss) && !isfinite(r->accuracy);
}

static double
accuracy_of(struct metric_value *s, const struct metric_report *r, size_t count, uint32_t hostile,
    double silent)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		double value = is_silent(&r[i]) ? silent : r[i].accuracy;
		if (isfinite(value))
			s[n++] = (struct metric_value){r[i].weight, value};
	}
	if (n == 0)
		return NAN;
	return hostile > 0 ? median(s, n, hostile) : mean(s, n);
}

enum err
metric_of(struct metric *out, const struct job_spec *spec, const struct metric_report *reports,
    size_t count)
{
	uint32_t hostile = spec->aggregate.rule.hostile;
	bool guarded = spec->guard.on && spec->guard.metric == GUARD_ACCURACY;
	double none = guarded ? 0 : (double)NAN;
	size_t silents = 0;

	*out = (struct metric){.loss = NAN, .accuracy = none};
	out->known = count > 2 * (size_t)hostile;
	for (size_t i = 0; i < count; i++)
		silents += is_silent(&reports[i]);
	if (!out->known || 2 * silents > count)
		return ERR_OK;
	struct metric_value *s = calloc(count, sizeof(*s));
	if (!s)
		return ERR_NOMEM;
	out->loss = loss_of(s, reports, count, hostile);
	out->accuracy = accuracy_of(s, reports, count, hostile, hostile > 0 ? none : (double)NAN);
	free(s);
	return ERR_OK;
}
