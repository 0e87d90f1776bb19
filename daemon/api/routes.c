#include "routes.h"

#include <string.h>

#include "api.h"
#include "changes.h"
#include "claim.h"
#include "device_pick.h"
#include "lookup.h"
#include "report.h"

#define ANY ROLE_ANYONE
#define DEV ROLE_DEVICE
#define ADM ROLE_ADMIN
#define SUB (ROLE_SUBMITTER | ROLE_ADMIN)
#define READ ROLE_READERS
#define CERT ROLE_CERTIFIED
#define SMALL_BODY 8192
#define CHANGE_BODY (64u << 10)
#define OFFER_BODY (64u << 10) /* read on the I/O thread */

static const struct route table[] = {
    {VERB_GET, "/metrics", READ | ROLE_METRICS, ROUTE_ASIDE, .probe = true, .handle = api_metrics},
    {VERB_GET, "/healthz", ANY, ROUTE_NOW, .probe = true, .handle = api_health},
    {VERB_GET, "/readyz", ANY, ROUTE_NOW, .probe = true, .handle = api_ready},
    {VERB_GET, "/v1/ca", ANY, ROUTE_NOW, .handle = api_ca},
    {VERB_POST, "/v1/join", ANY, ROUTE_WORK, true, .body_max = SMALL_BODY, .handle = api_join},
    {VERB_POST, "/v1/renew", CERT | ROLE_EXPIRED | ROLE_SUSPENDED, ROUTE_WORK, true, .bare = true,
	.body_max = SMALL_BODY, .handle = api_renew},
    {VERB_POST, "/v1/rotate", CERT | ROLE_ROTATED, ROUTE_WORK, true, .body_max = SMALL_BODY,
	.handle = api_rotate},
    {VERB_POST, "/v1/leave", CERT, ROUTE_WORK, true, .bare = true, .body_max = SMALL_BODY,
	.handle = api_leave},
    {VERB_GET, "/v1/status", DEV | READ | ROLE_SUSPENDED, ROUTE_WORK, .trial = true,
	.handle = api_status},
    {VERB_POST, "/v1/clock/confirm", ADM, ROUTE_WORK, .handle = api_clock_confirm},
    {VERB_POST, "/v1/tasks", DEV, ROUTE_POLL, true, .body_max = OFFER_BODY, .handle = api_task_ask,
	.drop = api_task_drop},
    {VERB_POST, "/v1/tasks/{}/abort", DEV, ROUTE_NOW, true, .body_max = SMALL_BODY,
	.handle = api_task_abort},
    {VERB_POST, "/v1/tasks/{}/report", DEV, ROUTE_STREAM, true, .stream = &api_report_post},
    {VERB_PUT, "/v1/deltas/{}", DEV, ROUTE_STREAM, true, .stream = &api_delta_put},
    {VERB_PATCH, "/v1/deltas/{}", DEV, ROUTE_STREAM, true, .stream = &api_delta_patch},
    {VERB_GET, "/v1/deltas/{}", READ, ROUTE_WORK, .query = "at", .handle = api_delta_get},
    {VERB_HEAD, "/v1/deltas/{}", DEV, ROUTE_WORK, .handle = api_delta_head},
    {VERB_GET, "/v1/models/{}", DEV | READ, ROUTE_WORK, .handle = api_model_get},
    {VERB_GET, "/v1/models/{}/from/{}", DEV | READ, ROUTE_WORK, .handle = api_model_difference},
    {VERB_PUT, "/v1/models/{}", SUB, ROUTE_STREAM, true, .stream = &api_model_put},
    {VERB_DELETE, "/v1/models/{}", SUB, ROUTE_WORK, .handle = api_model_delete},
    {VERB_GET, "/v1/states/{}", DEV | READ, ROUTE_WORK, .handle = api_state_get},
    {VERB_GET, "/v1/changes", READ, ROUTE_POLL, .reads = true, .query = "after wait",
	.handle = changes_wait, .drop = changes_drop},
    {VERB_GET, "/v1/jobs", DEV | READ, ROUTE_WORK, .handle = api_jobs_list},
    {VERB_POST, "/v1/jobs", SUB, ROUTE_SLOW, true, .handle = api_jobs_submit},
    {VERB_POST, "/v1/plan", SUB, ROUTE_SLOW, true, .handle = api_jobs_plan},
    {VERB_GET, "/v1/jobs/{}", DEV | READ, ROUTE_WORK, .handle = api_job_show},
    {VERB_GET, "/v1/jobs/{}/document", DEV | READ, ROUTE_WORK, .handle = api_job_document},
    {VERB_POST, "/v1/jobs/{}/pause", SUB, ROUTE_WORK, .handle = api_job_pause},
    {VERB_POST, "/v1/jobs/{}/resume", SUB, ROUTE_WORK, .handle = api_job_resume},
    {VERB_POST, "/v1/jobs/{}/stop", SUB, ROUTE_WORK, .handle = api_job_stop},
    {VERB_POST, "/v1/jobs/{}/set", SUB, ROUTE_WORK, true, .body_max = SMALL_BODY,
	.handle = api_job_set},
    {VERB_DELETE, "/v1/jobs/{}", SUB, ROUTE_SLOW, .query = "dry", .handle = api_job_delete},
    {VERB_GET, "/v1/jobs/{}/rounds", DEV | READ, ROUTE_WORK, .query = "from limit",
	.handle = api_rounds_list},
    {VERB_GET, "/v1/jobs/{}/rounds/{}", DEV | READ, ROUTE_WORK, .handle = api_round_show},
    {VERB_GET, "/v1/jobs/{}/rounds/{}/record", DEV | READ, ROUTE_WORK, .handle = api_round_record},
    {VERB_GET, "/v1/jobs/{}/participation", READ, ROUTE_WORK, .handle = api_participation},
    {VERB_GET, "/v1/audit", READ, ROUTE_WORK, .query = "from limit since by",
	.handle = api_audit_list},
    {VERB_GET, "/v1/find", READ, ROUTE_WORK, .query = "kind word", .handle = lookup_handle},
    {VERB_GET, "/v1/fleet", READ, ROUTE_WORK, .query = "data", .handle = api_fleet},
    {VERB_GET, "/v1/devices", READ, ROUTE_WORK, .query = DEVICE_PICK_QUERY,
	.handle = api_devices_list},
    {VERB_GET, "/v1/devices/{}", READ, ROUTE_WORK, .handle = api_device_show},
    {VERB_POST, "/v1/devices/{}/suspend", ADM, ROUTE_WORK, .handle = api_device_suspend},
    {VERB_POST, "/v1/devices/{}/resume", ADM, ROUTE_WORK, .handle = api_device_resume},
    {VERB_POST, "/v1/devices/{}/revoke", ADM, ROUTE_WORK, .handle = api_device_revoke},
    {VERB_POST, "/v1/devices/{}/set", ADM, ROUTE_WORK, true, .body_max = SMALL_BODY,
	.handle = api_device_set},
    {VERB_POST, "/v1/devices/set", ADM, ROUTE_WORK, true, .body_max = CHANGE_BODY,
	.handle = api_devices_set},
    {VERB_POST, "/v1/devices/{}/erase", ADM, ROUTE_WORK, .handle = api_device_erase},
    {VERB_POST, "/v1/devices/{}/rekey", ADM, ROUTE_WORK, .handle = claim_rekey},
    {VERB_POST, "/v1/devices/{}/rekey/{}", ADM, ROUTE_WORK, .handle = claim_rekey},
    {VERB_GET, "/v1/tokens", ADM, ROUTE_WORK, .handle = api_tokens_list},
    {VERB_POST, "/v1/tokens", ADM, ROUTE_WORK, true, .body_max = SMALL_BODY,
	.handle = api_tokens_create},
    {VERB_DELETE, "/v1/tokens/{}", ADM, ROUTE_WORK, .query = "stop-jobs",
	.handle = api_token_revoke},
};

