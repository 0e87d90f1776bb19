/* stages: gcc openssl address */
/* What ends when the program is to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hash.h"
#include "stop.h"

static void
asked(void **state)
{
	struct stop s = {.sees_signals = false};

	(void)state;
	assert_false(stop_asked(NULL));
	assert_false(stop_asked(&s));
	stop_ask(&s);
	assert_true(stop_asked(&s));
}

/* One that waits, blocked, asks; that it waits is all, and whoever takes signals still gets it. */
static void
by_a_signal(void **state)
{
	struct stop sees = {.sees_signals = true}, blind = {.sees_signals = false};
	sigset_t set, before;
	int sig = 0;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
	assert_false(stop_asked(&sees));
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_true(stop_asked(&sees));
	assert_false(stop_asked(&blind));
	assert_int_equal(sigwait(&set, &sig), 0);
	assert_int_equal(sig, SIGTERM);
	assert_true(stop_asked(&sees));
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static void
hashing(void **state)
{
	struct stop s = {.sees_signals = false};
	uint8_t want[HASH_LEN], got[HASH_LEN];
	size_t len = ((size_t)5 << 20) + 3;
	uint8_t *data = calloc(1, len);
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(data);
	assert_non_null(f);
	data[len - 1] = 1;
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fflush(f), 0);
	hash_sha256(want, data, len);
	assert_int_equal(hash_bytes(got, data, len, &s), ERR_OK);
	assert_memory_equal(got, want, HASH_LEN);
	assert_int_equal(hash_bytes(got, data, len, NULL), ERR_OK);
	assert_int_equal(hash_file_until(fileno(f), got, &s), ERR_OK);
	assert_memory_equal(got, want, HASH_LEN);
	stop_ask(&s);
	assert_int_equal(hash_bytes(got, data, len, &s), ERR_CLOSED);
	assert_int_equal(hash_file_until(fileno(f), got, &s), ERR_CLOSED);
	assert_int_equal(hash_bytes(got, data, 0, &s), ERR_OK);
	fclose(f);
	free(data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(asked),
	    cmocka_unit_test(by_a_signal),
	    cmocka_unit_test(hashing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
