/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "delta.h"
#include "file.h"
#include "key.h"
#include "outbox.h"

#define ELEMENTS 300000
#define FIRST "00000000000000000000000000000001"
#define SECOND "00000000000000000000000000000002"

static char home[64], dir[80];
static struct key *key;
static float values[ELEMENTS];

static int
make_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELEMENTS; i++)
		values[i] = (float)i * 1e-6f;
	return key_generate(&key, NULL) != ERR_OK;
}

static int
free_key(void **state)
{
	(void)state;
	key_free(key);
	return 0;
}

static int
set_up(void **state)
{
	(void)state;
	strcpy(home, "/tmp/test_outbox.XXXXXX");
	assert_non_null(mkdtemp(home));
	snprintf(dir, sizeof(dir), "%s/outbox", home);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(file_empty_dir(dir, NULL), ERR_OK);
	rmdir(dir);
	rmdir(home);
	return 0;
}

/* least: its length is said before, as of a codec of fixed size. */
static bool least = true;

static enum err
put(const struct outbox *o, const char *task)
{
	uint8_t device[32];
	struct task t = {.round = 3};
	struct delta d;

	strcpy(t.task, task);
	strcpy(t.job, SECOND);
	memset(t.model, 'b', 64);
	strcpy(t.recipe.codec, "f32");
	key_id(device, key_spki(key));
	const struct delta_facts f = {.task = &t,
	    .device = device,
	    .examples = 1,
	    .steps = 1,
	    .normaliser = 1,
	    .report = "{\"metrics\":{}}",
	    .report_len = 14};
	struct outbox_draft draft;
	enum err e = outbox_begin(
	    &draft, o, task, f.report_len, least ? delta_least(&t, ELEMENTS, false) : 0, NULL);
	if (e) {
		outbox_discard(&draft);
		return e;
	}
	const struct codec_elements from = codec_elements_in(values);
	const struct delta_input in = {
	    .values = &from, .elements = ELEMENTS, .fd = draft.fd, .at = draft.body_at};
	assert_int_equal(delta_make(&d, &f, &in, key, NULL), ERR_OK);
	const struct outbox_item item = {.manifest = d.manifest,
	    .report = f.report,
	    .report_len = f.report_len,
	    .leaves = d.leaves,
	    .leaves_len = d.leaves_len,
	    .payload_len = d.payload_len};
	e = outbox_commit(&draft, o, &item, NULL);
	outbox_discard(&draft);
	delta_deinit(&d);
	return e;
}

static void
test_survives_restart(void **state)
{
	struct outbox o;
	struct outbox_entry e;
	char tasks[4][OUTBOX_TASK_HEX], temp[128];

	(void)state;
	assert_int_equal(outbox_init(&o, home, 1 << 24, NULL), ERR_OK);
	assert_int_equal(put(&o, SECOND), ERR_OK);
	assert_int_equal(put(&o, FIRST), ERR_OK);
	/* What an interrupted write left is no entry and goes at the next start. */
	snprintf(temp, sizeof(temp), "%s/%s.temp", dir, SECOND);
	assert_int_equal(file_write(temp, "half", 4, 0600, NULL), ERR_OK);

	struct outbox again;
	assert_int_equal(outbox_init(&again, home, 1 << 24, NULL), ERR_OK);
	assert_int_equal(access(temp, F_OK), -1);
	assert_int_equal(outbox_list(&again, tasks, 4), 2);
	assert_string_equal(tasks[0], FIRST);
	assert_string_equal(tasks[1], SECOND);
	assert_true(outbox_has(&again, FIRST));
	assert_int_equal(outbox_open(&e, &again, FIRST, key_spki(key), NULL), ERR_OK);
	assert_int_equal(e.manifest.round, 3);
	assert_int_equal(e.report_len, 14);
	assert_memory_equal(e.report, "{\"metrics\":{}}", 14);
	assert_int_equal(e.body_bytes, manifest_body_bytes(4 * ELEMENTS));
	float got[2];
	assert_int_equal(file_pread(e.fd, got, sizeof(got), e.body_at + 2 * HASH_LEN), ERR_OK);
	assert_memory_equal(got, values, sizeof(got));
	outbox_close(&e);
	outbox_remove(&again, FIRST);
	assert_false(outbox_has(&again, FIRST));
	assert_int_equal(outbox_list(&again, tasks, 4), 1);
}

static void
path_of(char out[128], const char *task)
{
	snprintf(out, 128, "%s/%s.delta", dir, task);
}

