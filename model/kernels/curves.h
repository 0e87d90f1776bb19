#ifndef CURVES_H
#define CURVES_H
#include <stddef.h>

/*
 * Curves over arrays: our own, because libm's last bit differs between machines and weights depend on it. Single IEEE operations in one
 * order: the same bits on every machine. Errors against the exact value: below 3e-7 of it (exp, sigmoid), 2e-7 absolute (tanh, erf). In
 * and out may be one array. NaN stays NaN, finite numbers give finite ones. What belongs to |x| above 1e30 is not exact any more.
 */
void curves_exp(
    float *y, const float *x, size_t n); /* what e^-87 is below -87, what e^88 is above 88 */
void curves_sigmoid(float *y, const float *x, size_t n);
void curves_tanh(float *y, const float *x, size_t n);
/* x Phi(x): by erf, or by PyTorch's approximation with tanh. */
void curves_gelu(float *y, const float *x, size_t n);
void curves_gelu_tanh(float *y, const float *x, size_t n);
/* x sigmoid(x) */
void curves_silu(float *y, const float *x, size_t n);
/* Slopes of the three at x. */
void curves_gelu_slope(float *slope, const float *x, size_t n);
void curves_gelu_tanh_slope(float *slope, const float *x, size_t n);
void curves_silu_slope(float *slope, const float *x, size_t n);
/* n > 0 numbers become e^(x - largest) / their sum, in sixteen lanes (lanes.h). Behind them is room up to a multiple of sixteen, which
 * becomes zeros. */
void curves_softmax(float *row, size_t n);

/* Sines and cosines of an angle in radians, 0 <= angle < 2^24; error below 1e-9. For tables. */
void curves_turn(double angle, double *sine, double *cosine);
/* e^x for x <= 0, error below 3e-13 of it. */
double curves_exp_negative(double x);
/* The same of x - top, which is at most 0. */
void curves_exp_below(double *powers, const float *x, size_t n, double top);
/* The largest of n > 0; of numbers that are none only the first counts, and it is then the largest. */
float curves_largest(const float *x, size_t n);

#endif
