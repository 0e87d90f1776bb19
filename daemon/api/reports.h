#ifndef REPORTS_H
#define REPORTS_H

struct services;

/* The counts of the coordinator's parts (report.h), as "reports" of a status: docs/api.md. The caller frees the JSON. */
struct json *reports_json(const struct services *s);

#endif
