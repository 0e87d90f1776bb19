#ifndef OWN_METRICS_H
#define OWN_METRICS_H

#include <stddef.h>

#include "metric_rows.h"

struct report;

/*
 * What the trainers of a round report by names of their own ("metrics" of their reports), as means weighted by the examples trained on.
 * It is shown and decides nothing. Devices choose the names: of more than there is room for those stay that most of them report.
 */
#define OWN_METRICS_NAMES 1024 /* looked at; what comes later under another name is left out */

struct own_metric {
	struct metric_row row;
	double weight;
};
/* Zero at first. */
struct own_metrics {
	struct own_metric *items; /* by name until own_metrics_choose */
	size_t count, room;
};
/* One device's. What there is no memory for is left out. */
void own_metrics_add(struct own_metrics *m, const struct report *r, double examples);
/* Leaves METRIC_ROWS_MAX at most, the most reported first, then by name. */
void own_metrics_choose(struct own_metrics *m);
/* After that: one report's alone, in the place of what others called so, and before all of them. Without memory it is left out. */
void own_metrics_put(struct own_metrics *m, const struct report *r);
void own_metrics_deinit(struct own_metrics *m);

#endif
