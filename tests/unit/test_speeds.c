/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "audit_rows.h"
#include "buf.h"
#include "coordinator_fixture.h"
#include "job.h"
#include "jobs_inside.h"
#include "past_rows.h"
#include "round.h"
#include "throughput.h"

static const char sized[] =
    "{\"name\":\"sized\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\","
    "\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],"
    "\"classes\":2},\"local\":{\"target_s\":30,\"min_steps\":10,\"max_steps\":1000,\"batch\":10,"
    "\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},\"round\":{\"goal\":1,\"quorum\":1}}";

/* --- rows */

static enum err
add_speeds(struct store_db *db, void *arg, struct why *why)
{
	struct store_speed row = {.samples = 10, .up_bytes = 5, .up_seconds = 0.5, .at = 7};
	enum err e = ERR_OK;

	(void)why;
	memcpy(row.job, arg, 16);
	memcpy(row.device, device_id(2), 32);
	for (uint64_t i = 0; i < 7 && !e; i++) {
		row.steps = 10 + i;
		row.seconds = 1;
		e = store_speed_add(db, &row);
	}
	memcpy(row.device, device_id(1), 32);
	return e ? e : store_speed_add(db, &row);
}

struct seen {
	uint8_t job[16];
	struct store_speed speeds[16];
	size_t count;
	struct store_sized sized[16];
	size_t sized_count;
};

static enum err
see_speed(void *ctx, const struct store_speed *row)
{
	struct seen *s = ctx;

	s->speeds[s->count++] = *row;
	return ERR_OK;
}

static enum err
see_sized(void *ctx, const struct store_sized *row)
{
	struct seen *s = ctx;

	s->sized[s->sized_count++] = *row;
	return ERR_OK;
}

/* A piece at a time the rows are the same. */
static enum err
look_in_pieces(struct store_db *db, const struct seen *all)
{
	struct seen s = {.count = 0};
	size_t before;
	enum err e;

	do {
		before = s.count;
		e = store_speed_after(
		    db, all->job, before ? &s.speeds[before - 1] : NULL, 2, see_speed, &s);
	} while (!e && s.count == before + 2);
	assert_int_equal(s.count, all->count);
	for (size_t i = 0; i < s.count; i++) {
		assert_memory_equal(s.speeds[i].device, all->speeds[i].device, 32);
		assert_int_equal(s.speeds[i].serial, all->speeds[i].serial);
	}
	return e;
}

static enum err
look(struct store_db *db, void *arg, struct why *why)
{
	struct seen *s = arg;

	(void)why;
	s->count = s->sized_count = 0;
	enum err e = store_speed_each(db, s->job, see_speed, s);
	e = e ? e : look_in_pieces(db, s);
	return e ? e : store_sized_each(db, s->job, see_sized, s);
}

static struct seen
rows_of(struct coordinator *c, const uint8_t job[16])
{
	struct seen s;

	memcpy(s.job, job, 16);
	assert_int_equal(store_read(c->s.store, look, &s, &c->why), ERR_OK);
	return s;
}

static enum err
put_sized(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_sized_put(db, arg);
}

static enum err
no_task(void *ctx, const uint8_t task[16])
{
	(void)ctx;
	(void)task;
	return ERR_OK;
}

static enum err
erase(struct store_db *db, void *arg, struct why *why)
{
	struct store_erased counts;

	(void)why;
	(void)arg;
	return store_audit_erase(db, device_id(2), no_task, NULL, &counts);
}

static enum err
delete_it(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_delete_job(db, arg, 1);
}

static void
rows_come_and_go(void **state)
{
	struct coordinator *c = *state;
	struct store_sized row = {.round = 1, .steps = 50};
	uint8_t job[16];

	submit(c, sized, job);
	assert_int_equal(store_write(c->s.store, add_speeds, job, &c->why), ERR_OK);
	struct seen s = rows_of(c, job);
	assert_int_equal(s.count, 6);
	assert_memory_equal(s.speeds[0].device, device_id(1), 32);
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(s.speeds[1 + i].serial, 2 + i);
		assert_int_equal(s.speeds[1 + i].steps, 12 + i);
		assert_true(s.speeds[1 + i].samples == 10 && s.speeds[1 + i].up_seconds == 0.5);
	}
	memcpy(row.job, job, 16);
	memcpy(row.device, device_id(2), 32);
	for (row.round = 1; row.round <= 3; row.round++)
		assert_int_equal(store_write(c->s.store, put_sized, &row, &c->why), ERR_OK);
	row = (struct store_sized){.round = 4, .steps = 60, .oldest = 3};
	memcpy(row.job, job, 16);
	memcpy(row.device, device_id(1), 32);
	assert_int_equal(store_write(c->s.store, put_sized, &row, &c->why), ERR_OK);
	s = rows_of(c, job);
	assert_int_equal(s.sized_count, 2);
	assert_int_equal(s.sized[0].steps, 60);
	assert_int_equal(s.sized[1].round, 3);
	assert_int_equal(store_write(c->s.store, erase, NULL, &c->why), ERR_OK);
	s = rows_of(c, job);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.sized_count, 1);
	assert_int_equal(store_write(c->s.store, delete_it, job, &c->why), ERR_OK);
	s = rows_of(c, job);
	assert_int_equal(s.count + s.sized_count, 0);
}

