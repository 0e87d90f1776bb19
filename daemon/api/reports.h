#ifndef REPORTS_H
#define REPORTS_H

struct services;

/* What the coordinator's parts report (report.h), as the "reports" of a status: docs/api.md. */
struct json *reports_json(const struct services *s);

#endif
