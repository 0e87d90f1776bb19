/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "codec.h"
#include "file.h"
#include "prng.h"

/* Every named place of residual.c, and those of the course below, count. */
#include "killed.h"

#include "residual.c"

#define JOB "00000000000000000000000000000abc"
#define OTHER "00000000000000000000000000000def"
#define ELEMENTS 400
#define TASKS 30
#define ROOM (1 << 20)

static char home[64];

static int
set_up(void **state)
{
	char path[128];

	(void)state;
	strcpy(home, "/tmp/test_residual.XXXXXX");
	assert_non_null(mkdtemp(home));
	snprintf(path, sizeof(path), "%s/outbox", home);
	assert_int_equal(mkdir(path, 0700), 0);
	return 0;
}

static int
tear_down(void **state)
{
	static const char *const names[] = {"outbox", "residual", ""};
	char path[128];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", home, names[i]);
		if (names[i][0])
			assert_int_equal(file_empty_dir(path, NULL), ERR_OK);
		rmdir(path);
	}
	return 0;
}

static struct outbox
outbox_there(void)
{
	struct outbox o;

	assert_int_equal(outbox_init(&o, home, ROOM, NULL), ERR_OK);
	return o;
}

static struct residual
residual_there(uint64_t most)
{
	struct residual r;
	struct outbox o = outbox_there();

	assert_int_equal(residual_init(&r, home, most, &o, NULL), ERR_OK);
	return r;
}

static void
task_name(char out[33], unsigned number)
{
	snprintf(out, 33, "%032x", number);
}

static void
entry_path(char out[160], const char *task)
{
	snprintf(out, 160, "%s/outbox/%s.delta", home, task);
}

static bool
exists(const char *task, const char *suffix)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/residual/%s%s", home, task, suffix);
	return access(path, F_OK) == 0;
}

/* The values and the residual of the job. */
static enum err
residual_add(
    const struct residual *r, const char *job, float *values, uint64_t elements, struct why *why)
{
	struct kept sum;
	float rest[ELEMENTS];
	enum err e = residual_open(r, job, elements, &sum, why);

	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	assert_int_equal(kept_read(&sum, rest, elements * sizeof(float), 0), ERR_OK);
	for (size_t i = 0; i < elements; i++)
		values[i] += rest[i];
	kept_close(&sum);
	return ERR_OK;
}

static enum err
keep_change(const struct residual *r, const char *job, const char *task, const float *change,
    uint64_t elements, struct why *why)
{
	const struct codec_elements values = codec_elements_in(change);

	return residual_keep(r, job, task, &values, elements, why);
}

/* --- a device that is killed, and the coordinator it reports to */

/* In memory that outlives the device. */
struct coordinator {
	int verdicts[TASKS]; /* 0: never seen, 1: accepted, 2: refused */
	int asked[TASKS];
	double sent[ELEMENTS], given[ELEMENTS]; /* of accepted deltas: as decoded, and before */
};

static void
draw(float values[ELEMENTS], unsigned task)
{
	struct prng r;

	prng_seed2(&r, 5, task);
	for (size_t i = 0; i < ELEMENTS; i++)
		values[i] = (float)(prng_double(&r) - 0.5 + (double)i / ELEMENTS);
}

/* The delta's file: the payload alone. */
static void
make_delta(const struct residual *r, unsigned number, double share)
{
	const struct codec *c = codec_find(CODEC_SPARSE);
	float values[ELEMENTS], sum[ELEMENTS], back[ELEMENTS];
	static uint8_t payload[4 * ELEMENTS];
	struct codec_params p = {
	    .elements = ELEMENTS, .block = c->block, .entries = (uint64_t)(share * ELEMENTS)};
	char task[33], path[160];

	draw(values, number);
	memcpy(sum, values, sizeof(sum));
	assert_int_equal(residual_add(r, JOB, sum, ELEMENTS, NULL), ERR_OK);
	assert_int_equal(c->encode(payload, &p.payload, sum, &p), ERR_OK);
	struct codec_memory memory = {payload, p.payload};
	const struct codec_source source = {codec_memory_read, &memory};
	assert_int_equal(codec_read(c, &p, &source, 0, ELEMENTS, back), ERR_OK);
	for (size_t i = 0; i < ELEMENTS; i++)
		values[i] -= back[i];
	task_name(task, number);
	assert_int_equal(keep_change(r, JOB, task, values, ELEMENTS, NULL), ERR_OK);
	entry_path(path, task);
	killed_place();
	assert_int_equal(file_write(path, payload, p.payload, 0600, NULL), ERR_OK);
	killed_place();
}

