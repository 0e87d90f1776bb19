/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "json.h"
#include "override.h"

#define REST \
	"\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\",\"out\":2}]," \
	"\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2," \
	"\"validation\":0.1},\"local\":{\"epochs\":1,\"optimizer\":{\"rate\":0.1}}"

static struct job_spec
job(const char *more)
{
	struct job_spec spec;
	struct why why = {""};
	char text[2048];

	snprintf(text, sizeof(text), "{\"name\":\"n\"," REST "%s}", more);
	if (job_parse(&spec, text, strlen(text), &why))
		fail_msg("%s", why.text);
	return spec;
}

static struct override_set
set(const char *text)
{
	struct override_set o;
	struct why why = {""};

	if (override_parse(&o, text, strlen(text), &why))
		fail_msg("%s: %s", text, why.text);
	return o;
}

static void
prints(const struct override_set *o, const char *want)
{
	struct json *v = override_json(o);
	struct buf b;

	buf_init(&b, OVERRIDE_TEXT_MAX);
	assert_int_equal(json_print(&b, v, false), ERR_OK);
	assert_string_equal(buf_str(&b), want);
	buf_deinit(&b);
	json_free(v);
}

static void
refused(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
	    {"", "JSON"},
	    {"[]", "must be a JSON object"},
	    {"{\"share\":0}", "share: must be a whole number from 1 to 1000"},
	    {"{\"share\":1.5}", "share: must be a whole number from 1 to 1000"},
	    {"{\"share\":\"3\"}", "share: must be a whole number"},
	    {"{\"priority\":1000001}", "priority: must be a whole number from -1000000 to 1000000"},
	    {"{\"round.deadline_s\":0}", "round.deadline_s: must be"},
	    {"{\"round.over_select\":1}", "round.over_select: unknown key"},
	    {"{\"round.goal\":0}", "round.goal: must be a whole number from 1 to 200000"},
	    {"{\"round\":{\"deadline_s\":3}}", "round: unknown key"},
	    {"{\"stop.target.accuracy\":0.5}", "unknown key"},
	    {"{\"share\":2,\"stop.rounds\":-1}", "stop.rounds: must be"},
	};
	struct override_set o;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct why why = {""};
		assert_int_not_equal(
		    override_parse(&o, rows[i].text, strlen(rows[i].text), &why), ERR_OK);
		if (!strstr(why.text, rows[i].why) && i > 0)
			fail_msg(
			    "%s: \"%s\" is not in \"%s\"", rows[i].text, rows[i].why, why.text);
		assert_true(override_is_empty(&o));
	}
	char big[OVERRIDE_TEXT_MAX + 2];
	memset(big, ' ', sizeof(big));
	assert_int_equal(override_parse(&o, big, sizeof(big), NULL), ERR_LIMIT);
}

/* What the document takes at a path, an override takes, and nothing else. */
static void
bounds_are_the_documents(void **state)
{
	static const double values[] = {-1000001, -1000000, -1, 0, 0.05, 0.1, 0.9, 1, 2.5, 1000,
	    1001, 3600, 3601, 200000, 200001, 1e6, 1000001, 1e8, 1.1e8, 1e9, 1.1e9, 1e12, 1.1e12};

	(void)state;
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++)
		for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
			const char *path = override_path(key), *dot = strchr(path, '.');
			const char *group = strncmp(path, "round.", 6) == 0 ? "round"
			    : strncmp(path, "stop.", 5) == 0		    ? "stop"
			    : dot					    ? "evaluate"
									    : "";
			const bool buffered =
			    key == OVERRIDE_ROUND_TASK_TIMEOUT || key == OVERRIDE_ROUND_CONCURRENCY;
			char text[1024], inside[64], change[64];
			struct job_spec spec;
			struct override_set o;
			snprintf(inside, sizeof(inside), ",\"%s\":%.17g", dot ? dot + 1 : path,
			    values[i]);
			snprintf(change, sizeof(change), "{\"%s\":%.17g}", path, values[i]);
			snprintf(text, sizeof(text),
			    "{\"name\":\"n\"," REST "%s,\"round\":{%s%s%s}%s%s%s%s%s}",
			    *group ? "" : inside,
			    key == OVERRIDE_ROUND_GOAL	       ? ""
				: key == OVERRIDE_ROUND_QUORUM ? "\"goal\":200000"
							       : "\"goal\":1",
			    buffered ? ",\"mode\":\"buffered\"" : "",
			    strcmp(group, "round") != 0	     ? ""
				: key == OVERRIDE_ROUND_GOAL ? inside + 1
							     : inside,
			    strcmp(group, "stop") == 0 ? ",\"stop\":{" : "",
			    strcmp(group, "stop") == 0 ? inside + 1 : "",
			    strcmp(group, "evaluate") == 0 ? ",\"evaluate\":{\"by\":\"devices\""
							   : "",
			    strcmp(group, "evaluate") == 0 ? inside : "",
			    strcmp(group, "stop") == 0 || strcmp(group, "evaluate") == 0 ? "}"
											 : "");
			bool takes = job_parse(&spec, text, strlen(text), NULL) == ERR_OK;
			bool may = override_parse(&o, change, strlen(change), NULL) == ERR_OK;
			if (takes != may)
				fail_msg("%s: the document says %d", change, takes);
			if (!takes)
				continue;
			struct job_terms terms;
			const struct override_set none = {.value = {0}};
			override_terms(&terms, &spec, &none);
			assert_true(override_value(&terms, key) == values[i]);
			assert_int_equal(override_check(&o, &spec, NULL), ERR_OK);
			job_deinit(&spec);
		}
}

