/* stages: gcc openssl address */
/* What is noted, what it is called, and when it is over; what a job will still take of the disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

/* The wall clock of what is tested here is an hour ahead while this says so: it is set back when the thread waits already. */
static int clock_ahead(clockid_t which, struct timespec *out);
#include "coordinator_fixture.h"
#define clock_gettime clock_ahead
#include "watch.c"
#undef clock_gettime
#include "json.h"
#include "report.h"

#define UNIT(test) cmocka_unit_test_setup_teardown(test, start, coordinator_teardown)

static _Atomic bool ahead;
static struct watch *watch;

static int
clock_ahead(clockid_t which, struct timespec *out)
{
	int rc = clock_gettime(which, out);

	if (which == CLOCK_REALTIME && ahead)
		out->tv_sec += 3600;
	return rc;
}

static int
start(void **state)
{
	coordinator_setup(state);
	struct coordinator *c = *state;
	snprintf(c->config.state_dir, sizeof(c->config.state_dir), "%s", c->dir);
	assert_int_equal(health_new(&c->s.health), ERR_OK);
	assert_int_equal(watch_new(&watch, &c->s, &c->why), ERR_OK);
	return 0;
}

static void
end(struct coordinator *c)
{
	watch_free(watch);
	health_free(c->s.health);
	c->s.health = NULL;
}

static bool
is_ready_within(struct coordinator *c, int seconds)
{
	for (int i = 0; i < seconds * 20 && health_reason(c->s.health); i++)
		usleep(50000);
	return !health_reason(c->s.health);
}

static void
words(void **state)
{
	static const struct {
		enum err e;
		const char *word;
	} all[] = {{ERR_NOSPACE, "disk-full"}, {ERR_READONLY, "disk-read-only"},
	    {ERR_IO, "disk-error"}, {ERR_FILES, "no-descriptors"}, {ERR_NOMEM, "no-memory"},
	    {ERR_TIMEOUT, "store-failed"}};
	struct coordinator *c = *state;
	struct health_report s;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		health_note(c->s.health, all[i].e, 0, "the system's words");
		assert_string_equal(wait_reason_name(health_reason(c->s.health)), all[i].word);
		health_report(c->s.health, &s);
		assert_string_equal(wait_reason_name(s.reason), all[i].word);
		/* And what to do. */
		assert_non_null(strstr(s.detail, "the system's words; "));
		assert_non_null(strstr(s.detail, health_remedy(s.reason)));
		assert_true(s.since_seconds > 0);
	}
	end(c);
}

/* Other people's mistakes, and what needs a person, say nothing about the machine. */
static void
not_noted(void **state)
{
	static const enum err all[] = {ERR_OK, ERR_INVALID, ERR_LIMIT, ERR_NOTFOUND, ERR_EXISTS,
	    ERR_DENIED, ERR_CORRUPT, ERR_UNSUPPORTED, ERR_CLOSED, ERR_NUMERIC, ERR_STATE};
	struct coordinator *c = *state;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		health_note(c->s.health, all[i], 0, "");
		assert_int_equal(health_reason(c->s.health), WAIT_NONE);
	}
	assert_false(health_passes(ERR_CORRUPT));
	assert_false(health_passes(ERR_NOTFOUND));
	assert_true(health_passes(ERR_NOSPACE));
	health_note(NULL, ERR_IO, 0, "");
	assert_int_equal(health_reason(NULL), WAIT_NONE);
	end(c);
}

/* It ends by itself; while it lasts nobody gets a task, and then everybody does. */
static void
passes(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t job[16];

	submit(c, JOB("passes", "\"goal\":1", ""), job);
	health_note(c->s.health, ERR_IO, 0, "");
	assert_string_equal(ask(c, 1, &t), "disk-error");
	assert_true(is_ready_within(c, 120));
	assert_string_equal(ask(c, 1, &t), "");
	end(c);
}

/* As long as there is less room than what failed needs, it is not over. */
static void
needs_room(void **state)
{
	struct coordinator *c = *state;

	health_note(c->s.health, ERR_NOSPACE, UINT64_MAX / 4, "");
	assert_false(is_ready_within(c, 5));
	assert_int_equal(health_reason(c->s.health), WAIT_DISK_FULL);
	end(c);
}

/* It is looked again soon, whatever becomes of the wall clock. */
static void
a_clock_that_is_set_back(void **state)
{
	struct coordinator *c = *state;

	end(c);
	ahead = true;
	assert_int_equal(health_new(&c->s.health), ERR_OK);
	assert_int_equal(watch_new(&watch, &c->s, &c->why), ERR_OK);
	health_note(c->s.health, ERR_FILES, 0, "");
	bool ready = is_ready_within(c, 60);
	ahead = false;
	end(c);
	assert_true(ready);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {UNIT(words), UNIT(not_noted), UNIT(passes),
	    UNIT(needs_room), UNIT(a_clock_that_is_set_back)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
