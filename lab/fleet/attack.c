#include "attack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prng.h"

const char *const fleet_attack_names[] = {
    "none", "sign", "scale", "gauss", "alie", "ipm", "mimic", "labels", "backdoor", "lies", NULL};
static const double default_strengths[FLEET_ATTACKS] = {0, 1, 10, 1, 0, 0.5, 0, 0, 5, 0};

double
fleet_attack_strength(enum fleet_attack attack)
{
	return default_strengths[attack];
}

bool
fleet_attack_agreed(enum fleet_attack a)
{
	return a == FLEET_ALIE || a == FLEET_IPM || a == FLEET_MIMIC;
}

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
fleet_attack_z(size_t n, size_t f)
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

/* out := factor * mean - z * deviation of the honest deltas, coordinate by coordinate. */
static void
fill_from_honest(float *out, const struct fleet_attack_delta *deltas, size_t count,
    uint64_t elements, double factor, double z)
{
	for (uint64_t i = 0; i < elements; i++) {
		double sum = 0, squares = 0, n = 0;
		for (size_t k = 0; k < count; k++) {
			if (deltas[k].attack != FLEET_HONEST)
				continue;
			double x = (double)deltas[k].values[i];
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

/* Those who work alone. */
static void
change(struct fleet_attack_delta *d, uint64_t elements, uint64_t round)
{
	switch (d->attack) {
	case FLEET_SIGN:
		multiply(d->values, elements, -d->strength);
		break;
	case FLEET_SCALE:
	case FLEET_BACKDOOR:
		multiply(d->values, elements, d->strength);
		break;
	case FLEET_GAUSS:
		fill_noise(d->values, elements, d->strength, d->number, round);
		break;
	case FLEET_LIES:
		if (d->number % 4 == 3)
			d->examples = (uint64_t)1 << 31;
		break;
	default:
		break;
	}
}

/* The one vector that those who agree on one send. */
static void
agree(float *common, const struct fleet_attack_delta *d, const struct fleet_attack_delta *deltas,
    size_t count, uint64_t elements)
{
	size_t hostile = 0, honest = 0;

	for (size_t i = count; i-- > 0;) {
		hostile += deltas[i].attack != FLEET_HONEST;
		honest = deltas[i].attack == FLEET_HONEST ? i : honest;
	}
	double z = d->strength > 0 ? d->strength : fleet_attack_z(count, hostile);
	if (d->attack == FLEET_MIMIC)
		memcpy(common, deltas[honest].values, elements * sizeof(float));
	else if (d->attack == FLEET_ALIE)
		fill_from_honest(common, deltas, count, elements, 1, z);
	else
		fill_from_honest(common, deltas, count, elements, -d->strength, 0);
}

static bool
same(const struct fleet_attack_delta *a, const struct fleet_attack_delta *b)
{
	return a && a->attack == b->attack && !(a->strength < b->strength) &&
	    !(a->strength > b->strength);
}

static bool
any_honest(const struct fleet_attack_delta *deltas, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (deltas[i].attack == FLEET_HONEST)
			return true;
	return false;
}

enum err
fleet_attack_round(
    struct fleet_attack_delta *deltas, size_t count, uint64_t elements, uint64_t round)
{
	const struct fleet_attack_delta *made = NULL; /* whose vector `common` is */
	bool honest = any_honest(deltas, count);
	float *common = NULL;

	for (size_t i = 0; i < count; i++) {
		struct fleet_attack_delta *d = &deltas[i];
		if (d->attack == FLEET_HONEST || d->done)
			continue;
		d->done = true;
		if (!fleet_attack_agreed(d->attack)) {
			change(d, elements, round);
			continue;
		}
		if (!honest)
			continue;
		if (!common && !(common = malloc(elements * sizeof(float))))
			return ERR_NOMEM;
		if (!same(made, d))
			agree(common, d, deltas, count, elements);
		made = d;
		memcpy(d->values, common, elements * sizeof(float));
	}
	free(common);
	return ERR_OK;
}

void
fleet_attack_payload(enum fleet_attack attack, unsigned number, uint8_t *payload, uint64_t *len)
{
	static const uint8_t infinity[4] = {0, 0, 0x80, 0x7f};

	if (attack != FLEET_LIES || *len < 8)
		return;
	/* Every codec but the sparse one begins with a float: an element, or a scale. */
	if (number % 4 == 0)
		memset(payload, 0xff, 4);
	else if (number % 4 == 1)
		memcpy(payload, infinity, 4);
	else if (number % 4 == 2)
		*len -= 4;
}
