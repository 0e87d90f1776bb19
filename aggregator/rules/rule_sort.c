#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "rule_inside.h"
#include "vec.h"

#define COLUMNS 32 /* mixed at a time */
#define LANES 8

/* Lowered to what the machine has. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(8), may_alias));

/* Rules that sort each coordinate: one strip of all deltas in memory at a time. */
struct strip {
	const struct rule *rule;
	size_t width;
	float *points; /* points x width */
	float *rows; /* rows x width: the points themselves, or means of some */
	/* if there is a mix: */
	double *columns; /* points x COLUMNS */
	uint16_t *members; /* of every row, one after the other */
	size_t *counts; /* of members, for each row */
	int32_t *scratch;
};

static enum err
list_members(struct strip *s)
{
	const struct rule *r = s->rule;
	size_t n = 0;

	s->columns = malloc(r->points * COLUMNS * sizeof(*s->columns));
	s->members = malloc(r->rows * r->points * sizeof(*s->members));
	s->counts = calloc(r->rows, sizeof(*s->counts));
	if (!s->columns || !s->members || !s->counts)
		return ERR_NOMEM;
	for (size_t i = 0; i < r->rows; i++)
		for (size_t k = 0; k < r->points; k++)
			if (r->mix[i * r->points + k]) {
				s->members[n++] = (uint16_t)k;
				s->counts[i]++;
			}
	return ERR_OK;
}

static enum err
strip_init(struct strip *s, const struct rule *r)
{
	*s = (struct strip){.rule = r, .width = rule_width(r->points + (r->mix ? r->rows : 0))};
	s->points = malloc(r->points * s->width * sizeof(float));
	s->rows = r->mix ? malloc(r->rows * s->width * sizeof(float)) : s->points;
	s->scratch = malloc(order_scratch(r->order) * sizeof(*s->scratch));
	enum err e = s->points && s->rows && s->scratch ? ERR_OK : ERR_NOMEM;
	return !e && r->mix ? list_members(s) : e;
}

static void
strip_deinit(struct strip *s)
{
	if (s->rows != s->points)
		free(s->rows);
	free(s->points);
	free(s->columns);
	free(s->members);
	free(s->counts);
	free(s->scratch);
}

/* The mean of n members at each of COLUMNS columns: sums in f64 in the order of the points, as mean_fold makes them. */
CPU_CLONES static void
mean_columns(float *restrict out, const double *restrict points, const uint16_t *members, size_t n)
{
	double number = (double)n;
	lanes part[COLUMNS / LANES];

	for (size_t k = 0; k < COLUMNS / LANES; k++)
		part[k] = -(lanes){0}; /* from +0.0 a sum of negative zeros would lose its sign */
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < COLUMNS / LANES; k++)
			part[k] += *(
			    const lanes *)(const void *)(points + members[i] * COLUMNS + k * LANES);
	for (size_t k = 0; k < COLUMNS / LANES; k++)
		for (size_t l = 0; l < LANES; l++)
			out[k * LANES + l] = (float)(part[k][l] / number);
}

CPU_CLONES static void
widen(double *restrict out, const float *restrict in)
{
	for (size_t k = 0; k < COLUMNS; k++)
		out[k] = (double)in[k];
}

/* A few columns of all points at a time, which fit the first cache: every row reads most of them. */
static enum err
mix_rows(struct strip *s, size_t count)
{
	const struct rule *r = s->rule;
	float some[COLUMNS] = {0};

	for (size_t at = 0; at < count; at += COLUMNS) {
		size_t n = count - at < COLUMNS ? count - at : COLUMNS;
		for (size_t i = 0; i < r->points; i++) {
			memcpy(some, s->points + i * s->width + at, n * sizeof(float));
			widen(s->columns + i * COLUMNS, some);
		}
		const uint16_t *members = s->members;
		for (size_t i = 0; i < r->rows; i++) {
			mean_columns(some, s->columns, members, s->counts[i]);
			members += s->counts[i];
			if (!vec_all_finite(some, n))
				return ERR_NUMERIC;
			memcpy(s->rows + i * s->width + at, some, n * sizeof(float));
		}
	}
	return ERR_OK;
}

static enum err
sort_strip(struct strip *s, uint64_t first, size_t count, float *update)
{
	const struct rule *r = s->rule;
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < (r->mix ? r->points : r->member_count); i++)
		e = rule_read(
		    r, r->mix ? i : r->members[i], first, count, s->points + i * s->width);
	if (!e && r->mix)
		e = mix_rows(s, count);
	if (e)
		return e;
	if (r->form == RULE_AROUND)
		order_around(r->order, s->rows, s->width, count, r->keep, s->scratch, update);
	else
		order_mean(r->order, s->rows, s->width, count, s->scratch, update);
	return vec_all_finite(update, count) ? ERR_OK : ERR_NUMERIC;
}

enum err
rule_sort(const struct rule *r, uint64_t first, size_t count, float *update)
{
	struct strip s;
	enum err e = strip_init(&s, r);

	while (count > 0 && !e) {
		size_t n = count < s.width ? count : s.width;
		e = sort_strip(&s, first, n, update);
		first += n;
		update += n;
		count -= n;
	}
	strip_deinit(&s);
	return e;
}
