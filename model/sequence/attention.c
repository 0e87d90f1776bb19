#include "cpu_sequence.h"

#include <math.h>
#include <string.h>

#include "cpu.h"
#include "curves.h"
#include "gemm.h"
#include "num.h"
#include "rows.h"
#include "runs.h"
#include "team.h"

/*
 * Multi-head self-attention. Of each example queries, keys, values and what the heads give are kept; weights of attention are made again
 * on the way back, some rows at a time, so that memory grows with the steps and not with their square.
 *
 *   scores    sum over a head's width, ascending, of q k; times 1 / sqrt(width); softmax over the steps seen (curves_softmax)
 *   output    sum over the steps, ascending
 *   dq        sum over steps; dk, dv: rows in blocks of BLOCK, each a sum over its rows, block after block
 */
#define BLOCK ((size_t)64)

struct attention {
	const struct layer *l;
	const struct backend_pass *p;
	size_t steps, width, heads, head; /* head: width of one */
	float scale;
	bool exact;
	float *qkv, *mixed; /* [n][steps][3 width], [n][steps][width] */
	/* Work: */
	float *turned; /* weights */
	float *sine, *cosine; /* [steps][head / 2] */
	float *back; /* [n][steps][width] */
	/* Of a lane: */
	float *packed[2]; /* keys, values, of one head */
	struct gemm keys, values; /* products with their columns */
	float *scores, *slopes; /* [BLOCK][steps] */
	float *gradient; /* [steps][3 width], of one example */
};

static enum err
need(struct layer *l, struct why *why)
{
	size_t steps = layer_rows(&l->in[0]), width = l->in[0].w, head = width / l->spec.heads;
	size_t area, square, sum;

	if (!num_mul(steps, width, &area) || !num_mul(area, 5, &l->work_each) ||
	    !num_mul(area, 4 * sizeof(float), &l->saved) || !num_mul(steps, 2 * BLOCK, &square) ||
	    !num_mul(2 * head, steps + 16, &sum) || !num_add(sum, square, &sum) ||
	    !num_add(sum, 3 * area, &l->work_lane) || !num_mul(width, 3 * width + 16, &sum) ||
	    !num_add(steps * head, rows_turned_work(width, 3 * width), &l->work))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", l->spec.name);
	return ERR_OK;
}

static struct attention
attention_of(const struct layer *l, const struct backend_pass *p, const struct operands *v)
{
	size_t steps = layer_rows(&l->in[0]), width = l->in[0].w, head = width / l->spec.heads;
	float *each = v->work + l->work;
	float *kept = v->kept ? (float *)v->kept : each + p->n * steps * width;
	struct attention a = {.l = l,
	    .p = p,
	    .steps = steps,
	    .width = width,
	    .heads = l->spec.heads,
	    .head = head,
	    .scale = 1.0f / sqrtf((float)head),
	    .exact = p->exact,
	    .qkv = kept,
	    .mixed = kept + p->n * steps * 3 * width,
	    .turned = v->work,
	    .back = each};

	a.sine = a.turned + rows_turned_work(width, 3 * width);
	a.cosine = a.sine + steps * (head / 2);
	return a;
}

/* The same with one thread's own memory. */
static struct attention
in_lane(const struct attention *all, unsigned lane)
{
	struct attention a = *all;

	a.gradient = operands_lane(a.l, a.p, lane);
	a.packed[0] = a.gradient + 3 * a.steps * a.width;
	a.packed[1] = a.packed[0] + gemm_pack_floats(a.head, a.steps);
	a.scores = a.packed[1] + gemm_pack_floats(a.head, a.steps);
	a.slopes = a.scores + BLOCK * a.steps;
	return a;
}

static struct rows_product
projection(const struct attention *a, bool in)
{
	const struct layer *l = a->l;
	bool bias = l->spec.bias;
	const float *w = a->p->weights;
	size_t out = bias ? 2 : 1;

	return (struct rows_product){.rows = a->p->n * a->steps,
	    .in = a->width,
	    .out = in ? 3 * a->width : a->width,
	    .weight = w + l->param[in ? 0 : out].at,
	    .bias = bias ? w + l->param[in ? 1 : 3].at : NULL,
	    .exact = a->exact,
	    .team = a->p->team};
}

/* Angles of step t and pair k: t / 10000^(2 k / head). */
static void
make_turns(const struct attention *a)
{
	const double ln_base = 9.210340371976184;
	size_t half = a->head / 2;

	for (size_t k = 0; k < half; k++) {
		double slow = curves_exp_negative(-ln_base * (2.0 * (double)k / (double)a->head));
		for (size_t t = 0; t < a->steps; t++) {
			double s, c;
			curves_turn((double)t * slow, &s, &c);
			a->sine[t * half + k] = (float)s;
			a->cosine[t * half + k] = (float)c;
		}
	}
}

