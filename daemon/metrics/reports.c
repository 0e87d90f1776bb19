#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "metrics_inside.h"

/* "reports" of /v1/status, which is deprecated: nothing new comes here. */

/* A histogram as JSON: the buckets that are not empty as [upper bound, count]; the bound of the last bucket is null. */
static struct json *
histogram_json(const struct histogram *h)
{
	struct json *v = json_object(), *list = json_array();

	json_add_u64(v, "count", h->count);
	json_add_double(v, "sum", h->sum);
	for (size_t i = 0; i <= histogram_bounds(h->scale); i++) {
		if (h->buckets[i] == 0)
			continue;
		struct json *bucket = json_array();
		json_push(bucket, json_new_double(histogram_bound(h->scale, i)));
		json_push(bucket, json_new_u64(h->buckets[i]));
		json_push(list, bucket);
	}
	json_add(v, "buckets", list);
	return v;
}

static struct json *
value_json(const struct metrics_row *row, const struct metrics_view *v, unsigned i)
{
	const double x = metrics_value_read(row, v, (const unsigned[METRICS_LABELS]){i});

	return row->value == METRICS_U64 ? json_new_u64((uint64_t)x) : json_new_double(x);
}

static void
add_words(struct json *object, const struct metrics_row *row, const struct metrics_view *v)
{
	const struct metrics_label *l = row->labels[0];

	for (unsigned i = l->first; i < l->end; i++)
		json_add(object, l->word(v, i), value_json(row, v, i));
}

/* name: behind the part's. */
static void
add_row(struct json *part, const struct metrics_row *row, const char *name,
    const struct metrics_view *v)
{
	char key[32];
	const char *dot = strchr(name, '.');

	if (row->value == METRICS_BUCKETS) {
		json_add(part, name, histogram_json(metrics_histogram(row, v)));
	} else if (dot) {
		struct json *words = json_object();
		snprintf(key, sizeof(key), "%.*s", (int)(dot - name), name);
		add_words(words, row, v);
		json_add(part, key, words);
	} else if (*name == '*') {
		add_words(part, row, v);
	} else {
		json_add(part, name, value_json(row, v, 0));
	}
}

struct json *
metrics_reports(const struct services *s)
{
	static const char *const parts[] = {
	    "engine", "store", "registry", "spool", "server", "health"};
	struct metrics_view *v = calloc(1, sizeof(*v));
	struct json *out = v ? json_object() : NULL;

	if (v)
		metrics_view_read(v, s);
	for (size_t p = 0; v && p < sizeof(parts) / sizeof(*parts); p++) {
		const size_t len = strlen(parts[p]);
		struct json *part = json_object();
		for (size_t i = 0; i < metrics_rows_count(); i++) {
			const char *path = metrics_rows[i].report;
			if (path && strncmp(path, parts[p], len) == 0 && path[len] == '.')
				add_row(part, &metrics_rows[i], path + len + 1, v);
		}
		json_add(out, parts[p], part);
	}
	free(v);
	return out;
}
