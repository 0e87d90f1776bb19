/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

static int saved, pipe_fd[2];
static char got[65536];

static void
capture_start(void)
{
	assert_int_equal(pipe(pipe_fd), 0);
	saved = dup(STDERR_FILENO);
	dup2(pipe_fd[1], STDERR_FILENO);
	close(pipe_fd[1]);
}

/* What was logged since, as text. */
static const char *
capture_end(void)
{
	size_t len = 0;
	ssize_t n;

	dup2(saved, STDERR_FILENO);
	close(saved);
	while ((n = read(pipe_fd[0], got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	close(pipe_fd[0]);
	got[len] = '\0';
	return got;
}

/* Pretends that the pipe is the journal's, which also takes the time stamp away. */
static void
journal_start(void)
{
	char id[64];
	struct stat st;

	capture_start();
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(id, sizeof(id), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", id, 1);
}

static const char *
journal_end(void)
{
	unsetenv("JOURNAL_STREAM");
	return capture_end();
}

static void
test_pairs(void **state)
{
	(void)state;
	journal_start();
	log_event(LOG_LEVEL_INFO, "round.committed", LOG_S("job", "a1:b/c.d+e_f-0"),
	    LOG_U("round", 3), LOG_D("loss", 0.125), LOG_D("accuracy", NAN));
	log_event(LOG_LEVEL_ERROR, "stop");
	assert_string_equal(journal_end(),
	    "<6>info round.committed job=a1:b/c.d+e_f-0 round=3 loss=0.125 accuracy=nan\n<3>error "
	    "stop\n");
}

static void
test_quotes(void **state)
{
	(void)state;
	journal_start();
	log_event(LOG_LEVEL_WARN, "e", LOG_S("a", "two words"), LOG_S("b", ""), LOG_S("c", NULL),
	    LOG_S("d", "\"\\"), LOG_S("e", "x\n<0>y\x1b[0m\x7f"), LOG_S("f", "\xc2\x9b"),
	    LOG_S("g", "a=b"));
	assert_string_equal(journal_end(),
	    "<4>warn e a=\"two words\" b=\"\" c=\"\" d=\"\\\"\\\\\" e=\"x\\x0a<0>y\\x1b[0m\\x7f\" "
	    "f=\"\\xc2\\x9b\" g=\"a=b\"\n");
}

static void
test_levels(void **state)
{
	(void)state;
	journal_start();
	log_event(LOG_LEVEL_DEBUG, "hidden");
	log_set_level(LOG_LEVEL_DEBUG);
	log_event(LOG_LEVEL_DEBUG, "shown");
	log_set_level(LOG_LEVEL_ERROR);
	log_event(LOG_LEVEL_WARN, "hidden");
	log_event(LOG_LEVEL_ERROR, "shown");
	log_set_level(LOG_LEVEL_INFO);
	assert_string_equal(journal_end(), "<7>debug shown\n<3>error shown\n");
}

static void
test_time_stamp(void **state)
{
	regex_t re;

	(void)state;
	assert_int_equal(regcomp(&re,
			     "^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-"
			     "9]{3}Z "
			     "info e k=1\n$",
			     REG_EXTENDED | REG_NOSUB),
	    0);
	/* Another stream's id in the environment is not the journal's. */
	setenv("JOURNAL_STREAM", "1:2", 1);
	capture_start();
	log_event(LOG_LEVEL_INFO, "e", LOG_U("k", 1));
	assert_int_equal(regexec(&re, capture_end(), 0, NULL, 0), 0);
	unsetenv("JOURNAL_STREAM");
	regfree(&re);
}

/* Every length of a value around the limit: never above 1 KiB, always one line, a pair whole or absent. */
static void
test_long_lines(void **state)
{
	char value[2000];

	(void)state;
	for (size_t n = 900; n < 1100; n++) {
		memset(value, 'v', n);
		value[n] = '\0';
		journal_start();
		log_event(LOG_LEVEL_INFO, "e", LOG_U("first", 1), LOG_S("long", value));
		const char *line = journal_end();
		size_t len = strlen(line);
		assert_in_range(len, 1, 1024);
		assert_ptr_equal(strchr(line, '\n'), line + len - 1);
		if (strstr(line, "long"))
			assert_int_equal(len, strlen("<6>info e first=1 long=\n") + n);
		else
			assert_string_equal(line, "<6>info e first=1 ...\n");
		assert_true(n < 990 ? strstr(line, "long") != NULL : true);
		assert_true(n > 1010 ? strstr(line, "long") == NULL : true);
	}
	memset(value, '\x01', 1500);
	value[1500] = '\0';
	journal_start();
	log_event(LOG_LEVEL_INFO, "e", LOG_S("long", value), LOG_U("after", 1));
	assert_string_equal(journal_end(), "<6>info e ...\n");
}

/* What anybody can cause fills no disk. */
static void
test_crowd(void **state)
{
	unsigned lines = 0, skipped = 0, told;
	char *rest;

	(void)state;
	capture_start();
	for (int i = 0; i < 600; i++) {
		log_limited(LOG_LEVEL_INFO, "test.crowd", LOG_U("i", (unsigned)i));
		log_limited(LOG_LEVEL_DEBUG, "test.unheard", LOG_U("i", (unsigned)i));
		if (i % 200 == 199)
			usleep(1100000);
	}
	log_limited(LOG_LEVEL_INFO, "test.crowd", LOG_S("i", "last"));
	capture_end();
	for (char *line = strtok_r(got, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *skip = strstr(line, "log.skipped lines=");
		if (skip && sscanf(skip + 18, "%u", &told) == 1)
			skipped += told;
		else
			lines++;
	}
	assert_int_equal(lines + skipped, 601);
	assert_in_range(lines, 3 * LOG_CROWD + 1, 8 * LOG_CROWD);
}

static void *
chatter(void *arg)
{
	for (int i = 0; i < 100; i++)
		log_event(LOG_LEVEL_INFO, "chat", LOG_S("who", arg), LOG_U("n", 7));
	return NULL;
}

static void
test_threads(void **state)
{
	pthread_t t[2];
	char a[] = "aaaaaaaa", b[] = "bbbbbbbb";
	int lines = 0;

	(void)state;
	journal_start();
	assert_int_equal(pthread_create(&t[0], NULL, chatter, a), 0);
	assert_int_equal(pthread_create(&t[1], NULL, chatter, b), 0);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	const char *text = journal_end();
	for (char *line = strtok(got, "\n"); line; line = strtok(NULL, "\n"), lines++)
		assert_true(strcmp(line, "<6>info chat who=aaaaaaaa n=7") == 0 ||
		    strcmp(line, "<6>info chat who=bbbbbbbb n=7") == 0);
	assert_ptr_equal(text, got);
	assert_int_equal(lines, 200);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pairs),
	    cmocka_unit_test(test_quotes),
	    cmocka_unit_test(test_levels),
	    cmocka_unit_test(test_time_stamp),
	    cmocka_unit_test(test_long_lines),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_crowd),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
