#include "cpu_norms.h"

#include <math.h>

#include "norm_sums.h"
#include "team.h"

/*
 * A channel's statistics run over examples and places. In training they are the batch's, and the way back moves the running ones towards
 * them: a pass whose loss is not finite leaves no trace. Otherwise the running ones are used.
 */
static enum err
need(struct layer *l, struct why *why)
{
	(void)why;
	l->saved_once = 2 * (size_t)l->in[0].c * sizeof(float);
	l->work = 4 * (size_t)l->in[0].c;
	return ERR_OK;
}

/* Where a layer's statistics stand among its parameters: behind weight and bias, if it has them. */
static size_t
running(const struct layer *l)
{
	return l->spec.bias ? PARAM_MEAN : 0;
}

static size_t
area_of(const struct layer *l)
{
	return l->in[0].size / l->in[0].c;
}

/* Of places with one value for each channel, columns are summed, examples ascending. */
static void
flat_moments(const struct layer *l, const float *x, uint32_t n, float *kept)
{
	size_t channels = l->in[0].c;
	float *mean = kept, *inverse = kept + channels;

	for (size_t c = 0; c < 2 * channels; c++)
		kept[c] = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < channels; c++)
			mean[c] += x[i * channels + c];
	for (size_t c = 0; c < channels; c++)
		mean[c] /= (float)n;
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < channels; c++) {
			float d = x[i * channels + c] - mean[c];
			inverse[c] += d * d;
		}
	for (size_t c = 0; c < channels; c++)
		inverse[c] = 1.0f / sqrtf(inverse[c] / (float)n + l->spec.epsilon);
}

static void
plane_moments(const struct layer *l, const float *x, uint32_t n, size_t c, float *kept)
{
	size_t channels = l->in[0].c, area = area_of(l), size = l->in[0].size;
	float count = (float)n * (float)area;
	struct norm_sums s = {0};

	for (uint32_t i = 0; i < n; i++)
		norm_sums_add(&s, x + i * size + c * area, area);
	kept[c] = norm_sums_first(&s) / count;
	for (uint32_t i = 0; i < n; i++)
		norm_sums_add_squares(&s, x + i * size + c * area, area, kept[c]);
	kept[channels + c] = 1.0f / sqrtf(norm_sums_second(&s) / count + l->spec.epsilon);
}

static void
running_moments(const struct layer *l, const struct backend_pass *p, float *kept)
{
	const float *mean = p->weights + l->param[running(l)].at;
	const float *variance = p->weights + l->param[running(l) + 1].at;
	size_t channels = l->in[0].c;

	for (size_t c = 0; c < channels; c++) {
		kept[c] = mean[c];
		kept[channels + c] = 1.0f / sqrtf(variance[c] + l->spec.epsilon);
	}
}

/* A pass, by channels. */
struct course {
	const struct layer *l;
	const struct backend_pass *p;
	struct operands v;
	float *kept;
};

/* Some channels are a piece; where there is one place of each, all are. */
static void
run(struct course *c, void (*fn)(void *arg, size_t first, size_t count, unsigned lane))
{
	size_t channels = c->l->in[0].c, area = area_of(c->l);

	/* An element costs some multiply-adds, and memory. */
	team_share(c->p->team,
	    &(struct team_work){.n = channels,
		.least = area > 1 ? 1 : channels,
		.each = 30.0 * (double)area * c->p->n,
		.fn = fn,
		.arg = c});
}

static void
forward_channels(void *arg, size_t from, size_t count, unsigned lane)
{
	const struct course *o = arg;
	const struct layer *l = o->l;
	const struct operands *v = &o->v;
	size_t channels = l->in[0].c, area = area_of(l), size = l->in[0].size, to = from + count;
	float *kept = o->kept, *scale = v->work + 2 * channels, *shift = scale + channels;

	(void)lane;
	for (size_t c = from; c < to; c++) {
		if (o->p->training && !o->p->again && area > 1)
			plane_moments(l, v->x[0], o->p->n, c, kept);
		scale[c] = l->spec.bias ? kept[channels + c] * v->weight[c] : kept[channels + c];
		shift[c] = (l->spec.bias ? v->bias[c] : 0) - kept[c] * scale[c];
		for (size_t i = 0; area > 1 && i < o->p->n; i++)
			norm_sums_line(v->y + i * size + c * area, v->x[0] + i * size + c * area,
			    area, scale[c], shift[c]);
	}
	for (size_t i = 0; area == 1 && i < o->p->n; i++)
		for (size_t c = from; c < to; c++)
			v->y[i * channels + c] = v->x[0][i * channels + c] * scale[c] + shift[c];
}

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	struct course c = {.l = l, .p = p, .v = operands_of(l, p)};

	c.kept = c.v.kept ? c.v.kept : c.v.work;
	if (!p->again && !p->training)
		running_moments(l, p, c.kept);
	else if (!p->again && area_of(l) == 1)
		flat_moments(l, c.v.x[0], p->n, c.kept);
	run(&c, forward_channels);
}

