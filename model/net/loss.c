#include "loss.h"

#include <math.h>
#include <string.h>

/* e^x for x <= 0, NaN for NaN. Our own, because libm's last bit differs between machines and weights depend on it:
 * x = k ln2 + r, |r| <= ln2 / 2, then Taylor to the tenth power (error below 3e-13, far under one f32 ulp). */
static double
exp_negative(double x)
{
	static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
	static const double inverse[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
	    1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1};

	if (!(x >= -700))
		return x < 0 ? 0 : x;
	int64_t k = (int64_t)(x * 0x1.71547652b82fep0 - 0.5);
	double r = (x - (double)k * ln2_high) - (double)k * ln2_low, sum = 0;
	for (size_t i = 0; i < sizeof(inverse) / sizeof(inverse[0]); i++)
		sum = sum * r + inverse[i];
	uint64_t bits = (uint64_t)(1023 + k) << 52;
	double scale;
	memcpy(&scale, &bits, sizeof(scale));
	return sum * scale;
}

size_t
loss_argmax(const float *x, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++)
		if (x[i] > x[best])
			best = i;
	return best;
}

/* row: powers of e, becomes (softmax - one at the label) / n */
static void
softmax_gradient(float *row, size_t width, size_t label, float sum, float n)
{
	for (size_t j = 0; j < width; j++)
		row[j] = row[j] / sum;
	row[label] -= 1;
	for (size_t j = 0; j < width; j++)
		row[j] = row[j] / n;
}

enum err
loss_cross_entropy(const float *outputs, const int32_t *labels, uint32_t n, size_t width,
    float *gradient, struct net_result *result)
{
	*result = (struct net_result){0};
	for (uint32_t i = 0; i < n; i++) {
		const float *x = outputs + i * width;
		size_t label = (size_t)labels[i], best = loss_argmax(x, width);
		double top = (double)x[best], sum = 0;
		for (size_t j = 0; j < width; j++) {
			double power = exp_negative((double)x[j] - top);
			sum += power;
			if (gradient)
				gradient[i * width + j] = (float)power;
		}
		result->loss += log(sum) + top - (double)x[label];
		result->right += best == label;
		if (gradient)
			softmax_gradient(gradient + i * width, width, label, (float)sum, (float)n);
	}
	return isfinite(result->loss) ? ERR_OK : ERR_NUMERIC;
}

enum err
loss_mse(const float *outputs, const float *targets, uint32_t n, size_t width, float *gradient,
    struct net_result *result)
{
	double scale = 2.0 / ((double)width * n);

	*result = (struct net_result){0};
	for (size_t i = 0; i < n * width; i++) {
		double d = (double)outputs[i] - (double)targets[i];
		result->loss += d * d / (double)width;
		if (gradient)
			gradient[i] = (float)(scale * d);
	}
	return isfinite(result->loss) ? ERR_OK : ERR_NUMERIC;
}
