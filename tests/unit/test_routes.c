/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "api.h"
#include "routes.h"

/* --- the table by itself */

/* Do two patterns have a path in common? */
static bool
overlap(const char *a, const char *b)
{
	for (;;) {
		size_t n = strcspn(a, "/"), m = strcspn(b, "/");
		bool any = strncmp(a, "{}", 2) == 0 || strncmp(b, "{}", 2) == 0;
		if (!any && (n != m || memcmp(a, b, n) != 0))
			return false;
		a += n;
		b += m;
		if (!*a || !*b)
			return !*a && !*b;
		a++;
		b++;
	}
}

static void
no_row_shadows_another(void **state)
{
	size_t count;
	const struct route *t = routes_table(&count);

	(void)state;
	assert_true(overlap("/a/{}", "/a/b") && overlap("/a/{}/c", "/a/b/c"));
	assert_false(overlap("/a/{}", "/a/b/c") || overlap("/a/{}/c", "/a/b/d"));
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			if (t[i].verb == t[j].verb && overlap(t[i].pattern, t[j].pattern))
				fail_msg("%s and %s", t[i].pattern, t[j].pattern);
}

/* Every row can be reached, and can run. */
static void
every_row_is_whole(void **state)
{
	size_t count;
	const struct route *t = routes_table(&count);
	char path[128], param[2][72];
	bool known;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		char *out = path;
		unsigned params = 0;
		for (const char *p = t[i].pattern; *p; p++) {
			*out++ = *p == '{' ? (char)('A' + params++) : *p;
			p += *p == '{';
		}
		*out = '\0';
		assert_ptr_equal(routes_find(t[i].verb, path, param, &known), &t[i]);
		assert_in_range(params, 0, 2);
		for (unsigned k = 0; k < params; k++)
			assert_true(param[k][0] == (char)('A' + k) && param[k][1] == '\0');
		assert_int_not_equal(t[i].roles, ROLE_NONE);
		assert_true((t[i].kind == ROUTE_STREAM) == (t[i].stream != NULL));
		assert_true((t[i].kind == ROUTE_STREAM) == (t[i].handle == NULL));
		/* What anyone may send is small. */
		if (t[i].body && (t[i].roles & ROLE_ANYONE))
			assert_in_range(t[i].body_max, 1, 8192);
		assert_true(t[i].verb != VERB_GET || !t[i].body);
	}
}

/* --- matching */

static void
parameters(void **state)
{
	char param[2][72], path[128];
	bool known;

	(void)state;
	const struct route *r = routes_find(VERB_GET, "/v1/jobs/0a/rounds/17", param, &known);
	assert_non_null(r);
	assert_ptr_equal(r->handle, api_round_show);
	assert_string_equal(param[0], "0a");
	assert_string_equal(param[1], "17");
	/* A parameter of 71 bytes fits, of 72 is no path of ours. */
	for (size_t n = 71; n <= 72; n++) {
		snprintf(path, sizeof(path), "/v1/models/%0*d", (int)n, 0);
		r = routes_find(VERB_GET, path, param, &known);
		assert_true((r != NULL) == (n == 71));
		if (r)
			assert_int_equal(strlen(param[0]), n);
	}
	r = routes_find(VERB_POST, "/v1/jobs/x/stop", param, &known);
	assert_non_null(r);
	assert_ptr_equal(r->handle, api_job_stop);
}

static void
unknown_paths(void **state)
{
	static const char *const paths[] = {"", "/", "/v1", "/v1/", "/v1/status/", "/v1/statu",
	    "/v1/statuss", "//v1/status", "/V1/status", "/v1/jobs/", "/v1/jobs//",
	    "/v1/jobs//rounds", "/v1/jobs/a/", "/v1/jobs/a/rounds/", "/v1/jobs/a/rounds/1/2",
	    "/v1/models/a/b", "/v1/tasks/a", "/v1/models/../status", "/healthz/", "healthz",
	    "/v1/tokens/a/b", "/v1/jobs/{}/rounds/1/"};
	char param[2][72];
	bool known = true;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		for (int v = VERB_GET; v <= VERB_OTHER; v++) {
			if (routes_find((enum http_verb)v, paths[i], param, &known) || known)
				fail_msg("%s %s", http_verb_name((enum http_verb)v), paths[i]);
		}
}

static void
other_methods(void **state)
{
	char param[2][72];
	bool known = false;

	(void)state;
	assert_null(routes_find(VERB_DELETE, "/v1/status", param, &known));
	assert_true(known);
	assert_null(routes_find(VERB_OTHER, "/v1/jobs/a/pause", param, &known));
	assert_true(known);
	assert_null(routes_find(VERB_GET, "/v1/jobs/a/pause", param, &known));
	assert_true(known);
	assert_null(routes_find(VERB_POST, "/v1/tokens/a", param, &known));
	assert_true(known);
}

/* HEAD is GET without the body, but for a delta, where it is a request of its own. */
static void
head_is_get(void **state)
{
	char param[2][72];
	bool known;

	(void)state;
	assert_ptr_equal(
	    routes_find(VERB_HEAD, "/v1/models/a", param, &known)->handle, api_model_get);
	assert_ptr_equal(
	    routes_find(VERB_HEAD, "/v1/deltas/a", param, &known)->handle, api_delta_head);
	assert_ptr_equal(
	    routes_find(VERB_GET, "/v1/deltas/a", param, &known)->handle, api_delta_get);
	assert_null(routes_find(VERB_HEAD, "/v1/tasks", param, &known));
	assert_true(known);
}

/* One path, two methods: each has its own roles. */
static void
methods_of_one_path(void **state)
{
	char param[2][72];
	bool known;

	(void)state;
	assert_int_equal(
	    routes_find(VERB_GET, "/v1/models/a", param, &known)->roles, ROLE_CERTIFIED);
	assert_int_equal(routes_find(VERB_PUT, "/v1/models/a", param, &known)->roles,
	    ROLE_SUBMITTER | ROLE_ADMIN);
	assert_int_equal(routes_find(VERB_GET, "/v1/tokens", param, &known)->roles, ROLE_ADMIN);
	assert_int_equal(routes_find(VERB_GET, "/v1/devices", param, &known)->roles, ROLE_READERS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_row_shadows_another),
	    cmocka_unit_test(every_row_is_whole),
	    cmocka_unit_test(parameters),
	    cmocka_unit_test(unknown_paths),
	    cmocka_unit_test(other_methods),
	    cmocka_unit_test(head_is_get),
	    cmocka_unit_test(methods_of_one_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
