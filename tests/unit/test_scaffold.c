/* stages: gcc clang openssl address */
/* A device's control variate between rounds: which of its two files counts, and what the training does with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <time.h>
#include <utime.h>

#include "codec_elements.h"
#include "scaffold.h"
#include "trial.h"

#define JOB(more) \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"}," more \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":[\"a\",\"b\"]}," \
	"\"local\":{\"steps\":1,\"batch\":10,\"optimizer\":{\"rate\":0.5}," \
	"\"control_variates\":{\"devices\":2}},\"round\":{\"goal\":1}}"
#define ELEMENTS 6

static void
path_of(const struct trial *t, const char *suffix, char out[256])
{
	snprintf(out, 256, "%s/variates/22222222222222222222222222222222%s", t->home, suffix);
}

static bool
is_there(const struct trial *t, const char *suffix)
{
	char path[256];

	path_of(t, suffix, path);
	return access(path, F_OK) == 0;
}

static void
remove_files(struct trial *t)
{
	char path[256];

	path_of(t, ".own", path);
	unlink(path);
	path_of(t, ".next", path);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	trial_deinit(t);
}

/* A task of this round, in which that one counts. */
static enum err
load(struct trial *t, uint64_t round, uint64_t counted, struct why *why)
{
	struct work *w = &t->work;

	if (w->own.in_file)
		close(w->own.fd);
	free(w->shift);
	w->own = (struct work_vector){.memory = NULL};
	w->shift = NULL;
	w->task.round = round;
	w->task.counted = counted;
	enum err e = scaffold_load(w, t->home, why);
	return e ? e : scaffold_correct(w, why);
}

static void
read_own(const struct trial *t, float own[ELEMENTS])
{
	const struct codec_elements values = work_vector_values(&t->work.own);

	assert_int_equal(values.read(values.context, 0, ELEMENTS, own), ERR_OK);
}

static void
expect_own(struct trial *t, uint64_t round, uint64_t counted, float want)
{
	struct why why = {""};
	enum err e = load(t, round, counted, &why);

	if (e)
		fail_msg("round %u: %s", (unsigned)round, why.text);
	float own[ELEMENTS];
	read_own(t, own);
	for (size_t i = 0; i < t->work.table.elements; i++)
		if (own[i] < want || own[i] > want)
			fail_msg(
			    "round %u: %g, not %g", (unsigned)round, (double)own[i], (double)want);
}

static void
report(struct trial *t, float value)
{
	float change[ELEMENTS];
	struct why why = {""};

	for (size_t i = 0; i < ELEMENTS; i++)
		change[i] = value;
	const struct codec_elements values = codec_elements_in(change);
	assert_int_equal(scaffold_keep(&t->work, t->home, &values, &why), ERR_OK);
}

static void
what_counts(void **state)
{
	struct trial t;
	struct why why = {""};

	(void)state;
	trial_init(&t, JOB(""), "");
	expect_own(&t, 1, 0, 0);
	assert_null(t.work.shift);
	report(&t, 1);
	/* Round 1 failed, or its delta was never accepted. */
	expect_own(&t, 2, 0, 0);
	assert_true(is_there(&t, ".next") && !is_there(&t, ".own"));
	/* It was committed, however often the task comes. */
	for (int again = 0; again < 2; again++) {
		expect_own(&t, 2, 1, 1);
		assert_true(!is_there(&t, ".next") && is_there(&t, ".own"));
		assert_true(t.work.shift[3] == -1);
	}
	/* Killed between this and the outbox, the task comes again; then round 2 fails; then round 3 counts. */
	report(&t, 2);
	expect_own(&t, 2, 1, 1);
	report(&t, 7);
	expect_own(&t, 3, 1, 1);
	report(&t, 4);
	expect_own(&t, 4, 3, 5);
	assert_int_equal(load(&t, 5, 2, &why), ERR_STATE);
	assert_non_null(strstr(why.text, "round 2"));
	remove_files(&t);
}

static void
damaged(void **state)
{
	struct trial t;
	struct why why = {""};
	char path[256];

	(void)state;
	trial_init(&t, JOB(""), "");
	expect_own(&t, 1, 0, 0);
	report(&t, 1);
	expect_own(&t, 2, 1, 1);
	path_of(&t, ".own", path);
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(file_pwrite(fd, "x", 1, 30), ERR_OK);
	close(fd);
	assert_int_equal(load(&t, 3, 1, &why), ERR_STATE);
	assert_int_equal(truncate(path, 10), 0);
	assert_int_equal(load(&t, 3, 1, &why), ERR_STATE);
	unlink(path);
	assert_int_equal(load(&t, 3, 1, &why), ERR_STATE);
	remove_files(&t);
}

