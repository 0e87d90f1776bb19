/* stages: gcc clang openssl address */
/* Jobs of one priority share the devices: who is given which job's task. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>

#include "coordinator_fixture.h"
#include "jobs_inside.h"

/* Linked in the place of base's: time goes by where a test says so, and only there. */
static atomic_ullong now_ms = 1000000;
static _Atomic double wall_off; /* how far the wall clock has stepped */

uint64_t
clock_ms(void)
{
	return atomic_load(&now_ms);
}

double
clock_seconds(void)
{
	return (double)clock_ms() / 1000;
}

double
clock_wall(void)
{
	return 1700000000 + clock_seconds() + atomic_load(&wall_off);
}

int64_t
clock_unix(void)
{
	return (int64_t)clock_wall();
}

static void
pass(unsigned seconds)
{
	atomic_fetch_add(&now_ms, seconds * 1000ull);
}

static const char one[] = JOB("one", "\"goal\":9,\"quorum\":1,\"grace_s\":0", ",\"share\":1");
static const char three[] = JOB("three", "\"goal\":9,\"quorum\":1,\"grace_s\":0", ",\"share\":3");

static struct share_member *
member(struct coordinator *c, const uint8_t id[16])
{
	return &jobs_find(c->s.engine, id)->member;
}

static double
use(struct coordinator *c, const uint8_t id[16])
{
	return share_seconds(&member(c, id)->use, clock_ms());
}

/* Devices that ask at one moment are spread as the shares say, before anybody knows what a task takes. */
static void
one_to_three(void **state)
{
	struct coordinator *c = *state;
	uint8_t a[16], b[16];
	char hex[33];
	struct task t;
	unsigned first = 0;

	submit(c, one, a);
	submit(c, three, b);
	hex_encode(hex, a, 16);
	for (uint8_t tag = 1; tag <= 8; tag++) {
		assert_string_equal(ask(c, tag, &t), "");
		first += strcmp(t.job, hex) == 0;
	}
	assert_int_equal(first, 2);
	assert_float_equal(use(c, a), 2, 1e-6);
	assert_float_equal(use(c, b), 6, 1e-6);
}

/* An answer that was lost is given again, although the other job has had less by now. */
static void
same_again(void **state)
{
	struct coordinator *c = *state;
	struct task t[3], again;
	uint8_t a[16], b[16];

	submit(c, one, a);
	submit(c, three, b);
	for (uint8_t tag = 1; tag <= 2; tag++)
		assert_string_equal(ask(c, tag, &t[tag]), "");
	assert_string_not_equal(t[1].job, t[2].job);
	for (uint8_t tag = 1; tag <= 2; tag++) {
		double was[] = {use(c, a), use(c, b)};
		assert_string_equal(ask(c, tag, &again), "");
		assert_string_equal(again.task, t[tag].task);
		assert_true(use(c, a) == was[0] && use(c, b) == was[1]);
	}
	/* A higher priority goes first all the same. */
	uint8_t high[16];
	submit(c, JOB("high", "\"goal\":1", ",\"priority\":1"), high);
	assert_string_equal(ask(c, 1, &again), "");
	assert_string_not_equal(again.task, t[1].task);
}

/* What was charged beforehand is set right when the task ends: with its delta, given up, or with its round. */
static void
set_right(void **state)
{
	struct coordinator *c = *state;
	struct abort_cause cause = abort_reason_parse("owner");
	struct task t[4];
	uint8_t a[16];

	submit(c, JOB("only", "\"goal\":1,\"over_select\":3", ""), a);
	for (uint8_t tag = 1; tag <= 3; tag++)
		assert_string_equal(ask(c, tag, &t[tag]), "");
	assert_float_equal(use(c, a), 3, 1e-6);
	pass(4);
	assert_int_equal(tasks_abort(c->s.engine, device_id(1), t[1].task, cause, NULL), ERR_OK);
	assert_float_equal(use(c, a), 6, 0.01);
	pass(2);
	assert_null(deliver(c, &t[2], 2, 1, 100));
	await_rounds(c, a, 1);
	/* The third's task went with its round. */
	assert_float_equal(use(c, a), 4 + 6 + 6, 0.01);
}

