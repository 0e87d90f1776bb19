#include "counts_pack.h"

#include <string.h>

#include "counts.h"

/* Calls fn for each array of whole numbers, and then of sums. */
struct walk {
	char *at;
	void (*whole)(struct walk *w, uint64_t *values, size_t n);
	void (*sum)(struct walk *w, double *values, size_t n);
};

static void
walk(struct walk *w, struct counts *c)
{
	size_t n = c->class_count;

	w->whole(w, &c->examples, 1);
	w->whole(w, c->top, FIGURE_SET_TOPS_MAX);
	if (c->classes)
		w->whole(w, &c->classes->examples, n * sizeof(*c->classes) / sizeof(uint64_t));
	if (c->confusion)
		w->whole(w, c->confusion, n * n);
	if (c->bins)
		w->whole(w, &c->bins->positive, COUNTS_BINS * sizeof(*c->bins) / sizeof(uint64_t));
	w->whole(w, &c->regression.values, 1);
	w->sum(w, &c->regression.absolute, 1);
	w->sum(w, &c->regression.squares, 1);
	w->sum(w, &c->regression.sum, 1);
	w->sum(w, &c->regression.sum_squares, 1);
}

static void
skip_whole(struct walk *w, uint64_t *values, size_t n)
{
	(void)values;
	w->at += n * sizeof(*values);
}

static void
skip_sum(struct walk *w, double *values, size_t n)
{
	(void)values;
	w->at += n * sizeof(*values);
}

static void
pack_whole(struct walk *w, uint64_t *values, size_t n)
{
	memcpy(w->at, values, n * sizeof(*values));
	skip_whole(w, values, n);
}

static void
pack_sum(struct walk *w, double *values, size_t n)
{
	memcpy(w->at, values, n * sizeof(*values));
	skip_sum(w, values, n);
}

static void
add_whole(struct walk *w, uint64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t more;
		memcpy(&more, w->at + i * sizeof(more), sizeof(more));
		values[i] = more > COUNTS_MAX - values[i] ? COUNTS_MAX : values[i] + more;
	}
	skip_whole(w, values, n);
}

static void
add_sum(struct walk *w, double *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double more;
		memcpy(&more, w->at + i * sizeof(more), sizeof(more));
		values[i] += more;
	}
	skip_sum(w, values, n);
}

/* The walk changes nothing of it. */
static struct counts *
unchanged(const struct counts *c)
{
	return (struct counts *)(uintptr_t)c;
}

size_t
counts_pack_bytes(const struct counts *c)
{
	static char nothing[1];
	struct walk w = {nothing, skip_whole, skip_sum};

	walk(&w, unchanged(c));
	return (size_t)(w.at - nothing);
}

void
counts_pack(const struct counts *c, void *out)
{
	struct walk w = {out, pack_whole, pack_sum};

	walk(&w, unchanged(c));
}

void
counts_pack_add(struct counts *to, const void *packed)
{
	struct walk w = {(char *)(uintptr_t)packed, add_whole, add_sum};

	walk(&w, to);
}
