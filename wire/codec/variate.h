#ifndef VARIATE_H
#define VARIATE_H
#include <stddef.h>

/*
 * A device's side of SCAFFOLD (Karimireddy et al. 2020), option II. Local steps are y <- y - rate * (gradient + server - own); then
 * own+ = own - server + (before - after) / (sum of the rates). All vectors have n elements, in the delta vector's order.
 */

/* out = own+ - own = -(server + delta / rates), with delta = after - before and rates > 0 the sum of the steps' rates; in f64,
 * rounded once. */
void variate_change(float *out, const float *server, const float *delta, double rates, size_t n);
/* own += change, as decoded from what was sent: coordinator and device then count the same. */
void variate_advance(float *own, const float *change, size_t n);

#endif
