#ifndef VIEWS_H
#define VIEWS_H
#include "exchange.h"
#include "json.h"
#include "override.h"
#include "usage.h"
#include "view.h"

/* What the engine shows, as JSON: the shapes of docs/api.md. The caller frees. */
struct json *views_job(const struct job_view *v);
/* The overrides of a job: for each path the value that was set, and the value of the job's document. */
struct json *views_overrides(const struct override_set *o, const struct job_spec *document);
/* Answers with the members of `head`, which is freed (NULL: none), and "jobs", the jobs that the client may see. */
void views_jobs(struct exchange *x, struct json *head);
/* The last tasks of a job that devices gave back: for administrators and the job's owner. */
struct json *views_failures(struct engine *g, struct registry *registry, const uint8_t job[16]);
/* Adds to job "invited", the devices that work on the open round, and "silent", those that had not answered when it was opened again. */
void views_hands(struct json *job, const struct services *s, const uint8_t id[16]);
/* Devices that lack the memory for the job's tasks; jobs for whose tasks the device lacks the memory. */
struct json *views_refusals(const struct services *s, const uint8_t job[16]);
struct json *views_refusals_of(const struct services *s, const uint8_t device[32]);
struct json *views_round(const struct store_round *r);
/* The id in the path, or a problem response and false. */
bool views_find_id(struct exchange *x, uint8_t id[16]);
/* The job whose id is in the path, or a problem response and false. */
bool views_find_job(struct exchange *x, uint8_t id[16], struct job_view *out);
#define VIEWS_BYTES_PER_ROW \
	1024 /* reading and parsing so many bytes of a document costs as much as looking at a row */
/* How much more of the disk a job will need. */
struct json *views_forecast(const struct usage *u, const struct job_view *job);
/* Adds "disk" and "forecast" to a status. Asks the file system. */
void views_disk(struct json *status, struct exchange *x);

#endif
