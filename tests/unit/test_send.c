#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "handle_inside.h"

#include "send.c"

#define JOB "0000000000000000000000000000000a"
#define OTHER "0000000000000000000000000000000b"
#define TASK "00000000000000000000000000000001"
#define NEXT "00000000000000000000000000000002"

struct refusal {
	long status;
	const char *word;
};

/* The delta is as good as before: somebody mends the device, its certificate or the coordinator. */
static void
test_passing(void **state)
{
	static const struct refusal all[] = {{401, "no-certificate"}, {401, "bad-token"}, {401, ""},
	    {401, "wrong-task"}, {403, "expired-certificate"}, {403, "device-suspended"},
	    {403, "unknown-device"}, {403, "forbidden"}, {403, ""}, {403, "a-later-word"},
	    {409, "device-suspended"}, {408, ""}, {429, "a-later-word"}, {500, "internal"},
	    {502, ""}, {503, "unavailable"}, {507, "no-space"}, {302, ""}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (send_final(all[i].status, all[i].word))
			fail_msg("%ld %s ends the delta", all[i].status, all[i].word);
}

static void
test_final(void **state)
{
	static const struct refusal all[] = {{400, "bad-manifest"}, {400, "bad-report"},
	    {400, "wrong-length"}, {400, "wrong-chunk"}, {400, "not-finite"}, {400, "no-examples"},
	    {400, "too-many-examples"}, {400, "norm-too-large"}, {400, "unknown-codec"},
	    {400, "unsupported"}, {403, "device-revoked"}, {403, "wrong-device"},
	    {403, "wrong-task"}, {403, "bad-signature"}, {404, "not-found"}, {404, "unknown-job"},
	    {409, "stale-round"}, {409, "wrong-base"}, {409, "used-task"}, {409, "round-closed"},
	    {413, "too-large"}, {400, "a-later-word"}, {409, "a-later-word"}, {410, ""},
	    {431, "header-too-large"}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!send_final(all[i].status, all[i].word))
			fail_msg("%ld %s keeps the delta", all[i].status, all[i].word);
}

/* --- what a refusal does to the residual */

static void
keep(const struct rivulet *r, const char *job, const char *task)
{
	const float change[4] = {1, 2, 3, 4};

	assert_int_equal(residual_keep(&r->residual, job, task, change, 4, NULL), ERR_OK);
}

static bool
has(const struct rivulet *r, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", r->residual.dir, name);
	return access(path, F_OK) == 0;
}

static struct rivulet *
make_device(void)
{
	struct rivulet *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	strcpy(r->home, "/tmp/test_send.XXXXXX");
	assert_non_null(mkdtemp(r->home));
	assert_int_equal(outbox_init(&r->outbox, r->home, 1 << 20, NULL), ERR_OK);
	assert_int_equal(residual_init(&r->residual, r->home, 1 << 20, &r->outbox, NULL), ERR_OK);
	return r;
}

static void
free_device(struct rivulet *r)
{
	assert_int_equal(file_empty_dir(r->residual.dir, NULL), ERR_OK);
	rmdir(r->residual.dir);
	rmdir(r->outbox.dir);
	rmdir(r->home);
	free(r);
}

/* Both jobs have a residual, TASK and NEXT of the first wait; TASK is refused with that word. */
static struct rivulet *
refused(const char *word)
{
	struct rivulet *r = make_device();
	struct outbox_entry entry = {.raw = {0}};
	struct sending s = {.task = TASK};
	struct transport_answer answer = {.status = 400};
	struct why why;
	char text[128];

	assert_true(hex_decode(entry.manifest.job, sizeof(entry.manifest.job), JOB, 32));
	keep(r, JOB, TASK);
	assert_int_equal(residual_accept(&r->residual, TASK, NULL), ERR_OK);
	keep(r, OTHER, TASK);
	assert_int_equal(residual_accept(&r->residual, TASK, NULL), ERR_OK);
	keep(r, JOB, TASK);
	keep(r, JOB, NEXT);
	snprintf(text, sizeof(text),
	    "{\"type\":\"urn:rivulet:%s\",\"title\":\"t\",\"status\":400,\"detail\":\"d\"}", word);
	buf_init(&answer.body, 256);
	assert_int_equal(buf_append(&answer.body, text, strlen(text)), ERR_OK);
	assert_int_equal(judge(r, &entry, &s, &answer, &why), ERR_STATE);
	assert_non_null(strstr(why.text, word));
	transport_answer_deinit(&answer);
	assert_false(has(r, TASK ".change"));
	assert_true(has(r, NEXT ".change") && has(r, OTHER ".sum"));
	return r;
}

static void
test_residual_too_long(void **state)
{
	(void)state;
	struct rivulet *r = refused("norm-too-large");

	assert_false(has(r, JOB ".sum"));
	free_device(r);
	r = refused("stale-round");
	assert_true(has(r, JOB ".sum"));
	free_device(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_passing),
	    cmocka_unit_test(test_final), cmocka_unit_test(test_residual_too_long)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
