#include "prng.h"

static uint64_t
splitmix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void
prng_seed(struct prng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix(&seed);
}

void
prng_seed2(struct prng *r, uint64_t seed, uint64_t stream)
{
	/* Only the seed is mixed before they meet: otherwise (a, b) and (b, a) would be one stream. */
	uint64_t both = splitmix(&seed) ^ stream;

	prng_seed(r, splitmix(&both));
}

static uint64_t
rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

uint64_t
prng_u64(struct prng *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotl(s[0] + s[3], 23) + s[0];
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t
prng_below(struct prng *r, uint64_t n)
{
	uint64_t reject = -n % n;
	uint64_t v;

	do
		v = prng_u64(r);
	while (v < reject);
	return v % n;
}

float
prng_float(struct prng *r)
{
	return (float)(prng_u64(r) >> 40) * 0x1p-24f;
}

double
prng_double(struct prng *r)
{
	return (double)(prng_u64(r) >> 11) * 0x1p-53;
}

void
prng_floats(struct prng *r, float *out, size_t n)
{
	struct prng own = *r; /* kept in registers: out may not point at it */

	for (size_t i = 0; i < n; i++)
		out[i] = prng_float(&own);
	*r = own;
}

void
prng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];

	for (uint32_t round = 0; round < 10; round++) {
		uint64_t low = (uint64_t)0xd2511f53u * a, high = (uint64_t)0xcd9e8d57u * c;
		a = (uint32_t)(high >> 32) ^ b ^ (key[0] + round * 0x9e3779b9u);
		b = (uint32_t)high;
		c = (uint32_t)(low >> 32) ^ d ^ (key[1] + round * 0xbb67ae85u);
		d = (uint32_t)low;
	}
	out[0] = a;
	out[1] = b;
	out[2] = c;
	out[3] = d;
}

void
prng_shuffle(struct prng *r, uint32_t *items, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = prng_below(r, i);
		uint32_t t = items[i - 1];
		items[i - 1] = items[j];
		items[j] = t;
	}
}