CPU_CLONES static void
turn(float *x, const float *sine, const float *cosine, size_t half, float way)
{
	for (size_t k = 0; k < half; k++) {
		float u = x[k], w = x[half + k], s = way * sine[k];
		x[k] = u * cosine[k] - w * s;
		x[half + k] = w * cosine[k] + u * s;
	}
}

/* Queries and keys of an example's rows; way -1 turns gradients back. */
static void
rotate(const struct attention *a, float *rows, float way)
{
	size_t half = a->head / 2;

	for (size_t t = 0; t < a->steps; t++)
		for (size_t h = 0; h < 2 * a->heads; h++)
			turn(rows + t * 3 * a->width + h * a->head, a->sine + t * half,
			    a->cosine + t * half, half, way);
}

/* Rows [first, first + count) of one head, and how many steps they see at most. */
struct block {
	const float *q, *k, *v; /* of the head: rows of 3 width floats */
	size_t first, count, seen;
};

static bool
next_block(const struct attention *a, struct block *b)
{
	b->first += b->count;
	b->count = a->steps - b->first < BLOCK ? a->steps - b->first : BLOCK;
	b->seen = a->l->spec.causal ? b->first + b->count : a->steps;
	return b->count > 0;
}

/* Rows of a block times the columns of one head's keys or values. */
static struct gemm
pack_columns(const struct attention *a, const float *rows, size_t a_row, float alpha, float *to)
{
	struct gemm g = {.m = a->steps < BLOCK ? a->steps : BLOCK,
	    .n = a->steps,
	    .k = a->head,
	    .a_row = a_row,
	    .a_col = 1,
	    .b = rows,
	    .b_row = 3 * a->width,
	    .c_row = a->steps,
	    .alpha = alpha,
	    .beta = 0,
	    .exact = a->exact};

	gemm_pack(&g, to, true);
	return g;
}

/* OpenBLAS takes no smaller product if it does not take the largest. */
static void
multiply_columns(const struct gemm *columns, const struct block *b, const float *from, float *to)
{
	struct gemm g = *columns;

	g.m = b->count;
	g.n = b->seen;
	g.a = from + b->first * g.a_row;
	g.c = to;
	g.c_row = b->seen;
	gemm_outer(&g);
}

/* The block's weights of attention. */
static void
attend(const struct attention *a, const struct block *b)
{
	multiply_columns(&a->keys, b, b->q, a->scores);
	for (size_t r = 0; r < b->count; r++) {
		size_t own = a->l->spec.causal ? b->first + r + 1 : b->seen;
		curves_softmax(a->scores + r * b->seen, 1, own);
		memset(a->scores + r * b->seen + own, 0, (b->seen - own) * sizeof(float));
	}
}

static struct block
head_of(const float *rows, const struct attention *a, size_t head)
{
	const float *q = rows + head * a->head;

	return (struct block){.q = q, .k = q + a->width, .v = q + 2 * a->width};
}

static void
mix_head(struct attention *a, const float *rows, float *mixed, size_t head)
{
	struct block b = head_of(rows, a, head);

	a->keys = pack_columns(a, b.k, 3 * a->width, a->scale, a->packed[0]);
	while (next_block(a, &b)) {
		attend(a, &b);
		gemm_outer(&(struct gemm){.m = b.count,
		    .n = a->head,
		    .k = b.seen,
		    .a = a->scores,
		    .a_row = b.seen,
		    .a_col = 1,
		    .b = b.v,
		    .b_row = 3 * a->width,
		    .c = mixed + b.first * a->width + head * a->head,
		    .c_row = a->width,
		    .alpha = 1,
		    .beta = 0,
		    .exact = a->exact});
	}
}

static void
mix_example(void *arg, size_t i, unsigned lane)
{
	struct attention a = in_lane(arg, lane);
	size_t area = a.steps * a.width;
	float *rows = a.qkv + 3 * i * area;

	if (a.l->spec.rotation == ROTATION_ROTARY)
		rotate(&a, rows, 1);
	for (size_t h = 0; h < a.heads; h++)
		mix_head(&a, rows, a.mixed + i * area, h);
}

/* By examples, each a piece; of so many passes over their scores. */
static void
each_example(struct attention *a, double passes, void (*fn)(void *arg, size_t i, unsigned lane))
{
	double each = passes * (double)a->steps * (double)a->steps * (double)a->width;

	team_run(team_worth(a->p->team, each * a->p->n), a->p->n, fn, a);
}

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	struct attention a = attention_of(l, p, &v);
	const struct rows_product in = projection(&a, true), out = projection(&a, false);

	rows_turned(&in, v.x[0], a.qkv, a.turned);
	if (l->spec.rotation == ROTATION_ROTARY)
		make_turns(&a);
	each_example(&a, 2, mix_example);
	rows_turned(&out, a.mixed, v.y, a.turned);
}

