#ifndef CURVES_H
#define CURVES_H
#include <stddef.h>

/*
 * Curves over arrays: our own, because libm's last bit differs between machines and weights depend on it. Single IEEE operations in one
 * order: the same bits on every machine. Errors: relative below 3e-7 (exp, sigmoid), absolute below 2e-7 (tanh, erf). Input and output
 * may be one array. NaN stays NaN, finite numbers give finite ones. Values for |x| above 1e30 are not exact.
 */
void curves_exp(float *y, const float *x, size_t n); /* x is clamped to -87..88 */
void curves_sigmoid(float *y, const float *x, size_t n);
void curves_tanh(float *y, const float *x, size_t n);
/* x Phi(x): by erf, or by PyTorch's approximation with tanh. */
void curves_gelu(float *y, const float *x, size_t n);
void curves_gelu_tanh(float *y, const float *x, size_t n);
/* x sigmoid(x) */
void curves_silu(float *y, const float *x, size_t n);
/* The slopes of gelu, gelu_tanh and silu at x. */
void curves_gelu_slope(float *slope, const float *x, size_t n);
void curves_gelu_tanh_slope(float *slope, const float *x, size_t n);
void curves_silu_slope(float *slope, const float *x, size_t n);
/* Softmax in place: n > 0 numbers x become e^(x - largest x), divided by the sum of all, which is formed in sixteen lanes (lanes.h). `row`
 * has room up to a multiple of sixteen; the elements behind n become zeros. */
void curves_softmax(float *row, size_t n);

/* Sines and cosines of an angle in radians, 0 <= angle < 2^24; error below 1e-9. For tables. */
void curves_turn(double angle, double *sine, double *cosine);
/* e^x for x <= 0, error below 3e-13 of it. */
double curves_exp_negative(double x);
/* powers[i] = curves_exp_negative(x[i] - top), for x[i] <= top. */
void curves_exp_below(double *powers, const float *x, size_t n, double top);
/* The largest of n > 0 numbers. A NaN is passed over, unless it is the first: then the result is NaN. */
float curves_largest(const float *x, size_t n);

#endif
