#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "conn_inside.h"
#include "log.h"
#include "routes.h"
#include "worker.h"

/* One connection over a socket pair, driven by hand: the routes below stand in for the API. */
struct bench {
	struct io io;
	struct config config;
	struct services services;
	struct pace pace;
	int peer;
	char got[4096];
};
#define CANARY 0xa5
#define SCRATCH (1u << 20)

static unsigned polls, drops;

static void
answer_now(struct exchange *x)
{
	exchange_bytes(x, 200, "text/plain", "now", 3);
}

static void
answer_wait(struct exchange *x)
{
	exchange_problem(x, PROBLEM_TOO_MANY_REQUESTS, "wait");
}

/* Waits like a request for a task. */
static void
poll_once(struct exchange *x)
{
	polls++;
	if (!x->state)
		x->state = malloc(1);
	if (x->until_ms == 0)
		x->until_ms = clock_ms() + 50000;
	x->parked = !x->expired;
	if (!x->parked)
		exchange_bytes(x, 200, "text/plain", "waited", 6);
}

static void
poll_drop(struct exchange *x)
{
	drops++;
	free(x->state);
	x->state = NULL;
}

#define LIST_ITEMS 2000

static void
print_item(char out[1024], unsigned i)
{
	memset(out, 'x', 1000);
	sprintf(out + 1000, "%u", i);
}

static enum err
fill_list(struct exchange *x, void *cursor, struct why *why)
{
	unsigned *next = cursor;
	char item[1024];

	(void)why;
	for (; *next < LIST_ITEMS; ++*next) {
		if (exchange_list_full(x))
			return ERR_AGAIN;
		print_item(item, *next);
		exchange_list_add(x, json_new_string(item));
	}
	return ERR_OK;
}

static void
answer_list(struct exchange *x)
{
	struct json *head = json_object();

	json_add_u64(head, "count", LIST_ITEMS);
	exchange_list(x, head, "list", fill_list, calloc(1, sizeof(unsigned)));
}

static enum err
fill_badly(struct exchange *x, void *cursor, struct why *why)
{
	enum err e = fill_list(x, cursor, why);

	return *(unsigned *)cursor > LIST_ITEMS / 2 ? err_set(why, ERR_IO, "the disk") : e;
}

static void
answer_badly(struct exchange *x)
{
	exchange_list(x, NULL, "list", fill_badly, calloc(1, sizeof(unsigned)));
}

static const struct route *
find(enum http_verb verb, const char *path, char param[2][72], bool *path_known)
{
	static const struct route table[] = {
	    {VERB_GET, "/now", ROLE_ADMIN, ROUTE_NOW, .handle = answer_now},
	    {VERB_GET, "/wait", ROLE_ADMIN, ROUTE_NOW, .handle = answer_wait},
	    {VERB_GET, "/list", ROLE_ADMIN, ROUTE_NOW, .handle = answer_list},
	    {VERB_HEAD, "/list", ROLE_ADMIN, ROUTE_NOW, .handle = answer_list},
	    {VERB_GET, "/bad-list", ROLE_ADMIN, ROUTE_NOW, .handle = answer_badly},
	    {VERB_POST, "/poll", ROLE_ADMIN, ROUTE_POLL, true, .body_max = 100, .handle = poll_once,
		.drop = poll_drop},
	};

	(void)param;
	*path_known = false;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].verb == verb && strcmp(table[i].pattern, path) == 0)
			return &table[i];
	return NULL;
}

static int
setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	log_set_level(LOG_LEVEL_ERROR);
	config_defaults(&b->config);
	b->services.fixed = &b->config;
	assert_int_equal(shared_new(&b->services.config, &b->config, NULL), ERR_OK);
	b->io.services = &b->services;
	b->io.find = find;
	b->io.scratch = malloc(SCRATCH);
	assert_non_null(b->io.scratch);
	memset(b->io.scratch, CANARY, SCRATCH);
	assert_int_equal(loop_new(&b->io.loop), ERR_OK);
	assert_int_equal(worker_pool_new(&b->services.pool, 1), ERR_OK);
	assert_int_equal(tally_new(&b->io.identities), ERR_OK);
	b->peer = -1;
	polls = drops = 0;
	*state = b;
	return 0;
}

static int
teardown(void **state)
{
	struct bench *b = *state;

	worker_pool_free(b->services.pool);
	conn_close_all(&b->io);
	tally_free(b->io.identities);
	shared_free(b->services.config);
	loop_free(b->io.loop);
	free(b->io.scratch);
	if (b->peer >= 0)
		close(b->peer);
	free(b);
	return 0;
}

static void
open_pair(struct bench *b)
{
	int fd[2], large = 1 << 20;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &large, sizeof(large));
	b->peer = fd[0];
	conn_open(&b->io, fd[1], CONN_LOCAL, "test");
	assert_non_null(b->io.conns);
}

static void
say(struct bench *b, const char *text)
{
	assert_int_equal(send(b->peer, text, strlen(text), 0), strlen(text));
	if (b->io.conns)
		conn_drive(b->io.conns);
}

/* All that was answered so far. */
static const char *
heard(struct bench *b)
{
	ssize_t n = recv(b->peer, b->got, sizeof(b->got) - 1, 0);

	b->got[n > 0 ? n : 0] = '\0';
	return b->got;
}

#define HEARD(b, text) assert_non_null(strstr(heard(b), text))

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

/* --- crowds */

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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
