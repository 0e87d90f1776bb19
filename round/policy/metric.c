#include "metric.h"

#include <math.h>
#include <stdlib.h>

#include "err.h"
#include "job.h"

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

enum err
metric_cap(double *weights, size_t count, uint32_t hostile)
{
	struct metric_value *s = calloc(count + 1, sizeof(*s));

	if (!s)
		return ERR_NOMEM;
	size_t n = 0;
	/* Who weighs nothing has no part in it, and would be the least of all weights. */
	for (size_t i = 0; i < count; i++)
		if (weights[i] > 0)
			s[n++].weight = weights[i];
	if (n > 0)
		cap_weights(s, n, hostile);
	for (size_t i = 0; n > 0 && i < count; i++)
		weights[i] = weights[i] < s[n - 1].weight ? weights[i] : s[n - 1].weight;
	free(s);
	return ERR_OK;
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

/* Those who measured something, what they weigh in a figure, and room to find it in. */
struct measured {
	struct metric_report *reports;
	struct metric_device *devices;
	double *weights;
	struct metric_value *values;
	size_t count;
	uint32_t hostile;
};

static double
loss_of(const struct measured *m)
{
	size_t n = 0, weighed = 0;

	for (size_t i = 0; i < m->count; i++) {
		const double loss = m->reports[i].loss;
		bool number = fabs(loss) <= METRIC_LOSS_MAX;
		if (!(m->weights[i] > 0))
			continue;
		weighed++;
		if (number || m->hostile > 0)
			m->values[n++] =
			    (struct metric_value){m->weights[i], number ? loss : INFINITY};
	}
	if (n == 0 || 2 * n < weighed)
		return NAN;
	double loss = m->hostile > 0 ? median(m->values, n, m->hostile) : mean(m->values, n);
	return isfinite(loss) ? loss : NAN;
}

static bool
is_silent(const struct metric_report *r)
{
	return !isfinite(r->loss) && !isfinite(r->accuracy);
}

static double
accuracy_of(const struct measured *m, double silent)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct metric_report *r = &m->reports[i];
		double value = is_silent(r) ? silent : r->accuracy;
		if (isfinite(value) && m->weights[i] > 0)
			m->values[n++] = (struct metric_value){m->weights[i], value};
	}
	if (n == 0)
		return NAN;
	return m->hostile > 0 ? median(m->values, n, m->hostile) : mean(m->values, n);
}

/* Labels that weigh nothing in the loss are enough for an accuracy, unless a few may lie: with them there would be fewer losses than
 * reports, and too few of them where there are enough of these. */
static bool
has_counted(const struct metric_report *r, uint32_t hostile)
{
	return !r->says.told || r->says.loss_count > 0 ||
	    (hostile == 0 && r->says.has_labels && r->says.labels > 0);
}

static void
take(struct measured *m, const struct metric_report *reports, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!has_counted(&reports[i], m->hostile))
			continue;
		m->devices[m->count] =
		    (struct metric_device){reports[i].weight, reports[i].most, reports[i].says};
		m->reports[m->count++] = reports[i];
	}
}

static enum err
measured_init(struct measured *m, const struct metric_report *reports, size_t count)
{
	m->reports = calloc(count + 1, sizeof(*m->reports));
	m->devices = calloc(count + 1, sizeof(*m->devices));
	m->weights = calloc(count + 1, sizeof(*m->weights));
	m->values = calloc(count + 1, sizeof(*m->values));
	if (!m->reports || !m->devices || !m->weights || !m->values)
		return ERR_NOMEM;
	take(m, reports, count);
	return ERR_OK;
}

static void
measured_deinit(struct measured *m)
{
	free(m->reports);
	free(m->devices);
	free(m->weights);
	free(m->values);
}

static void
find(struct metric *out, const struct job_spec *spec, const struct measured *m)
{
	bool guarded = spec->guard.on && spec->guard.metric == GUARD_ACCURACY;
	double none = guarded ? 0 : (double)NAN;
	size_t silents = 0;

	*out = (struct metric){.loss = NAN, .accuracy = none};
	out->known = m->count > 2 * (size_t)m->hostile;
	for (size_t i = 0; i < m->count; i++)
		silents += is_silent(&m->reports[i]);
	if (!out->known || 2 * silents > m->count)
		return;
	metric_weigh(m->weights, spec, m->devices, m->count, METRIC_SUM_LOSS);
	out->loss = loss_of(m);
	metric_weigh(m->weights, spec, m->devices, m->count, METRIC_SUM_LABELS);
	out->accuracy = accuracy_of(m, m->hostile > 0 ? none : (double)NAN);
}

enum err
metric_of(struct metric *out, const struct job_spec *spec, const struct metric_report *reports,
    size_t count)
{
	struct measured m = {.hostile = spec->aggregate.rule.hostile};
	enum err e = measured_init(&m, reports, count);

	if (!e)
		find(out, spec, &m);
	measured_deinit(&m);
	return e;
}
