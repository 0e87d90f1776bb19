#include "recurrent.h"

#include <string.h>

#include "cpu_sequence.h"
#include "gemm.h"
#include "num.h"
#include "rows.h"
#include "runs.h"
#include "sgd.h"

enum { INPUT_WEIGHT, HIDDEN_WEIGHT, INPUT_BIAS, HIDDEN_BIAS };

/* One layer of the stack during a pass. */
struct stage {
	const struct recurrent_cell *cell;
	const struct layer *l;
	const struct backend_pass *p;
	unsigned at; /* in the stack */
	size_t steps, hidden, in, wide; /* wide: of all gates */
	size_t examples, row;
	const float *x; /* [n][steps][in] */
	float *h; /* [n][steps][hidden] */
	float *rows; /* [n][steps][row]; evaluating: [n][row] */
	float *turned, *sums; /* work: of weights; of biases */
	float *each; /* work for each example */
};

static size_t
kept_floats(const struct layer *l, const struct recurrent_cell *cell)
{
	size_t own = l->spec.last ? l->spec.stack : l->spec.stack - 1;

	return layer_rows(&l->in[0]) * l->spec.out * (cell->row * l->spec.stack + own);
}

static const struct recurrent_cell *
cell_of(const struct layer *l)
{
	return l->spec.type == LAYER_LSTM ? &lstm_cell : &gru_cell;
}

static enum err
count_needs(struct layer *l, const struct recurrent_cell *cell)
{
	size_t hidden = l->spec.out, wide = cell->gates * hidden, in = l->in[0].w;
	size_t deep = in > hidden ? in : hidden, steps = layer_rows(&l->in[0]), each, turned;

	/* Weights were counted, so sums of them fit; what hangs on steps is checked. */
	if (!num_mul(wide, deep, &turned) || !num_mul(steps, hidden, &each) ||
	    !num_mul(each, (cell->row + 1) * l->spec.stack, &l->saved) ||
	    !num_mul(l->saved, sizeof(float), &l->saved))
		return ERR_LIMIT;
	l->saved = kept_floats(l, cell) * sizeof(float);
	if (!num_mul(turned, 2, &turned) || !num_add(turned, 2 * wide + 2 * hidden, &l->work))
		return ERR_LIMIT;
	l->work_each = each + (cell->row + cell->gates + 2) * hidden;
	return ERR_OK;
}

/* Of a row on the way back, in units of `hidden`: the gradient at h U of the last gate. */
static size_t
last_column(const struct recurrent_cell *cell)
{
	return cell->apart ? cell->gates : cell->gates - 1;
}

static const float *
weights_of(const struct stage *s, int which)
{
	const struct layer *l = s->l;

	return s->p->weights + l->param[s->at * (l->spec.bias ? 4 : 2) + (unsigned)which].at;
}

/* Rows of length k times the weights that lie turned, added to gates. */
static void
add_product(const struct stage *s, size_t rows, size_t k, const float *a, size_t a_row, float *to,
    size_t to_row)
{
	gemm_outer(&(struct gemm){.m = rows,
	    .n = s->wide,
	    .k = k,
	    .a = a,
	    .a_row = a_row,
	    .a_col = 1,
	    .b = s->turned,
	    .b_row = s->wide,
	    .c = to,
	    .c_row = to_row,
	    .alpha = 1,
	    .beta = 1,
	    .exact = s->p->exact,
	    .team = s->p->team});
}

/* x W and the biases into the gates of `count` rows from step `first` on. */
static void
project(const struct stage *s, size_t count, const float *x, size_t x_row, float *to, size_t to_row)
{
	for (size_t i = 0; i < count; i++)
		memcpy(to + i * to_row, s->sums, s->wide * sizeof(float));
	add_product(s, count, s->in, x, x_row, to, to_row);
}

