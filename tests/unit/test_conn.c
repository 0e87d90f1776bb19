/* stages: gcc openssl address thread */
#include <pthread.h>

#include "conn_fixture.h"

/* --- heads */

/* Whatever the limit on heads: one read takes no more than the buffer for it holds. */
static void
a_read_fits_its_buffer(void **state)
{
	struct bench *b = *state;
	char piece[8192];
	size_t sent = 0;

	b->config.header_bytes = 1 << 20;
	open_pair(b);
	memset(piece, 'x', sizeof(piece));
	for (ssize_t n = 1; n > 0 && sent<SCRATCH / 2; sent += n> 0 ? (size_t)n : 0)
		n = send(b->peer, piece, sizeof(piece), MSG_NOSIGNAL);
	assert_true(sent > CONN_SCRATCH);
	conn_drive(b->io.conns);
	assert_int_equal(b->io.conns->in.len, sent);
	for (size_t i = CONN_SCRATCH; i < SCRATCH; i++)
		assert_int_equal((uint8_t)b->io.scratch[i], CANARY);
}

/* A connection keeps the limit it was opened with. */
static void
a_reload_changes_the_limit(void **state)
{
	static const uint32_t others[] = {2048, 65536};
	struct bench *b = *state;
	char head[4097];

	memset(head, 'x', 4096);
	head[4096] = '\0';
	for (size_t i = 0; i < 2; i++) {
		b->config.header_bytes = 4096;
		open_pair(b);
		b->config.header_bytes = others[i];
		head[4095] = '\0';
		say(b, head);
		assert_string_equal(heard(b), "");
		head[4095] = 'x';
		say(b, "x");
		HEARD(b, "HTTP/1.1 431 ");
		conn_close_all(&b->io);
		close(b->peer);
		b->peer = -1;
	}
}

static void
bare_line_feeds_are_refused_at_once(void **state)
{
	static const char *const heads[] = {
	    "GET /now HTTP/1.1\n", "GET /now HTTP/1.1\r\nHost: c\n\n", "\n"};
	struct bench *b = *state;

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		open_pair(b);
		say(b, heads[i]);
		HEARD(b, "HTTP/1.1 400 ");
		conn_close_all(&b->io);
		close(b->peer);
		b->peer = -1;
	}
}

static void
heads_in_any_pieces(void **state)
{
	static const char two[] = "GET /now HTTP/1.1\r\nHost: c\r\n\r\n"
				  "GET /now HTTP/1.1\r\nHost: c\r\nX: longer\r\n\r\n";
	struct bench *b = *state;

	open_pair(b);
	for (size_t i = 0; i < sizeof(two) - 1; i++) {
		char one[2] = {two[i], '\0'};
		say(b, one);
	}
	const char *first = strstr(heard(b), "\r\n\r\nnow");
	assert_non_null(first);
	assert_non_null(strstr(first + 4, "\r\n\r\nnow"));
	say(b, two);
	first = strstr(heard(b), "\r\n\r\nnow");
	assert_non_null(first);
	assert_non_null(strstr(first + 4, "\r\n\r\nnow"));
}

/* --- polling */

#define POLL "POST /poll HTTP/1.1\r\nHost: c\r\nContent-Length: "

static void
a_poll_is_woken_and_answered(void **state)
{
	struct bench *b = *state;

	open_pair(b);
	say(b, POLL "2\r\n\r\n{}");
	assert_int_equal(b->io.conns->state, CONN_PARKED);
	conn_wake_parked(&b->io);
	assert_int_equal(polls, 2);
	assert_int_equal(drops, 0);
	assert_string_equal(heard(b), "");
	b->io.conns->x.until_ms = clock_ms();
	conn_tick(&b->io, clock_ms());
	HEARD(b, "\r\n\r\nwaited");
	assert_int_equal(drops, 1);
	assert_null(b->io.conns->x.state);
}

static void
a_poll_that_ends_early_is_dropped(void **state)
{
	struct bench *b = *state;

	open_pair(b);
	say(b, POLL "2\r\n\r\n{}");
	b->io.conns->source.ready(&b->io.conns->source, EPOLLHUP);
	assert_null(b->io.conns);
	assert_int_equal(drops, 1);
}

/* Its body comes after the word to stop: nobody would wake it again. */
static void
a_poll_while_stopping_is_answered(void **state)
{
	struct bench *b = *state;

	open_pair(b);
	say(b, POLL "2\r\n\r\n{");
	conn_stop(&b->io);
	say(b, "}");
	HEARD(b, "\r\n\r\nwaited");
	assert_int_equal(polls, 1);
	assert_int_equal(drops, 1);
}

