/* stages: gcc clang openssl address */
/* When the wall clock is believed, over steps, restarts and confirmations; what waits while it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "age.h"
#include "clock_fixture.h"
#include "coordinator_fixture.h"
#include "jobs_inside.h"
#include "past_rows.h"

#define DAY 86400.0
#define YEAR (365 * DAY)
#define BEGIN 1800000000.0

static enum err
nothing(struct store_db *db, void *arg, struct why *why)
{
	(void)db, (void)arg, (void)why;
	return ERR_OK;
}

static void
start(struct coordinator *c)
{
	assert_int_equal(age_new(&c->s.age, &c->s, c->s.store, &c->why), ERR_OK);
}

static void
end(struct coordinator *c)
{
	age_stop(c->s.age);
	/* What was queued is written. */
	assert_int_equal(store_write(c->s.store, nothing, NULL, &c->why), ERR_OK);
	age_free(c->s.age);
	c->s.age = NULL;
}

static void
restart(struct coordinator *c)
{
	end(c);
	start(c);
}

static enum age_doubt
doubt(struct coordinator *c)
{
	struct age_report r;
	double now;

	const bool believed = age_now(c->s.age, &now);
	assert_true(now == wall);
	age_report(c->s.age, &r);
	assert_true(believed == (r.doubt == AGE_BELIEVED));
	assert_true(believed == (r.detail[0] == '\0'));
	assert_true(believed == isfinite(age_stamp(c->s.age)));
	return r.doubt;
}

static enum err
read_newest(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_meta_get(db, "clock_newest", arg);
}

static double
newest(struct coordinator *c)
{
	uint64_t v = 0;

	assert_int_equal(store_write(c->s.store, nothing, NULL, &c->why), ERR_OK);
	assert_int_equal(store_read(c->s.store, read_newest, &v, &c->why), ERR_OK);
	return (double)v;
}

static int
begin(void **state)
{
	wall = BEGIN;
	steady = 5000;
	return coordinator_setup(state);
}

static int
finish(void **state)
{
	struct coordinator *c = *state;

	if (c->s.age)
		end(c);
	return coordinator_teardown(state);
}

/* --- the judgement */

/* The bounds of a start, beside the newest stored time. */
static void
at_start(void **state)
{
	static const struct {
		double off;
		enum age_doubt doubt;
	} rows[] = {{0, AGE_BELIEVED}, {7 * DAY, AGE_BELIEVED}, {7 * DAY + 2, AGE_LATER},
	    {400 * DAY, AGE_LATER}, {-AGE_SLACK_S + 1, AGE_BELIEVED},
	    {-AGE_SLACK_S - 9, AGE_EARLIER}, {-DAY, AGE_EARLIER}, {-12 * YEAR, AGE_EARLIER}};
	struct coordinator *c = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool changed;
		start(c);
		if (doubt(c))
			assert_int_equal(age_confirm(c->s.age, "test", &changed, &c->why), ERR_OK);
		end(c);
		assert_true(newest(c) == floor(wall));
		wall += rows[i].off;
		start(c);
		if (doubt(c) != rows[i].doubt)
			fail_msg("%+.0f s: %s", rows[i].off, age_doubt_name(doubt(c)));
		/* The same however long it runs. */
		pass(5);
		assert_int_equal(doubt(c), rows[i].doubt);
		end(c);
	}
}

/* The bounds while it runs, to both sides; a machine that sleeps is no step; small ones add up. */
static void
while_running(void **state)
{
	struct coordinator *c = *state;

	start(c);
	for (int side = -1; side <= 1; side += 2) {
		const double right = wall;
		wall = right + side * (AGE_STEP_S - 1);
		assert_int_equal(doubt(c), AGE_BELIEVED);
		wall = right + side * (AGE_STEP_S + 1);
		assert_int_equal(doubt(c), AGE_STEPPED);
		wall = right + side * 12 * YEAR;
		assert_int_equal(doubt(c), AGE_STEPPED);
		wall = right;
		assert_int_equal(doubt(c), AGE_BELIEVED);
	}
	pass(30 * DAY);
	assert_int_equal(doubt(c), AGE_BELIEVED);
	for (int i = 0; i < 3; i++) {
		wall += AGE_STEP_S / 2;
		pass(10 * AGE_STEP_S);
		age_tick(c->s.age);
	}
	assert_int_equal(doubt(c), AGE_STEPPED);
}

