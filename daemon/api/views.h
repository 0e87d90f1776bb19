#ifndef VIEWS_H
#define VIEWS_H
#include "exchange.h"
#include "json.h"
#include "override.h"
#include "usage.h"
#include "view.h"

/* What the engine shows, as JSON: the shapes of docs/api.md. The caller frees. */
struct json *views_job(const struct job_view *v);
/* What was set of a job: path to value, and what its document says. */
struct json *views_overrides(const struct override_set *o, const struct job_spec *document);
/* Answers with the members of `head`, which is freed (NULL: none), and "jobs", those that the caller may see. */
void views_jobs(struct exchange *x, struct json *head);
/* NULL for those who may see everything. */
const uint8_t *views_seen_by(const struct exchange *x);
/* The last tasks of a job that devices gave back: for administrators and the job's owner. */
struct json *views_failures(struct engine *g, struct registry *registry, const uint8_t job[16]);
/* Who works on the job's open round, as "invited", and who did not answer when it was opened again, as "silent". */
void views_hands(struct json *job, const struct services *s, const uint8_t id[16]);
/* Devices that cannot hold the job's tasks, and jobs whose tasks the device cannot hold. */
struct json *views_refusals(const struct services *s, const uint8_t job[16]);
struct json *views_refusals_of(const struct services *s, const uint8_t device[32]);
struct json *views_round(const struct store_round *r);
/* The id in the path, or a problem response and false. */
bool views_find_id(struct exchange *x, uint8_t id[16]);
/* The job of that id, likewise. */
bool views_find_job(struct exchange *x, uint8_t id[16], struct job_view *out);
#define VIEWS_BYTES_PER_ROW \
	1024 /* of a document that is read and parsed: what they cost of what a row does */
/* What a job will still need of the disk. */
struct json *views_forecast(const struct usage *u, const struct job_view *job);
/* "disk" and "forecast" of a status. Asks the file system. */
void views_disk(struct json *status, struct exchange *x);

#endif
