/* A device's control variate between rounds: which of its two files counts, and what the training does with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <time.h>
#include <utime.h>

#include "handle.h"
#include "trial.h"

#define JOB(more) \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"}," more \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":[\"a\",\"b\"]}," \
	"\"local\":{\"steps\":1,\"batch\":10,\"optimizer\":{\"rate\":0.5}," \
	"\"control_variates\":{\"devices\":2}},\"round\":{\"goal\":1}}"
#define ELEMENTS 6

struct device {
	struct trial t;
	struct rivulet *r;
};

static void
make_device(struct device *d, const char *job)
{
	trial_init(&d->t, job, "");
	d->r = calloc(1, sizeof(*d->r));
	assert_non_null(d->r);
	strcpy(d->r->home, d->t.home);
	d->r->work = d->t.work;
	memset(&d->t.work, 0, sizeof(d->t.work));
	d->t.in.work = &d->r->work;
}

static void
path_of(const struct device *d, const char *suffix, char out[256])
{
	snprintf(out, 256, "%s/variates/22222222222222222222222222222222%s", d->t.home, suffix);
}

static bool
is_there(const struct device *d, const char *suffix)
{
	char path[256];

	path_of(d, suffix, path);
	return access(path, F_OK) == 0;
}

static void
free_device(struct device *d)
{
	char path[256];

	path_of(d, ".own", path);
	unlink(path);
	path_of(d, ".next", path);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	d->t.work = d->r->work;
	free(d->r);
	trial_deinit(&d->t);
}

/* A task of this round, in which that one counts. */
static enum err
load(struct device *d, uint64_t round, uint64_t counted, struct why *why)
{
	scaffold_deinit(&d->r->work.scaffold);
	d->r->work.task.round = round;
	d->r->work.task.counted = counted;
	return scaffold_load(d->r, why);
}

static void
expect_own(struct device *d, uint64_t round, uint64_t counted, float want)
{
	struct why why = {""};
	enum err e = load(d, round, counted, &why);

	if (e)
		fail_msg("round %u: %s", (unsigned)round, why.text);
	for (size_t i = 0; i < d->r->work.table.elements; i++)
		if (d->r->work.scaffold.own[i] < want || d->r->work.scaffold.own[i] > want)
			fail_msg("round %u: %g, not %g", (unsigned)round,
			    (double)d->r->work.scaffold.own[i], (double)want);
}

static void
report(struct device *d, float value)
{
	float change[ELEMENTS];
	struct why why = {""};

	for (size_t i = 0; i < ELEMENTS; i++)
		change[i] = value;
	assert_int_equal(scaffold_keep(d->r, change, &why), ERR_OK);
}

static void
what_counts(void **state)
{
	struct device d;
	struct why why = {""};

	(void)state;
	make_device(&d, JOB(""));
	expect_own(&d, 1, 0, 0);
	assert_null(d.r->work.scaffold.shift);
	report(&d, 1);
	/* Round 1 failed, or its delta was never accepted. */
	expect_own(&d, 2, 0, 0);
	assert_true(is_there(&d, ".next") && !is_there(&d, ".own"));
	/* It was committed, however often the task comes. */
	for (int again = 0; again < 2; again++) {
		expect_own(&d, 2, 1, 1);
		assert_true(!is_there(&d, ".next") && is_there(&d, ".own"));
		assert_true(d.r->work.scaffold.shift[3] == -1);
	}
	/* Killed between this and the outbox, the task comes again; then round 2 fails; then round 3 counts. */
	report(&d, 2);
	expect_own(&d, 2, 1, 1);
	report(&d, 7);
	expect_own(&d, 3, 1, 1);
	report(&d, 4);
	expect_own(&d, 4, 3, 5);
	assert_int_equal(load(&d, 5, 2, &why), ERR_STATE);
	assert_non_null(strstr(why.text, "round 2"));
	free_device(&d);
}

static void
damaged(void **state)
{
	struct device d;
	struct why why = {""};
	char path[256];

	(void)state;
	make_device(&d, JOB(""));
	expect_own(&d, 1, 0, 0);
	report(&d, 1);
	expect_own(&d, 2, 1, 1);
	path_of(&d, ".own", path);
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(file_pwrite(fd, "x", 1, 30), ERR_OK);
	close(fd);
	assert_int_equal(load(&d, 3, 1, &why), ERR_STATE);
	assert_int_equal(truncate(path, 10), 0);
	assert_int_equal(load(&d, 3, 1, &why), ERR_STATE);
	unlink(path);
	assert_int_equal(load(&d, 3, 1, &why), ERR_STATE);
	free_device(&d);
}

static void
touch(const struct device *d, const char *suffix, int days)
{
	struct utimbuf at = {time(NULL) - days * 86400, time(NULL) - days * 86400};
	char path[256];

	path_of(d, suffix, path);
	if (!is_there(d, suffix))
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
	struct device d;

	(void)state;
	make_device(&d, JOB(""));
	assert_int_equal(scaffold_init(d.t.home, NULL), ERR_OK);
	expect_own(&d, 1, 0, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		touch(&d, ".own", rows[i].own);
		touch(&d, ".next", rows[i].next);
		touch(&d, ".part", 0);
		touch(&d, ".next.a1B2c3", 0);
		assert_int_equal(scaffold_init(d.t.home, NULL), ERR_OK);
		assert_false(is_there(&d, ".part") || is_there(&d, ".next.a1B2c3"));
		assert_int_equal(is_there(&d, ".own"), rows[i].kept);
		assert_int_equal(is_there(&d, ".next"), rows[i].kept);
	}
	free_device(&d);
}

/* Weights after one step, with this much added to every gradient. */
static void
train(const char *job, float own, float out[ELEMENTS])
{
	struct device d;
	struct why why = {""};

	make_device(&d, job);
	size_t n = (size_t)d.r->work.table.elements;
	expect_own(&d, 1, 0, 0);
	if (own > 0 || own < 0) {
		d.r->work.scaffold.shift = malloc(n * sizeof(float));
		for (size_t i = 0; i < n; i++)
			d.r->work.scaffold.shift[i] = -own * (float)(i + 1);
	}
	assert_int_equal(trainer_builtin_run(&d.t.in, &d.t.out, &why), ERR_OK);
	memcpy(out, d.r->work.weights, ELEMENTS * sizeof(float));
	free_device(&d);
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

static void
the_change(void **state)
{
	static const float delta[ELEMENTS] = {1, 1, 1, 1, 1, -2};
	struct device d;

	(void)state;
	make_device(&d, JOB(""));
	expect_own(&d, 1, 0, 0);
	d.r->work.scaffold.server[5] = 0.25f;
	float *change = scaffold_change(&d.r->work, delta, 4);
	assert_true(change[0] == -0.5f && change[5] == 0.75f);
	free(change);
	d.r->work.task.recipe.local.optimizer.rate = 0;
	change = scaffold_change(&d.r->work, delta, 4);
	assert_true(change[0] == 0 && change[5] == 0);
	free(change);
	free_device(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_counts), cmocka_unit_test(damaged),
	    cmocka_unit_test(cleaned), cmocka_unit_test(the_correction),
	    cmocka_unit_test(the_change)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
