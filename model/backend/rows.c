#include "rows.h"

#include <string.h>

#include "gemm.h"
#include "runs.h"
#include "sgd.h"
#include "team.h"

/* Of one element, in multiply-adds. */
#define PUT 4.0
#define SUM 8.0

struct biases {
	const struct rows_product *p;
	float *y;
};

static void
put_some(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct biases *b = arg;
	size_t out = b->p->out;

	(void)lane;
	for (size_t i = first; i < first + count; i++)
		memcpy(b->y + i * out, b->p->bias, out * sizeof(float));
}

static void
put_bias(const struct rows_product *p, float *y)
{
	struct biases b = {p, y};

	if (p->bias)
		team_share(p->team,
		    &(struct team_work){.n = p->rows,
			.least = 1,
			.each = PUT * (double)p->out,
			.fn = put_some,
			.arg = &b});
}

void
rows_direct(const struct rows_product *p, const float *x, float *y)
{
	put_bias(p, y);
	gemm_dot(&(struct gemm){.m = p->rows,
	    .n = p->out,
	    .k = p->in,
	    .a = x,
	    .a_row = p->in,
	    .a_col = 1,
	    .b = p->weight,
	    .b_row = p->in,
	    .c = y,
	    .c_row = p->out,
	    .alpha = 1,
	    .beta = p->bias ? 1 : 0,
	    .arithmetic = p->arithmetic,
	    .team = p->team});
}

/* c[rows, n] (+)= a[rows, k] b[k, n] */
static struct gemm
product_of(const struct rows_product *p, const float *a, size_t k, float *c, size_t n, bool add)
{
	return (struct gemm){.m = p->rows,
	    .n = n,
	    .k = k,
	    .a = a,
	    .a_row = k,
	    .a_col = 1,
	    .b = p->weight,
	    .b_row = p->in,
	    .c = c,
	    .c_row = n,
	    .alpha = 1,
	    .beta = add ? 1 : 0,
	    .arithmetic = p->arithmetic,
	    .team = p->team};
}

/* Floats of a packed weight that stay in the second-level cache while rows pass by it. */
#define NEAR ((size_t)1 << 17)
/* Rows that stay in the first between two passes over them. */
#define SLICE ((size_t)24)
/* Fewer rows do not pay for a copy of the weight, since gemm.h makes one for each block of about as many. */
#define MANY ((size_t)192)

size_t
rows_work(size_t in, size_t out)
{
	size_t forward = gemm_pack_floats(in, out), back = gemm_pack_floats(out, in);

	return forward > back ? forward : back;
}

struct passage {
	const struct rows_product *p;
	const struct gemm *g; /* packed */
};

static void
pass_rows(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct passage *s = arg;
	struct rows_product few = *s->p;
	struct gemm g = *s->g;

	(void)lane;
	few.team = g.team = NULL;
	g.a += first * g.a_row;
	g.c += first * g.c_row;
	for (; count > 0; count -= g.m, g.a += g.m * g.a_row, g.c += g.m * g.c_row) {
		few.rows = g.m = count < SLICE ? count : SLICE;
		put_bias(&few, g.c);
		gemm_outer(&g);
	}
}

void
rows_turned(const struct rows_product *p, const float *x, float *y, float *work)
{
	struct gemm g = product_of(p, x, p->in, y, p->out, p->bias || p->adds);
	struct passage few = {p, &g};

	gemm_pack(&g, work, true);
	if (g.packed && p->in * p->out <= NEAR) {
		team_share(p->team,
		    &(struct team_work){.n = p->rows,
			.least = SLICE,
			.each = (double)p->in * (double)p->out,
			.fn = pass_rows,
			.arg = &few});
	} else {
		put_bias(p, y);
		gemm_outer(&g);
	}
}

void
rows_back(const struct rows_product *p, const float *dy, float *dx, bool add, float *work)
{
	struct gemm g = product_of(p, dy, p->out, dx, p->in, add);

	if (work && p->arithmetic != GEMM_MIXED && p->rows >= MANY && p->in * p->out <= NEAR)
		gemm_pack(&g, work, false);
	gemm_outer(&g);
}

void
rows_gradient(const struct rows_product *p, const struct layer *l, size_t param,
    const struct backend_pass *pass, const float *dy, const float *x)
{
	const struct layer_param *to = &l->param[param];

	if (to->hold)
		return;
	const struct sgd s = operands_sgd(to, pass);
	struct sgd_target t = sgd_begin(&s, to->at);
	gemm_outer(&(struct gemm){.m = p->out,
	    .n = p->in,
	    .k = p->rows,
	    .a = dy,
	    .a_row = 1,
	    .a_col = p->out,
	    .b = x,
	    .b_row = p->in,
	    .c = t.to,
	    .c_row = p->in,
	    .alpha = t.alpha,
	    .beta = t.beta,
	    .arithmetic = p->arithmetic,
	    .team = p->team});
	sgd_end(&s, to->at, to->count);
}

static void
sum_columns(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct rows_sum *s = arg;

	(void)lane;
	memset(s->sum + first, 0, count * sizeof(float));
	for (size_t i = 0; i < s->rows; i++)
		runs_add(s->sum + first, s->from + i * s->stride + first, count);
}

void
rows_sum(struct team *team, const struct rows_sum *s)
{
	struct rows_sum all = *s;

	team_share(team,
	    &(struct team_work){.n = s->width,
		.least = 64,
		.each = SUM * (double)s->rows,
		.fn = sum_columns,
		.arg = &all});
}
