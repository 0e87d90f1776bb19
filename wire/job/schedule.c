#include "schedule.h"

#include "num.h"

/* cos(pi * x) for x in [0, 1], without libm, by Taylor around 1/2, where it is -sin(pi * (x - 1/2)). */
static double
cos_pi(double x)
{
	double a = 0x1.921fb54442d18p1 * (x - 0.5), term = a, sum = a;

	for (int i = 3; i < 22; i += 2) {
		term *= -a * a / (i * (i - 1));
		sum += term;
	}
	return -sum;
}

double
schedule_rate(const struct schedule_spec *s, double rate, uint64_t round)
{
	uint64_t t = round > 0 ? round - 1 : 0;

	if (t < s->warmup)
		return rate * (double)(t + 1) / (double)s->warmup;
	t -= s->warmup;
	if (s->type == SCHEDULE_STEP && s->every > 0)
		return rate * num_power(s->gamma, t / s->every);
	if (s->type == SCHEDULE_WSD)
		t = t < s->stable ? 0 : t - s->stable;
	double part = t < s->period ? (double)t / (double)s->period : 1;
	if (s->type == SCHEDULE_COSINE && s->period > 0)
		return rate * (s->floor + (1 - s->floor) * 0.5 * (1 + cos_pi(part)));
	/* Not 1 - (1 - floor) * part, which would not end at floor to the bit. */
	if ((s->type == SCHEDULE_LINEAR || s->type == SCHEDULE_WSD) && s->period > 0)
		return rate * ((1 - part) + s->floor * part);
	return rate;
}
