/* stages: gcc openssl address thread */
/* Many on one coordinator: turns, who is told to wait, who is closed for others, the line of strangers. */
#include "conn_fixture.h"

static unsigned
answers(const char *text)
{
	unsigned n = 0;

	for (; (text = strstr(text, "HTTP/1.1 200 ")); text++)
		n++;
	return n;
}

/* A hundred requests in one write: the others have their turn in between, and all are answered. */
static void
pipelining_takes_turns(void **state)
{
	struct bench *b = *state;
	char text[100 * 40] = "";
	unsigned n = 0, most = 0, turns = 0;

	for (int i = 0; i < 100; i++)
		strcat(text, "GET /now HTTP/1.1\r\nHost: c\r\n\r\n");
	open_pair(b);
	say(b, text);
	for (; n < 100 && turns < 100; turns++) {
		unsigned now = answers(heard(b));
		n += now;
		most = now > most ? now : most;
		if (b->io.conns->again_posted)
			b->io.conns->again.fn(&b->io.conns->again);
	}
	assert_int_equal(n, 100);
	assert_in_range(most, 1, 20);
	assert_true(turns >= 5);
}

/* Memory of a connection that closed while its turn was to come stays until then. */
static void
closed_before_its_turn(void **state)
{
	struct bench *b = *state;
	char text[30 * 40] = "";

	for (int i = 0; i < 30; i++)
		strcat(text, "GET /now HTTP/1.1\r\nHost: c\r\n\r\n");
	open_pair(b);
	say(b, text);
	struct conn *c = b->io.conns;
	assert_true(c->again_posted);
	conn_close(c);
	conn_sweep(&b->io);
	assert_ptr_equal(b->io.freed, c);
	c->again.fn(&c->again);
	conn_sweep(&b->io);
	assert_null(b->io.freed);
}

static void
who_is_told_to_wait_is_not_read(void **state)
{
	struct bench *b = *state;

	open_pair(b);
	say(b, "GET /wait HTTP/1.1\r\nHost: c\r\n\r\nGET /now HTTP/1.1\r\nHost: c\r\n\r\n");
	HEARD(b, "HTTP/1.1 429 ");
	assert_non_null(strstr(b->got, "Retry-After: 60\r\n"));
	assert_null(strstr(b->got, "200"));
	assert_int_equal(b->io.conns->state, CONN_HELD);
	conn_tick(&b->io, clock_ms() + 500);
	assert_string_equal(heard(b), "");
	conn_tick(&b->io, clock_ms() + 1001);
	HEARD(b, "HTTP/1.1 200 ");
}

/* The oldest without an identity goes first; who has one never goes. */
static void
evicting(void **state)
{
	struct bench *b = *state;
	struct conn *c[4];
	int peers[4];

	for (int i = 0; i < 4; i++) {
		open_pair(b);
		peers[i] = b->peer;
		c[i] = b->io.conns;
	}
	conn_join_unauthenticated(c[1], &b->io.strangers);
	conn_join_unauthenticated(c[2], &b->io.handshakes);
	conn_join_unauthenticated(c[3], &b->io.strangers);
	conn_join_unauthenticated(c[0], &b->io.strangers);
	conn_join_unauthenticated(c[0], NULL);
	assert_true(conn_evict(&b->io, false));
	assert_int_equal(c[1]->state, CONN_CLOSED);
	assert_true(conn_evict(&b->io, true));
	assert_int_equal(c[2]->state, CONN_CLOSED);
	assert_false(conn_evict(&b->io, true));
	c[3]->state = CONN_BUSY;
	assert_false(conn_evict(&b->io, false));
	c[3]->state = CONN_HEAD;
	assert_true(conn_evict(&b->io, false));
	assert_int_equal(c[3]->state, CONN_CLOSED);
	assert_false(conn_evict(&b->io, false));
	assert_int_equal(c[0]->state, CONN_HEAD);
	for (int i = 0; i < 3; i++)
		close(peers[i]);
}

/* Nobody waits long for who has shown no identity. */
static void
idle_without_an_identity(void **state)
{
	struct bench *b = *state;

	open_pair(b);
	conn_join_unauthenticated(b->io.conns, &b->io.strangers);
	conn_change_state(b->io.conns, CONN_HEAD);
	conn_tick(&b->io, clock_ms() + 1000 * (b->config.header_timeout_s - 1));
	assert_non_null(b->io.conns);
	conn_tick(&b->io, clock_ms() + 1000 * b->config.header_timeout_s + 1);
	assert_null(b->io.conns);
}

/* A stranger at a door, whose requests have had their share. */
static void
stand(struct bench *b)
{
	pace_init(&b->pace);
	b->pace.requests.saved_ns = -1;
	b->io.pace = &b->pace;
	open_pair(b);
	conn_join_unauthenticated(b->io.conns, &b->io.strangers);
	say(b, "GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
}

static void
strangers_stand_in_line(void **state)
{
	struct bench *b = *state;

	stand(b);
	conn_serve_line(&b->io);
	assert_string_equal(heard(b), "");
	b->pace.requests.saved_ns = PACE_BURST_NS;
	/* Whatever else was done in this batch. */
	b->io.asked_ns = 1000000000;
	conn_serve_line(&b->io);
	HEARD(b, "now");
}

/* The memory of who is closed in line goes when it is that one's turn, or with all others in the end. */
static void
closed_in_line(void **state)
{
	struct bench *b = *state;

	stand(b);
	conn_close(b->io.conns);
	conn_sweep(&b->io);
	assert_non_null(b->io.freed);
	b->pace.requests.saved_ns = PACE_BURST_NS;
	conn_serve_line(&b->io);
	conn_sweep(&b->io);
	assert_null(b->io.freed);
	close(b->peer);
	stand(b);
	conn_close(b->io.conns);
}
int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(pipelining_takes_turns),
	    TEST(closed_before_its_turn),
	    TEST(who_is_told_to_wait_is_not_read),
	    TEST(evicting),
	    TEST(idle_without_an_identity),
	    TEST(strangers_stand_in_line),
	    TEST(closed_in_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
