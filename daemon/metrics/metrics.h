#ifndef METRICS_H
#define METRICS_H
#include <stddef.h>

#include "err.h"

struct buf;
struct health_report;
struct json;
struct services;

/*
 * The reports of all parts, as one table of metrics (table.c). Values are copied part by part, each under its part's lock, and shown under
 * none: two metrics may be some milliseconds apart. Takes up to some milliseconds, and asks no disk: any thread but an I/O thread.
 */
#define METRICS_BYTES_MAX ((size_t)1 << 20)
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
/* Jobs with series of their own: running, then paused, then those that ended last, within METRICS_ENDED_S. */
#define METRICS_JOBS 50
#define METRICS_ENDED_S 300

/* All metrics in the Prometheus text format 0.0.4. ready: as ready_report says. ERR_NOMEM. */
ERR_MUST_USE enum err metrics_print(
    struct buf *out, const struct services *s, const struct health_report *ready);
/* "reports" of /v1/status: those metrics that are in it, by their old names. NULL: no memory. */
struct json *metrics_reports(const struct services *s);
/* The most series that metrics_print ever prints, by the table, with so many routes. */
size_t metrics_series_most(size_t routes);

#endif