/* A step that was seen is one after a restart, too, also of a size that a start would believe; nothing of it is stored. */
static void
over_restarts(void **state)
{
	static const double jumps[] = {2 * DAY, -2 * DAY, 400 * DAY, -12 * YEAR};
	struct coordinator *c = *state;

	for (size_t i = 0; i < sizeof(jumps) / sizeof(*jumps); i++) {
		start(c);
		assert_int_equal(doubt(c), AGE_BELIEVED);
		const double stored = newest(c);
		wall += jumps[i];
		age_tick(c->s.age);
		for (int again = 0; again < 3; again++) {
			pass(2 * AGE_STEP_S);
			age_tick(c->s.age);
			assert_int_equal(doubt(c), AGE_STEPPED);
			assert_true(newest(c) == stored);
			restart(c);
		}
		wall -= jumps[i];
		assert_int_equal(doubt(c), AGE_BELIEVED);
		restart(c);
		assert_int_equal(doubt(c), AGE_BELIEVED);
		end(c);
		assert_true(newest(c) == floor(wall));
	}
}

/* Another boot, whose monotonic clock begins anew. */
static void
boot(struct coordinator *c, double by)
{
	end(c);
	wall += by;
	steady = 20;
	start(c);
}

/* A boot with the clock right again ends a step, however long it had lasted and however often a boot did not. */
static void
set_right_at_a_boot(void **state)
{
	static const struct {
		double step;
		bool wrong; /* one hour into it a boot that does not set the clock */
	} rows[] = {{2 * DAY, false}, {-2 * DAY, false}, {400 * DAY, false}, {-12 * YEAR, false},
	    {2 * DAY, true}, {-2 * DAY, true}, {400 * DAY, true}, {-12 * YEAR, true}};
	struct coordinator *c = *state;

	start(c);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		wall += rows[i].step;
		assert_int_equal(doubt(c), AGE_STEPPED);
		for (int hour = 0; hour < 10 * 24; hour++) {
			pass(3600);
			age_tick(c->s.age);
			if (hour == 0 && rows[i].wrong)
				boot(c, 100);
			assert_int_equal(doubt(c), AGE_STEPPED);
		}
		boot(c, 200 - rows[i].step);
		if (doubt(c) != AGE_BELIEVED)
			fail_msg("%zu: %s", i, age_doubt_name(doubt(c)));
		restart(c);
		assert_int_equal(doubt(c), AGE_BELIEVED);
		pass(3 * DAY);
		assert_int_equal(doubt(c), AGE_BELIEVED);
	}
}

/* After another boot with the clock as it was nobody knows where it should be: a person says it. */
static void
over_a_boot(void **state)
{
	struct coordinator *c = *state;
	bool changed = false;

	start(c);
	wall += 2 * DAY;
	assert_int_equal(doubt(c), AGE_STEPPED);
	boot(c, 100);
	assert_int_equal(doubt(c), AGE_STEPPED);
	assert_int_equal(age_confirm(c->s.age, "test", &changed, &c->why), ERR_OK);
	assert_true(changed);
	restart(c);
	assert_int_equal(doubt(c), AGE_BELIEVED);
}

/* Starts with a wrong clock leave the stored time where it is; a right one is found by itself, and a confirmed one stays. */
static void
many_starts(void **state)
{
	struct coordinator *c = *state;
	bool changed = true;

	start(c);
	end(c);
	const double stored = newest(c);
	for (int i = 0; i < 20; i++) {
		wall = stored + (100 + i) * DAY;
		start(c);
		pass(3 * AGE_STEP_S);
		age_tick(c->s.age);
		assert_int_equal(doubt(c), AGE_LATER);
		end(c);
		assert_true(newest(c) == stored);
	}
	start(c);
	wall = stored + 10 * AGE_STEP_S;
	assert_int_equal(doubt(c), AGE_BELIEVED);
	assert_int_equal(age_confirm(c->s.age, "test", &changed, &c->why), ERR_OK);
	assert_false(changed);
	wall = stored + 400 * DAY;
	restart(c);
	assert_int_equal(age_confirm(c->s.age, "test", &changed, &c->why), ERR_OK);
	assert_true(changed && newest(c) == floor(wall));
	pass(DAY);
	assert_int_equal(doubt(c), AGE_BELIEVED);
	/* Back where it really was, which is a step now. */
	wall -= 400 * DAY;
	assert_int_equal(doubt(c), AGE_STEPPED);
}

static enum err
from_outside(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return age_of_database(db, arg);
}

