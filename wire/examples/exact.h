#ifndef EXACT_H
#define EXACT_H

struct prng;

/*
 * Logarithm, exponential and a normal draw of correctly rounded steps only: libm's last bit differs between machines, and with it
 * whatever is decided by the result.
 */

/* x > 0, a normal number. */
double exact_ln(double x);
/* 0 below the normal numbers. */
double exact_exp(double x);
/* Normally distributed, mean 0, deviation 1 (Marsaglia's polar method). */
double exact_normal(struct prng *rng);

#endif
