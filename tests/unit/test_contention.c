/* stages: gcc clang openssl address */
/* Fewer threads where others want the processors, all again where nobody does; and whether the kernel is understood, beside programs that run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backoff.h"
#include "contention.h"
#include "cpu.h"

#define SECONDS 20

static unsigned
decide_often(struct contention *c, double share, unsigned windows)
{
	unsigned threads = c->threads;

	while (windows-- > 0)
		threads = contention_decide(c, share);
	return threads;
}

static void
fewer_while_others_want_them(void **state)
{
	struct contention c;

	(void)state;
	contention_begin(&c, 8, 0);
	assert_int_equal(decide_often(&c, 0.1, 100), 8);
	assert_int_equal(contention_decide(&c, 0.6), 6);
	assert_int_equal(contention_decide(&c, 0.3), 5);
	assert_int_equal(decide_often(&c, 0.3, 10), 1);
	assert_int_equal(decide_often(&c, 0.9, 100), 1);
}

static void
all_again_when_it_is_quiet(void **state)
{
	struct contention c;

	(void)state;
	contention_begin(&c, 64, 0);
	assert_int_equal(decide_often(&c, 1, 20), 1);
	assert_int_equal(decide_often(&c, 0.01, 3), 1);
	assert_int_equal(contention_decide(&c, 0.01), 2);
	assert_int_equal(decide_often(&c, 0.01, 100), 64);
	contention_begin(&c, 1, 0);
	assert_int_equal(decide_often(&c, 0.01, 10), 1);
}

/* Windows of a thousand that have all threads where there are processors for all but one, and now and then others want more. */
static unsigned
count_trials(struct contention *c, unsigned most)
{
	unsigned tried = 0;

	contention_begin(c, most, 0);
	for (unsigned i = 0; i < 1000; i++)
		tried +=
		    contention_decide(c, c->threads == most || i % 100 == 0 ? 0.5 : 0.01) == most;
	return tried;
}

static void
what_does_not_pay_is_rarely_tried(void **state)
{
	static const unsigned most[] = {2, 3, 8, 16, 64};
	struct contention c;

	(void)state;
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++)
		assert_in_range(count_trials(&c, most[i]), 5, 60);
	/* And soon again once it has paid. */
	count_trials(&c, 2);
	assert_int_equal(decide_often(&c, 0.01, 200), 2);
	assert_int_equal(contention_decide(&c, 0.5), 1);
	assert_int_equal(decide_often(&c, 0.01, 4), 2);
}

static pid_t
start_spinning(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		for (alarm(2 * SECONDS);;)
			;
	return child;
}

static void
programs_that_run_are_seen(void **state)
{
	unsigned count = 2 * cpu_count(), threads = 2;
	struct contention c;

	(void)state;
	if (access("/proc/thread-self/schedstat", R_OK) != 0)
		skip(); /* a kernel without CONFIG_SCHED_INFO */
	pid_t *spinning = calloc(count, sizeof(*spinning));
	assert_non_null(spinning);
	for (unsigned i = 0; i < count; i++)
		spinning[i] = start_spinning();
	double began = backoff_now();
	contention_begin(&c, 2, began);
	while (threads > 1 && backoff_now() < began + SECONDS)
		threads = contention_threads(&c, backoff_now());
	for (unsigned i = 0; i < count; i++) {
		kill(spinning[i], SIGKILL);
		assert_int_equal(waitpid(spinning[i], NULL, 0), spinning[i]);
	}
	free(spinning);
	assert_int_equal(threads, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fewer_while_others_want_them),
	    cmocka_unit_test(all_again_when_it_is_quiet),
	    cmocka_unit_test(what_does_not_pay_is_rarely_tried),
	    cmocka_unit_test(programs_that_run_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
