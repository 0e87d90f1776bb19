#ifndef PRNG_H
#define PRNG_H
#include <stddef.h>
#include <stdint.h>

/*
 * Reproducible randomness for training, drawing and codecs: xoshiro256++ (Blackman and Vigna, 2019) seeded
 * through splitmix64. The same seed gives the same numbers on every machine. Never for secrets: see
 * crypto/primitives/rng.h.
 */
struct prng {
	uint64_t s[4];
};

void prng_seed(struct prng *r, uint64_t seed);
/* Derives an independent stream for each pair; (a, b) and (b, a) differ. */
void prng_seed2(struct prng *r, uint64_t seed, uint64_t stream);
uint64_t prng_u64(struct prng *r);
/* Uniform in [0, n), n >= 1, without bias. */
uint64_t prng_below(struct prng *r, uint64_t n);
/* Uniform in [0, 1) with 24 (float) or 53 (double) random bits. */
float prng_float(struct prng *r);
double prng_double(struct prng *r);
/* The next n of prng_float. */
void prng_floats(struct prng *r, float *out, size_t n);
/* Numbers by their place: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). Four
 * words from a counter and a key; any order of counters gives each the same. */
void prng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Fisher-Yates over n indices. */
void prng_shuffle(struct prng *r, uint32_t *items, size_t n);

#endif