/* Of a cell that takes both parts together, both biases; otherwise the input's. */
static void
put_biases(const struct stage *s)
{
	memset(s->sums, 0, 2 * s->wide * sizeof(float));
	if (!s->l->spec.bias)
		return;
	const float *a = weights_of(s, INPUT_BIAS), *b = weights_of(s, HIDDEN_BIAS);
	for (size_t i = 0; i < s->wide; i++) {
		s->sums[i] = s->cell->apart ? a[i] : a[i] + b[i];
		s->sums[s->wide + i] = b[i];
	}
}

/* h U of the step before, added to the gates or, apart, into `pre`. `turned` holds U. */
static void
recur(const struct stage *s, const float *h, float *to, size_t to_row)
{
	add_product(s, s->examples, s->hidden, h, s->steps * s->hidden, to, to_row);
}

static void
step(const struct stage *s, size_t t, float *rows, size_t stride, const float *before)
{
	float *pre = s->each, *scratch = s->sums + 2 * s->wide;

	for (size_t i = 0; s->cell->apart && i < s->examples; i++)
		memcpy(pre + i * s->wide, s->sums + s->wide, s->wide * sizeof(float));
	if (t > 0)
		recur(s, s->h + (t - 1) * s->hidden, s->cell->apart ? pre : rows,
		    s->cell->apart ? s->wide : stride);
	for (size_t i = 0; i < s->examples; i++) {
		float *h = s->h + (i * s->steps + t) * s->hidden;
		s->cell->step(&(struct recurrent_step){.hidden = s->hidden,
		    .row = rows + i * stride,
		    .before = before ? before + i * stride : NULL,
		    .h_before = t > 0 ? h - s->hidden : NULL,
		    .h = h,
		    .scratch = scratch,
		    .pre = pre + i * s->wide});
	}
}

/* All steps' inputs in one product. */
static void
forward_kept(const struct stage *s)
{
	size_t stride = s->steps * s->row;

	rows_turn(s->turned, weights_of(s, INPUT_WEIGHT), s->wide, s->in);
	project(s, s->examples * s->steps, s->x, s->in, s->rows, s->row);
	rows_turn(s->turned, weights_of(s, HIDDEN_WEIGHT), s->wide, s->hidden);
	for (size_t t = 0; t < s->steps; t++) {
		float *rows = s->rows + t * s->row;
		step(s, t, rows, stride, t > 0 ? rows - s->row : NULL);
	}
}

/* Evaluating, one step's rows are enough. The weights of the input are read as they lie, by their own sum over inputs. */
static void
forward_still(const struct stage *s, float *all)
{
	const float *input = weights_of(s, INPUT_WEIGHT);
	struct stage in = *s;

	in.turned = all;
	rows_turn(all, input, s->wide, s->in);
	rows_turn(s->turned, weights_of(s, HIDDEN_WEIGHT), s->wide, s->hidden);
	for (size_t t = 0; t < s->steps; t++) {
		project(&in, s->examples, s->x + t * s->in, s->steps * s->in, s->rows, s->row);
		step(s, t, s->rows, s->row, t > 0 ? s->rows : NULL);
	}
}

static struct stage
stage_of(const struct layer *l, const struct backend_pass *p, const struct recurrent_cell *cell,
    const struct operands *v, unsigned at)
{
	size_t hidden = l->spec.out, steps = layer_rows(&l->in[0]), in = l->in[0].w;
	size_t deep = in > hidden ? in : hidden, wide = cell->gates * hidden;
	struct stage s = {.cell = cell,
	    .l = l,
	    .p = p,
	    .at = at,
	    .steps = steps,
	    .hidden = hidden,
	    .in = at == 0 ? in : hidden,
	    .wide = wide,
	    .examples = p->n,
	    .row = cell->row * hidden,
	    .turned = v->work,
	    .sums = v->work + wide * deep,
	    .each = v->work + l->work};
	size_t row_floats = p->n * steps * s.row, h_floats = p->n * steps * hidden;
	bool top = at + 1 == l->spec.stack;

	if (v->kept) {
		float *base = (float *)v->kept + l->spec.stack * row_floats;
		s.rows = (float *)v->kept + at * row_floats;
		s.h = top && !l->spec.last ? v->y : base + at * h_floats;
		s.x = at == 0 ? v->x[0] : base + (at - 1) * h_floats;
	}
	return s;
}

