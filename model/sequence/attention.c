#include "cpu_sequence.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "cpu.h"
#include "curves.h"
#include "draw.h"
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
 *   dropout   each weight times 0 or 1 / (1 - rate), drawn by place: the same again on the way back
 *   output    sum over the steps, ascending
 *   dq        sum over steps; dk, dv: rows in blocks of BLOCK, each a sum over its rows, block after block
 *
 * Few rows at a time, STRIP, since what causal ones do not see is left out strip by strip: too few for OpenBLAS.
 */
#define BLOCK ((size_t)64)
#define STRIP ((size_t)16)
static_assert(BLOCK % STRIP == 0, "a block is whole strips");

struct attention {
	const struct layer *l;
	const struct backend_pass *p;
	size_t steps, width, heads, head; /* head: width of one */
	float scale;
	bool drops; /* weights, in this pass */
	float *qkv, *mixed; /* [n][steps][3 width], [n][steps][width] */
	/* Work: */
	float *turned; /* weights */
	float *sine, *cosine; /* [steps][head / 2] */
	float *back; /* [n][steps][width] */
	/* Of a lane: */
	float *packed[2]; /* keys, values, of one head */
	struct gemm keys, values; /* products with their columns */
	float *copies
	    [3]; /* [steps][head]: on the way back queries, keys and the gradient of what the head gives; else values */
	size_t row; /* of scores */
	float *scores, *slopes; /* [BLOCK][row] */
	float *factors; /* [row]: of dropped weights; NULL: none are */
	size_t example, at; /* of the pass, and the head: what is worked on */
};

/* Whole lanes, for curves_softmax; an odd number, since rows a power of two apart would share their place in the cache. */
static size_t
score_row(size_t steps)
{
	return ((steps + 15) / 16 | 1) * 16;
}

static enum err
need(struct layer *l, struct why *why)
{
	size_t steps = layer_rows(&l->in[0]), width = l->in[0].w, head = width / l->spec.heads;
	size_t area, square, sum, rows = 2 * BLOCK + (l->spec.rate > 0 ? 1 : 0);

	if (!num_mul(steps, width, &area) || !num_mul(area, 5, &l->work_each) ||
	    !num_mul(area, 4 * sizeof(float), &l->saved) ||
	    !num_mul(score_row(steps), rows, &square) || !num_mul(5 * head, steps + 16, &sum) ||
	    !num_add(sum, square, &l->work_lane) || !num_mul(3 * width, width + 16, &sum) ||
	    !num_add(steps * head, rows_work(width, 3 * width), &l->work))
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
	    .drops = l->spec.rate > 0 && p->draw && !p->draw->stream,
	    .qkv = kept,
	    .mixed = kept + p->n * steps * 3 * width,
	    .turned = v->work,
	    .back = each};

	a.sine = a.turned + rows_work(width, 3 * width);
	a.cosine = a.sine + steps * (head / 2);
	return a;
}

