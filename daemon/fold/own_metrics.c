#include "own_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "messages.h"

/* The one of this name, a new one perhaps; NULL if there is no room. */
static struct own_metric *
named(struct own_metrics *m, const char name[64])
{
	size_t at = bytes_place(m->items, m->count, sizeof(*m->items), name, 64);

	if (at < m->count && memcmp(m->items[at].row.name, name, 64) == 0)
		return &m->items[at];
	if (m->count == OWN_METRICS_NAMES)
		return NULL;
	struct own_metric *items = bytes_grow(m->items, m->count, &m->room, sizeof(*items));
	if (!items)
		return NULL;
	m->items = items;
	memmove(&items[at + 1], &items[at], (m->count++ - at) * sizeof(*items));
	items[at] = (struct own_metric){.weight = 0};
	memcpy(items[at].row.name, name, 64);
	return &items[at];
}

void
own_metrics_add(struct own_metrics *m, const struct report *r, double examples)
{
	_Static_assert(sizeof(r->metrics[0].name) == 64, "names fit a row");
	for (size_t i = 0; i < r->metric_count; i++) {
		struct own_metric *o = named(m, r->metrics[i].name);
		if (!o)
			continue;
		o->weight += examples;
		o->row.mean += (r->metrics[i].value - o->row.mean) * (examples / o->weight);
		o->row.reports++;
	}
}

static int
compare(const void *a, const void *b)
{
	const struct metric_row *x = &((const struct own_metric *)a)->row;
	const struct metric_row *y = &((const struct own_metric *)b)->row;

	if (x->reports != y->reports)
		return x->reports < y->reports ? 1 : -1;
	return strcmp(x->name, y->name);
}

void
own_metrics_choose(struct own_metrics *m)
{
	if (m->count > 0)
		qsort(m->items, m->count, sizeof(*m->items), compare);
	if (m->count > METRIC_ROWS_MAX)
		m->count = METRIC_ROWS_MAX;
	for (size_t i = 0; i < m->count; i++)
		if (!isfinite(m->items[i].row.mean))
			m->items[i].row.mean = NAN;
}

static void
drop(struct own_metrics *m, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->items[i].row.name, name) != 0)
			m->items[kept++] = m->items[i];
	m->count = kept;
}

void
own_metrics_put(struct own_metrics *m, const struct report *r)
{
	for (size_t i = r->metric_count; i-- > 0;) {
		struct own_metric o = {.row = {.mean = r->metrics[i].value, .reports = 1}};
		memcpy(o.row.name, r->metrics[i].name, sizeof(o.row.name));
		drop(m, o.row.name);
		if (m->count == METRIC_ROWS_MAX)
			m->count--;
		struct own_metric *items = bytes_grow(m->items, m->count, &m->room, sizeof(*items));
		if (!items)
			continue;
		m->items = items;
		memmove(&items[1], &items[0], m->count++ * sizeof(*items));
		items[0] = o;
	}
}

void
own_metrics_deinit(struct own_metrics *m)
{
	free(m->items);
	*m = (struct own_metrics){.items = NULL};
}
