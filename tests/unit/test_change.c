/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "engine_fixture.h"

/* What counts as a change of a job, and who waits for one. */

static uint64_t
counter(struct coordinator *c)
{
	struct change_reader nobody = {.owner = {0}};

	return jobs_change_leave(c->s.engine, &nobody);
}

/* --- facts, one by one */

struct fact {
	const char *name;
	void (*change)(struct job_facts *f);
};

#define FACT(name, statement) \
	static void change_##name(struct job_facts *f) \
	{ \
		statement; \
	}
FACT(state, f->state = JOB_PAUSED)
FACT(reason, strcpy(f->reason, "another"))
FACT(round, f->row.round++)
FACT(open_state, f->round.state = ROUND_GRACE)
FACT(paused, f->round.paused = true)
FACT(accepted, f->round.accepted++)
FACT(early, f->round.next_accepted++)
FACT(reopened, f->round.reopened++)
FACT(model, f->model[31] ^= 1)
FACT(metric, f->metric.known = true)
FACT(loss, f->metric.loss = 0.25)
FACT(accuracy, f->metric.accuracy = 0.75)
FACT(examples, f->metric.examples = 12)
FACT(metric_round, f->metric_round++)
FACT(nothing, (void)f)
FACT(bytes, f->bytes_up += 5; f->bytes_down += 7)
FACT(sizes, f->model_bytes++)
FACT(invited, f->round.invited += 3)
FACT(aborted, f->round.aborted++)
FACT(committing, f->round.committing++)
FACT(times, f->round.deadline_ms += 9; f->row.opened_at += 1; f->ended_at = 7)
FACT(best, f->best.count++)
FACT(reports, f->reports++)

static uint64_t
after_fact(struct coordinator *c, struct job *j, const struct fact *fact)
{
	uint64_t before = counter(c);

	jobs_lock(c->s.engine);
	fact->change(change_facts(j));
	jobs_unlock(c->s.engine);
	return counter(c) - before;
}

static void
facts_that_count(void **state)
{
#define ROW(name) \
	{ \
#name, change_##name \
	}
	static const struct fact counted[] = {ROW(state), ROW(reason), ROW(round), ROW(open_state),
	    ROW(paused), ROW(accepted), ROW(early), ROW(reopened), ROW(model), ROW(metric),
	    ROW(loss), ROW(accuracy), ROW(examples), ROW(metric_round)};
	static const struct fact others[] = {ROW(nothing), ROW(bytes), ROW(sizes), ROW(invited),
	    ROW(aborted), ROW(committing), ROW(times), ROW(best), ROW(reports)};
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, plain, id);
	struct job *j = jobs_find(c->s.engine, id);
	struct job_facts kept = *job_facts(j);
	for (size_t i = 0; i < sizeof(counted) / sizeof(*counted); i++)
		if (after_fact(c, j, &counted[i]) != 1)
			fail_msg("%s does not count as one change", counted[i].name);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (after_fact(c, j, &others[i]) != 0)
			fail_msg("%s counts", others[i].name);
	jobs_lock(c->s.engine);
	*change_facts(j) = kept;
	job_central(j)->open = true;
	jobs_unlock(c->s.engine);
	uint64_t before = counter(c);
	jobs_lock(c->s.engine);
	job_stuck(j)->watch.said.kind = STUCK_FOLD;
	jobs_unlock(c->s.engine);
	assert_int_equal(counter(c) - before, 1);
	jobs_lock(c->s.engine);
	job_stuck(j)->watch.said.kind = STUCK_NONE;
	job_central(j)->open = false;
	jobs_unlock(c->s.engine);
	assert_int_equal(counter(c) - before, 2);
}

/* Two jobs change in turn while the lock is held: neither is forgotten. */
static void
several_jobs_at_once(void **state)
{
	struct coordinator *c = *state;
	uint8_t one[16], two[16];

	submit(c, plain, one);
	submit(c, JOB("two", "\"goal\":1", ""), two);
	uint64_t before = counter(c);
	jobs_lock(c->s.engine);
	change_facts(jobs_find(c->s.engine, one))->row.round++;
	change_facts(jobs_find(c->s.engine, two))->row.round++;
	change_facts(jobs_find(c->s.engine, one))->model[0] ^= 1;
	jobs_unlock(c->s.engine);
	assert_int_equal(counter(c) - before, 3);
}

/* --- what happens to jobs */

/* Has the counter moved since *at? It is *at then. */
static bool
moved(struct coordinator *c, uint64_t *at)
{
	uint64_t now = counter(c), before = *at;

	assert_true(now >= before);
	*at = now;
	return now > before;
}

static void
set(struct coordinator *c, const uint8_t id[16], const char *text)
{
	struct override_set change;

	assert_int_equal(override_parse(&change, text, strlen(text), &c->why), ERR_OK);
	assert_int_equal(
	    engine_set(c->s.engine, id, &(struct engine_terms_change){.change = &change}, &c->why),
	    ERR_OK);
}

