#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prng.h"
#include "simulate.h"

/* The point below which a standard normal variable lies with probability p: by bisection, precise to about 1e-12. */
static double
normal_quantile(double p)
{
	double low = -10, high = 10;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;
		if (0.5 * erfc(-middle / sqrt(2)) < p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

double
simulate_attack_z(size_t n, size_t f)
{
	double s = floor((double)n / 2 + 1) - (double)f;

	return normal_quantile(((double)(n - f) - s) / (double)(n - f));
}

/* Box and Muller. */
static void
fill_noise(float *out, uint64_t n, double deviation, uint64_t seed, uint64_t round)
{
	struct prng r;

	prng_seed2(&r, seed, round);
	for (uint64_t i = 0; i < n; i++) {
		double length = sqrt(-2 * log(1 - prng_double(&r)));
		out[i] = (float)(deviation * length * cos(6.283185307179586 * prng_double(&r)));
	}
}

/* out := mean - z * deviation of the honest reports' deltas, coordinate by coordinate. */
static void
fill_from_honest(float *out, const struct simulate_report *reports, size_t count, uint64_t elements,
    double factor, double z)
{
	for (uint64_t i = 0; i < elements; i++) {
		double sum = 0, squares = 0, n = 0;
		for (size_t k = 0; k < count; k++) {
			if (reports[k].device->hostile)
				continue;
			double x = (double)reports[k].delta[i];
			sum += x;
			squares += x * x;
			n++;
		}
		double mean = sum / n, variance = squares / n - mean * mean;
		out[i] = (float)(factor * mean - z * sqrt(variance > 0 ? variance : 0));
	}
}

static void
multiply(float *x, uint64_t n, double factor)
{
	for (uint64_t i = 0; i < n; i++)
		x[i] = (float)(factor * (double)x[i]);
}

static const struct simulate_report *
first_honest(const struct simulate_report *reports, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!reports[i].device->hostile)
			return &reports[i];
	return NULL;
}

/* The attackers of one round that agree on one vector send it; others work alone. */
static void
change(const struct simulate_fleet *f, struct simulate_report *r, uint64_t elements, uint64_t round)
{
	switch (f->attack) {
	case ATTACK_SIGN:
		multiply(r->delta, elements, -f->strength);
		break;
	case ATTACK_SCALE:
	case ATTACK_BACKDOOR:
		multiply(r->delta, elements, f->strength);
		break;
	case ATTACK_GAUSS:
		fill_noise(r->delta, elements, f->strength, r->device->number, round);
		break;
	case ATTACK_LIES:
		if (r->device->number % 4 == 3)
			r->examples = (uint64_t)1 << 31;
		break;
	default:
		break;
	}
}

static bool
agreed(enum simulate_attack a)
{
	return a == ATTACK_ALIE || a == ATTACK_IPM || a == ATTACK_MIMIC;
}

enum err
simulate_attack_deltas(const struct simulate_fleet *f, struct simulate_report *reports,
    size_t count, uint64_t elements, uint64_t round)
{
	const struct simulate_report *honest = first_honest(reports, count);
	float *common = NULL;
	size_t hostile = 0;

	for (size_t i = 0; i < count; i++)
		hostile += reports[i].device->hostile;
	if (hostile == 0 || !honest)
		return ERR_OK;
	if (agreed(f->attack)) {
		common = malloc(elements * sizeof(float));
		if (!common)
			return ERR_NOMEM;
		double z = f->strength > 0 ? f->strength : simulate_attack_z(count, hostile);
		if (f->attack == ATTACK_MIMIC)
			memcpy(common, honest->delta, elements * sizeof(float));
		else if (f->attack == ATTACK_ALIE)
			fill_from_honest(common, reports, count, elements, 1, z);
		else
			fill_from_honest(common, reports, count, elements, -f->strength, 0);
	}
	for (size_t i = 0; i < count; i++) {
		if (!reports[i].device->hostile)
			continue;
		if (common)
			memcpy(reports[i].delta, common, elements * sizeof(float));
		else
			change(f, &reports[i], elements, round);
	}
	free(common);
	return ERR_OK;
}

void
simulate_attack_payload(const struct simulate_fleet *f, struct simulate_report *report)
{
	static const uint8_t infinity[4] = {0, 0, 0x80, 0x7f};

	if (f->attack != ATTACK_LIES || !report->device->hostile || report->len < 8)
		return;
	/* Every codec but the sparse one begins with a float: an element, or a scale. */
	if (report->device->number % 4 == 0)
		memset(report->payload, 0xff, 4);
	else if (report->device->number % 4 == 1)
		memcpy(report->payload, infinity, 4);
	else if (report->device->number % 4 == 2)
		report->len -= 4;
}
