#include "rows.h"

#include <string.h>

#include "gemm.h"
#include "runs.h"
#include "sgd.h"
#include "team.h"

static void
put_bias(const struct rows_product *p, float *y)
{
	for (size_t i = 0; p->bias && i < p->rows; i++)
		memcpy(y + i * p->out, p->bias, p->out * sizeof(float));
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
	    .exact = p->exact,
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
	    .exact = p->exact,
	    .team = p->team};
}

size_t
rows_turned_work(size_t in, size_t out)
{
	return gemm_pack_floats(in, out);
}

void
rows_turned(const struct rows_product *p, const float *x, float *y, float *work)
{
	struct gemm g = product_of(p, x, p->in, y, p->out, p->bias || p->adds);

	put_bias(p, y);
	gemm_pack(&g, work, true);
	gemm_outer(&g);
}

void
rows_back(const struct rows_product *p, const float *dy, float *dx, bool add)
{
	const struct gemm g = product_of(p, dy, p->out, dx, p->in, add);

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
	    .exact = p->exact,
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

/* Of one element, in multiply-adds. */
#define SUM 8.0

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