static void
command(struct coordinator *c, const uint8_t id[16], enum job_state to)
{
	assert_int_equal(engine_command(c->s.engine, id, to, NULL, &c->why), ERR_OK);
}

static void
a_job_from_its_submission_to_its_deletion(void **state)
{
	struct coordinator *c = *state;
	struct engine_deletion gone;
	uint64_t at = counter(c);
	uint8_t id[16];
	struct task one, two;

	submit(c, JOB("life", "\"goal\":2,\"quorum\":2", ",\"stop\":{\"rounds\":2}"), id);
	assert_true(moved(c, &at));
	assert_string_equal(ask(c, 1, &one), "");
	assert_string_equal(ask(c, 2, &two), "");
	assert_false(moved(c, &at));
	assert_null(deliver(c, &one, 1, 1, 100));
	assert_true(moved(c, &at));
	assert_null(deliver(c, &two, 2, 2, 100));
	assert_true(moved(c, &at));
	await_rounds(c, id, 1);
	assert_true(moved(c, &at));
	set(c, id, "{\"share\":3}");
	assert_true(moved(c, &at));
	set(c, id, "{\"share\":3}");
	assert_false(moved(c, &at));
	set(c, id, "{\"share\":null}");
	assert_true(moved(c, &at));
	command(c, id, JOB_PAUSED);
	assert_true(moved(c, &at));
	command(c, id, JOB_PAUSED);
	assert_false(moved(c, &at));
	command(c, id, JOB_RUNNING);
	assert_true(moved(c, &at));
	command(c, id, JOB_STOPPED);
	assert_true(moved(c, &at));
	enum err e = ERR_STATE;
	for (unsigned i = 0; i < 1000 && e == ERR_STATE; i++, usleep(5000))
		e = engine_delete(c->s.engine, id, NULL, false, &gone, &c->why);
	assert_int_equal(e, ERR_OK);
	assert_true(moved(c, &at));
}

/* Devices that come, wait, are told to wait, take a task and give it up; what is shown of them and forecast; time. */
static void
what_devices_do_and_readers_see_does_not_count(void **state)
{
	struct coordinator *c = *state;
	struct abort_cause cause = abort_reason_parse("trainer-failed");
	struct job_view v;
	uint8_t id[16];
	struct task t;

	submit(c, plain, id);
	uint64_t at = counter(c);
	for (uint8_t tag = 1; tag <= DEVICES; tag++)
		(void)ask(c, tag, &t);
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(tasks_abort(c->s.engine, device_id(1), t.task, cause, "a log"), ERR_OK);
	c->offer.data_count = 0;
	assert_string_equal(ask(c, 9, &t), "no-data");
	assert_true(engine_job(c->s.engine, id, NULL, &v));
	jobs_lock(c->s.engine);
	jobs_count_bytes(jobs_find(c->s.engine, id), 1000, 1000);
	jobs_unlock(c->s.engine);
	rounds_tick(c->s.engine);
	assert_int_equal(counter(c), at);
}

/* It begins at the wall clock, whatever jobs a start finds. */
static void
begins_at_the_clock(void **state)
{
	struct coordinator *c = *state;
	struct engine_report r;
	uint8_t id[16];

	submit(c, plain, id);
	jobs_report(c->s.engine, &r);
	assert_int_equal(r.changes_total, 1);
	coordinator_stop(c);
	uint64_t before = (uint64_t)(clock_wall() * 1000);
	coordinator_start(c);
	uint64_t after = (uint64_t)(clock_wall() * 1000);
	/* The job's round opens after the start. */
	jobs_report(c->s.engine, &r);
	assert_in_range(counter(c) - r.changes_total, before, after);
	assert_true(r.changes_total <= 1);
}

/* --- who waits */

static unsigned rings;

static void
ring(void *ctx)
{
	(void)ctx;
	rings++;
}

static void
change(struct coordinator *c, struct job *j)
{
	jobs_lock(c->s.engine);
	change_facts(j)->row.round++;
	jobs_unlock(c->s.engine);
}

static uint64_t
readers(struct coordinator *c)
{
	struct engine_report r;

	jobs_report(c->s.engine, &r);
	return r.readers;
}

