/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec_elements.h"
#include "file.h"
#include "handle_inside.h"

#include "send.c"

#define JOB "0000000000000000000000000000000a"
#define OTHER "0000000000000000000000000000000b"
#define TASK "00000000000000000000000000000001"
#define NEXT "00000000000000000000000000000002"

struct refusal {
	long status;
	enum problem_type problem;
};

/* The delta is as good as before: somebody mends the device, its certificate or the coordinator. */
static void
test_passing(void **state)
{
	static const struct refusal all[] = {{401, PROBLEM_NO_CERTIFICATE},
	    {401, PROBLEM_BAD_TOKEN}, {401, PROBLEM_NONE}, {401, PROBLEM_WRONG_TASK},
	    {403, PROBLEM_EXPIRED_CERTIFICATE}, {403, PROBLEM_DEVICE_SUSPENDED},
	    {403, PROBLEM_UNKNOWN_DEVICE}, {403, PROBLEM_FORBIDDEN}, {403, PROBLEM_NONE},
	    {403, PROBLEM_UNKNOWN}, {409, PROBLEM_DEVICE_SUSPENDED}, {408, PROBLEM_NONE},
	    {429, PROBLEM_UNKNOWN}, {500, PROBLEM_INTERNAL}, {502, PROBLEM_NONE},
	    {503, PROBLEM_UNAVAILABLE}, {507, PROBLEM_NO_SPACE}, {302, PROBLEM_NONE}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (send_final(all[i].status, all[i].problem))
			fail_msg(
			    "%ld %s ends the delta", all[i].status, problem_word(all[i].problem));
}

static void
test_final(void **state)
{
	static const struct refusal all[] = {{400, PROBLEM_BAD_MANIFEST}, {400, PROBLEM_BAD_REPORT},
	    {400, PROBLEM_WRONG_LENGTH}, {400, PROBLEM_WRONG_CHUNK}, {400, PROBLEM_NOT_FINITE},
	    {400, PROBLEM_NO_EXAMPLES}, {400, PROBLEM_TOO_MANY_EXAMPLES},
	    {400, PROBLEM_NORM_TOO_LARGE}, {400, PROBLEM_UNKNOWN_CODEC}, {400, PROBLEM_UNSUPPORTED},
	    {403, PROBLEM_DEVICE_REVOKED}, {403, PROBLEM_WRONG_DEVICE}, {403, PROBLEM_WRONG_TASK},
	    {403, PROBLEM_BAD_SIGNATURE}, {404, PROBLEM_NOT_FOUND}, {404, PROBLEM_UNKNOWN_JOB},
	    {409, PROBLEM_STALE_ROUND}, {409, PROBLEM_WRONG_BASE}, {409, PROBLEM_USED_TASK},
	    {409, PROBLEM_ROUND_CLOSED}, {413, PROBLEM_TOO_LARGE}, {400, PROBLEM_UNKNOWN},
	    {409, PROBLEM_UNKNOWN}, {410, PROBLEM_NONE}, {431, PROBLEM_HEADER_TOO_LARGE}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!send_final(all[i].status, all[i].problem))
			fail_msg(
			    "%ld %s keeps the delta", all[i].status, problem_word(all[i].problem));
}

/* --- what a refusal does to the residual */

static void
keep(const struct rivulet *r, const char *job, const char *task)
{
	const float change[4] = {1, 2, 3, 4};
	const struct codec_elements elements = codec_elements_in(change);

	assert_int_equal(residual_keep(&r->residual, job, task, &elements, 4, NULL), ERR_OK);
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

/* --- what an answer says of the device */

struct heard {
	long status;
	const char *word;
	enum standing standing, of_delta; /* when it is asked for work; when it sends a delta */
};

/* An answer that is no refusal of the device's leaves it in good standing, or does not touch that. */
static void
test_standing(void **state)
{
	static const struct heard all[] = {
	    {403, "device-revoked", STANDING_REVOKED, STANDING_REVOKED},
	    {403, "device-left", STANDING_LEFT, STANDING_LEFT},
	    {403, "forbidden", STANDING_REFUSED, STANDING_REFUSED},
	    {401, "bad-token", STANDING_REFUSED, STANDING_REFUSED},
	    {403, "", STANDING_REFUSED, STANDING_REFUSED},
	    {403, "wrong-task", STANDING_REFUSED, STANDING_GOOD},
	    {409, "stale-round", STANDING_REFUSED, STANDING_GOOD},
	    {503, "unavailable", STANDING_REFUSED, STANDING_UNREACHABLE},
	    {502, "", STANDING_UNREACHABLE, STANDING_UNREACHABLE}};
	struct rivulet *r = make_device();

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct outbox_entry entry = {.raw = {0}};
		struct sending s = {.task = TASK};
		struct transport_answer answer = {.status = all[i].status};
		enum problem_type type;
		struct why why;
		char text[128];
		snprintf(text, sizeof(text), "{\"type\":\"%s%s\",\"title\":\"t\",\"status\":%ld}",
		    *all[i].word ? "urn:rivulet:error:" : "about:blank", all[i].word,
		    all[i].status);
		buf_init(&answer.body, 256);
		assert_int_equal(buf_append(&answer.body, text, strlen(text)), ERR_OK);
		enum err e = session_problem(&answer, &type, &why);
		handle_answered(r, &answer, e, type);
		assert_int_equal(r->standing, all[i].standing);
		handle_answered(r, &answer, ERR_OK, PROBLEM_NONE);
		assert_int_equal(r->standing, STANDING_GOOD);
		handle_answered(r, NULL, ERR_CLOSED, PROBLEM_NONE);
		assert_int_equal(r->standing, STANDING_UNREACHABLE);
		handle_answered(r, NULL, ERR_AGAIN, PROBLEM_NONE);
		assert_int_equal(r->standing, STANDING_UNREACHABLE);
		assert_int_not_equal(judge(r, &entry, &s, &answer, &why), ERR_OK);
		if (r->standing != all[i].of_delta)
			fail_msg("%s: %d", text, r->standing);
		transport_answer_deinit(&answer);
	}
	free_device(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_passing),
	    cmocka_unit_test(test_final), cmocka_unit_test(test_residual_too_long),
	    cmocka_unit_test(test_standing)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