/* New, and back after a pause: beside the least used of the others. */
static void
newcomer(void **state)
{
	struct coordinator *c = *state;
	uint8_t a[16], b[16];

	submit(c, one, a);
	share_charge(&member(c, a)->use, 1000, clock_ms());
	share_order_move(&c->s.engine->order, member(c, a));
	submit(c, three, b);
	assert_float_equal(use(c, b), 3000, 1e-6);
	assert_int_equal(engine_command(c->s.engine, b, JOB_PAUSED, NULL, &c->why), ERR_OK);
	share_charge(&member(c, a)->use, 1000, clock_ms());
	share_order_move(&c->s.engine->order, member(c, a));
	assert_float_equal(use(c, b), 3000, 1e-6);
	assert_int_equal(engine_command(c->s.engine, b, JOB_RUNNING, NULL, &c->why), ERR_OK);
	assert_float_equal(use(c, b), 6000, 1e-6);
	assert_int_equal(engine_command(c->s.engine, b, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_int_equal(c->s.engine->order.count, 1);
}

static enum err
age_round(struct store_db *db, void *arg, struct why *why)
{
	const uint8_t *job = arg;
	struct store_round r;

	(void)why;
	enum err e = store_round_get(db, job, 1, &r);
	r.closed_at = clock_wall() - 3600;
	r.opened_at = r.closed_at - 50;
	return e ? e : store_round_put(db, &r);
}

/* By a clock that stood twelve years back as it opened. */
static enum err
open_long_ago(struct store_db *db, void *job, struct why *why)
{
	struct store_round r;

	(void)why;
	enum err e = store_round_get(db, job, 1, &r);
	r.opened_at = r.closed_at - 12 * 365 * 86400.0;
	return e ? e : store_round_put(db, &r);
}

/* A restart knows what the rows of rounds say: so many devices, from the opening to the end. */
static void
restarted(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t a[16];

	submit(c, JOB("only", "\"goal\":1", ""), a);
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 1, 100));
	await_rounds(c, a, 1);
	assert_int_equal(store_write(c->s.store, age_round, a, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	assert_float_equal(use(c, a), 25, 1e-6);
	assert_true(member(c, a)->is_in);
	/* No more than work without a pause comes to: 3600 s / ln 2, of which half is left. */
	assert_int_equal(store_write(c->s.store, open_long_ago, a, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	assert_float_equal(use(c, a), 2597, 1);
}

struct duration {
	const uint8_t *job;
	uint64_t round;
	double seconds, ago;
};

static enum err
look_how_long(struct store_db *db, void *arg, struct why *why)
{
	struct duration *d = arg;
	struct store_round r;

	(void)why;
	enum err e = store_round_get(db, d->job, d->round, &r);
	d->seconds = r.closed_at - r.opened_at;
	d->ago = clock_wall() - r.closed_at;
	return e;
}

/* A round took as long as it took, however the wall clock steps meanwhile. */
static void
stepped(void **state)
{
	static const double steps[] = {400 * 86400.0, -30 * 86400.0};
	struct coordinator *c = *state;
	struct task t;
	uint8_t a[16];

	submit(c, JOB("only", "\"goal\":1", ""), a);
	for (unsigned round = 1; round <= 2; round++) {
		struct duration d = {.job = a, .round = round};
		assert_string_equal(ask(c, 1, &t), "");
		pass(4);
		atomic_store(&wall_off, steps[round - 1]);
		assert_null(deliver(c, &t, 1, 1, 100));
		await_rounds(c, a, round);
		assert_int_equal(store_read(c->s.store, look_how_long, &d, &c->why), ERR_OK);
		assert_float_equal(d.seconds, 4, 0.01);
		assert_float_equal(d.ago, 0, 0.01);
	}
	atomic_store(&wall_off, 0);
}

/* --- stop.reports and stop.seconds */

static void
play_round(struct coordinator *c, const uint8_t job[16], uint64_t round, unsigned devices)
{
	struct task t[DEVICES + 1];

	for (uint8_t tag = 1; tag <= devices; tag++)
		assert_string_equal(ask(c, tag, &t[tag]), "");
	for (uint8_t tag = 1; tag <= devices; tag++)
		assert_null(deliver(c, &t[tag], tag, 1, 100));
	await_rounds(c, job, round);
}

static bool
says(struct coordinator *c, const uint8_t job[16], const char *reason)
{
	struct job_view v;

	assert_true(engine_job(c->s.engine, job, NULL, &v));
	return strncmp(v.reason, reason, strlen(reason)) == 0;
}

/* Counted over a restart, too. */
static void
reports_end_it(void **state)
{
	struct coordinator *c = *state;
	uint8_t a[16];

	submit(c, JOB("only", "\"goal\":2", ",\"stop\":{\"reports\":5}"), a);
	play_round(c, a, 1, 2);
	play_round(c, a, 2, 2);
	assert_true(job_is(c, a, "running"));
	coordinator_stop(c);
	coordinator_start(c);
	play_round(c, a, 3, 2);
	await_state(c, a, "done");
	assert_true(says(c, a, "all reports are in"));
}

static void
spoil_round(struct coordinator *c, const uint8_t job[16], uint64_t round)
{
	struct task t[3];

	for (uint8_t tag = 1; tag <= 2; tag++)
		assert_string_equal(ask(c, tag, &t[tag]), "");
	for (uint8_t tag = 1; tag <= 2; tag++)
		assert_null(deliver(c, &t[tag], tag, NAN, 100));
	await_rounds(c, job, round);
	assert_int_equal(round_row(c, job, round).state, OUTCOME_FAILED);
}

/* What a failed round had is in no model, as the coordinator counts and as its rows do. */
static void
failed_rounds_give_none(void **state)
{
	static const char *const jobs[] = {
	    JOB("first", "\"goal\":2", ",\"stop\":{\"reports\":6}"),
	    JOB("second", "\"goal\":2", ",\"stop\":{\"reports\":6}"),
	};
	struct coordinator *c = *state;
	uint8_t a[16];

	for (int restarts = 0; restarts < 2; restarts++) {
		submit(c, jobs[restarts], a);
		play_round(c, a, 1, 2);
		spoil_round(c, a, 2);
		if (restarts) {
			coordinator_stop(c);
			coordinator_start(c);
		}
		play_round(c, a, 3, 2);
		assert_true(job_is(c, a, "running"));
		play_round(c, a, 4, 2);
		await_state(c, a, "done");
		assert_true(says(c, a, "all reports are in"));
	}
}

static void
seconds_end_it(void **state)
{
	struct coordinator *c = *state;
	uint8_t a[16];

	submit(c, JOB("only", "\"goal\":1", ",\"stop\":{\"seconds\":1000}"), a);
	play_round(c, a, 1, 1);
	assert_true(job_is(c, a, "running"));
	pass(1000);
	coordinator_stop(c);
	coordinator_start(c);
	play_round(c, a, 2, 1);
	await_state(c, a, "done");
	assert_true(says(c, a, "its time is over"));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(one_to_three),
	    WITH(same_again),
	    WITH(set_right),
	    WITH(newcomer),
	    WITH(restarted),
	    WITH(stepped),
	    WITH(reports_end_it),
	    WITH(failed_rounds_give_none),
	    WITH(seconds_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
