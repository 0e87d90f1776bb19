/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "loop.h"

static struct loop *
new_loop(void)
{
	struct loop *l = NULL;

	assert_int_equal(loop_new(&l), ERR_OK);
	return l;
}

/* --- posts */

struct message {
	struct loop_post post;
	struct loop *loop;
	unsigned *count; /* the loop thread's alone */
	unsigned stop_at;
	pthread_t ran_on;
};

static void
on_message(struct loop_post *p)
{
	struct message *m = (struct message *)p;

	m->ran_on = pthread_self();
	if (++*m->count == m->stop_at)
		loop_stop(m->loop);
}

static void
on_owned_message(struct loop_post *p)
{
	on_message(p);
	free(p);
}

struct sender {
	struct loop *loop;
	unsigned *count;
	unsigned messages, stop_at;
};

static void *
send_all(void *arg)
{
	struct sender *s = arg;

	for (unsigned i = 0; i < s->messages; i++) {
		struct message *m = calloc(1, sizeof(*m));
		*m = (struct message){{NULL, on_owned_message}, s->loop, s->count, s->stop_at, 0};
		loop_post(s->loop, &m->post);
	}
	return NULL;
}

/* All posts of all threads run, on the loop's thread, and may free themselves. */
static void
posts_of_many_threads(void **state)
{
	struct loop *l = new_loop();
	unsigned count = 0;
	struct sender s = {l, &count, 500, 2000};
	pthread_t ids[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, send_all, &s), 0);
	loop_run(l);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	assert_int_equal(count, 2000);
	loop_free(l);
}

/* What was posted around the stop still runs, on the thread that runs the loop. */
static void
posts_before_the_stop(void **state)
{
	struct loop *l = new_loop();
	unsigned count = 0;
	struct message a = {{NULL, on_message}, l, &count, 9, 0}, b = a;

	(void)state;
	loop_post(l, &a.post);
	loop_stop(l);
	loop_post(l, &b.post);
	loop_run(l);
	assert_int_equal(count, 2);
	assert_true(pthread_equal(a.ran_on, pthread_self()));
	loop_free(l);
}

struct repeat {
	struct loop_post post;
	struct loop *loop;
	unsigned left;
};

static void
on_repeat(struct loop_post *p)
{
	struct repeat *r = (struct repeat *)p;

	if (--r->left > 0)
		loop_post(r->loop, p);
	else
		loop_stop(r->loop);
}

/* A post may be posted again as soon as it runs. */
static void
a_post_again(void **state)
{
	struct loop *l = new_loop();
	struct repeat r = {{NULL, on_repeat}, l, 50};

	(void)state;
	loop_post(l, &r.post);
	loop_run(l);
	assert_int_equal(r.left, 0);
	loop_free(l);
}

static void *
stop_it(void *arg)
{
	loop_stop(arg);
	return NULL;
}

static void
stop_from_elsewhere(void **state)
{
	struct loop *l = new_loop();
	pthread_t id;

	(void)state;
	assert_int_equal(pthread_create(&id, NULL, stop_it, l), 0);
	loop_run(l);
	pthread_join(id, NULL);
	loop_free(l);
	loop_free(NULL);
}

/* --- ticks */

struct ticks {
	struct loop *loop;
	uint64_t started, last;
	unsigned count;
	bool backwards;
};

static void
on_tick(void *ctx, uint64_t now_ms)
{
	struct ticks *t = ctx;

	t->backwards |= now_ms < t->last || now_ms > clock_ms();
	t->last = now_ms;
	if (++t->count == 5)
		loop_stop(t->loop);
}

static void
ticks_without_events(void **state)
{
	struct loop *l = new_loop();
	struct ticks t = {.loop = l, .started = clock_ms()};

	(void)state;
	loop_on_tick(l, 10, on_tick, &t);
	loop_run(l);
	assert_int_equal(t.count, 5);
	assert_false(t.backwards);
	/* Late they may be, early never. */
	assert_true(t.last - t.started >= 50);
	loop_free(l);
}

static void
on_early_tick(void *ctx, uint64_t now_ms)
{
	struct ticks *t = ctx;

	/* The second comes when it was asked to; one that is later than the next changes nothing. */
	if (t->count == 0) {
		loop_tick_by(t->loop, now_ms + 20);
		loop_tick_by(t->loop, now_ms + 60000);
	}
	t->last = now_ms;
	if (++t->count == 2)
		loop_stop(t->loop);
}