/* slopes = scores * (slopes - their mean under the scores) * scale */
CPU_CLONES static void
unsoften(float *slopes, const float *scores, size_t n, float scale)
{
	float mean = runs_dot(slopes, scores, n);

	for (size_t i = 0; i < n; i++)
		slopes[i] = scores[i] * (slopes[i] - mean) * scale;
}

/* to[seen, head] += from[count, seen]^T rows[count, head] */
static void
add_across(const struct attention *a, const struct block *b, const float *from, const float *rows,
    size_t row, float *to)
{
	gemm_outer(&(struct gemm){.m = b->seen,
	    .n = a->head,
	    .k = b->count,
	    .a = from,
	    .a_row = 1,
	    .a_col = b->seen,
	    .b = rows,
	    .b_row = row,
	    .c = to,
	    .c_row = 3 * a->width,
	    .alpha = 1,
	    .beta = 1,
	    .exact = a->exact});
}

/* The gradient at the block's scores, in `slopes`; its part of dq. dmixed: of the head, rows of `width`. */
static void
back_block(const struct attention *a, const struct block *b, const float *dmixed, float *dq)
{
	multiply_columns(&a->values, b, dmixed, a->slopes);
	for (size_t r = 0; r < b->count; r++)
		unsoften(a->slopes + r * b->seen, a->scores + r * b->seen, b->seen, a->scale);
	gemm_outer(&(struct gemm){.m = b->count,
	    .n = a->head,
	    .k = b->seen,
	    .a = a->slopes,
	    .a_row = b->seen,
	    .a_col = 1,
	    .b = b->k,
	    .b_row = 3 * a->width,
	    .c = dq + b->first * 3 * a->width,
	    .c_row = 3 * a->width,
	    .alpha = 1,
	    .beta = 0,
	    .exact = a->exact});
}

static void
back_head(struct attention *a, const float *rows, const float *dmixed, size_t head)
{
	struct block b = head_of(rows, a, head);
	float *dq = a->gradient + head * a->head, *dk = dq + a->width, *dv = dk + a->width;

	dmixed += head * a->head;
	a->keys = pack_columns(a, b.k, 3 * a->width, a->scale, a->packed[0]);
	a->values = pack_columns(a, b.v, a->width, 1, a->packed[1]);
	while (next_block(a, &b)) {
		attend(a, &b);
		back_block(a, &b, dmixed, dq);
		add_across(a, &b, a->slopes, b.q + b.first * 3 * a->width, 3 * a->width, dk);
		add_across(a, &b, a->scores, dmixed + b.first * a->width, a->width, dv);
	}
}

/* An example's queries, keys and values become their gradients. */
static void
back_example(void *arg, size_t i, unsigned lane)
{
	struct attention a = in_lane(arg, lane);
	size_t area = a.steps * a.width;
	float *rows = a.qkv + 3 * i * area;

	memset(a.gradient, 0, 3 * area * sizeof(float));
	for (size_t h = 0; h < a.heads; h++)
		back_head(&a, rows, a.back + i * area, h);
	if (a.l->spec.rotation == ROTATION_ROTARY)
		rotate(&a, a.gradient, -1);
	memcpy(rows, a.gradient, 3 * area * sizeof(float));
}

static void
give(const struct attention *a, const struct rows_product *r, bool in, const float *dy,
    const float *x)
{
	bool bias = a->l->spec.bias;
	size_t param = in ? 0 : bias ? 2 : 1;

	rows_gradient(r, a->l, param, a->p, dy, x);
	if (!bias)
		return;
	rows_sum(a->p->team, &(struct rows_sum){a->turned, dy, r->rows, r->out, r->out});
	operands_give(a->l, a->p, param + 1, a->turned);
}

static void
backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	struct attention a = attention_of(l, p, &v);
	const struct rows_product in = projection(&a, true), out = projection(&a, false);

	rows_back(&out, v.dy, a.back, false);
	if (l->spec.rotation == ROTATION_ROTARY)
		make_turns(&a);
	each_example(&a, 5, back_example);
	if (v.dx[0])
		rows_back(&in, a.qkv, v.dx[0], l->add[0]);
	give(&a, &out, false, v.dy, a.mixed);
	give(&a, &in, true, a.qkv, v.x[0]);
}

const struct backend_layer attention_passes = {
    .need = need, .forward = forward, .backward = backward};