/* The smaller of the route's limit and json_bytes counts. */
static void
limits_of_a_body(void **state)
{
	static const struct {
		uint32_t json_bytes;
		const char *request, *want;
	} rows[] = {
	    {1 << 20, POLL "101\r\n\r\n", "HTTP/1.1 413 "},
	    {50, POLL "51\r\n\r\n", "HTTP/1.1 413 "},
	    {1 << 20, POLL "100\r\n\r\n", ""},
	};
	struct bench *b = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		b->config.json_bytes = rows[i].json_bytes;
		open_pair(b);
		say(b, rows[i].request);
		HEARD(b, rows[i].want);
		assert_int_equal(b->got[0] != '\0', rows[i].want[0] != '\0');
		conn_close_all(&b->io);
		close(b->peer);
		b->peer = -1;
	}
}

/* --- lists */

/* Does not read until the connection waits for that, then calls `stuck`; then reads until `end`, or the connection is over. */
struct listener {
	struct bench *b;
	int fd;
	const char *end;
	void (*stuck)(struct listener *l);
	size_t most_held;
	bool reads;
	struct buf got;
};

static void
listen_on(void *ctx, uint64_t now_ms)
{
	struct listener *l = ctx;
	struct conn *c = l->b->io.conns;
	char piece[65536];
	ssize_t n = 1;

	(void)now_ms;
	if (c && c->out.room > l->most_held)
		l->most_held = c->out.room;
	if (!l->reads && c && c->state == CONN_WRITE && c->interest == EPOLLOUT) {
		l->reads = true;
		l->stuck(l);
	}
	while (l->reads && (n = recv(l->fd, piece, sizeof(piece), 0)) > 0)
		assert_int_equal(buf_append(&l->got, piece, (size_t)n), ERR_OK);
	size_t end = strlen(l->end), len = l->got.len;
	if (n == 0 || (len > end && !memcmp(l->got.data + len - end, l->end, end)))
		loop_stop(l->b->io.loop);
}

static void
listen_to_end(struct listener *l, const char *request)
{
	l->fd = l->b->peer;
	l->end = "\r\n0\r\n\r\n";
	buf_init(&l->got, 4 << 20);
	say(l->b, request);
	loop_on_tick(l->b->io.loop, 1, listen_on, l);
	loop_run(l->b->io.loop);
}

static void
not_stuck_by(struct listener *l)
{
	(void)l;
}

/* The body in its chunks; what is behind the last stays. */
static void
unchunk(struct buf *body, const char *p)
{
	for (size_t n = 1; n > 0;) {
		char *data;
		n = strtoul(p, &data, 16);
		assert_memory_equal(data, "\r\n", 2);
		assert_int_equal(buf_append(body, data + 2, n), ERR_OK);
		assert_memory_equal(data + 2 + n, "\r\n", 2);
		p = data + 2 + n + 2;
	}
	assert_string_equal(p, "");
}

static void
check_list(const char *head)
{
	const char *body = strstr(head, "\r\n\r\n");
	struct json *v = NULL;
	struct buf text;
	char item[1024];
	unsigned i = 0;

	buf_init(&text, 4 << 20);
	assert_non_null(body);
	assert_non_null(strstr(head, "Transfer-Encoding: chunked\r\n"));
	assert_null(strstr(head, "Content-Length"));
	unchunk(&text, body + 4);
	assert_int_equal(json_parse(&v, text.data, text.len, NULL), ERR_OK);
	assert_int_equal(json_count(v), 2);
	for (const struct json *m = json_first(json_get(v, "list")); m; m = json_next(m), i++) {
		print_item(item, i);
		assert_string_equal(json_string(m), item);
	}
	assert_int_equal(i, LIST_ITEMS);
	json_free(v);
	buf_deinit(&text);
}

/* 2 MB: never more of it in memory than a piece, read or not; then the connection goes on with the next request. */
static void
a_list_is_printed_as_it_is_read(void **state)
{
	struct bench *b = *state;
	struct listener l = {.b = b, .stuck = not_stuck_by};

	open_pair(b);
	listen_to_end(&l, "GET /list HTTP/1.1\r\nHost: c\r\n\r\n");
	check_list(l.got.data);
	assert_in_range(l.most_held, 100000, 400000);
	assert_int_equal(b->io.conns->state, CONN_HEAD);
	say(b, "HEAD /list HTTP/1.1\r\nHost: c\r\n\r\nGET /now HTTP/1.1\r\nHost: c\r\n\r\n");
	HEARD(b, "chunked\r\n");
	assert_non_null(strstr(b->got, "\r\n\r\nHTTP/1.1 200 "));
	assert_non_null(strstr(b->got, "\r\n\r\nnow"));
	buf_deinit(&l.got);
}

