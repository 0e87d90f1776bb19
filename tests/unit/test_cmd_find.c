#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "find.h"

#define A "a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0"
#define B "a0a0a0a0a0a0b0b0b0b0b0b0b0b0b0b0"
#define C "c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0"
#define D "d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0"

/* Who is meant: the id's first digit and the next that differs, or why it is nobody. */
static const char *
found(const char *list, enum cmd_find_kind kind, const char *word)
{
	static char id[CMD_FIND_ID];
	static struct why why;
	const struct json *item;
	struct json *doc;

	assert_int_equal(json_parse(&doc, list, strlen(list), NULL), ERR_OK);
	enum err e = cmd_find_in(doc, kind, word, &item, &why);
	const char *key = kind == CMD_FIND_DEVICE ? "device"
	    : kind == CMD_FIND_MODEL		  ? "model"
						  : "job";
	if (!e)
		snprintf(id, sizeof(id), "%s", json_string(json_get(item, key)));
	json_free(doc);
	return e ? why.text : id;
}

#define JOB(id, name, state, age) \
	"{\"job\":\"" id "\",\"name\":\"" name "\",\"state\":\"" state "\",\"created_at\":" age "}"

static void
test_id(void **state)
{
	static const char jobs[] = "[" JOB(A, "x", "done", "1") "," JOB(B, "y", "running",
	    "2") "," JOB(C, "d0", "running", "3") "," JOB(D, "a0a0a0a0a0a0a", "running", "4") "]";
	(void)state;

	assert_string_equal(found(jobs, CMD_FIND_JOB, C), C);
	assert_string_equal(found(jobs, CMD_FIND_JOB, "c0c0c0c0c0c0"), C);
	assert_string_equal(found(jobs, CMD_FIND_JOB, "c"), C);
	assert_string_equal(found(jobs, CMD_FIND_JOB, "a0a0a0a0a0a0b"), B);
	assert_string_equal(found(jobs, CMD_FIND_JOB, "a0a0a0a0a0a0"),
	    "2 jobs fit \"a0a0a0a0a0a0\"; give the id (rivulet job list --all)");
	assert_string_equal(found(jobs, CMD_FIND_JOB, ""), "no job \"\"");
	assert_string_equal(found(jobs, CMD_FIND_JOB, "e"), "no job \"e\"");
	/* A short name is one; who takes the beginning of another's id for a name gets nothing by it. */
	assert_string_equal(found(jobs, CMD_FIND_JOB, "d0"), C);
	assert_non_null(strstr(found(jobs, CMD_FIND_JOB, "a0a0a0a0a0a0a"), "2 jobs fit"));
}

static void
test_name(void **state)
{
	(void)state;
	assert_string_equal(found("[" JOB(A, "x", "running", "1") "," JOB(
				      B, "x", "done", "2") "," JOB(C, "x", "stopped", "3") "]",
				CMD_FIND_JOB, "x"),
	    A);
	assert_string_equal(found("[" JOB(A, "x", "done", "1") "," JOB(
				      B, "x", "stopped", "3") "," JOB(C, "x", "done", "2") "]",
				CMD_FIND_JOB, "x"),
	    B);
	assert_string_equal(found("[" JOB(A, "x", "done", "9") "," JOB(
				      B, "x", "paused", "3") "," JOB(C, "x", "unheard-of", "2") "]",
				CMD_FIND_JOB, "x"),
	    "2 jobs fit \"x\"; give the id (rivulet job list --all)");
}

#define DEVICE(id, state) \
	"{\"device\":\"" id id "\",\"name\":\"gw\",\"state\":\"" state "\",\"joined_at\":1}"

static void
test_device(void **state)
{
	(void)state;
	assert_string_equal(found("[" DEVICE(A, "revoked") "," DEVICE(B, "left") "," DEVICE(
				      C, "suspended") "," DEVICE(D, "revoked") "]",
				CMD_FIND_DEVICE, "gw"),
	    C C);
	assert_string_equal(found("[" DEVICE(A, "revoked") "]", CMD_FIND_DEVICE, "gw"), A A);
	assert_non_null(
	    strstr(found("[" DEVICE(A, "revoked") "," DEVICE(B, "left") "]", CMD_FIND_DEVICE, "gw"),
		"2 devices fit \"gw\""));
}

static void
test_model(void **state)
{
	static const char jobs[] = "[{\"job\":\"" A "\",\"name\":\"c0\",\"model\":\"" C C "\"},"
				   "{\"job\":\"" B "\",\"model\":\"" C C "\"},"
				   "{\"job\":\"" C "\",\"model\":\"" D C "\"}]";
	(void)state;

	assert_string_equal(found(jobs, CMD_FIND_MODEL, "c0"), C C);
	assert_string_equal(found(jobs, CMD_FIND_MODEL, "d0d0d0d0d0d0"), D C);
	assert_string_equal(found(jobs, CMD_FIND_MODEL, "a0"), "no model \"a0\"");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_id),
	    cmocka_unit_test(test_name),
	    cmocka_unit_test(test_device),
	    cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