/* Who looks at the database of a stopped coordinator finds what a start would, however long the machine has been up. */
static void
of_a_directory(void **state)
{
	static const struct {
		double off;
		enum age_doubt doubt;
	} rows[] = {{6 * DAY, AGE_BELIEVED}, {8 * DAY, AGE_LATER}, {-DAY, AGE_EARLIER}};
	struct coordinator *c = *state;

	steady += 300 * DAY;
	start(c);
	end(c);
	const double stored = wall;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		enum age_doubt found;
		wall = stored + rows[i].off;
		assert_int_equal(store_read(c->s.store, from_outside, &found, &c->why), ERR_OK);
		assert_int_equal(found, rows[i].doubt);
	}
}

/* It is stored every hour, not at every look. */
static void
hourly(void **state)
{
	struct coordinator *c = *state;

	start(c);
	const double stored = newest(c);
	pass(AGE_STORED_MS / 1000.0 - 1);
	age_tick(c->s.age);
	assert_true(newest(c) == stored);
	pass(2);
	age_tick(c->s.age);
	assert_true(newest(c) == floor(wall));
}

static enum err
forget_newest(struct store_db *db, void *arg, struct why *why)
{
	(void)arg, (void)why;
	return store_meta_put(db, "clock_newest", 0);
}

/* A database that has no newest time, after more days than are believed. */
static void
days_later_without_a_time(struct coordinator *c)
{
	end(c);
	assert_int_equal(store_write(c->s.store, forget_newest, NULL, &c->why), ERR_OK);
	wall += 8 * DAY;
	start(c);
	assert_int_equal(doubt(c), AGE_LATER);
}

/* When the first two devices were heard of last: one of them by a clock that stood ahead. */
static enum err
see_devices(struct store_db *db, void *arg, struct why *why)
{
	const double at[] = {wall - 3600, wall + 30 * DAY};
	enum err e = ERR_OK;

	(void)arg, (void)why;
	for (uint8_t i = 0; i < 2 && !e; i++) {
		struct store_seen s = {.last_contact = at[i], .refused_at = NAN, .aborted_at = NAN};
		memcpy(s.device, device_id((uint8_t)(i + 1)), 32);
		e = store_seen_put(db, &s);
	}
	return e;
}

/* A database of an older version stored none: its audit log has dates, and what is known of devices. */
static void
by_the_audit_log(void **state)
{
	struct coordinator *c = *state;
	bool changed;

	start(c);
	wall += 20 * DAY;
	assert_int_equal(age_confirm(c->s.age, "test", &changed, &c->why), ERR_OK);
	days_later_without_a_time(c);
	end(c);
	assert_int_equal(store_write(c->s.store, see_devices, NULL, &c->why), ERR_OK);
	start(c);
	assert_int_equal(doubt(c), AGE_BELIEVED);
	days_later_without_a_time(c);
	end(c);
	wall -= 2 * DAY;
	start(c);
	assert_int_equal(doubt(c), AGE_BELIEVED);
}

/* --- what waits */

static const char text[] = JOB("short", "\"goal\":1,\"grace_s\":0", ",\"stop\":{\"seconds\":3600}");

static double
ended_at(struct coordinator *c, const uint8_t id[16])
{
	struct json *v = job_json(c, id);
	double at = NAN;

	assert_non_null(v);
	(void)json_double(json_get(v, "ended_at"), &at);
	json_free(v);
	return at;
}

static bool
is_there(struct coordinator *c, const uint8_t id[16])
{
	struct json *v = job_json(c, id);

	json_free(v);
	return v != NULL;
}