static void
a_list_that_cannot_go_on_is_cut_off(void **state)
{
	struct bench *b = *state;
	struct listener l = {.b = b, .stuck = not_stuck_by};

	open_pair(b);
	listen_to_end(&l, "GET /bad-list HTTP/1.1\r\nHost: c\r\n\r\n");
	assert_null(b->io.conns);
	assert_true(l.got.len > 100000);
	buf_deinit(&l.got);
}

/* As one of an identity, which the pair has not shown. */
static struct conn *
open_counted(struct bench *b)
{
	const struct tally_limits limits = {.most = 9, .most_each = 9};

	open_pair(b);
	struct conn *c = b->io.conns;
	assert_int_equal(tally_enter(b->io.identities, c->counted_as, &limits), TALLY_ROOM);
	c->counted = true;
	return c;
}

/* Another connection of the same identity meanwhile. */
static void
ask_for_more(struct listener *l)
{
	struct bench *b = l->b;

	assert_true(b->io.conns->held_bytes >= 1u << 16);
	struct conn *other = open_counted(b);
	say(b, "GET /list HTTP/1.1\r\nHost: c\r\n\r\n");
	HEARD(b, "HTTP/1.1 429 ");
	assert_int_equal(other->held_bytes, 0);
	conn_tick(&b->io, clock_ms() + 1001);
	say(b, "GET /now HTTP/1.1\r\nHost: c\r\n\r\n");
	HEARD(b, "HTTP/1.1 200 ");
}

/* Two connections that ask and do not read: the second has to wait until the first has read. */
static void
what_is_unread_is_bounded(void **state)
{
	struct bench *b = *state;
	struct listener l = {.b = b, .stuck = ask_for_more};

	b->config.output_bytes = 100000;
	struct conn *deaf = open_counted(b);
	listen_to_end(&l, "GET /list HTTP/1.1\r\nHost: c\r\n\r\n");
	check_list(l.got.data);
	assert_int_equal(deaf->held_bytes, 0);
	say(b, "GET /list HTTP/1.1\r\nHost: c\r\n\r\n");
	HEARD(b, "HTTP/1.1 200 ");
	close(l.fd);
	buf_deinit(&l.got);
}

/* --- a worker of its own */

static void
be_busy(void *arg)
{
	pthread_mutex_t *held = arg;

	pthread_mutex_lock(held);
	pthread_mutex_unlock(held);
}

static void
hear_aside(void *ctx, uint64_t now_ms)
{
	struct bench *b = ctx;

	(void)now_ms;
	if (strstr(heard(b), "\r\n\r\nnow"))
		loop_stop(b->io.loop);
}

static void
reports_do_not_wait_for_workers(void **state)
{
	struct bench *b = *state;
	static pthread_mutex_t held =
	    PTHREAD_MUTEX_INITIALIZER; /* the workers come to its end after this function */

	assert_int_equal(worker_pool_new(&b->services.aside, 1), ERR_OK);
	pthread_mutex_lock(&held);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(worker_submit(b->services.pool, be_busy, &held), ERR_OK);
	open_pair(b);
	say(b, "GET /aside HTTP/1.1\r\nHost: c\r\n\r\n");
	loop_on_tick(b->io.loop, 1, hear_aside, b);
	loop_run(b->io.loop);
	pthread_mutex_unlock(&held);
	worker_pool_free(b->services.aside);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_read_fits_its_buffer),
	    TEST(a_reload_changes_the_limit),
	    TEST(bare_line_feeds_are_refused_at_once),
	    TEST(heads_in_any_pieces),
	    TEST(a_poll_is_woken_and_answered),
	    TEST(a_poll_that_ends_early_is_dropped),
	    TEST(a_poll_while_stopping_is_answered),
	    TEST(limits_of_a_body),
	    TEST(a_list_is_printed_as_it_is_read),
	    TEST(a_list_that_cannot_go_on_is_cut_off),
	    TEST(what_is_unread_is_bounded),
	    TEST(reports_do_not_wait_for_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
