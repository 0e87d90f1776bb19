/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tails.h"

static void
note(struct tails *t, unsigned job, unsigned device, const char *text)
{
	struct tail tail = {.round = device, .reason = "trainer-failed", .text = (char *)text};

	memcpy(tail.job, &job, sizeof(job));
	memcpy(tail.device, &device, sizeof(device));
	tails_note(t, &tail);
}

/* How many there are, the newest and the oldest device of them, 0 for none. */
static size_t
look(struct tails *t, unsigned job, uint64_t *newest, uint64_t *oldest)
{
	struct tail out[TAILS_OF_JOB];
	uint8_t id[16] = {0};

	memcpy(id, &job, sizeof(job));
	size_t n = tails_of(t, id, out);
	*newest = n ? out[0].round : 0;
	*oldest = n ? out[n - 1].round : 0;
	for (size_t i = 0; i < n; i++)
		free(out[i].text);
	return n;
}

static void
eight_devices_of_a_job(void **state)
{
	static struct tails t;
	uint64_t newest, oldest;

	(void)state;
	tails_init(&t);
	assert_int_equal(look(&t, 1, &newest, &oldest), 0);
	for (unsigned i = 1; i <= 12; i++)
		note(&t, 1, i, "text");
	assert_int_equal(look(&t, 1, &newest, &oldest), TAILS_OF_JOB);
	assert_int_equal(newest, 12);
	assert_int_equal(oldest, 5);
	/* One that fails again and again leaves the others their places. */
	for (unsigned i = 0; i < 100; i++)
		note(&t, 1, 7, i % 2 ? "" : NULL);
	assert_int_equal(look(&t, 1, &newest, &oldest), TAILS_OF_JOB);
	assert_int_equal(newest, 7);
	assert_int_equal(oldest, 5);
	tails_deinit(&t);
}

static void
no_more_than_there_is_room_for(void **state)
{
	static struct tails t;
	uint64_t newest, oldest;
	size_t sum = 0;

	(void)state;
	tails_init(&t);
	for (unsigned job = 1; job <= 1000; job++)
		note(&t, job, 1 + job % 3, "text");
	for (unsigned job = 1; job <= 1000; job++)
		sum += look(&t, job, &newest, &oldest);
	assert_int_equal(sum, TAILS_MAX);
	assert_int_equal(look(&t, 1, &newest, &oldest), 0);
	assert_int_equal(look(&t, 1000, &newest, &oldest), 1);
	tails_deinit(&t);
}

static void
what_goes_is_forgotten(void **state)
{
	static struct tails t;
	uint64_t newest, oldest;
	uint8_t job[16] = {1}, device[32] = {2};

	(void)state;
	tails_init(&t);
	for (unsigned i = 1; i <= 3; i++) {
		note(&t, 1, i, "text");
		note(&t, 2, i, "text");
	}
	tails_forget_device(&t, device);
	assert_int_equal(look(&t, 1, &newest, &oldest), 2);
	assert_int_equal(look(&t, 2, &newest, &oldest), 2);
	tails_forget_job(&t, job);
	assert_int_equal(look(&t, 1, &newest, &oldest), 0);
	assert_int_equal(look(&t, 2, &newest, &oldest), 2);
	tails_deinit(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(eight_devices_of_a_job),
	    cmocka_unit_test(no_more_than_there_is_room_for),
	    cmocka_unit_test(what_goes_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
