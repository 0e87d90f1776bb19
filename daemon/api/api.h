#ifndef API_H
#define API_H
#include "exchange.h"
#include "job_needs.h"

/* The handlers behind the route table, one file per resource: <resource>.c. Contracts: docs/api.md. */
void api_metrics(struct exchange *x);
void api_health(struct exchange *x);
void api_ready(struct exchange *x);
void api_ca(struct exchange *x);
void api_status(struct exchange *x);
void api_clock_confirm(struct exchange *x);

void api_join(struct exchange *x);
void api_renew(struct exchange *x);
void api_rotate(struct exchange *x);
void api_leave(struct exchange *x);

void api_task_ask(struct exchange *x);
void api_task_drop(struct exchange *x);
void api_task_abort(struct exchange *x);

extern const struct stream_ops api_delta_put, api_delta_patch, api_report_post;
void api_delta_head(struct exchange *x);
/* The body of a delta may come, or the rest of it: notes for both sides' logs which request the upload began with, and logs one that goes on.
 * What a device says of the beginning counts after a restart alone. */
struct spool_part;
void api_delta_began(struct exchange *x, struct spool_part *part);
extern const struct stream_ops api_model_put;
void api_model_get(struct exchange *x);
void api_model_delete(struct exchange *x);
void api_model_difference(struct exchange *x);
void api_state_get(struct exchange *x);

void api_jobs_list(struct exchange *x);
void api_jobs_submit(struct exchange *x);
void api_jobs_plan(struct exchange *x);
void api_job_show(struct exchange *x);
void api_job_document(struct exchange *x);
void api_job_pause(struct exchange *x);
void api_job_resume(struct exchange *x);
void api_job_stop(struct exchange *x);
void api_job_set(struct exchange *x);
void api_job_delete(struct exchange *x);
void api_rounds_list(struct exchange *x);
void api_round_show(struct exchange *x);

void api_delta_get(struct exchange *x);
void api_round_record(struct exchange *x);
void api_audit_list(struct exchange *x);

void api_participation(struct exchange *x);
void api_fleet(struct exchange *x);
void api_devices_list(struct exchange *x);
void api_device_show(struct exchange *x);
void api_device_suspend(struct exchange *x);
void api_device_resume(struct exchange *x);
void api_device_revoke(struct exchange *x);
void api_device_set(struct exchange *x);
void api_devices_set(struct exchange *x);
void api_device_erase(struct exchange *x);
void api_tokens_list(struct exchange *x);
void api_tokens_create(struct exchange *x);
void api_token_revoke(struct exchange *x);

/* A stored JSON object as a value; an empty object if there is none. */
struct json *api_labels_json(const char *text);

/* A list of sentences for the submitter of a job of this name: why its rounds may never end. */
struct json *api_jobs_warnings(const struct engine_reach *r, const char *name);

#endif