/* Every part is covered: a flipped bit in any of them is found, and the reason names the file. */
static void
test_corrupted(void **state)
{
	static const struct {
		off_t at;
		const char *what;
	} cases[] = {{0, "head"}, {4, "head"}, {8, "head"}, {17, "head"}, {64, "manifest"},
	    {64 + 40, "signature"}, {64 + 300, "signature"}, {64 + MANIFEST_LEN + 2, "report"},
	    {64 + MANIFEST_LEN + 14 + 5, "payload"}, {64 + MANIFEST_LEN + 14 + 64, "payload"},
	    {1200000, "payload"}};
	struct outbox o;
	struct outbox_entry e;
	struct why why;
	char path[128];
	uint8_t byte;

	(void)state;
	assert_int_equal(outbox_init(&o, home, 1 << 24, NULL), ERR_OK);
	assert_int_equal(put(&o, FIRST), ERR_OK);
	path_of(path, FIRST);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = open(path, O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, cases[i].at), 1);
		byte ^= 4;
		assert_int_equal(pwrite(fd, &byte, 1, cases[i].at), 1);
		enum err got = outbox_open(&e, &o, FIRST, key_spki(key), &why);
		if (got != ERR_CORRUPT || !strstr(why.text, cases[i].what) ||
		    !strstr(why.text, FIRST))
			fail_msg("case %zu: %s \"%s\"", i, err_name(got), why.text);
		byte ^= 4;
		assert_int_equal(pwrite(fd, &byte, 1, cases[i].at), 1);
		close(fd);
	}
	assert_int_equal(outbox_open(&e, &o, FIRST, key_spki(key), &why), ERR_OK);
	outbox_close(&e);
}

static void
test_cut_and_misnamed(void **state)
{
	struct outbox o;
	struct outbox_entry e;
	struct why why;
	char path[128], other[128];

	(void)state;
	assert_int_equal(outbox_init(&o, home, 1 << 24, NULL), ERR_OK);
	assert_int_equal(put(&o, FIRST), ERR_OK);
	path_of(path, FIRST);
	path_of(other, SECOND);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(outbox_open(&e, &o, SECOND, NULL, &why), ERR_CORRUPT);
	assert_non_null(strstr(why.text, "another task"));
	assert_int_equal(truncate(other, 100000), 0);
	assert_int_equal(outbox_open(&e, &o, SECOND, NULL, &why), ERR_CORRUPT);
	assert_int_equal(truncate(other, 10), 0);
	assert_int_equal(outbox_open(&e, &o, SECOND, NULL, &why), ERR_CORRUPT);
	assert_int_equal(outbox_open(&e, &o, FIRST, NULL, &why), ERR_NOTFOUND);
}

static void
test_other_key(void **state)
{
	struct outbox o;
	struct outbox_entry e;
	struct key *other;
	struct why why;

	(void)state;
	assert_int_equal(key_generate(&other, NULL), ERR_OK);
	assert_int_equal(outbox_init(&o, home, 1 << 24, NULL), ERR_OK);
	assert_int_equal(put(&o, FIRST), ERR_OK);
	assert_int_equal(outbox_open(&e, &o, FIRST, key_spki(other), &why), ERR_CORRUPT);
	assert_non_null(strstr(why.text, "signature"));
	key_free(other);
}

static void
test_quota(void **state)
{
	struct outbox o;
	char tasks[4][OUTBOX_TASK_HEX];

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		least = turn == 0;
		assert_int_equal(outbox_init(&o, home, 2000000, NULL), ERR_OK);
		assert_int_equal(put(&o, FIRST), ERR_OK);
		assert_int_equal(put(&o, FIRST), ERR_OK); /* replaces, so it fits */
		assert_int_equal(put(&o, SECOND), ERR_NOSPACE);
		assert_int_equal(outbox_list(&o, tasks, 4), 1);
		assert_int_equal(outbox_init(&o, home, 1000, NULL), ERR_OK);
		assert_int_equal(put(&o, FIRST), ERR_NOSPACE);
		assert_int_equal(outbox_list(&o, tasks, 4), 1);
	}
	least = true;
}

/* No descriptor is left for the directory's sync, after the file has its name: what the caller was told failed is not sent. */
static void
test_fails_late(void **state)
{
	struct rlimit before, tight;
	struct outbox o;

	(void)state;
	assert_int_equal(outbox_init(&o, home, 1 << 24, NULL), ERR_OK);
	assert_int_equal(put(&o, SECOND), ERR_OK);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	int next = dup(0);
	assert_true(next >= 0);
	close(next);
	tight = before;
	tight.rlim_cur = (rlim_t)next + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	enum err e = put(&o, FIRST);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(e, ERR_FILES);
	assert_false(outbox_has(&o, FIRST));
	assert_true(outbox_has(&o, SECOND));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_survives_restart, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_corrupted, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_cut_and_misnamed, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_other_key, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_quota, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_fails_late, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, make_key, free_key);
}