static void
take_last(const struct stage *s, float *y)
{
	for (size_t i = 0; i < s->examples; i++)
		memcpy(y + i * s->hidden, s->h + ((i + 1) * s->steps - 1) * s->hidden,
		    s->hidden * sizeof(float));
}

/* One array of hidden states serves all layers: a step reads what it then writes over. */
static void
place_still(struct stage *s, const struct operands *v, float **all)
{
	float *rows = s->each + s->examples * s->wide;
	float *h = rows + s->examples * s->row;

	s->rows = rows;
	s->h = s->l->spec.last ? h : v->y;
	s->x = s->at == 0 ? v->x[0] : s->h;
	*all = s->sums + 2 * (s->wide + s->hidden);
}

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	const struct recurrent_cell *cell = cell_of(l);
	const struct operands v = operands_of(l, p);
	struct stage s = {0};

	for (unsigned at = 0; at < l->spec.stack; at++) {
		float *all = NULL;
		s = stage_of(l, p, cell, &v, at);
		if (!v.kept)
			place_still(&s, &v, &all);
		put_biases(&s);
		if (v.kept)
			forward_kept(&s);
		else
			forward_still(&s, all);
	}
	if (l->spec.last)
		take_last(&s, v.y);
}

/* What comes through U, added to the gradient of the hidden state before: all gates in one sum, or those before the last, then that. */
static void
back_through(const struct stage *s, const float *rows, float *dh)
{
	const float *hidden_weight = weights_of(s, HIDDEN_WEIGHT);
	size_t h = s->hidden, most = (s->cell->gates - 1) * h;
	bool apart = s->cell->apart;
	struct gemm g = {.m = s->examples,
	    .n = h,
	    .k = apart ? most : s->wide,
	    .a = rows,
	    .a_row = s->steps * s->row,
	    .a_col = 1,
	    .b = hidden_weight,
	    .b_row = h,
	    .c = dh,
	    .c_row = h,
	    .alpha = 1,
	    .beta = 1,
	    .exact = s->p->exact,
	    .team = s->p->team};

	gemm_outer(&g);
	if (!apart)
		return;
	g.k = h;
	g.a = rows + last_column(s->cell) * h;
	g.b = hidden_weight + most * h;
	gemm_outer(&g);
}

/* dy: [n][steps][hidden], or of the last step alone. Rows become gradients at the gates. */
static void
back_steps(const struct stage *s, const float *dy, bool last)
{
	float *dh = s->each, *dc = dh + s->examples * s->hidden;
	size_t h = s->hidden;

	memset(dh, 0, 2 * s->examples * h * sizeof(float));
	for (size_t t = s->steps; t-- > 0;) {
		for (size_t i = 0; i < s->examples; i++) {
			float *row = s->rows + (i * s->steps + t) * s->row;
			const float *own = s->h + (i * s->steps + t) * h;
			if (!last || t + 1 == s->steps)
				runs_add(dh + i * h, dy + (last ? i : i * s->steps + t) * h, h);
			s->cell->back(&(struct recurrent_back){.hidden = h,
			    .row = row,
			    .before = t > 0 ? row - s->row : NULL,
			    .h_before = t > 0 ? own - h : NULL,
			    .dh = dh + i * h,
			    .dc = dc + i * h,
			    .scratch = s->sums + 2 * s->wide});
		}
		if (t > 0)
			back_through(s, s->rows + t * s->row, dh);
	}
}