/* One ring for all who wait, and none while nobody does. */
static void
rings_for_those_who_wait(void **state)
{
	struct coordinator *c = *state;
	struct change_reader a = {.owner = {1}}, b = {.owner = {2}};
	uint64_t now = 0;
	uint8_t id[16];

	rings = 0;
	wake_join(&c->s.changed, ring, NULL);
	submit(c, plain, id);
	struct job *j = jobs_find(c->s.engine, id);
	assert_int_equal(rings, 0);
	assert_int_equal(jobs_change_wait(c->s.engine, &a, 0, &now), CHANGE_KNOWN);
	assert_int_equal(jobs_change_wait(c->s.engine, &a, now + 1, &now), CHANGE_KNOWN);
	assert_int_equal(jobs_change_wait(c->s.engine, &a, now, &now), CHANGE_PARKED);
	assert_int_equal(jobs_change_wait(c->s.engine, &b, now, &now), CHANGE_PARKED);
	assert_int_equal(readers(c), 2);
	change(c, j);
	change(c, j);
	assert_int_equal(rings, 1);
	uint64_t known = now;
	assert_int_equal(jobs_change_wait(c->s.engine, &a, known, &now), CHANGE_KNOWN);
	assert_int_equal(now, known + 2);
	assert_int_equal(readers(c), 1);
	/* Woken for nothing, it keeps its place. */
	assert_int_equal(jobs_change_wait(c->s.engine, &b, now, &now), CHANGE_PARKED);
	assert_int_equal(readers(c), 1);
	change(c, j);
	assert_int_equal(rings, 2);
	assert_int_equal(jobs_change_leave(c->s.engine, &b), now + 1);
	(void)jobs_change_leave(c->s.engine, &b);
	assert_int_equal(readers(c), 0);
	change(c, j);
	assert_int_equal(rings, 2);
}

static unsigned
park(struct coordinator *c, struct change_reader *r, unsigned count, uint16_t owner)
{
	unsigned parked = 0;
	uint64_t now = counter(c);

	for (unsigned i = 0; i < count; i++) {
		r[i] = (struct change_reader){.owner = {(uint8_t)owner, (uint8_t)(owner >> 8)}};
		enum change_wait got = jobs_change_wait(c->s.engine, &r[i], now, &now);
		assert_true(got == CHANGE_PARKED || got == CHANGE_FULL);
		parked += got == CHANGE_PARKED;
	}
	return parked;
}

static void
places(void **state)
{
	static struct change_reader all[CHANGE_READERS_MAX + 100];
	struct coordinator *c = *state;
	struct engine_report r;
	unsigned used = 0;

	assert_int_equal(park(c, all, 40, 0), CHANGE_READERS_OF_SOCKET);
	assert_int_equal(park(c, all + 40, 10, 7), CHANGE_READERS_OF_ONE);
	(void)jobs_change_leave(c->s.engine, &all[40]);
	assert_int_equal(park(c, all + 50, 2, 7), 1);
	used = 52;
	for (uint16_t owner = 300; readers(c) < CHANGE_READERS_MAX; owner++)
		used += park(c, all + used, 1, owner);
	assert_int_equal(park(c, all + used, 1, 9000), 0);
	jobs_report(c->s.engine, &r);
	assert_int_equal(r.readers_refused_total, 8 + 2 + 1 + 1);
	for (unsigned i = 0; i <= used; i++)
		(void)jobs_change_leave(c->s.engine, &all[i]);
	assert_int_equal(readers(c), 0);
}

/* Compare and park are one step: whoever parks with the newest counter is rung for the next change, however the threads run. */
#define CHANGES 20000

struct bell {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool rung;
};

static void
ring_bell(void *ctx)
{
	struct bell *b = ctx;

	pthread_mutex_lock(&b->lock);
	b->rung = true;
	pthread_cond_signal(&b->cond);
	pthread_mutex_unlock(&b->lock);
}

static void
await_bell(struct bell *b)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	pthread_mutex_lock(&b->lock);
	while (!b->rung)
		assert_int_equal(pthread_cond_timedwait(&b->cond, &b->lock, &until), 0);
	b->rung = false;
	pthread_mutex_unlock(&b->lock);
}

struct changer {
	struct coordinator *c;
	struct job *j;
};

static void *
change_often(void *arg)
{
	struct changer *w = arg;

	for (unsigned i = 0; i < CHANGES; i++)
		change(w->c, w->j);
	return NULL;
}

static void
no_wake_is_lost(void **state)
{
	struct bell bell = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
	struct coordinator *c = *state;
	struct change_reader r = {.owner = {1}};
	uint64_t known, now;
	pthread_t thread;
	uint8_t id[16];

	submit(c, plain, id);
	wake_join(&c->s.changed, ring_bell, &bell);
	struct changer w = {c, jobs_find(c->s.engine, id)};
	known = counter(c);
	const uint64_t last = known + CHANGES;
	assert_int_equal(pthread_create(&thread, NULL, change_often, &w), 0);
	while (known < last) {
		if (jobs_change_wait(c->s.engine, &r, known, &now) == CHANGE_PARKED)
			await_bell(&bell);
		known = now;
	}
	pthread_join(thread, NULL);
	assert_int_equal(known, last);
	(void)jobs_change_leave(c->s.engine, &r);
	c->s.changed = (struct wake){NULL, NULL};
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(facts_that_count),
	    WITH(several_jobs_at_once),
	    WITH(a_job_from_its_submission_to_its_deletion),
	    WITH(what_devices_do_and_readers_see_does_not_count),
	    WITH(begins_at_the_clock),
	    WITH(rings_for_those_who_wait),
	    WITH(places),
	    WITH(no_wake_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
