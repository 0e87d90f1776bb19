#include "loss.h"

#include <math.h>
#include <string.h>

#include "cpu.h"
#include "curves.h"
#include "team.h"

size_t
loss_argmax(const float *x, size_t n)
{
	float top = curves_largest(x, n);
	size_t best = 0;

	/* If it is no number, the first is it. */
	while (x[best] < top)
		best++;
	return best;
}

static enum err
finish(const struct net_result *result)
{
	return isfinite(result->loss) ? ERR_OK : ERR_NUMERIC;
}

#define CHUNK ((size_t)64)

/* The sum, ascending, of the powers of e of a row less its top; `to`, if not NULL, gets the powers. */
static double
add_powers(const float *x, size_t width, double top, float *to)
{
	double powers[CHUNK], sum = 0;

	for (size_t first = 0, n; first < width; first += n) {
		n = width - first < CHUNK ? width - first : CHUNK;
		curves_exp_below(powers, x + first, n, top);
		for (size_t j = 0; j < n; j++)
			sum += powers[j];
		for (size_t j = 0; to && j < n; j++)
			to[first + j] = (float)powers[j];
	}
	return sum;
}

CPU_CLONES static void
divide(float *row, size_t width, float by)
{
	for (size_t j = 0; j < width; j++)
		row[j] = row[j] / by;
}

/* One row without weights or smoothing; gradient, of n rows' mean: (softmax - one at the label) / n. */
static double
plain_row_loss(const float *x, size_t label, size_t width, size_t n, float *gradient)
{
	double top = (double)curves_largest(x, width), score = (double)x[label];
	double sum = add_powers(x, width, top, gradient);

	if (gradient) {
		divide(gradient, width, (float)sum);
		gradient[label] -= 1;
		divide(gradient, width, (float)n);
	}
	return log(sum) + top - score;
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

double
loss_weight(const struct loss_how *how, int32_t label)
{
	return loss_counts(how, label) ? weight_of(how, (size_t)label) : 0;
}

/* What the labels of a batch weigh together. */
static void
weigh(const struct loss_how *how, const int32_t *labels, size_t n, struct net_result *result)
{
	for (size_t i = 0; i < n; i++)
		if (loss_counts(how, labels[i])) {
			result->labels++;
			result->weight += loss_weight(how, labels[i]);
		}
}

/* One row. The label's share of the loss is weight (1 - smoothing), that of each class beside it its weight smoothing / width; powers of
 * e become the gradient, which may be x: so they are made a second time when their sum is known. */
static double
row_loss(const struct loss_how *how, const float *x, size_t label, size_t width, double scale,
    float *gradient)
{
	double top = (double)curves_largest(x, width), sum = add_powers(x, width, top, NULL);
	double spread = (double)how->smoothing / (double)width, all = 0, loss = 0;
	double level = log(sum) + top, powers[CHUNK];
	for (size_t j = 0; j < width; j++) {
		double share = spread * weight_of(how, j);
		if (j == label)
			share += (1 - (double)how->smoothing) * weight_of(how, j);
		if (gradient && j % CHUNK == 0)
			curves_exp_below(powers, x + j, width - j < CHUNK ? width - j : CHUNK, top);
		all += share;
		loss += share * (level - (double)x[j]);
		if (gradient)
			gradient[j] = (float)powers[j % CHUNK] / (float)sum;
	}
	for (size_t j = 0; gradient && j < width; j++) {
		double share = spread * weight_of(how, j);
		if (j == label)
			share += (1 - (double)how->smoothing) * weight_of(how, j);
		gradient[j] = (float)(scale * (all * (double)gradient[j] - share));
	}
	return loss;
}

/* Nothing, but nothing times a value that is none is none. */
static double
ignored_row_loss(const float *x, size_t width, float *gradient)
{
	double loss = 0;

	for (size_t j = 0; j < width; j++)
		loss += 0 * (double)x[j];
	if (gradient)
		memset(gradient, 0, width * sizeof(*gradient));
	return loss;
}

/* Some rows of a batch of n; what they add is added up in their order, whoever worked it out. */
#define ROWS ((size_t)512)
struct rows {
	const struct loss_how *how;
	bool plain;
	size_t n, width;
	double scale;
	const float *x;
	const int32_t *labels;
	float *gradient;
	double loss[ROWS];
	bool right[ROWS];
};

static void
work_rows(void *arg, size_t first, size_t count, unsigned lane)
{
	struct rows *r = arg;

	(void)lane;
	for (size_t i = first; i < first + count; i++) {
		const float *x = r->x + i * r->width;
		float *to = r->gradient ? r->gradient + i * r->width : NULL;
		size_t label = (size_t)r->labels[i];
		bool counts = loss_counts(r->how, r->labels[i]);
		r->right[i] = counts && loss_argmax(x, r->width) == label;
		if (!counts)
			r->loss[i] = ignored_row_loss(x, r->width, to);
		else if (r->plain)
			r->loss[i] = plain_row_loss(x, label, r->width, r->n, to);
		else
			r->loss[i] = row_loss(r->how, x, label, r->width, r->scale, to);
	}
}

/* Of one output, in multiply-adds. */
#define WORK 150.0

enum err
loss_cross_entropy(const struct loss_how *how, const float *outputs, const int32_t *labels,
    size_t n, size_t width, float *gradient, struct net_result *result)
{
	struct rows r = {.how = how, .n = n, .width = width};

	*result = (struct net_result){0};
	weigh(how, labels, n, result);
	r.plain = !how->ignores && !how->class_weights && how->smoothing == 0;
	double over = how->whole > 0 ? how->whole : result->weight;
	r.scale = over > 0 ? 1 / over : 0;
	for (size_t first = 0, count; first < n; first += count) {
		count = n - first < ROWS ? n - first : ROWS;
		r.x = outputs + first * width;
		r.labels = labels + first;
		r.gradient = gradient ? gradient + first * width : NULL;
		team_share(how->team,
		    &(struct team_work){.n = count,
			.least = 1,
			.each = WORK * (double)width,
			.fn = work_rows,
			.arg = &r});
		for (size_t i = 0; i < count; i++) {
			result->loss += r.loss[i];
			result->right += r.right[i];
		}
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