/* Towards the batch's; its variance as of a sample (one less in the count), as PyTorch has it. */
static void
move_running(const struct layer *l, const struct backend_pass *p, const float *kept)
{
	float *mean = p->statistics + l->param[running(l)].at;
	float *variance = p->statistics + l->param[running(l) + 1].at;
	size_t channels = l->in[0].c;
	float count = (float)p->n * (float)area_of(l), rate = l->spec.rate;
	float sample = count > 1 ? count / (count - 1) : 1;

	for (size_t c = 0; c < channels; c++) {
		float inverse = kept[channels + c];
		float spread = 1.0f / (inverse * inverse) - l->spec.epsilon;
		mean[c] = (1 - rate) * mean[c] + rate * kept[c];
		variance[c] =
		    (1 - rate) * variance[c] + rate * ((spread > 0 ? spread : 0) * sample);
	}
}

/* Sums of dy and of dy h for channels [from, to). */
static void
sums(const struct layer *l, const struct operands *v, uint32_t n, float *a, float *b, size_t from,
    size_t to)
{
	size_t channels = l->in[0].c, area = area_of(l), size = l->in[0].size;
	const float *kept = v->kept;

	for (size_t c = from; c < to; c++) {
		struct norm_sums s = {0};
		a[c] = b[c] = 0;
		for (uint32_t i = 0; area > 1 && i < n; i++)
			norm_sums_add_pair(
			    &s, v->dy + i * size + c * area, v->x[0] + i * size + c * area, area);
		if (area > 1) {
			a[c] = norm_sums_first(&s);
			b[c] = norm_sums_second(&s);
		}
	}
	for (uint32_t i = 0; area == 1 && i < n; i++)
		for (size_t c = from; c < to; c++) {
			a[c] += v->dy[i * channels + c];
			b[c] += v->dy[i * channels + c] * v->x[0][i * channels + c];
		}
	for (size_t c = from; c < to; c++)
		b[c] = (b[c] - kept[c] * a[c]) * kept[channels + c];
}

static struct norm_sums_terms
terms(const struct layer *l, const struct operands *v, const float *a, const float *b, size_t c,
    float count)
{
	const float *kept = v->kept;
	float inverse = kept[l->in[0].c + c], w = l->spec.bias ? v->weight[c] : 1;
	float slope = -(inverse * inverse * (w * b[c] / count));

	return (struct norm_sums_terms){
	    inverse * w, slope, -(kept[c] * slope) - inverse * (w * a[c] / count)};
}

static void
backward_channels(void *arg, size_t from, size_t count, unsigned lane)
{
	const struct course *o = arg;
	const struct layer *l = o->l;
	const struct operands *v = &o->v;
	size_t channels = l->in[0].c, area = area_of(l), size = l->in[0].size, to = from + count;
	float *a = v->work, *b = v->work + channels, places = (float)o->p->n * (float)area;

	(void)lane;
	sums(l, v, o->p->n, a, b, from, to);
	for (size_t c = from; v->dx[0] && c < to; c++) {
		struct norm_sums_terms t = terms(l, v, a, b, c, places);
		for (uint32_t i = 0; i < o->p->n; i++) {
			size_t at = i * size + c * area;
			norm_sums_plane(
			    v->dx[0] + at, v->dy + at, v->x[0] + at, area, t, l->add[0]);
		}
	}
}

static void
backward(const struct layer *l, const struct backend_pass *p)
{
	struct course c = {.l = l, .p = p, .v = operands_of(l, p)};
	const struct operands v = c.v;
	float *a = v.work, *b = v.work + l->in[0].c;

	run(&c, backward_channels);
	/* Not if they are held, as frozen ones are. */
	if (l->param[running(l)].counts)
		move_running(l, p, v.kept);
	if (!l->spec.bias)
		return;
	operands_give(l, p, PARAM_WEIGHT, b);
	operands_give(l, p, PARAM_BIAS, a);
}

const struct backend_layer batchnorm_passes = {
    .need = need, .forward = forward, .backward = backward};
