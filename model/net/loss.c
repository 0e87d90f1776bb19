#include "loss.h"

#include <math.h>
#include <string.h>

#include "curves.h"

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

static enum err
finish(const struct net_result *result)
{
	return isfinite(result->loss) ? ERR_OK : ERR_NUMERIC;
}

static enum err
plain_cross_entropy(const float *outputs, const int32_t *labels, size_t n, size_t width,
    float *gradient, struct net_result *result)
{
	for (size_t i = 0; i < n; i++) {
		const float *x = outputs + i * width;
		size_t label = (size_t)labels[i], best = loss_argmax(x, width);
		double top = (double)x[best], sum = 0;
		for (size_t j = 0; j < width; j++) {
			double power = curves_exp_negative((double)x[j] - top);
			sum += power;
			if (gradient)
				gradient[i * width + j] = (float)power;
		}
		result->loss += log(sum) + top - (double)x[label];
		result->right += best == label;
		if (gradient)
			softmax_gradient(gradient + i * width, width, label, (float)sum, (float)n);
	}
	result->weight = (double)n;
	result->labels = n;
	return finish(result);
}

bool
loss_counts(const struct loss_how *how, int32_t label)
{
	return !how->ignores || label != how->ignored;
}

static double
weight_of(const struct loss_how *how, size_t class)
{
	return how->class_weights ? (double)how->class_weights[class] : 1;
}

/* What the labels of a batch weigh together. */
static void
weigh(const struct loss_how *how, const int32_t *labels, size_t n, struct net_result *result)
{
	for (size_t i = 0; i < n; i++)
		if (loss_counts(how, labels[i])) {
			result->labels++;
			result->weight += weight_of(how, (size_t)labels[i]);
		}
}

/* One row. The label's share of the loss is weight (1 - smoothing), that of each class beside it its weight smoothing / width; powers:
 * of e, becomes the gradient. */
static double
row_loss(const struct loss_how *how, const float *x, size_t label, size_t width, double scale,
    float *powers)
{
	size_t best = loss_argmax(x, width);
	double top = (double)x[best], sum = 0, spread = (double)how->smoothing / (double)width;
	double all = 0, loss = 0;

	for (size_t j = 0; j < width; j++) {
		double power = curves_exp_negative((double)x[j] - top);
		sum += power;
		if (powers)
			powers[j] = (float)power;
	}
	double level = log(sum) + top;
	for (size_t j = 0; j < width; j++) {
		double share = spread * weight_of(how, j);
		if (j == label)
			share += (1 - (double)how->smoothing) * weight_of(how, j);
		all += share;
		loss += share * (level - (double)x[j]);
		if (powers)
			powers[j] = powers[j] / (float)sum;
	}
	for (size_t j = 0; powers && j < width; j++) {
		double share = spread * weight_of(how, j);
		if (j == label)
			share += (1 - (double)how->smoothing) * weight_of(how, j);
		powers[j] = (float)(scale * (all * (double)powers[j] - share));
	}
	return loss;
}

enum err
loss_cross_entropy(const struct loss_how *how, const float *outputs, const int32_t *labels,
    size_t n, size_t width, float *gradient, struct net_result *result)
{
	*result = (struct net_result){0};
	if (!how->ignores && !how->class_weights && how->smoothing == 0)
		return plain_cross_entropy(outputs, labels, n, width, gradient, result);
	weigh(how, labels, n, result);
	double scale = result->weight > 0 ? 1 / result->weight : 0;
	for (size_t i = 0; i < n; i++) {
		const float *x = outputs + i * width;
		float *row = gradient ? gradient + i * width : NULL;
		if (!loss_counts(how, labels[i])) {
			if (row)
				memset(row, 0, width * sizeof(*row));
			/* Nothing times a value that is none is none. */
			for (size_t j = 0; j < width; j++)
				result->loss += 0 * (double)x[j];
			continue;
		}
		result->loss += row_loss(how, x, (size_t)labels[i], width, scale, row);
		result->right += loss_argmax(x, width) == (size_t)labels[i];
	}
	return finish(result);
}

enum err
loss_mse(const float *outputs, const float *targets, uint32_t n, size_t width, float *gradient,
    struct net_result *result)
{
	double scale = 2.0 / ((double)width * n);

	*result = (struct net_result){.weight = n};
	for (size_t i = 0; i < n * width; i++) {
		double d = (double)outputs[i] - (double)targets[i];
		result->loss += d * d / (double)width;
		if (gradient)
			gradient[i] = (float)(scale * d);
	}
	return finish(result);
}

/* log(1 + e^-|x|) + max(x, 0) - x target */
enum err
loss_bce(const float *outputs, const float *targets, uint32_t n, size_t width, float *gradient,
    struct net_result *result)
{
	double scale = 1.0 / ((double)width * n);

	*result = (struct net_result){.weight = n};
	for (size_t i = 0; i < n * width; i++) {
		double x = (double)outputs[i], t = (double)targets[i];
		double power = curves_exp_negative(x < 0 ? x : -x);
		double above = x > 0 ? x : 0;
		result->loss += (log1p(power) + above - x * t) / (double)width;
		double sigmoid = x < 0 ? power / (1 + power) : 1 / (1 + power);
		if (gradient)
			gradient[i] = (float)(scale * (sigmoid - t));
	}
	return finish(result);
}
