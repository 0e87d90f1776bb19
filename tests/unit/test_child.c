/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backoff.h"
#include "buf.h"
#include "child.h"
#include "spawner_pool.h"

static char log_text[64];

static struct child_result
run(const char *script, struct child_options *o)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	struct child_result result;

	o->order.argv = argv;
	o->order.directory = "/tmp";
	assert_int_equal(child_run(&result, o, log_text, sizeof(log_text), NULL), ERR_OK);
	return result;
}

static void
test_exit_and_log(void **state)
{
	struct child_options o = {.grace_s = 1};
	static const char *const environment[] = {"PATH=/usr/bin:/bin", "GIVEN=yes", NULL};

	(void)state;
	struct child_result r = run("echo out; echo err >&2; exit 3", &o);
	assert_true(r.exited && r.code == 3 && !r.asked && !r.killed);
	assert_string_equal(log_text, "out\nerr\n");
	o.order.environment = environment;
	r = run("pwd; echo $HOME $GIVEN; cat", &o); /* cat ends: standard input is empty */
	assert_true(r.exited && r.code == 0);
	assert_string_equal(log_text, "/tmp\nyes\n");
}

static void
test_answer(void **state)
{
	struct buf answer;
	struct child_options o = {.grace_s = 1, .answer = &answer};

	(void)state;
	buf_init(&answer, 8);
	struct child_result r = run("echo out; echo err >&2", &o);
	assert_true(r.exited && r.code == 0 && !r.asked && !r.overflow);
	assert_string_equal(buf_str(&answer), "out\n");
	assert_string_equal(log_text, "err\n");
	buf_reset(&answer);
	r = run("printf 12345678", &o);
	assert_true(r.exited && !r.overflow && answer.len == 8);
	buf_reset(&answer);
	double began = backoff_now();
	r = run("trap '' PIPE; yes; sleep 60", &o);
	assert_true(r.asked && r.overflow && answer.len <= 8);
	assert_true(backoff_now() - began < 20);
	buf_deinit(&answer);
}

static void
test_keeps_the_tail(void **state)
{
	struct child_options o = {.grace_s = 1};

	(void)state;
	run("i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done", &o);
	assert_int_equal(strlen(log_text), sizeof(log_text) - 1);
	assert_string_equal(log_text + strlen(log_text) - 10, "line 4999\n");
}

/* A flood of words does not stop the clock. */
static void
test_flood(void **state)
{
	struct child_options o = {.grace_s = 0.1, .seconds = 0.3};

	(void)state;
	struct child_result r = run("yes", &o);
	assert_true(r.asked && !r.exited);
}

static void
test_deadline_asks_first(void **state)
{
	struct child_options o = {.grace_s = 20, .seconds = 0.3};
	double began = backoff_now();

	(void)state;
	struct child_result r =
	    run("trap 'echo saved; exit 0' TERM; while :; do sleep 0.05; done", &o);
	assert_true(r.exited && r.code == 0 && r.asked && !r.killed);
	/* Some shells also name the child that the signal ended. */
	assert_non_null(strstr(log_text, "saved\n"));
	assert_true(backoff_now() - began < 15);
}

static void
test_kills_what_does_not_end(void **state)
{
	struct child_options o = {.grace_s = 0.3, .seconds = 0.2};

	(void)state;
	struct child_result r = run("trap '' TERM; while :; do sleep 0.05; done", &o);
	assert_true(!r.exited && r.code == SIGKILL && r.asked && r.killed);
}

static bool
yes(void *context)
{
	(void)context;
	return true;
}

static void
test_stop(void **state)
{
	struct child_options o = {.grace_s = 10, .stop = yes};

	(void)state;
	struct child_result r = run("sleep 60", &o);
	assert_true(r.asked && !r.exited && r.code == SIGTERM);
}

/* What a trainer leaves running in its group must not outlive it, nor keep us waiting. */
static void
test_no_orphans(void **state)
{
	struct child_options o = {.grace_s = 1};
	double began = backoff_now();
	int pid = 0;

	(void)state;
	struct child_result r = run("sleep 60 & echo $!", &o);
	assert_true(r.exited && r.code == 0);
	assert_true(backoff_now() - began < 15);
	assert_int_equal(sscanf(log_text, "%d", &pid), 1);
	for (int i = 0; i < 100 && kill(pid, 0) == 0; i++) {
		/* It may stay a zombie for a moment, until init takes it. */
		char path[64], state_letter = 'R';
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		FILE *f = fopen(path, "r");
		if (!f)
			break;
		int got = fscanf(f, "%*d %*s %c", &state_letter);
		fclose(f);
		if (got == 1 && state_letter == 'Z')
			return;
		usleep(50000);
		assert_int_not_equal(i, 99);
	}
}