static void
take(struct coordinator *c, unsigned number)
{
	const struct codec *codec = codec_find(CODEC_SPARSE);
	float values[ELEMENTS], back[ELEMENTS];
	char task[33], path[160], *payload;
	size_t len;

	task_name(task, number);
	entry_path(path, task);
	assert_int_equal(file_read(path, ROOM, &payload, &len, NULL), ERR_OK);
	const struct codec_params p = {.elements = ELEMENTS, .block = codec->block, .payload = len};
	struct codec_memory memory = {payload, len};
	const struct codec_source source = {codec_memory_read, &memory};
	assert_int_equal(codec_read(codec, &p, &source, 0, ELEMENTS, back), ERR_OK);
	draw(values, number);
	for (size_t i = 0; i < ELEMENTS; i++) {
		c->sent[i] += (double)back[i];
		c->given[i] += (double)values[i];
	}
	c->verdicts[number] = 1;
	free(payload);
}

/* Each seventh delta comes too late; each fifth finds the coordinator busy, a few times over. */
static void
send_one(struct coordinator *c, const struct outbox *o, const struct residual *r, unsigned number)
{
	char task[33];

	task_name(task, number);
	if (!outbox_has(o, task) || (number % 5 == 2 && c->asked[number]++ < 3))
		return;
	killed_place();
	if (c->verdicts[number] == 0 && number % 7 == 3)
		c->verdicts[number] = 2;
	else if (c->verdicts[number] == 0)
		take(c, number);
	killed_place();
	if (c->verdicts[number] == 1)
		assert_int_equal(residual_accept(r, task, NULL), ERR_OK);
	killed_place();
	outbox_remove(o, task);
	killed_place();
	if (c->verdicts[number] == 2)
		residual_refuse(r, task);
}

/* What a device does after its start, until all is done or it dies. */
static void
live(void *arg)
{
	struct coordinator *c = arg;
	struct outbox o = outbox_there();
	struct residual r = residual_there(ROOM);
	char task[33];

	for (int turn = 0; turn < 4; turn++)
		for (unsigned n = 0; n < TASKS; n++) {
			for (unsigned k = 0; k < TASKS; k++)
				send_one(c, &o, &r, k);
			task_name(task, n);
			if (c->verdicts[n] != 0 || outbox_has(&o, task))
				continue;
			make_delta(&r, n, 0.05);
			send_one(c, &o, &r, n);
		}
}

/* What an accepted delta left and the device has not added yet, because it does not know. */
static void
add_unknown(const struct coordinator *c, const struct residual *r, float rest[ELEMENTS])
{
	struct kept change;
	char task[33], path[PATH_MAX];

	for (unsigned n = 0; n < TASKS; n++) {
		task_name(task, n);
		path_of(r, task, CHANGE, path);
		if (c->verdicts[n] != 1 ||
		    kept_open(&change, DEVICEFILE_RESIDUAL, path, NULL) != ERR_OK)
			continue;
		float left[ELEMENTS];
		assert_int_equal(kept_read(&change, left, sizeof(left), 0), ERR_OK);
		for (size_t i = 0; i < ELEMENTS; i++)
			rest[i] += left[i];
		kept_close(&change);
	}
}

static void
check_sums(const void *arg)
{
	const struct coordinator *c = arg;
	struct residual r = residual_there(ROOM);
	float rest[ELEMENTS] = {0};

	assert_int_equal(residual_add(&r, JOB, rest, ELEMENTS, NULL), ERR_OK);
	add_unknown(c, &r, rest);
	for (size_t i = 0; i < ELEMENTS; i++) {
		double off = c->sent[i] + (double)rest[i] - c->given[i];
		if (!(fabs(off) <= 1e-6 * (1 + fabs(c->given[i]))))
			fail_msg("element %zu: sent %g, rest %g, given %g", i, c->sent[i],
			    (double)rest[i], c->given[i]);
	}
}

/* Killed after each number of steps in turn, until all is done; the sums are right each time. */
static void
test_killed(void **state)
{
	struct coordinator *c = killed_outlives(sizeof(*c));
	unsigned accepted = 0;

	(void)state;
	assert_true(killed_anywhere(14, live, check_sums, c) >= 30);
	for (size_t i = 0; i < TASKS; i++) {
		assert_true(c->verdicts[i] != 0);
		accepted += c->verdicts[i] == 1;
	}
	assert_int_equal(accepted, TASKS - 4);
	munmap(c, sizeof(*c));
}

/* --- single rules */

