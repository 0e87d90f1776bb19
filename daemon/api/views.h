#ifndef VIEWS_H
#define VIEWS_H
#include "engine.h"
#include "json.h"
#include "usage.h"

/* What the engine shows, as JSON: the shapes of docs/api.md. The caller frees. */
struct json *views_job(const struct job_view *v);
/* Of all jobs; device NULL: all, else what this device may see. */
struct json *views_jobs(struct engine *g, const uint8_t *device);
struct json *views_round(const struct store_round *r);
/* "disk" and "forecast" of a status. Asks the file system. */
void views_disk(struct json *status, const struct services *s);

#endif