static void
test_cannot_start(void **state)
{
	const char *argv[] = {"/nonexistent/program", NULL};
	const struct child_options o = {.order = {.argv = argv, .directory = "/tmp"}};
	struct child_result result;
	struct why why;

	(void)state;
	assert_int_equal(child_run(&result, &o, log_text, sizeof(log_text), &why), ERR_NOTFOUND);
	assert_non_null(strstr(why.text, "/nonexistent/program"));
}

static void
test_split(void **state)
{
	const char *argv[6];
	char text[] = "  /usr/bin/python3 \"/opt/my trainer.py\" 'a \"b\"'\t--fast ";
	char open[] = "prog \"never closed", none[] = "  ", many[] = "a b c d e f g";

	(void)state;
	assert_int_equal(child_split(text, argv, 6), ERR_OK);
	assert_string_equal(argv[0], "/usr/bin/python3");
	assert_string_equal(argv[1], "/opt/my trainer.py");
	assert_string_equal(argv[2], "a \"b\"");
	assert_string_equal(argv[3], "--fast");
	assert_null(argv[4]);
	assert_int_equal(child_split(open, argv, 6), ERR_INVALID);
	assert_int_equal(child_split(none, argv, 6), ERR_INVALID);
	assert_int_equal(child_split(many, argv, 6), ERR_LIMIT);
}

/* Of two spawners from one pool each runs its own; the end of one, and of the pool, leaves the other's alone. */
static void
test_spawner_pool(void **state)
{
	struct spawner_pool n;
	struct spawner one, two;
	struct spawner_end end;
	static const char *const argv[] = {"sleep", "60", NULL};
	const struct spawner_order order = {.argv = argv,
	    .environment = (const char *const *)(size_t)environ,
	    .directory = "/",
	    .output = 2,
	    .answer = 2};

	(void)state;
	assert_int_equal(spawner_pool_init(&n, NULL, NULL), ERR_OK);
	assert_int_equal(spawner_pool_spawner(&n, &one, NULL), ERR_OK);
	assert_int_equal(spawner_pool_spawner(&n, &two, NULL), ERR_OK);
	assert_int_equal(spawner_start(&one, &order, NULL), ERR_OK);
	struct child_options o = {.grace_s = 1, .spawner = &two};
	struct child_result r = run("echo here", &o);
	assert_true(r.exited && r.code == 0);
	assert_string_equal(log_text, "here\n");
	spawner_deinit(&two);
	spawner_pool_deinit(&n);
	assert_int_equal(spawner_ended(&one, &end), ERR_AGAIN);
	spawner_signal(&one, SIGTERM);
	while (spawner_ended(&one, &end) == ERR_AGAIN)
		usleep(1000);
	assert_true(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGTERM);
	spawner_deinit(&one);
}

/* Two descriptors beside the outputs, and no other. */
static void
test_words(void **state)
{
	struct spawner s;
	struct spawner_end end;
	static const char *const argv[] = {
	    "sh", "-c", "read -r x <&3; echo \"<$x>\" >&4; [ ! -e /proc/self/fd/5 ]", NULL};
	int to[2], from[2];
	char said[16];

	(void)state;
	assert_int_equal(spawner_init(&s, NULL), ERR_OK);
	assert_true(pipe(to) == 0 && pipe(from) == 0);
	const int words[] = {to[0], from[1]};
	const struct spawner_order order = {.argv = argv,
	    .environment = (const char *const *)(size_t)environ,
	    .directory = "/",
	    .output = 2,
	    .answer = 2,
	    .words = words};
	assert_int_equal(spawner_start(&s, &order, NULL), ERR_OK);
	assert_int_equal(write(to[1], "hello\n", 6), 6);
	assert_int_equal(read(from[0], said, sizeof(said)), 8);
	assert_memory_equal(said, "<hello>\n", 8);
	while (spawner_ended(&s, &end) == ERR_AGAIN)
		usleep(1000);
	assert_int_equal(end.status, 0);
	spawner_deinit(&s);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_exit_and_log),
	    cmocka_unit_test(test_answer),
	    cmocka_unit_test(test_keeps_the_tail),
	    cmocka_unit_test(test_flood),
	    cmocka_unit_test(test_deadline_asks_first),
	    cmocka_unit_test(test_kills_what_does_not_end),
	    cmocka_unit_test(test_stop),
	    cmocka_unit_test(test_no_orphans),
	    cmocka_unit_test(test_cannot_start),
	    cmocka_unit_test(test_split),
	    cmocka_unit_test(test_spawner_pool),
	    cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
