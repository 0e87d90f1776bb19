/*
 * routes_print: what the coordinator knows of its API, for tests/lint: a line for each row of the table of routes, and for each word of the
 * tables of words.
 *     route VERB PATTERN ROLE,... BODY QUERY,...       BODY: none, a number of bytes, json_bytes or stream; QUERY: - if there is none
 *     word TABLE WORD                                  as x-words of docs/openapi.yaml names the tables
 */
#include <stdio.h>

#include "abort_reason.h"
#include "age.h"
#include "override.h"
#include "problem.h"
#include "role.h"
#include "routes.h"
#include "states.h"
#include "stuck.h"
#include "task_kind.h"
#include "wait_reason.h"

static const struct {
	unsigned bit;
	const char *name;
} roles[] = {
    {ROLE_ANYONE, "anyone"},
    {ROLE_DEVICE, "device"},
    {ROLE_READER, "reader"},
    {ROLE_SUBMITTER, "submitter"},
    {ROLE_ADMIN, "admin"},
    {ROLE_METRICS, "metrics"},
    {ROLE_EXPIRED, "expired"},
    {ROLE_ROTATED, "rotated"},
    {ROLE_SUSPENDED, "suspended"},
};

static void
print_roles(unsigned set)
{
	const char *before = " ";

	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
		if (!(set & roles[i].bit))
			continue;
		printf("%s%s", before, roles[i].name);
		set &= ~roles[i].bit;
		before = ",";
	}
	if (set)
		printf("%sunnamed-%#x", before, set);
}

static void
print_route(const struct route *r)
{
	printf("route %s %s", http_verb_name(r->verb), r->pattern);
	print_roles(r->roles);
	if (r->kind == ROUTE_STREAM)
		printf(" stream ");
	else if (!r->body)
		printf(" none ");
	else if (r->body_max)
		printf(" %zu ", r->body_max);
	else
		printf(" json_bytes ");
	for (const char *p = r->query ? r->query : "-"; *p; p++)
		putchar(*p == ' ' ? ',' : *p);
	putchar('\n');
}

static void
print_word(const char *table, const char *word)
{
	printf("word %s %s\n", table, word);
}

static void
print_states(void)
{
	for (enum job_state v = JOB_RUNNING; v <= JOB_STOPPED; v++)
		print_word("job_state", states_job_name(v));
	for (enum device_state v = DEVICE_ACTIVE; v <= DEVICE_LEFT; v++)
		print_word("device_state", states_device_name(v));
	for (enum round_outcome v = OUTCOME_OPEN; v <= OUTCOME_EVALUATED; v++)
		print_word("round_outcome", states_round_name(v));
	for (enum task_kind v = TASK_TRAIN; v < TASK_UNKNOWN; v++)
		print_word("task_kind", task_kind_name(v));
}

static void
print_reasons(void)
{
	for (enum problem_type v = PROBLEM_NONE + 1; v < PROBLEM_UNKNOWN; v++)
		print_word("problem", problem_word(v));
	for (enum wait_reason v = WAIT_NONE + 1; v < WAIT_UNKNOWN; v++)
		print_word("wait_reason", wait_reason_name(v));
	for (enum abort_reason v = ABORT_NONE + 1; v < ABORT_UNKNOWN; v++)
		print_word("abort_reason", abort_reason_name(v));
	for (enum stuck_kind v = STUCK_NONE + 1; v < STUCK_KINDS; v++)
		print_word("stuck_kind", stuck_name(v));
	for (enum age_doubt v = AGE_BELIEVED; v <= AGE_LATER; v++)
		print_word("age_doubt", age_doubt_name(v));
	for (enum override_key v = 0; v < OVERRIDE_KEYS; v++)
		print_word("override_path", override_path(v));
}

int
main(void)
{
	size_t count;
	const struct route *table = routes_table(&count);

	for (size_t i = 0; i < count; i++)
		print_route(&table[i]);
	print_states();
	print_reasons();
	/* What an unknown reason counts as (daemon/api/views.c). */
	print_word("wait_reason", "other");
	print_word("abort_reason", "other");
	return ferror(stdout) != 0;
}