/* --- tasks */

static struct store_sized
make_durable(struct coordinator *c, const struct task *t, uint8_t tag)
{
	struct store_sized row;

	assert_true(tasks_size_missing(c->s.engine, device_id(tag), t, &row));
	assert_int_equal(row.steps, t->steps);
	assert_int_equal(store_write(c->s.store, put_sized, &row, &c->why), ERR_OK);
	tasks_size_stored(c->s.engine, &row);
	assert_false(tasks_size_missing(c->s.engine, device_id(tag), t, &row));
	return row;
}

static struct job *
inside(struct coordinator *c)
{
	return c->s.engine->jobs;
}

static void
the_same_steps_again(void **state)
{
	struct coordinator *c = *state;
	struct task t, again;
	uint8_t job[16];

	submit(c, sized, job);
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(t.steps, 10);
	messages_task_deinit(&t);
	/* 8 steps a second from now on; what was decided stays. */
	lock_take(&c->s.engine->lock);
	speeds_note(&inside(c)->work->speeds, device_id(1), 8, 1);
	lock_release(&c->s.engine->lock);
	assert_string_equal(ask(c, 1, &again), "");
	assert_int_equal(again.steps, 10);
	make_durable(c, &again, 1);
	messages_task_deinit(&again);
	assert_int_equal(store_write(c->s.store, add_speeds, job, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	assert_string_equal(ask(c, 1, &again), "");
	assert_int_equal(again.steps, 10);
	struct store_sized row;
	assert_false(tasks_size_missing(c->s.engine, device_id(1), &again, &row));
	/* More is refused, and the next round has its own: after 16 steps a second, and now some 20. */
	struct manifest m = manifest_for(&again, 1);
	struct engine_claim claim;
	m.steps = 11;
	assert_int_equal(tasks_claim(c->s.engine, &m, device_id(1), again.task, &claim, &c->why),
	    PROBLEM_TOO_MANY_STEPS);
	inside(c)->invites[0].given_ms -= 500;
	assert_null(deliver(c, &again, 1, 0.5f, 10));
	messages_task_deinit(&again);
	await_rounds(c, job, 1);
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(t.round, 2);
	assert_in_range(t.steps, 300, 540);
	make_durable(c, &t, 1);
	messages_task_deinit(&t);
	const struct seen s = rows_of(c, job);
	assert_int_equal(s.sized_count, 1);
	assert_int_equal(s.sized[0].round, 2);
}

/* How fast a device was, as the last of its claims says it. */
static struct store_speed
claimed(struct coordinator *c, const char *text, uint64_t examples, uint64_t steps)
{
	struct engine_claim claim;
	struct task t;
	uint8_t job[16];

	submit(c, text, job);
	assert_string_equal(ask(c, 1, &t), "");
	struct manifest m = manifest_for(&t, 1);
	m.examples = examples;
	m.steps = steps;
	assert_int_equal(
	    tasks_claim(c->s.engine, &m, device_id(1), t.task, &claim, &c->why), PROBLEM_NONE);
	messages_task_deinit(&t);
	assert_int_equal(engine_command(c->s.engine, job, JOB_STOPPED, NULL, &c->why), ERR_OK);
	return claim.speed;
}

/* Steps beyond what the job plans for so many examples make no device faster; what only the clock bounds is as it says. */
static void
steps_that_nobody_planned(void **state)
{
	struct coordinator *c = *state;
	struct store_speed s = claimed(c, JOB("all", "\"goal\":2", ""), 95, 10);

	assert_true(s.steps == 10 && s.samples == 100);
	s = claimed(c, JOB("more", "\"goal\":2", ""), 95, 1000000);
	assert_true(s.steps == 10 && s.samples == 100);
	s = claimed(c, JOB("partial", "\"goal\":2", ""), 95, 3);
	assert_true(s.steps == 3 && s.samples == 30);
	s = claimed(c,
	    "{\"name\":\"clock\",\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\","
	    "\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],"
	    "\"classes\":2},\"local\":{\"seconds\":5,\"batch\":10,\"optimizer\":{\"name\":\"sgd\","
	    "\"rate\":0.1}},\"round\":{\"goal\":2}}",
	    95, 1000);
	assert_true(s.steps == 1000 && s.samples == 10000);
}

static void
old_agents_are_told(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t job[16];

	submit(c, sized, job);
	for (size_t i = 0; i < c->offer.feature_count; i++)
		if (strcmp(c->offer.features[i], "sized") == 0)
			strcpy(c->offer.features[i], "unsized");
	assert_string_equal(ask(c, 1, &t), "old-agent");
}

static void
a_message_says_the_steps(void **state)
{
	struct coordinator *c = *state;
	struct task t, out;
	struct buf text;
	uint8_t job[16];

	submit(c, sized, job);
	tasks_ask(c->s.engine, device_id(1), &c->offer, &t);
	assert_false(t.wait);
	buf_init(&text, 1 << 20);
	t.steps = 77;
	assert_int_equal(messages_task_encode(&text, &t), ERR_OK);
	assert_int_equal(messages_task_decode(&out, buf_str(&text), text.len, &c->why), ERR_OK);
	assert_int_equal(out.steps, 77);
	assert_true(out.recipe.local.amount == 77);
	messages_task_deinit(&out);
	text.len = 0;
	t.steps = 0;
	assert_int_equal(messages_task_encode(&text, &t), ERR_OK);
	assert_int_equal(
	    messages_task_decode(&out, buf_str(&text), text.len, &c->why), ERR_UNSUPPORTED);
	messages_task_deinit(&out);
	messages_task_deinit(&t);
	buf_deinit(&text);
}

static void
an_erased_device_is_forgotten(void **state)
{
	struct speeds t = {.oldest = 0};
	const struct local_spec local = {
	    .unit = LOCAL_SIZED, .target_s = 1, .min_steps = 2, .max_steps = 100};

	(void)state;
	for (uint8_t tag = 1; tag <= 3; tag++)
		speeds_note(&t, device_id(tag), 10u * tag, 1);
	for (uint64_t round = 1; round <= 3; round++)
		for (uint8_t tag = 3; tag >= 1; tag--)
			assert_int_equal(
			    speeds_size(&t, &local, device_id(tag), round, 1)->steps, 10u * tag);
	speeds_forget(&t, device_id(2));
	assert_null(speeds_find(&t, device_id(2), 1));
	assert_int_equal(speeds_find(&t, device_id(3), 2)->steps, 30);
	/* Known no more, it is like those that are. */
	assert_int_equal(speeds_size(&t, &local, device_id(2), 3, 3)->steps, 20);
	assert_int_equal(speeds_size(&t, &local, device_id(2), 4, 3)->steps, 20);
	assert_null(speeds_find(&t, device_id(3), 2));
	assert_int_equal(t.task_count, 4);
	speeds_deinit(&t);
}

/* In the first round nobody was measured, and all have as much, also who comes when others have sent theirs; later the middle one's. */
static void
newcomers_get_as_much_as_others(void **state)
{
	struct speeds t = {.oldest = 0};
	const struct local_spec local = {
	    .unit = LOCAL_SIZED, .target_s = 30, .min_steps = 20, .max_steps = 2000};

	(void)state;
	for (uint8_t tag = 1; tag <= 3; tag++) {
		assert_int_equal(speeds_size(&t, &local, device_id(tag), 1, 1)->steps, 20);
		speeds_note(&t, device_id(tag), 20, 20.0 / (5 * tag * tag));
	}
	assert_int_equal(speeds_size(&t, &local, device_id(4), 1, 1)->steps, 20);
	for (uint8_t tag = 1; tag <= 3; tag++)
		assert_int_equal(
		    speeds_size(&t, &local, device_id(tag), 2, 1)->steps, 150u * tag * tag);
	assert_int_equal(speeds_size(&t, &local, device_id(5), 2, 1)->steps, 600);
	speeds_deinit(&t);
}

/* What the device gets, and that it is durable. */
static uint64_t
given(struct coordinator *c, uint8_t tag)
{
	struct task t;
	struct store_sized row;

	tasks_ask(c->s.engine, device_id(tag), &c->offer, &t);
	assert_false(t.wait);
	const uint64_t steps = t.steps;
	if (tasks_size_missing(c->s.engine, device_id(tag), &t, &row)) {
		assert_int_equal(store_write(c->s.store, put_sized, &row, &c->why), ERR_OK);
		tasks_size_stored(c->s.engine, &row);
	}
	messages_task_deinit(&t);
	return steps;
}

struct measured {
	uint8_t job[16];
	uint8_t tag;
	uint64_t steps; /* in a second */
	double at;
};

static enum err
add_speed(struct store_db *db, void *arg, struct why *why)
{
	const struct measured *m = arg;
	struct store_speed row = {.steps = m->steps, .seconds = 1, .samples = 10, .at = m->at};

	(void)why;
	memcpy(row.job, m->job, 16);
	memcpy(row.device, device_id(m->tag), 32);
	return store_speed_add(db, &row);
}

static void
measure(struct coordinator *c, struct measured m)
{
	assert_int_equal(store_write(c->s.store, add_speed, &m, &c->why), ERR_OK);
}

/* Started anew, with what was measured meanwhile. */
static void
again(struct coordinator *c)
{
	coordinator_stop(c);
	coordinator_start(c);
}

/* A round's newcomers are given as much before a start as after it: while those before work, and when they have reported. */
static void
newcomers_around_a_start(void **state)
{
	static const char text[] =
	    "{\"name\":\"sized\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":"
	    "\"fc\","
	    "\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],"
	    "\"classes\":2},\"local\":{\"target_s\":30,\"min_steps\":10,\"max_steps\":1000,"
	    "\"batch\":10,"
	    "\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},\"round\":{\"goal\":9}}";
	struct coordinator *c = *state;
	const double now = clock_wall();
	struct measured m = {.tag = 9, .steps = 10, .at = now - 100};

	submit(c, text, m.job);
	measure(c, m);
	again(c);
	/* Measured before the round; what is measured in it changes nothing. */
	assert_int_equal(given(c, 1), 300);
	m = (struct measured){.tag = 9, .steps = 1, .at = now + 100};
	memcpy(m.job, inside(c)->facts.id, 16);
	for (int i = 0; i < 3; i++)
		measure(c, m);
	again(c);
	assert_int_equal(given(c, 2), 300);
	m.tag = 1;
	measure(c, m);
	m.tag = 2;
	measure(c, m);
	again(c);
	assert_int_equal(given(c, 3), 300);
	/* One whose own speed is known has that. */
	assert_int_equal(given(c, 9), 30);
	again(c);
	assert_int_equal(given(c, 4), 300);
}

/* --- what is noted beside a new job */

static enum err
drop_stamps(struct store_db *db, void *arg, struct why *why)
{
	char *text = NULL;

	(void)why;
	assert_int_equal(store_stamp_get(db, arg, &text), ERR_OK);
	assert_string_equal(text, "{\"aggregate.normalise_max\":2}");
	free(text);
	return store_stamp_put(db, arg, "{}");
}

static enum err
no_stamp(struct store_db *db, void *arg, struct why *why)
{
	char *text = NULL;

	(void)why;
	assert_int_equal(store_stamp_get(db, arg, &text), ERR_NOTFOUND);
	return ERR_OK;
}

static double
bound_of(struct coordinator *c)
{
	return inside(c)->work->spec.aggregate.normalise_max;
}

/* A document alone folds to what it always did; a new job has the bound, unless its document says another. */
static void
defaults_of_new_jobs(void **state)
{
	struct coordinator *c = *state;
	uint8_t job[16];

	submit(c, sized, job);
	assert_true(bound_of(c) == 2);
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(bound_of(c) == 2);
	/* One that was submitted to an earlier version. */
	assert_int_equal(store_write(c->s.store, drop_stamps, job, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(bound_of(c) < 0);
	assert_int_equal(store_write(c->s.store, delete_it, job, &c->why), ERR_OK);
	assert_int_equal(store_write(c->s.store, no_stamp, job, &c->why), ERR_OK);
	submit(c, JOB("plain", "\"goal\":2", ",\"aggregate\":{\"normalise\":false}"), job);
	assert_int_equal(store_write(c->s.store, no_stamp, job, &c->why), ERR_OK);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(newcomers_get_as_much_as_others),
	    WITH(newcomers_around_a_start),
	    WITH(defaults_of_new_jobs),
	    cmocka_unit_test(an_erased_device_is_forgotten),
	    WITH(rows_come_and_go),
	    WITH(the_same_steps_again),
	    WITH(steps_that_nobody_planned),
	    WITH(old_agents_are_told),
	    WITH(a_message_says_the_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