/* What the program of commit 402de29 counted in round 2. */
static void
earlier_program(void **state)
{
	static const float want[ELEMENTS] = {0x1.e07b90p-3f, 0x1.3e54d0p-5f, -0x1.e07b90p-3f,
	    -0x1.3e54d0p-5f, 0x1.595244p-6f, -0x1.59524cp-6f};
	struct trial t;
	struct why why = {""};
	char path[256], *data;
	size_t len;

	(void)state;
	trial_init(&t, JOB(""), "");
	expect_own(&t, 1, 0, 0);
	path_of(&t, ".own", path);
	assert_int_equal(
	    file_read("tests/vectors/device/variate.own", 1000, &data, &len, NULL), ERR_OK);
	assert_int_equal(file_write(path, data, len, 0600, NULL), ERR_OK);
	assert_int_equal(load(&t, 3, 2, &why), ERR_OK);
	float own[ELEMENTS];
	read_own(&t, own);
	assert_memory_equal(own, want, sizeof(want));
	free(data);
	remove_files(&t);
}

static void
touch(const struct trial *t, const char *suffix, int days)
{
	struct utimbuf at = {time(NULL) - days * 86400, time(NULL) - days * 86400};
	char path[256];

	path_of(t, suffix, path);
	if (!is_there(t, suffix))
		assert_int_equal(file_write(path, "x", 1, 0600, NULL), ERR_OK);
	assert_int_equal(utime(path, &at), 0);
}

/* At a start: what a kill left goes at once; a job's variate once both of its files are old. */
static void
cleaned(void **state)
{
	static const struct {
		int own, next;
		bool kept;
	} rows[] = {{89, 89, true}, {91, 1, true}, {1, 91, true}, {91, 91, false}};
	struct trial t;

	(void)state;
	trial_init(&t, JOB(""), "");
	assert_int_equal(scaffold_init(t.home, NULL), ERR_OK);
	expect_own(&t, 1, 0, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		touch(&t, ".own", rows[i].own);
		touch(&t, ".next", rows[i].next);
		touch(&t, ".part", 0);
		touch(&t, ".next.a1B2c3", 0);
		assert_int_equal(scaffold_init(t.home, NULL), ERR_OK);
		assert_false(is_there(&t, ".part") || is_there(&t, ".next.a1B2c3"));
		/* Looking old once is not enough. */
		for (int times = 0; times < 2; times++) {
			assert_true(is_there(&t, ".own") && is_there(&t, ".next"));
			assert_int_equal(scaffold_init(t.home, NULL), ERR_OK);
		}
		touch(&t, ".own", rows[i].own);
		touch(&t, ".next", rows[i].next);
		assert_int_equal(scaffold_init(t.home, NULL), ERR_OK);
		assert_int_equal(is_there(&t, ".own"), rows[i].kept);
		assert_int_equal(is_there(&t, ".next"), rows[i].kept);
	}
	remove_files(&t);
}

/* Weights after one step, with this much added to every gradient. */
static void
train(const char *job, float own, float out[ELEMENTS])
{
	struct trial t;
	struct why why = {""};

	trial_init(&t, job, "");
	size_t n = (size_t)t.work.table.elements;
	expect_own(&t, 1, 0, 0);
	if (own > 0 || own < 0) {
		t.work.shift = malloc(n * sizeof(float));
		for (size_t i = 0; i < n; i++)
			t.work.shift[i] = -own * (float)(i + 1);
	}
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	memcpy(out, t.work.weights, ELEMENTS * sizeof(float));
	remove_files(&t);
}

static void
the_correction(void **state)
{
	float plain[ELEMENTS], with[ELEMENTS];

	(void)state;
	train(JOB(""), 0, plain);
	train(JOB(""), 2, with);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_float_equal(with[i] - plain[i], 0.5f * 2 * (float)(i + 1), 1e-5f);
	/* A tensor that is not in the delta is not in its order, either: fc.weight comes first in both. */
	train(JOB("\"tensors\":{\"fc.bias\":\"frozen\"},"), 0, plain);
	train(JOB("\"tensors\":{\"fc.bias\":\"frozen\"},"), 2, with);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_float_equal(
		    with[i] - plain[i], i < 4 ? 0.5f * 2 * (float)(i + 1) : 0, 1e-5f);
}

/* In two parts. */
static void
change_of(const struct work *w, const float *delta, float out[ELEMENTS])
{
	const struct codec_elements from = codec_elements_in(delta);
	const struct scaffold_change change = scaffold_change_of(w, &from, 4);
	const struct codec_elements values = scaffold_change_values(&change);

	assert_int_equal(values.read(values.context, 0, 2, out), ERR_OK);
	assert_int_equal(values.read(values.context, 2, ELEMENTS - 2, out + 2), ERR_OK);
}

static void
the_change(void **state)
{
	static const float delta[ELEMENTS] = {1, 1, 1, 1, 1, -2};
	static const float server[ELEMENTS] = {0, 0, 0, 0, 0, 0.25f};
	float change[ELEMENTS];
	struct trial t;

	(void)state;
	trial_init(&t, JOB(""), "");
	expect_own(&t, 1, 0, 0);
	t.work.server.memory = server;
	change_of(&t.work, delta, change);
	assert_true(change[0] == -0.5f && change[5] == 0.75f);
	t.work.task.recipe.local.optimizer.rate = 0;
	change_of(&t.work, delta, change);
	assert_true(change[0] == 0 && change[5] == 0);
	remove_files(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_counts), cmocka_unit_test(damaged),
	    cmocka_unit_test(earlier_program), cmocka_unit_test(cleaned),
	    cmocka_unit_test(the_correction), cmocka_unit_test(the_change)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
