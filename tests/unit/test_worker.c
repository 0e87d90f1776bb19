/* stages: gcc address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

static struct worker_pool *
new_pool(unsigned threads)
{
	struct worker_pool *p = NULL;

	assert_int_equal(worker_pool_new(&p, threads), ERR_OK);
	assert_non_null(p);
	return p;
}

/* --- the pool */

static void
count_up(void *arg)
{
	atomic_fetch_add((atomic_uint *)arg, 1);
}

static void
freeing_runs_what_is_queued(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 4; threads++) {
		struct worker_pool *p = new_pool(threads);
		atomic_uint done = 0;
		for (int i = 0; i < 1000; i++)
			assert_int_equal(worker_submit(p, count_up, &done), ERR_OK);
		worker_pool_free(p);
		assert_int_equal(atomic_load(&done), 1000);
	}
	worker_pool_free(NULL);
}

/* Jobs that wait for each other need as many threads; with one fewer they would wait for ever. */
struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t all;
	unsigned there, expected;
};

static void
meet(void *arg)
{
	struct meeting *m = arg;

	pthread_mutex_lock(&m->lock);
	m->there++;
	pthread_cond_broadcast(&m->all);
	while (m->there < m->expected)
		pthread_cond_wait(&m->all, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

static void
jobs_run_side_by_side(void **state)
{
	struct meeting m = {.expected = 3};
	struct worker_pool *p = new_pool(3);

	(void)state;
	pthread_mutex_init(&m.lock, NULL);
	pthread_cond_init(&m.all, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(worker_submit(p, meet, &m), ERR_OK);
	worker_pool_free(p);
	assert_int_equal(m.there, 3);
	pthread_cond_destroy(&m.all);
	pthread_mutex_destroy(&m.lock);
}

struct sequence {
	unsigned *next;
	unsigned mine;
	bool right;
};

static void
in_turn(void *arg)
{
	struct sequence *s = arg;

	s->right = (*s->next)++ == s->mine;
}

/* One thread takes jobs in the order they came; what it writes is seen after the pool is gone. */
static void
one_thread_keeps_the_order(void **state)
{
	struct sequence s[100];
	struct worker_pool *p = new_pool(1);
	unsigned next = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		s[i] = (struct sequence){&next, i, false};
		assert_int_equal(worker_submit(p, in_turn, &s[i]), ERR_OK);
	}
	worker_pool_free(p);
	for (unsigned i = 0; i < 100; i++)
		assert_true(s[i].right);
}

struct chain {
	struct worker_pool *pool;
	atomic_uint left, failures;
};

static void
next_link(void *arg)
{
	struct chain *c = arg;

	if (atomic_fetch_sub(&c->left, 1) > 1 && worker_submit(c->pool, next_link, c) != ERR_OK)
		atomic_fetch_add(&c->failures, 1);
}

/* A job may queue the next, also while the pool drains. */
static void
jobs_queue_jobs(void **state)
{
	struct chain c = {.pool = new_pool(2), .left = 500};

	(void)state;
	assert_int_equal(worker_submit(c.pool, next_link, &c), ERR_OK);
	worker_pool_free(c.pool);
	assert_int_equal(atomic_load(&c.left), 0);
	assert_int_equal(atomic_load(&c.failures), 0);
}

struct submitter {
	struct worker_pool *pool;
	atomic_uint *done;
	unsigned failures;
};

static void *
submit_many(void *arg)
{
	struct submitter *s = arg;

	for (int i = 0; i < 200; i++)
		s->failures += worker_submit(s->pool, count_up, s->done) != ERR_OK;
	return NULL;
}

static void
many_submit(void **state)
{
	struct worker_pool *p = new_pool(2);
	atomic_uint done = 0;
	struct submitter s[4];
	pthread_t ids[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		s[i] = (struct submitter){p, &done, 0};
		assert_int_equal(pthread_create(&ids[i], NULL, submit_many, &s[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(ids[i], NULL);
		assert_int_equal(s[i].failures, 0);
	}
	worker_pool_free(p);
	assert_int_equal(atomic_load(&done), 800);
}

static void
no_threads_is_no_pool(void **state)
{
	struct worker_pool *p = NULL;

	(void)state;
	assert_int_equal(worker_pool_new(&p, 0), ERR_NOMEM);
	assert_null(p);
}

/* --- parallel loops */

struct touched {
	unsigned char times[1000]; /* each index is one thread's */
};

static void
touch(void *arg, unsigned i)
{
	((struct touched *)arg)->times[i]++;
}

static void
every_index_once(void **state)
{
	static const unsigned threads[] = {0, 1, 2, 3, 8, 1000}, counts[] = {0, 1, 2, 7, 1000};
	struct touched t;

	(void)state;
	for (size_t a = 0; a < sizeof(threads) / sizeof(*threads); a++)
		for (size_t b = 0; b < sizeof(counts) / sizeof(*counts); b++) {
			memset(&t, 0, sizeof(t));
			worker_parallel(threads[a], counts[b], touch, &t);
			for (unsigned i = 0; i < 1000; i++)
				assert_int_equal(t.times[i], i < counts[b] ? 1 : 0);
		}
}

static void
meet_indexed(void *arg, unsigned i)
{
	(void)i;
	meet(arg);
}

/* All threads asked for do run, the caller being one of them. */
static void
as_many_threads_as_asked(void **state)
{
	struct meeting m = {.expected = 4};

	(void)state;
	pthread_mutex_init(&m.lock, NULL);
	pthread_cond_init(&m.all, NULL);
	worker_parallel(4, 4, meet_indexed, &m);
	assert_int_equal(m.there, 4);
	pthread_cond_destroy(&m.all);
	pthread_mutex_destroy(&m.lock);
}

/* --- for somebody */

struct order {
	pthread_mutex_t lock;
	pthread_cond_t change;
	char said[16];
	size_t count;
	bool held;
};

struct errand {
	struct order *order;
	char name;
	bool waits;
};

static void
run_errand(void *arg)
{
	struct errand *e = arg;
	struct order *o = e->order;

	pthread_mutex_lock(&o->lock);
	o->said[o->count++] = e->name;
	pthread_cond_broadcast(&o->change);
	while (e->waits && o->held)
		pthread_cond_wait(&o->change, &o->lock);
	pthread_mutex_unlock(&o->lock);
}

/* The first owner's first errand takes long: its others wait, with a thread free, and the other owner's do not. */
static void
one_at_a_time_for_each(void **state)
{
	static const uint8_t first[WORKER_FOR] = {1}, second[WORKER_FOR] = {2};
	struct order o = {
	    .lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER, .held = true};
	struct errand long_one = {&o, 'a', true}, more[] = {{&o, 'b', false}, {&o, 'c', false}},
		      other[] = {{&o, 'x', false}, {&o, 'y', false}};
	struct worker_pool *p = NULL;

	(void)state;
	assert_int_equal(worker_pool_new_behind(&p, 2, 5), ERR_OK);
	assert_int_equal(worker_submit_for(p, first, run_errand, &long_one), ERR_OK);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(worker_submit_for(p, first, run_errand, &more[i]), ERR_OK);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(worker_submit_for(p, second, run_errand, &other[i]), ERR_OK);
	pthread_mutex_lock(&o.lock);
	while (o.count < 3)
		pthread_cond_wait(&o.change, &o.lock);
	assert_memory_equal(o.said, "axy", 3);
	o.held = false;
	pthread_cond_broadcast(&o.change);
	pthread_mutex_unlock(&o.lock);
	worker_pool_free(p);
	assert_int_equal(o.count, 5);
	assert_memory_equal(o.said, "axybc", 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(freeing_runs_what_is_queued),
	    cmocka_unit_test(jobs_run_side_by_side),
	    cmocka_unit_test(one_thread_keeps_the_order),
	    cmocka_unit_test(jobs_queue_jobs),
	    cmocka_unit_test(many_submit),
	    cmocka_unit_test(no_threads_is_no_pool),
	    cmocka_unit_test(every_index_once),
	    cmocka_unit_test(as_many_threads_as_asked),
	    cmocka_unit_test(one_at_a_time_for_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