/* A jump a moment before counts; what ended while it lasted ends when it is over, in the rows, too. */
static void
deletion(void **state)
{
	struct coordinator *c = *state;
	uint8_t old[16], new[16];
	struct store_job row;

	start(c);
	c->config.ended_jobs_s = 90 * 86400;
	submit(c, text, old);
	assert_int_equal(engine_command(c->s.engine, old, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_true(ended_at(c, old) == wall);
	wall += 400 * DAY;
	engine_delete_old(c->s.engine);
	assert_true(is_there(c, old));
	submit(c, JOB("new", "\"goal\":1", ""), new);
	wall -= 412 * DAY;
	assert_int_equal(engine_command(c->s.engine, new, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_true(isnan(ended_at(c, new)));
	engine_delete_old(c->s.engine);
	assert_true(isnan(ended_at(c, new)));
	wall += 12 * DAY;
	/* Also where nothing is deleted for its age. */
	c->config.ended_jobs_s = 0;
	engine_delete_old(c->s.engine);
	assert_true(ended_at(c, new) == wall);
	c->config.ended_jobs_s = 90 * 86400;
	engine_delete_old(c->s.engine);
	assert_true(is_there(c, old) && is_there(c, new));
	assert_true(ended_at(c, new) == wall);
	const double right = wall;
	assert_int_equal(store_write(c->s.store, nothing, NULL, &c->why), ERR_OK);
	memcpy(row.id, new, 16);
	for (int i = 0; i < 91; i++)
		pass(DAY);
	engine_delete_old(c->s.engine);
	assert_false(is_there(c, old) || is_there(c, new));
	assert_true(wall > right);
}

/* A job whose time is over ends for good: not by a clock that nobody believes. */
static void
end_of_time(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16], late[16];

	start(c);
	submit(c, text, id);
	wall += 400 * DAY;
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 1, 100));
	await_rounds(c, id, 1);
	assert_true(job_is(c, id, "running"));
	/* One that is made far back does not look old when the clock is right. */
	wall -= 412 * YEAR / 365 + 11 * YEAR;
	submit(c,
	    JOB("late", "\"goal\":1,\"grace_s\":0", ",\"priority\":1,\"stop\":{\"seconds\":3600}"),
	    late);
	wall += 12 * DAY + 11 * YEAR;
	assert_int_equal(doubt(c), AGE_BELIEVED);
	assert_string_equal(ask(c, 2, &t), "");
	assert_null(deliver(c, &t, 2, 1, 100));
	await_rounds(c, late, 1);
	assert_true(job_is(c, late, "running"));
	pass(3601);
	assert_string_equal(ask(c, 2, &t), "");
	assert_null(deliver(c, &t, 2, 1, 100));
	await_rounds(c, late, 2);
	assert_true(job_is(c, late, "done"));
}

/* Keys and the moment of a restore get their dates with the clock. */
static enum err
read_dates(struct store_db *db, void *arg, struct why *why)
{
	struct store_device d;
	double *out = arg;

	(void)why;
	enum err e = store_device_get(db, device_id(1), &d);
	out[0] = d.key_at;
	out[1] = d.restored_key_at;
	return e ? e : store_restored_at(db, &out[2]);
}

static enum err
restored(struct store_db *db, void *arg, struct why *why)
{
	(void)arg, (void)why;
	return store_claims_restored(db);
}

static void
dates(void **state)
{
	struct coordinator *c = *state;
	double d[3];

	start(c);
	end(c);
	assert_int_equal(store_read(c->s.store, read_dates, d, &c->why), ERR_OK);
	assert_true(d[0] == BEGIN && d[1] == 0 && d[2] == 0);
	assert_int_equal(store_write(c->s.store, restored, NULL, &c->why), ERR_OK);
	wall += 8 * DAY;
	start(c);
	assert_int_equal(store_write(c->s.store, nothing, NULL, &c->why), ERR_OK);
	assert_int_equal(store_read(c->s.store, read_dates, d, &c->why), ERR_OK);
	assert_true(d[0] == BEGIN && d[1] == BEGIN && isnan(d[2]));
	wall -= 7 * DAY;
	assert_int_equal(doubt(c), AGE_BELIEVED);
	assert_int_equal(store_write(c->s.store, nothing, NULL, &c->why), ERR_OK);
	assert_int_equal(store_read(c->s.store, read_dates, d, &c->why), ERR_OK);
	assert_true(d[0] == BEGIN && d[2] == wall);
}

/* Without the object, as tests have it, every clock is believed. */
static void
without(void **state)
{
	double now = 0;

	(void)state;
	assert_true(age_now(NULL, &now) && now == wall);
	assert_true(age_stamp(NULL) == wall && age_latest(NULL) == wall);
	age_stop(NULL);
	age_free(NULL);
}

#define WITH_CLOCKS(test) cmocka_unit_test_setup_teardown(test, begin, finish)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_CLOCKS(at_start),
	    WITH_CLOCKS(while_running),
	    WITH_CLOCKS(over_restarts),
	    WITH_CLOCKS(over_a_boot),
	    WITH_CLOCKS(set_right_at_a_boot),
	    WITH_CLOCKS(many_starts),
	    WITH_CLOCKS(of_a_directory),
	    WITH_CLOCKS(hourly),
	    WITH_CLOCKS(by_the_audit_log),
	    WITH_CLOCKS(deletion),
	    WITH_CLOCKS(end_of_time),
	    WITH_CLOCKS(dates),
	    cmocka_unit_test(without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