static const struct route claim = {
    VERB_POST, ROUTE_CLAIM, ANY, ROUTE_STREAM, true, .bare = true, .stream = &claim_stream};

/* Does path fit the pattern? Parameters go to param. */
static bool
fits(const char *pattern, const char *path, char param[2][72])
{
	unsigned n = 0;

	while (*pattern) {
		if (*pattern != '{') {
			if (*pattern++ != *path++)
				return false;
			continue;
		}
		size_t len = strcspn(path, "/");
		if (len == 0 || len >= sizeof(param[0]) || n == 2)
			return false;
		memcpy(param[n], path, len);
		param[n++][len] = '\0';
		path += len;
		pattern += 2;
	}
	return *path == '\0';
}

const struct route *
routes_find(enum http_verb verb, const char *path, char param[2][72], bool *path_known)
{
	const struct route *get = NULL;

	*path_known = false;
	/* No request has such a path: they begin with a slash. */
	if (strcmp(path, ROUTE_CLAIM) == 0)
		return &claim;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (!fits(table[i].pattern, path, param))
			continue;
		if (table[i].verb == verb)
			return &table[i];
		if (verb == VERB_HEAD && table[i].verb == VERB_GET)
			get = &table[i];
		*path_known = true;
	}
	return get;
}

const struct route *
routes_table(size_t *count)
{
	*count = sizeof(table) / sizeof(*table);
	return table;
}

const struct route_table routes = {table, sizeof(table) / sizeof(*table), routes_find};
_Static_assert(sizeof(table) / sizeof(*table) <= SERVER_ROUTES_MAX, "each row is counted");
