#ifndef NUM_H
#define NUM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers from text and arithmetic that cannot wrap. All return false on failure and leave *out alone. */

/* Whole decimal text, no sign, no white space, at most max. */
bool num_u64(const char *text, uint64_t max, uint64_t *out);
/* Whole text as a finite double, independent of the locale. */
bool num_double(const char *text, double *out);
/* [+-]digits[.digits] where the double nearest to it is one exact division away: whole digits below 2^53, and at most 22 of them behind the
 * point. Nearly all numbers are such. */
bool num_short(const char *text, size_t len, double *out);
/* Bytes with an optional suffix K, M or G (powers of 1024). */
bool num_bytes(const char *text, uint64_t *out);
/* Seconds with an optional suffix s, m, h or d. */
bool num_seconds(const char *text, uint64_t *out);
bool num_mul(size_t a, size_t b, size_t *out);
bool num_add(size_t a, size_t b, size_t *out);
/* n, or the next multiple of `unit`. */
bool num_round_up(size_t n, size_t unit, size_t *out);

/* x^n by squaring: exactly rounded steps, the same on every machine, unlike libm's pow. */
double num_power(double x, uint64_t n);
/* x rounded to float and back to double. gcc 12 drops the two conversions where it vectorises them; a call of this function it keeps. */
double num_single(double x);

#endif