static void
a_tick_comes_early(void **state)
{
	struct loop *l = new_loop();
	struct ticks t = {.loop = l, .started = clock_ms()};

	(void)state;
	loop_on_tick(l, 1000000, on_early_tick, &t);
	loop_tick_by(l, t.started + 10);
	loop_run(l);
	assert_int_equal(t.count, 2);
	assert_true(t.last - t.started >= 30);
	loop_free(l);
}

struct busy {
	struct ticks ticks;
	struct loop_post post;
};

static void
on_busy(struct loop_post *p)
{
	struct busy *b = (struct busy *)((char *)p - offsetof(struct busy, post));

	loop_post(b->ticks.loop, p);
}

/* A loop that never sleeps ticks as well. */
static void
ticks_under_load(void **state)
{
	struct loop *l = new_loop();
	struct busy b = {.ticks = {.loop = l, .started = clock_ms()}, .post.fn = on_busy};

	(void)state;
	loop_on_tick(l, 10, on_tick, &b.ticks);
	loop_post(l, &b.post);
	loop_run(l);
	assert_int_equal(b.ticks.count, 5);
	assert_true(b.ticks.last - b.ticks.started >= 50);
	loop_free(l);
}

/* --- sources */

struct reader {
	struct loop_source source;
	struct loop *loop;
	struct reader *other;
	char got[8];
	size_t len;
	unsigned batches;
	bool freed, hung_up;
};

static void
on_ready(struct loop_source *s, uint32_t events)
{
	struct reader *r = (struct reader *)s;
	ssize_t n = read(s->fd, r->got + r->len, sizeof(r->got) - r->len);

	r->hung_up |= (events & EPOLLRDHUP) != 0;
	if (n > 0) {
		r->len += (size_t)n;
	} else {
		loop_remove(r->loop, s);
		loop_stop(r->loop);
	}
}

static void
a_source(void **state)
{
	struct loop *l = new_loop();
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	struct reader r = {.source = {on_ready, fds[0]}, .loop = l};
	assert_int_equal(loop_add(l, &r.source, EPOLLIN), ERR_OK);
	assert_int_not_equal(loop_add(l, &r.source, EPOLLIN), ERR_OK);
	assert_int_equal(write(fds[1], "abc", 3), 3);
	assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
	assert_int_equal(loop_change(l, &r.source, EPOLLIN | EPOLLRDHUP), ERR_OK);
	loop_run(l);
	assert_int_equal(r.len, 3);
	assert_memory_equal(r.got, "abc", 3);
	assert_true(r.hung_up);
	assert_int_not_equal(loop_change(l, &r.source, EPOLLIN), ERR_OK);
	close(fds[0]);
	close(fds[1]);
	loop_free(l);
}

/* The first of two ready sources retires both; memory goes after the batch, as connections do it. */
static void
on_retire(struct loop_source *s, uint32_t events)
{
	struct reader *r = (struct reader *)s;

	(void)events;
	assert_false(r->freed);
	r->len++;
	if (r->other->len == 0) {
		loop_remove(r->loop, s);
		loop_remove(r->loop, &r->other->source);
	}
}

static void
on_batch(void *ctx)
{
	struct reader *pair = ctx;

	pair->batches++;
	if (pair[0].len + pair[1].len > 0) {
		pair[0].freed = pair[1].freed = true;
		loop_stop(pair->loop);
	}
}

static void
retired_within_a_batch(void **state)
{
	struct loop *l = new_loop();
	struct reader pair[2];
	int fds[2][2];

	(void)state;
	memset(pair, 0, sizeof(pair));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(fds[i]), 0);
		assert_int_equal(write(fds[i][1], "x", 1), 1);
		pair[i].source = (struct loop_source){on_retire, fds[i][0]};
		pair[i].loop = l;
		pair[i].other = &pair[1 - i];
		assert_int_equal(loop_add(l, &pair[i].source, EPOLLIN), ERR_OK);
	}
	loop_on_batch(l, on_batch, pair);
	loop_run(l);
	assert_true(pair[0].freed);
	assert_int_equal(pair[0].batches, 1);
	for (int i = 0; i < 4; i++)
		close(fds[i / 2][i % 2]);
	loop_free(l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(posts_of_many_threads),
	    cmocka_unit_test(posts_before_the_stop),
	    cmocka_unit_test(a_post_again),
	    cmocka_unit_test(stop_from_elsewhere),
	    cmocka_unit_test(ticks_without_events),
	    cmocka_unit_test(a_tick_comes_early),
	    cmocka_unit_test(ticks_under_load),
	    cmocka_unit_test(a_source),
	    cmocka_unit_test(retired_within_a_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
