/* stages: gcc openssl address thread */
#include "conn_fixture.h"

/* Readers, who wait for a change of a job, beside devices that wait for work. */

#define COUNT 5
#define LOOK "GET /look HTTP/1.1\r\nHost: c\r\n\r\n"
#define POLL "POST /poll HTTP/1.1\r\nHost: c\r\nContent-Length: 2\r\n\r\n{}"

struct crowd {
	int peers[COUNT];
	struct conn *conns[COUNT];
};

/* The newest connection is the first of the list. */
static void
park(struct bench *b, struct crowd *w, const char *request)
{
	for (unsigned i = 0; i < COUNT; i++) {
		open_pair(b);
		w->peers[i] = b->peer;
		w->conns[i] = b->io.conns;
		say(b, request);
		assert_int_equal(w->conns[i]->state, CONN_PARKED);
	}
	b->peer = -1;
}

static bool
answered(struct bench *b, struct crowd *w, unsigned i, const char *text)
{
	b->peer = w->peers[i];
	bool has = strstr(heard(b), text) != NULL;
	b->peer = -1;
	return has;
}

static void
leave(struct crowd *w)
{
	for (unsigned i = 0; i < COUNT; i++)
		close(w->peers[i]);
}

/* Neither kind is called for the other's sake. */
static void
each_is_woken_for_its_own(void **state)
{
	struct bench *b = *state;
	struct crowd devices, readers;

	park(b, &devices, POLL);
	park(b, &readers, LOOK);
	assert_int_equal(polls, COUNT);
	assert_int_equal(looks, COUNT);
	conn_wake_parked(&b->io);
	assert_int_equal(polls, 2 * COUNT);
	assert_int_equal(looks, COUNT);
	uint64_t now = clock_ms();
	conn_tell_readers(&b->io, now);
	conn_turn_readers(&b->io, now + CONN_READERS_MS);
	assert_int_equal(polls, 2 * COUNT);
	assert_int_equal(looks, 2 * COUNT);
	/* Once told, once called. */
	conn_turn_readers(&b->io, now + 10 * CONN_READERS_MS);
	assert_int_equal(looks, 2 * COUNT);
	leave(&devices);
	leave(&readers);
}

/* The first at once, the others evenly over the time; who came later waits for the next change. */
static void
turns_are_spread(void **state)
{
	struct bench *b = *state;
	struct crowd w, late;
	const uint64_t now = clock_ms();

	park(b, &w, LOOK);
	news = true;
	conn_tell_readers(&b->io, now);
	assert_int_equal(looks, COUNT + 1);
	news = false;
	park(b, &late, LOOK);
	news = true;
	looks = 0;
	for (unsigned i = 1; i < COUNT; i++) {
		conn_turn_readers(&b->io, now + i * CONN_READERS_MS / COUNT - 1);
		assert_int_equal(looks, i - 1);
		conn_turn_readers(&b->io, now + i * CONN_READERS_MS / COUNT);
		assert_int_equal(looks, i);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		assert_true(answered(b, &w, i, "\r\n\r\nlooked"));
		assert_false(answered(b, &late, i, "looked"));
	}
	/* Told again before their turn: it does not move. */
	conn_tell_readers(&b->io, now);
	conn_tell_readers(&b->io, now + 1000);
	conn_turn_readers(&b->io, now + CONN_READERS_MS);
	for (unsigned i = 0; i < COUNT; i++)
		assert_true(answered(b, &late, i, "\r\n\r\nlooked"));
	assert_null(b->io.readers);
	leave(&w);
	leave(&late);
}

static void
a_lost_reader_leaves_the_list(void **state)
{
	struct bench *b = *state;
	struct crowd w;

	park(b, &w, LOOK);
	for (unsigned i = 1; i < COUNT; i += 2)
		w.conns[i]->source.ready(&w.conns[i]->source, EPOLLHUP);
	assert_int_equal(drops, COUNT / 2);
	news = true;
	looks = 0;
	const uint64_t now = clock_ms();
	conn_tell_readers(&b->io, now);
	conn_turn_readers(&b->io, now + CONN_READERS_MS);
	assert_int_equal(looks, COUNT - COUNT / 2);
	assert_null(b->io.readers);
	leave(&w);
}

static void
a_stop_answers_readers(void **state)
{
	struct bench *b = *state;
	struct crowd w;

	park(b, &w, LOOK);
	conn_stop(&b->io);
	for (unsigned i = 0; i < COUNT; i++)
		assert_true(answered(b, &w, i, "\r\n\r\nlooked"));
	assert_int_equal(drops, COUNT);
	assert_null(b->io.readers);
	leave(&w);
}

/* Refused at once, and not called. */
static void
who_may_read_no_more_is_refused(void **state)
{
	struct bench *b = *state;
	struct crowd w;

	park(b, &w, LOOK);
	struct route forbidden = *w.conns[2]->x.route;
	forbidden.roles = ROLE_DEVICE;
	w.conns[2]->x.route = &forbidden;
	conn_check_readers(&b->io);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_true(answered(b, &w, i, "HTTP/1.1 403 ") == (i == 2));
		assert_true((w.conns[i]->state == CONN_PARKED) == (i != 2));
	}
	assert_int_equal(looks, COUNT);
	leave(&w);
	conn_close_all(&b->io);
}

static void
its_time_is_over(void **state)
{
	struct bench *b = *state;
	struct crowd w;

	park(b, &w, LOOK);
	w.conns[0]->x.until_ms = clock_ms();
	conn_tick(&b->io, clock_ms());
	for (unsigned i = 0; i < COUNT; i++)
		assert_true(answered(b, &w, i, "\r\n\r\nlooked") == (i == 0));
	assert_null(w.conns[0]->reader_at);
	leave(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(each_is_woken_for_its_own),
	    TEST(turns_are_spread),
	    TEST(a_lost_reader_leaves_the_list),
	    TEST(a_stop_answers_readers),
	    TEST(who_may_read_no_more_is_refused),
	    TEST(its_time_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