static void
give_product(const struct stage *s, size_t param, size_t count, const float *rows, const float *x,
    size_t width, bool apart)
{
	const struct layer_param *to = &s->l->param[param];
	size_t most = (s->cell->gates - 1) * s->hidden;

	if (to->hold)
		return;
	struct sgd_target t = sgd_begin(s->p->sgd, to->at);
	struct gemm g = {.m = apart ? most : s->wide,
	    .n = width,
	    .k = count,
	    .a = rows,
	    .a_row = 1,
	    .a_col = s->row,
	    .b = x,
	    .b_row = width,
	    .c = t.to,
	    .c_row = width,
	    .alpha = t.alpha,
	    .beta = t.beta,
	    .exact = s->p->exact,
	    .team = s->p->team};
	gemm_outer(&g);
	if (apart) {
		g.m = s->hidden;
		g.a = rows + last_column(s->cell) * s->hidden;
		g.c = t.to + most * width;
		gemm_outer(&g);
	}
	sgd_end(s->p->sgd, to->at, to->count);
}

/* Biases: sums over (example, step); of the hidden state's, the last gate may have a column of its own. */
static void
give_biases(const struct stage *s, size_t first)
{
	float *a = s->sums, *b = a + s->wide;
	size_t most = (s->cell->gates - 1) * s->hidden;

	memset(a, 0, 2 * s->wide * sizeof(float));
	for (size_t r = 0; r < s->examples * s->steps; r++) {
		const float *row = s->rows + r * s->row;
		runs_add(a, row, s->wide);
		runs_add(b + most, row + last_column(s->cell) * s->hidden, s->hidden);
	}
	memcpy(b, a, most * sizeof(float));
	operands_give(s->l, s->p, first + INPUT_BIAS, a);
	operands_give(s->l, s->p, first + HIDDEN_BIAS, b);
}

/* The state before the first step is zero: so is what stands before each example's rows once its last state is not needed any more. */
static void
clear_last(const struct stage *s)
{
	for (size_t i = 0; s->h && i < s->examples; i++)
		memset(s->h + ((i + 1) * s->steps - 1) * s->hidden, 0, s->hidden * sizeof(float));
}

static void
give_gradients(const struct stage *s)
{
	size_t first = s->at * (s->l->spec.bias ? 4 : 2), count = s->examples * s->steps;

	give_product(s, first + INPUT_WEIGHT, count, s->rows, s->x, s->in, false);
	clear_last(s);
	give_product(
	    s, first + HIDDEN_WEIGHT, count - 1, s->rows + s->row, s->h, s->hidden, s->cell->apart);
	if (s->l->spec.bias)
		give_biases(s, first);
}

static void
back_input(const struct stage *s, float *dx, bool add)
{
	gemm_outer(&(struct gemm){.m = s->examples * s->steps,
	    .n = s->in,
	    .k = s->wide,
	    .a = s->rows,
	    .a_row = s->row,
	    .a_col = 1,
	    .b = weights_of(s, INPUT_WEIGHT),
	    .b_row = s->in,
	    .c = dx,
	    .c_row = s->in,
	    .alpha = 1,
	    .beta = add ? 1 : 0,
	    .exact = s->p->exact,
	    .team = s->p->team});
}

static void
backward(const struct layer *l, const struct backend_pass *p)
{
	const struct recurrent_cell *cell = cell_of(l);
	const struct operands v = operands_of(l, p);
	const float *dy = v.dy;

	if (!v.kept || !dy)
		return;
	for (unsigned at = l->spec.stack; at-- > 0;) {
		const struct stage s = stage_of(l, p, cell, &v, at);
		float *between = s.each + 2 * s.examples * s.hidden;
		back_steps(&s, dy, l->spec.last && at + 1 == l->spec.stack);
		if (at > 0)
			back_input(&s, between, false);
		else if (v.dx[0])
			back_input(&s, v.dx[0], l->add[0]);
		give_gradients(&s);
		dy = between;
	}
}

static enum err
need(struct layer *l, struct why *why)
{
	return count_needs(l, cell_of(l))
	    ? err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", l->spec.name)
	    : ERR_OK;
}

const struct backend_layer recurrent_passes = {
    .need = need, .forward = forward, .backward = backward};