/* The same with one thread's own memory. */
static struct attention
in_lane(const struct attention *all, unsigned lane)
{
	struct attention a = *all;

	a.packed[0] = operands_lane(a.l, a.p, lane);
	a.packed[1] = a.packed[0] + gemm_pack_floats(a.head, a.steps);
	a.copies[0] = a.packed[1] + gemm_pack_floats(a.head, a.steps);
	a.copies[1] = a.copies[0] + a.steps * a.head;
	a.copies[2] = a.copies[1] + a.steps * a.head;
	a.row = score_row(a.steps);
	a.scores = a.copies[2] + a.steps * a.head;
	a.slopes = a.scores + BLOCK * a.row;
	a.factors = all->drops ? a.slopes + BLOCK * a.row : NULL;
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
	    .arithmetic = a->p->arithmetic,
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

/* Rows [first, first + count), and how many steps they see at most. */
struct span {
	size_t first, count, seen;
};

static bool
next_rows(const struct attention *a, struct span *s, size_t most, size_t end)
{
	s->first += s->count;
	s->count = end - s->first < most ? end - s->first : most;
	s->seen = a->l->spec.causal ? s->first + s->count : a->steps;
	return s->count > 0;
}

static bool
next_strip(const struct attention *a, struct span *s, size_t end)
{
	return next_rows(a, s, STRIP, end);
}

static void
copy_head(const struct attention *a, size_t which, const float *from, size_t row)
{
	float *to = a->copies[which];

	for (size_t t = 0; t < a->steps; t++)
		memcpy(to + t * a->head, from + t * row, a->head * sizeof(float));
}

/* Rows of a strip, a_row apart, times the columns of one head's keys or values. */
static struct gemm
pack_columns(const struct attention *a, const float *rows, size_t a_row, float alpha, float *to)
{
	struct gemm g = {.m = STRIP,
	    .n = a->steps,
	    .k = a->head,
	    .a_row = a_row,
	    .a_col = 1,
	    .b = rows,
	    .b_row = 3 * a->width,
	    .c_row = a->row,
	    .alpha = alpha,
	    .beta = 0,
	    .arithmetic = a->p->arithmetic};

	gemm_pack(&g, to, true);
	return g;
}

static void
multiply_columns(const struct gemm *columns, const struct span *s, const float *from, float *to)
{
	struct gemm g = *columns;

	g.m = s->count;
	g.n = s->seen;
	g.a = from + s->first * g.a_row;
	g.c = to;
	gemm_outer(&g);
}

/* to[count, head] = scores[count, seen] rows[seen, head] */
static void
multiply_rows(const struct attention *a, const struct span *s, const float *scores,
    const float *rows, float *to, size_t to_row)
{
	gemm_outer(&(struct gemm){.m = s->count,
	    .n = a->head,
	    .k = s->seen,
	    .a = scores,
	    .a_row = a->row,
	    .a_col = 1,
	    .b = rows,
	    .b_row = a->head,
	    .c = to + s->first * to_row,
	    .c_row = to_row,
	    .alpha = 1,
	    .beta = 0,
	    .arithmetic = a->p->arithmetic});
}

/* Weights of attention. */
static void
attend(const struct attention *a, const struct span *s, const float *q, float *scores)
{
	multiply_columns(&a->keys, s, q, scores);
	for (size_t r = 0; r < s->count; r++, scores += a->row) {
		size_t own = a->l->spec.causal ? s->first + r + 1 : s->seen;
		curves_softmax(scores, own);
		for (own = (own + 15) / 16 * 16; own < s->seen; own++)
			scores[own] = 0;
	}
}

CPU_CLONES static void
make_factors(float *factors, size_t n, float rate)
{
	float scale = 1 / (1 - rate);

	for (size_t i = 0; i < n; i++)
		factors[i] = factors[i] < rate ? 0 : scale;
}

/* What row r of a strip is multiplied by: each row of each head of an example is drawn as an example of `steps` elements. */
static void
draw_factors(const struct attention *a, const struct span *s, size_t r)
{
	struct draw draw = *a->p->draw;

	draw.example = ((draw.example + a->example) * a->heads + a->at) * a->steps + s->first + r;
	draw_floats(&draw, a->l->index, a->steps, a->factors, s->seen);
	make_factors(a->factors, s->seen, a->l->spec.rate);
}

static void
drop(const struct attention *a, const struct span *s, float *scores)
{
	for (size_t r = 0; a->factors && r < s->count; r++) {
		draw_factors(a, s, r);
		runs_product(scores + r * a->row, scores + r * a->row, a->factors, s->seen, false);
	}
}

static void
mix_head(struct attention *a, const float *rows, float *mixed, size_t head)
{
	const float *q = rows + head * a->head;
	struct span s = {0};

	a->keys = pack_columns(a, q + a->width, 3 * a->width, a->scale, a->packed[0]);
	copy_head(a, 0, q + 2 * a->width, 3 * a->width);
	while (next_strip(a, &s, a->steps)) {
		attend(a, &s, q, a->scores);
		drop(a, &s, a->scores);
		multiply_rows(a, &s, a->scores, a->copies[0], mixed + head * a->head, a->width);
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
	a.example = i;
	for (a.at = 0; a.at < a.heads; a.at++)
		mix_head(&a, rows, a.mixed + i * area, a.at);
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

	a.drops &= p->training;
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

/* to[seen, head] (+)= from[count, seen]^T rows[count, head]; of causal rows none before the column's own. */
static void
add_across(const struct attention *a, const struct span *b, const float *from, const float *rows,
    float *to)
{
	bool causal = a->l->spec.causal;

	for (size_t j = 0, some; j < b->seen; j += some) {
		some = b->seen - j > STRIP ? STRIP : b->seen - j;
		size_t skip = causal && j > b->first ? j - b->first : 0;
		bool begins = b->first == 0 || (causal && j >= b->first);
		gemm_outer(&(struct gemm){.m = some,
		    .n = a->head,
		    .k = b->count - skip,
		    .a = from + skip * a->row + j,
		    .a_row = 1,
		    .a_col = a->row,
		    .b = rows + (b->first + skip) * a->head,
		    .b_row = a->head,
		    .c = to + j * 3 * a->width,
		    .c_row = 3 * a->width,
		    .alpha = 1,
		    .beta = begins ? 0 : 1,
		    .arithmetic = a->p->arithmetic});
	}
}

/* The gradient at a strip's scores, in `slopes`; its part of dq. The scores become what the values were multiplied by. */
static void
back_strip(const struct attention *a, const struct span *s, float *scores, float *slopes, float *dq)
{
	size_t at = 0;

	attend(a, s, a->copies[0], scores);
	multiply_columns(&a->values, s, a->copies[2], slopes);
	for (size_t r = 0; r < s->count; r++, at += a->row) {
		if (a->factors) {
			draw_factors(a, s, r);
			runs_product(slopes + at, slopes + at, a->factors, s->seen, false);
		}
		unsoften(slopes + at, scores + at, s->seen, a->scale);
		if (a->factors)
			runs_product(scores + at, scores + at, a->factors, s->seen, false);
	}
	multiply_rows(a, s, slopes, a->copies[1], dq, 3 * a->width);
}

/* The head's queries, keys and values become their gradients. */
static void
back_head(struct attention *a, float *rows, const float *dmixed, size_t head)
{
	float *q = rows + head * a->head, *k = q + a->width, *v = k + a->width;
	struct span b = {0};

	copy_head(a, 0, q, 3 * a->width);
	copy_head(a, 1, k, 3 * a->width);
	copy_head(a, 2, dmixed + head * a->head, a->width);
	a->keys = pack_columns(a, k, a->head, a->scale, a->packed[0]);
	a->values = pack_columns(a, v, a->head, 1, a->packed[1]);
	while (next_rows(a, &b, BLOCK, a->steps)) {
		struct span s = {.first = b.first};
		while (next_strip(a, &s, b.first + b.count)) {
			size_t at = (s.first - b.first) * a->row;
			back_strip(a, &s, a->scores + at, a->slopes + at, q);
		}
		add_across(a, &b, a->slopes, a->copies[0], k);
		add_across(a, &b, a->scores, a->copies[2], v);
	}
}

static void
back_example(void *arg, size_t i, unsigned lane)
{
	struct attention a = in_lane(arg, lane);
	size_t area = a.steps * a.width;
	float *rows = a.qkv + 3 * i * area;

	a.example = i;
	for (a.at = 0; a.at < a.heads; a.at++)
		back_head(&a, rows, a.back + i * area, a.at);
	if (a.l->spec.rotation == ROTATION_ROTARY)
		rotate(&a, rows, -1);
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

	rows_back(&out, v.dy, a.back, false, a.turned);
	if (l->spec.rotation == ROTATION_ROTARY)
		make_turns(&a);
	each_example(&a, 5, back_example);
	if (v.dx[0])
		rows_back(&in, a.qkv, v.dx[0], l->add[0], a.turned);
	give(&a, &out, false, v.dy, a.mixed);
	give(&a, &in, true, a.qkv, v.x[0]);
}

const struct backend_layer attention_passes = {
    .need = need, .forward = forward, .backward = backward};