static void
merged(void **state)
{
	struct override_set o = set("{}"), change;
	struct job_spec spec = job(",\"round\":{\"goal\":2},\"share\":5,\"stop\":{\"rounds\":10}");
	struct job_terms t;

	(void)state;
	assert_true(override_is_empty(&o));
	change = set("{\"stop.rounds\":200,\"share\":3,\"round.deadline_s\":0.5}");
	override_merge(&o, &change);
	prints(&o, "{\"share\":3,\"round.deadline_s\":0.5,\"stop.rounds\":200}");
	override_terms(&t, &spec, &o);
	assert_int_equal(t.share, 3);
	assert_int_equal(t.stop.rounds, 200);
	assert_true(t.round.deadline_s == 0.5 && t.round.goal == 2 && t.priority == 0);
	change = set("{\"share\":null,\"priority\":null,\"stop.rounds\":0}");
	prints(&change, "{\"share\":null,\"priority\":null,\"stop.rounds\":0}");
	override_merge(&o, &change);
	prints(&o, "{\"round.deadline_s\":0.5,\"stop.rounds\":0}");
	override_terms(&t, &spec, &o);
	assert_int_equal(t.share, 5);
	assert_int_equal(t.stop.rounds, 0);
	change = set("{\"round.deadline_s\":null,\"stop.rounds\":null}");
	override_merge(&o, &change);
	assert_true(override_is_empty(&o));
	job_deinit(&spec);
}

/* The quorum follows a goal that is lower. */
static void
a_lower_goal(void **state)
{
	struct job_spec spec = job(",\"round\":{\"goal\":7}");
	struct override_set o = set("{\"round.goal\":6}");
	struct job_terms t;

	(void)state;
	override_terms(&t, &spec, &o);
	assert_int_equal(t.round.goal, 6);
	assert_int_equal(t.round.quorum, 6);
	o = set("{\"round.goal\":6,\"round.quorum\":4}");
	override_terms(&t, &spec, &o);
	assert_int_equal(t.round.quorum, 4);
	assert_int_equal(spec.round.goal, 7);
	job_deinit(&spec);
}

static void
every_path(void **state)
{
	struct job_terms terms = {.share = 1};
	struct job_spec spec = job(",\"round\":{\"goal\":2}");

	(void)state;
	assert_int_equal(override_find("round.over_select"), OVERRIDE_KEYS);
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++) {
		struct override_set o = {.state = {[0] = OVERRIDE_ABSENT}};
		assert_int_equal(override_find(override_path(key)), key);
		o.state[key] = OVERRIDE_GIVEN;
		o.value[key] = 700;
		override_terms(&terms, &spec, &o);
		for (enum override_key other = 0; other < OVERRIDE_KEYS; other++)
			assert_int_equal(override_value(&terms, other) == 700,
			    other == key && key != OVERRIDE_ROUND_QUORUM);
	}
	job_deinit(&spec);
}

static void
misplaced(void **state)
{
	static const struct {
		const char *more, *text, *why;
	} rows[] = {
	    {",\"round\":{\"goal\":1}", "{\"round.concurrency\":3}",
		"round.concurrency: belongs to rounds of mode \"buffered\""},
	    {",\"round\":{\"goal\":1}", "{\"round.task_timeout_s\":3}", "\"buffered\""},
	    {",\"round\":{\"goal\":1,\"mode\":\"buffered\"}", "{\"round.grace_s\":3}",
		"round.grace_s: belongs to rounds of mode \"synchronous\""},
	    {",\"round\":{\"goal\":1}", "{\"evaluate.deadline_s\":3}",
		"evaluate.deadline_s: needs \"evaluate\""},
	    {",\"round\":{\"goal\":1}", "{\"round.concurrency\":null,\"share\":2}", NULL},
	    {",\"round\":{\"goal\":3,\"quorum\":2}", "{\"round.goal\":4}",
		"round.goal: can only be lowered, and the document says 3"},
	    {",\"round\":{\"goal\":3,\"quorum\":2}", "{\"round.quorum\":3}",
		"round.quorum: can only be lowered, and the document says 2"},
	    {",\"round\":{\"goal\":3,\"quorum\":2}", "{\"round.quorum\":2,\"round.goal\":1}",
		"round.quorum: is more than round.goal"},
	    {",\"round\":{\"goal\":3,\"quorum\":2}", "{\"round.quorum\":2,\"round.goal\":3}", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct job_spec spec = job(rows[i].more);
		const struct override_set o = set(rows[i].text);
		struct why why = {""};
		assert_int_equal(
		    override_check(&o, &spec, &why), rows[i].why ? ERR_INVALID : ERR_OK);
		if (rows[i].why && !strstr(why.text, rows[i].why))
			fail_msg("\"%s\" is not in \"%s\"", rows[i].why, why.text);
		job_deinit(&spec);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(refused),
	    cmocka_unit_test(bounds_are_the_documents),
	    cmocka_unit_test(merged),
	    cmocka_unit_test(a_lower_goal),
	    cmocka_unit_test(every_path),
	    cmocka_unit_test(misplaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
