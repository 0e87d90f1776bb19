#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "metrics_inside.h"

/* The text format of docs: github.com/prometheus/docs, "Exposition formats", version 0.0.4. */

/* Bytes of one value at a row's place. */
static size_t
width(enum metrics_value value)
{
	switch (value) {
	case METRICS_DOUBLE:
		return sizeof(double);
	case METRICS_BOOL:
		return sizeof(bool);
	case METRICS_ENUM:
		return 0;
	default:
		return sizeof(uint64_t);
	}
}

static size_t
place(const struct metrics_row *row, const unsigned at[METRICS_LABELS])
{
	size_t i = 0;

	for (unsigned k = 0; k < METRICS_LABELS && row->labels[k]; k++)
		i = i * row->labels[k]->end + at[k];
	return row->at + i * width(row->value);
}

double
metrics_value_read(
    const struct metrics_row *row, const void *base, const unsigned at[METRICS_LABELS])
{
	const char *p = (const char *)base + place(row, at);
	uint64_t number;
	unsigned kind;
	double value;
	bool flag;

	switch (row->value) {
	case METRICS_DOUBLE:
		memcpy(&value, p, sizeof(value));
		return value;
	case METRICS_BOOL:
		memcpy(&flag, p, sizeof(flag));
		return flag;
	case METRICS_ENUM:
		memcpy(&kind, p, sizeof(kind));
		return kind == at[0];
	case METRICS_INFO:
		return 1;
	default:
		memcpy(&number, p, sizeof(number));
		return (double)number;
	}
}

const struct histogram *
metrics_histogram(const struct metrics_row *row, const struct metrics_view *v)
{
	return (const struct histogram *)(const void *)((const char *)v + row->at);
}

static enum err
print_number(struct buf *out, double v)
{
	if (isnan(v))
		return buf_append(out, " NaN\n", 5);
	if (isinf(v))
		return buf_printf(out, " %cInf\n", v > 0 ? '+' : '-');
	return buf_printf(out, " %.15g\n", v);
}

/* A row's labels up to where a bucket's bound may follow. */
static enum err
print_labels(struct buf *out, const struct metrics_row *row, const struct metrics_view *v,
    const struct metrics_job *j, const unsigned at[METRICS_LABELS])
{
	const char *comma = "";
	enum err e = j || row->labels[0] || row->info ? buf_append(out, "{", 1) : ERR_OK;

	if (!e && j) {
		e = buf_printf(out, "job_id=\"%s\"", j->id);
		comma = ",";
	}
	for (unsigned k = 0; k < METRICS_LABELS && row->labels[k] && !e; k++) {
		e = buf_printf(out, "%s%s=\"%s\"", comma, row->labels[k]->name,
		    row->labels[k]->word(v, at[k]));
		comma = ",";
	}
	if (!e && row->info)
		e = row->info(out, v, j);
	return e || !(j || row->labels[0] || row->info) ? e : buf_append(out, "}", 1);
}

static enum err
print_series(struct buf *out, const struct metrics_row *row, const struct metrics_view *v,
    const struct metrics_job *j, const unsigned at[METRICS_LABELS])
{
	enum err e = buf_append(out, row->name, strlen(row->name));

	e = e ? e : print_labels(out, row, v, j, at);
	return e ? e : print_number(out, metrics_value_read(row, j ? (const void *)j : v, at));
}

/* Every combination of the labels' words, or the one series without any. */
static enum err
print_words(struct buf *out, const struct metrics_row *row, const struct metrics_view *v,
    const struct metrics_job *j)
{
	const struct metrics_label *a = row->labels[0], *b = row->labels[1];
	unsigned at[METRICS_LABELS] = {a ? a->first : 0, b ? b->first : 0};
	enum err e = ERR_OK;

	for (; at[0] < (a ? a->end : 1) && !e; at[0]++) {
		if (a && !a->word(v, at[0]))
			continue;
		for (at[1] = b ? b->first : 0; at[1] < (b ? b->end : 1) && !e; at[1]++)
			e = print_series(out, row, v, j, at);
	}
	return e;
}

static enum err
print_buckets(struct buf *out, const struct metrics_row *row, const struct metrics_view *v)
{
	const struct histogram *h = metrics_histogram(row, v);
	const size_t last = histogram_bounds(h->scale);
	uint64_t below = 0;
	enum err e = ERR_OK;

	for (size_t i = 0; i < last && !e; i++) {
		below += h->buckets[i];
		e = buf_printf(out, "%s_bucket{le=\"%.10g\"} %llu\n", row->name,
		    histogram_bound(h->scale, i), (unsigned long long)below);
	}
	if (!e)
		e = buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum", row->name,
		    (unsigned long long)h->count, row->name);
	if (!e)
		e = print_number(out, h->sum);
	return e ? e : buf_printf(out, "%s_count %llu\n", row->name, (unsigned long long)h->count);
}

static enum err
print_row(struct buf *out, const struct metrics_row *row, const struct metrics_view *v)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};
	enum err e = buf_printf(
	    out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, types[row->type]);

	if (row->value == METRICS_BUCKETS)
		return e ? e : print_buckets(out, row, v);
	if (!row->of_jobs)
		return e ? e : print_words(out, row, v, NULL);
	for (size_t i = 0; i < v->job_count && !e; i++)
		e = print_words(out, row, v, &v->jobs[i]);
	return e;
}

enum err
metrics_print(struct buf *out, const struct services *s, const struct health_report *ready)
{
	struct metrics_view *v = calloc(1, sizeof(*v));
	enum err e = v ? ERR_OK : ERR_NOMEM;

	if (!v)
		return e;
	metrics_view_read(v, s);
	v->ready = !ready->reason;
	v->unready = ready->reason;
	metrics_view_process(v, s);
	e = metrics_view_jobs(v, s);
	for (size_t i = 0; i < metrics_rows_count() && !e; i++)
		if (metrics_rows[i].name)
			e = print_row(out, &metrics_rows[i], v);
	free(v);
	return e;
}

static size_t
row_series(const struct metrics_row *row, const struct metrics_view *v)
{
	size_t n = row->of_jobs ? METRICS_JOBS : 1;

	if (row->value == METRICS_BUCKETS)
		return histogram_bounds(row->scale) + 3;
	for (unsigned k = 0; k < METRICS_LABELS && row->labels[k]; k++) {
		size_t words = 0;
		for (unsigned i = row->labels[k]->first; i < row->labels[k]->end; i++)
			words += row->labels[k]->word(v, i) != NULL;
		n *= words;
	}
	return n;
}

size_t
metrics_series_most(size_t routes)
{
	struct metrics_view *v = calloc(1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return SIZE_MAX;
	v->route_count = routes;
	for (size_t i = 0; i < metrics_rows_count(); i++)
		if (metrics_rows[i].name)
			n += row_series(&metrics_rows[i], v);
	free(v);
	return n;
}
