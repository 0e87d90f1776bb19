#include "recurrent.h"

#include <string.h>

#include "cpu_sequence.h"
#include "gemm.h"
#include "num.h"
#include "rows.h"
#include "runs.h"
#include "sgd.h"
#include "team.h"

enum { INPUT_WEIGHT, HIDDEN_WEIGHT, INPUT_BIAS, HIDDEN_BIAS };

/* One layer of the stack during a pass, of all examples or of some that stand one after the other. */
struct stage {
	const struct recurrent_cell *cell;
	const struct layer *l;
	const struct backend_pass *p;
	unsigned at; /* in the stack */
	size_t steps, hidden, in, wide; /* wide: of all gates */
	size_t examples, row, stride; /* stride: of rows, from one example to the next */
	const float *x; /* [n][steps][in] */
	float *h; /* [n][steps][hidden] */
	float *rows; /* [n][steps][row]; evaluating: [n][row] */
	const float *dy; /* [n][steps][hidden]; of the last step alone: [n][hidden] */
	bool last; /* dy is */
	struct gemm input, through[2]; /* products with W and, of one step, with U */
	float *packed, *more, *sums; /* work: weights, twice; biases */
	float *each; /* work for each example */
	float *pre; /* [n][wide] */
	float *dh, *dc; /* [n][hidden] */
	/* What a step's product with U reads, for all examples side by side: [n][hidden] of states; on the way back [n][row]. Rows that lie
	 * a sequence apart meet in few lines of the caches. */
	float *near;
	size_t near_row;
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

static size_t
packed_floats(size_t hidden, size_t in, size_t wide)
{
	size_t deep = in > hidden ? in : hidden;
	size_t forth = gemm_pack_floats(deep, wide), back = gemm_pack_floats(wide, hidden);

	return forth > back ? forth : back;
}

static enum err
count_needs(struct layer *l, const struct recurrent_cell *cell)
{
	size_t hidden = l->spec.out, wide = cell->gates * hidden, in = l->in[0].w;
	size_t steps = layer_rows(&l->in[0]), each, packed;

	/* Weights were counted, so sums of them fit; what hangs on steps is checked. */
	if (!num_mul(wide + 16, (in > hidden ? in : hidden) + 16, &packed) ||
	    !num_mul(steps, hidden, &each) ||
	    !num_mul(each, (cell->row + 1) * l->spec.stack, &l->saved) ||
	    !num_mul(l->saved, sizeof(float), &l->saved))
		return ERR_LIMIT;
	l->saved = kept_floats(l, cell) * sizeof(float);
	if (!num_mul(packed_floats(hidden, in, wide), 2, &packed) ||
	    !num_add(packed, 2 * wide, &l->work))
		return ERR_LIMIT;
	l->work_each = each + (cell->row + cell->gates + 1) * hidden;
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

/* Rows of gates (+)= rows of length k times weights [wide, k], which are packed. */
static struct gemm
pack_gates(const struct stage *s, int which, size_t rows, size_t k, size_t a_row, size_t to_row,
    float *packed)
{
	struct gemm g = {.m = rows,
	    .n = s->wide,
	    .k = k,
	    .a_row = a_row,
	    .a_col = 1,
	    .b = weights_of(s, which),
	    .b_row = k,
	    .c_row = to_row,
	    .alpha = 1,
	    .beta = 1,
	    .arithmetic = s->p->arithmetic,
	    .own = true,
	    .team = s->p->team};

	gemm_pack(&g, packed, true);
	return g;
}

static void
multiply(const struct gemm *product, const float *a, float *c)
{
	struct gemm g = *product;

	g.a = a;
	g.c = c;
	gemm_outer(&g);
}

/* x W and the biases into gates, as many rows as the product has. */
static void
project(const struct stage *s, const float *x, float *to)
{
	for (size_t i = 0; i < s->input.m; i++)
		memcpy(to + i * s->input.c_row, s->sums, s->wide * sizeof(float));
	multiply(&s->input, x, to);
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

static void
step(const struct stage *s, size_t t, float *rows, const float *before)
{
	for (size_t i = 0; s->cell->apart && i < s->examples; i++)
		memcpy(s->pre + i * s->wide, s->sums + s->wide, s->wide * sizeof(float));
	if (t > 0)
		multiply(&s->through[0], s->near, s->pre);
	for (size_t i = 0; i < s->examples; i++) {
		float *h = s->h + (i * s->steps + t) * s->hidden;
		s->cell->step(&(struct recurrent_step){.hidden = s->hidden,
		    .row = rows + i * s->stride,
		    .before = before ? before + i * s->stride : NULL,
		    .h_before = t > 0 ? h - s->hidden : NULL,
		    .h = h,
		    .pre = s->cell->apart || t > 0 ? s->pre + i * s->wide : NULL});
		memcpy(s->near + i * s->hidden, h, s->hidden * sizeof(float));
	}
}

/* Examples do not meet between steps: each piece of them goes all the way alone. OpenBLAS's bits would hang on the number of rows. */
struct piece {
	const struct stage *all;
	void (*run)(const struct stage *s);
};

static void
run_piece(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct piece *p = arg;
	struct stage s = *p->all;

	(void)lane;
	if (count == s.examples) {
		p->run(&s);
		return;
	}
	s.examples = count;
	s.x += first * s.steps * s.in;
	s.h += first * s.steps * s.hidden;
	s.rows += first * s.stride;
	s.dy += s.dy ? first * (s.last ? 1 : s.steps) * s.hidden : 0;
	s.pre += first * s.wide;
	s.dh += first * s.hidden;
	s.dc += first * s.hidden;
	s.near += first * s.near_row;
	s.input.m = s.input.m / p->all->examples * count;
	s.through[0].m = s.through[1].m = count;
	s.input.team = s.through[0].team = s.through[1].team = NULL;
	p->run(&s);
}

/* Fewer examples than these make products slow; each piece reads all weights at each step, so that few pieces are best. */
#define LEAST ((size_t)4)
#define PIECES_EACH 2

static void
run_steps(const struct stage *s, void (*run)(const struct stage *s))
{
	struct piece p = {s, run};
	size_t least = s->examples / (team_active(s->p->team) * PIECES_EACH);

	if (least < LEAST)
		least = LEAST;
	team_share(s->p->team,
	    &(struct team_work){.n = s->examples,
		.least = least,
		.each = (double)(s->steps * s->wide) * (double)s->hidden,
		.fn = run_piece,
		.arg = &p});
}

/* All steps' inputs in one product. */
static void
steps_kept(const struct stage *s)
{
	project(s, s->x, s->rows);
	for (size_t t = 0; t < s->steps; t++) {
		float *rows = s->rows + t * s->row;
		step(s, t, rows, t > 0 ? rows - s->row : NULL);
	}
}

/* Evaluating, one step's rows are enough. */
static void
steps_still(const struct stage *s)
{
	for (size_t t = 0; t < s->steps; t++) {
		project(s, s->x + t * s->in, s->rows);
		step(s, t, s->rows, t > 0 ? s->rows : NULL);
	}
}

static void
run_forward(struct stage *s, bool kept)
{
	size_t together = kept ? s->steps : 1;

	put_biases(s);
	s->input = pack_gates(s, INPUT_WEIGHT, s->examples * together, s->in,
	    s->steps / together * s->in, s->row, s->more);
	s->through[0] =
	    pack_gates(s, HIDDEN_WEIGHT, s->examples, s->hidden, s->hidden, s->wide, s->packed);
	s->through[0].beta = s->cell->apart ? 1 : 0;
	s->near = s->pre + s->examples * s->wide;
	s->near_row = s->hidden;
	run_steps(s, kept ? steps_kept : steps_still);
}

static struct stage
stage_of(const struct layer *l, const struct backend_pass *p, const struct recurrent_cell *cell,
    const struct operands *v, unsigned at)
{
	size_t hidden = l->spec.out, steps = layer_rows(&l->in[0]), in = l->in[0].w;
	size_t wide = cell->gates * hidden, packed = packed_floats(hidden, in, wide);
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
	    .stride = (v->kept ? steps : 1) * cell->row * hidden,
	    .packed = v->work,
	    .more = v->work + packed,
	    .sums = v->work + 2 * packed,
	    .each = v->work + l->work};
	size_t row_floats = p->n * steps * s.row, h_floats = p->n * steps * hidden;
	bool top = at + 1 == l->spec.stack;

	if (v->kept) {
		float *base = (float *)v->kept + l->spec.stack * row_floats;
		s.rows = (float *)v->kept + at * row_floats;
		s.h = top && !l->spec.last ? v->y : base + at * h_floats;
		s.x = at == 0 ? v->x[0] : base + (at - 1) * h_floats;
	}
	s.pre = s.dh = s.each;
	s.dc = s.dh + p->n * hidden;
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
place_still(struct stage *s, const struct operands *v)
{
	float *rows = s->each + s->examples * (s->wide + s->hidden);
	float *h = rows + s->examples * s->row;

	s->rows = rows;
	s->h = s->l->spec.last ? h : v->y;
	s->x = s->at == 0 ? v->x[0] : s->h;
}

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	const struct recurrent_cell *cell = cell_of(l);
	const struct operands v = operands_of(l, p);
	struct stage s = {0};

	for (unsigned at = 0; at < l->spec.stack; at++) {
		s = stage_of(l, p, cell, &v, at);
		if (!v.kept)
			place_still(&s, &v);
		run_forward(&s, v.kept);
	}
	if (l->spec.last)
		take_last(&s, v.y);
}

/* What comes through U, added to the gradient of the hidden state before: all gates in one sum, or those before the last, then that. */
static void
pack_back(struct stage *s)
{
	size_t h = s->hidden, most = (s->cell->gates - 1) * h;
	bool apart = s->cell->apart;
	struct gemm g = {.m = s->examples,
	    .n = h,
	    .k = apart ? most : s->wide,
	    .a_row = s->row,
	    .a_col = 1,
	    .b = weights_of(s, HIDDEN_WEIGHT),
	    .b_row = h,
	    .c_row = h,
	    .alpha = 1,
	    .beta = 1,
	    .arithmetic = s->p->arithmetic,
	    .own = true,
	    .team = s->p->team};

	s->near = s->dc + s->examples * h;
	s->near_row = s->row;
	s->through[0] = s->through[1] = g;
	gemm_pack(&s->through[0], s->packed, false);
	if (!apart)
		return;
	s->through[1].k = h;
	s->through[1].b += most * h;
	gemm_pack(&s->through[1], s->packed + gemm_pack_floats(most, h), false);
}

static void
back_through(const struct stage *s)
{
	multiply(&s->through[0], s->near, s->dh);
	if (s->cell->apart)
		multiply(&s->through[1], s->near + last_column(s->cell) * s->hidden, s->dh);
}

/* Rows become gradients at the gates. */
static void
back_steps(const struct stage *s)
{
	size_t h = s->hidden;

	memset(s->dh, 0, s->examples * h * sizeof(float));
	memset(s->dc, 0, s->examples * h * sizeof(float));
	for (size_t t = s->steps; t-- > 0;) {
		for (size_t i = 0; i < s->examples; i++) {
			float *row = s->rows + (i * s->steps + t) * s->row, *dh = s->dh + i * h;
			const float *own = s->h + (i * s->steps + t) * h;
			if (!s->last || t + 1 == s->steps)
				runs_add(dh, s->dy + (s->last ? i : i * s->steps + t) * h, h);
			s->cell->back(&(struct recurrent_back){.hidden = h,
			    .row = row,
			    .before = t > 0 ? row - s->row : NULL,
			    .h_before = t > 0 ? own - h : NULL,
			    .dh = dh,
			    .dc = s->dc + i * h});
			memcpy(s->near + i * s->row, row, s->row * sizeof(float));
		}
		if (t > 0)
			back_through(s);
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
	    .arithmetic = s->p->arithmetic,
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

	struct rows_sum sum = {a, s->rows, s->examples * s->steps, s->row, s->wide};
	rows_sum(s->p->team, &sum);
	memcpy(b, a, s->wide * sizeof(float));
	if (s->cell->apart) {
		sum.sum = b + most;
		sum.from += last_column(s->cell) * s->hidden;
		sum.width = s->hidden;
		rows_sum(s->p->team, &sum);
	}
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
	    .arithmetic = s->p->arithmetic,
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
		struct stage s = stage_of(l, p, cell, &v, at);
		float *between = s.each + s.examples * (2 * s.hidden + s.row);
		s.dy = dy;
		s.last = l->spec.last && at + 1 == l->spec.stack;
		pack_back(&s);
		run_steps(&s, back_steps);
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
