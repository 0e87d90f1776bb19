#include <stdlib.h>
#include <string.h>

#include "mean.h"
#include "rule_state.h"
#include "vec.h"

/* Rules that sort each coordinate: one strip of all deltas in memory at a time. */
struct strip {
	const struct rule *rule;
	size_t width;
	float *points; /* points x width */
	float *rows; /* rows x width: the points themselves, or means of some */
	double *ones;
	int32_t *scratch;
	const uint8_t *row; /* the members of the row being made */
};

static enum err
strip_init(struct strip *s, const struct rule *r)
{
	*s = (struct strip){.rule = r, .width = rule_width(r->points + (r->mix ? r->rows : 0))};
	s->points = malloc(r->points * s->width * sizeof(float));
	s->rows = r->mix ? malloc(r->rows * s->width * sizeof(float)) : s->points;
	s->ones = malloc(r->points * sizeof(*s->ones));
	s->scratch = malloc(order_scratch(r->order) * sizeof(*s->scratch));
	if (!s->points || !s->rows || !s->ones || !s->scratch)
		return ERR_NOMEM;
	for (size_t i = 0; i < r->points; i++)
		s->ones[i] = 1;
	return ERR_OK;
}

static void
strip_deinit(struct strip *s)
{
	if (s->rows != s->points)
		free(s->rows);
	free(s->points);
	free(s->ones);
	free(s->scratch);
}

/* The delta-th member of the row, out of memory. `first` counts from the strip's beginning. */
static enum err
read_row(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct strip *s = context;
	size_t at = 0;

	for (size_t seen = 0;; at++)
		if (s->row[at] && seen++ == delta)
			break;
	memcpy(out, s->points + at * s->width + first, count * sizeof(float));
	return ERR_OK;
}

static enum err
mix_rows(struct strip *s, size_t count)
{
	const struct rule *r = s->rule;
	enum err e = ERR_OK;

	for (size_t i = 0; i < r->rows && e == ERR_OK; i++) {
		struct mean_input in = {read_row, s, 0, s->ones};
		s->row = r->mix + i * r->points;
		for (size_t k = 0; k < r->points; k++)
			in.deltas += s->row[k];
		e = mean_fold(&in, 0, count, s->rows + i * s->width);
	}
	return e;
}

static enum err
sort_strip(struct strip *s, uint64_t first, size_t count, float *update)
{
	const struct rule *r = s->rule;
	enum err e = ERR_OK;

	for (size_t i = 0; e == ERR_OK && i < (r->mix ? r->points : r->member_count); i++)
		e = rule_read(
		    r, r->mix ? i : r->members[i], first, count, s->points + i * s->width);
	if (e == ERR_OK && r->mix)
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

	while (count > 0 && e == ERR_OK) {
		size_t n = count < s.width ? count : s.width;
		e = sort_strip(&s, first, n, update);
		first += n;
		update += n;
		count -= n;
	}
	strip_deinit(&s);
	return e;
}