static void
keep(const struct residual *r, const char *job, const char *task, float value)
{
	float change[4] = {value, -value, 0, 1};
	char path[160];

	assert_int_equal(keep_change(r, job, task, change, 4, NULL), ERR_OK);
	entry_path(path, task);
	assert_int_equal(file_write(path, "x", 1, 0600, NULL), ERR_OK);
}

static float
first_of(const struct residual *r, const char *job)
{
	float v[4] = {0};

	assert_int_equal(residual_add(r, job, v, 4, NULL), ERR_OK);
	return v[0];
}

static void
course(void **state)
{
	(void)state;
	char a[33], b[33];
	struct residual r = residual_there(ROOM);

	task_name(a, 1);
	task_name(b, 2);
	assert_true(first_of(&r, JOB) == 0);
	keep(&r, JOB, a, 2);
	assert_true(first_of(&r, JOB) == 0);
	keep(&r, JOB, b, 4);
	keep(&r, JOB, a, 3); /* the task done again */
	assert_int_equal(residual_accept(&r, b, NULL), ERR_OK);
	assert_int_equal(residual_accept(&r, a, NULL), ERR_OK);
	assert_int_equal(residual_accept(&r, a, NULL), ERR_OK);
	assert_int_equal(residual_accept(&r, b, NULL), ERR_OK);
	assert_true(first_of(&r, JOB) == 7);
	assert_true(first_of(&r, OTHER) == 0);
	assert_false(exists(a, CHANGE));
	assert_false(exists(b, CHANGE));
	keep(&r, JOB, b, 4);
	residual_refuse(&r, b);
	assert_int_equal(residual_accept(&r, b, NULL), ERR_OK);
	assert_true(first_of(&r, JOB) == 7);
}

/* A change that was added and could not be removed: it is not added again, also not when another came between. */
static void
not_removed(void **state)
{
	(void)state;
	char a[33], b[33], path[160], aside[160];
	struct residual r = residual_there(ROOM);

	task_name(a, 1);
	task_name(b, 2);
	snprintf(path, sizeof(path), "%s/residual/%s%s", home, a, CHANGE);
	snprintf(aside, sizeof(aside), "%s/residual/aside", home);
	keep(&r, JOB, a, 2);
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(link(path, aside), 0);
		assert_int_equal(residual_accept(&r, a, NULL), ERR_OK);
		assert_int_equal(rename(aside, path), 0);
		assert_true(first_of(&r, JOB) == 2);
	}
	keep(&r, JOB, b, 4);
	assert_int_equal(residual_accept(&r, b, NULL), ERR_OK);
	assert_int_equal(residual_accept(&r, a, NULL), ERR_OK);
	assert_true(first_of(&r, JOB) == 6);
}

/* At a start: changes without a delta, and what is too old. */
static void
cleaned(void **state)
{
	(void)state;
	char a[33], b[33], path[160];
	struct residual r = residual_there(ROOM);
	struct utimbuf old = {time(NULL) - 31 * 86400, time(NULL) - 31 * 86400};

	task_name(a, 1);
	task_name(b, 2);
	keep(&r, JOB, a, 2);
	assert_int_equal(residual_accept(&r, a, NULL), ERR_OK);
	keep(&r, OTHER, b, 2);
	keep(&r, JOB, a, 5);
	entry_path(path, b);
	assert_int_equal(unlink(path), 0);
	r = residual_there(ROOM);
	assert_false(exists(b, CHANGE));
	assert_true(exists(JOB, SUM));
	snprintf(path, sizeof(path), "%s/residual/%s%s", home, JOB, SUM);
	assert_int_equal(utime(path, &old), 0);
	/* Looking old once is not enough. */
	residual_there(ROOM);
	residual_there(ROOM);
	assert_true(exists(JOB, SUM));
	assert_int_equal(utime(path, &old), 0);
	residual_there(ROOM);
	assert_false(exists(JOB, SUM));
}

static void
damaged(void **state)
{
	(void)state;
	static const off_t places[] = {0, 5, 9, 30, 70, 64 + 16 + 3};
	struct residual r = residual_there(ROOM);
	struct why why = {""};
	float v[4] = {0};
	char a[33], path[160];

	task_name(a, 1);
	snprintf(path, sizeof(path), "%s/residual/%s%s", home, JOB, SUM);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		keep(&r, JOB, a, 2);
		assert_int_equal(residual_accept(&r, a, NULL), ERR_OK);
		assert_int_equal(residual_add(&r, JOB, v, 3, &why), ERR_CORRUPT);
		assert_false(exists(JOB, SUM));
		keep(&r, JOB, a, 2);
		assert_int_equal(residual_accept(&r, a, NULL), ERR_OK);
		FILE *f = fopen(path, "r+");
		fseek(f, places[i], SEEK_SET);
		int byte = fgetc(f);
		fseek(f, places[i], SEEK_SET);
		fputc(byte ^ 1, f);
		fclose(f);
		memset(v, 0, sizeof(v));
		assert_int_equal(residual_add(&r, JOB, v, 4, &why), ERR_CORRUPT);
		assert_true(v[0] == 0);
		assert_non_null(strstr(why.text, path));
	}
}

/* A change, a sum to add it to: 2 x (64 + 16 + 32) bytes for a job. */
static void
full(void **state)
{
	(void)state;
	struct residual r = residual_there(300);
	struct utimbuf old = {time(NULL) - 2 * 86400, time(NULL) - 2 * 86400};
	float change[4] = {1};
	struct why why = {""};
	char a[33], b[33], path[160];

	task_name(a, 1);
	task_name(b, 2);
	keep(&r, JOB, a, 2);
	assert_int_equal(residual_accept(&r, a, NULL), ERR_OK);
	assert_int_equal(keep_change(&r, OTHER, b, change, 4, &why), ERR_NOSPACE);
	assert_non_null(strstr(why.text, "residual_bytes"));
	keep(&r, JOB, a, 2); /* the same job has room */
	assert_int_equal(residual_accept(&r, a, NULL), ERR_OK);
	snprintf(path, sizeof(path), "%s/residual/%s%s", home, JOB, SUM);
	assert_int_equal(utime(path, &old), 0);
	assert_int_equal(keep_change(&r, OTHER, b, change, 4, &why), ERR_OK);
	assert_false(exists(JOB, SUM));
}

/* What the program of commit 402de29 left is added to the next delta. */
static void
earlier_program(void **state)
{
	(void)state;
	static const float want[4] = {
	    -0x1.8e3cf0p-2f, -0x1.32ce80p-3f, 0x1.1e7600p-9f, 0x1.32ce80p-3f};
	struct residual r = residual_there(ROOM);
	float v[4] = {0};
	char path[PATH_MAX], *data;
	size_t len;

	assert_int_equal(
	    file_read("tests/vectors/device/residual.sum", ROOM, &data, &len, NULL), ERR_OK);
	assert_int_equal(file_mkdirs(r.dir, 0700, NULL), ERR_OK);
	path_of(&r, JOB, SUM, path);
	assert_int_equal(file_write(path, data, len, 0600, NULL), ERR_OK);
	assert_int_equal(residual_add(&r, JOB, v, 4, NULL), ERR_OK);
	assert_memory_equal(v, want, sizeof(want));
	free(data);
}

/* One of two elements is sent: +1 and -1 in turn, and 0.1 always. Without feedback the second never travels. */
static void
small_and_steady(void **state)
{
	(void)state;
	const struct codec *c = codec_find(CODEC_SPARSE);
	struct codec_params p = {.elements = 2, .block = c->block, .entries = 1};
	double with[2] = {0}, without[2] = {0};
	float rest[2] = {0}, back[2];
	uint8_t payload[64];

	for (int round = 0; round < 200; round++) {
		const float delta[2] = {round % 2 ? -1 : 1, 0.1f};
		float sum[2] = {delta[0] + rest[0], delta[1] + rest[1]};
		struct codec_memory memory = {payload, sizeof(payload)};
		const struct codec_source source = {codec_memory_read, &memory};
		assert_int_equal(c->encode(payload, &p.payload, delta, &p), ERR_OK);
		assert_int_equal(codec_read(c, &p, &source, 0, 2, back), ERR_OK);
		without[0] += (double)back[0];
		without[1] += (double)back[1];
		assert_int_equal(c->encode(payload, &p.payload, sum, &p), ERR_OK);
		assert_int_equal(codec_read(c, &p, &source, 0, 2, back), ERR_OK);
		for (size_t i = 0; i < 2; i++) {
			with[i] += (double)back[i];
			rest[i] = sum[i] - back[i];
			assert_true(fabsf(rest[i]) < 2.5f);
		}
	}
	assert_true(without[0] == 0 && without[1] == 0);
	assert_true(fabs(with[0]) < 2.5 && fabs(with[1] - 20) < 2.5);
	assert_true(fabs(with[1] + (double)rest[1] - 200 * (double)0.1f) < 1e-4);
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {WITH(test_killed), WITH(course), WITH(not_removed),
	    WITH(cleaned), WITH(damaged), WITH(full), WITH(earlier_program),
	    cmocka_unit_test(small_and_steady)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
