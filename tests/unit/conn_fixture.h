#ifndef CONN_FIXTURE_H
#define CONN_FIXTURE_H
/* One connection over a socket pair, driven by hand; the routes stand in for the API. */

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
#include "config.h"
#include "conn_inside.h"
#include "hash.h"
#include "json.h"
#include "log.h"
#include "pace.h"
#include "routes.h"
#include "services.h"
#include "shared.h"
#include "worker.h"

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

static inline void
answer_now(struct exchange *x)
{
	exchange_bytes(x, 200, "text/plain", "now", 3);
}

static inline void
answer_wait(struct exchange *x)
{
	exchange_problem(x, PROBLEM_TOO_MANY_REQUESTS, "wait");
}

/* Waits like a request for a task. */
static inline void
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

/* Waits like a reader, until `news`. */
static unsigned looks;
static bool news;

static inline void
look_once(struct exchange *x)
{
	looks++;
	if (!x->state)
		x->state = malloc(1);
	if (x->until_ms == 0)
		x->until_ms = clock_ms() + 50000;
	x->parked = !x->expired && !news;
	if (!x->parked)
		exchange_bytes(x, 200, "text/plain", "looked", 6);
}

static inline void
poll_drop(struct exchange *x)
{
	drops++;
	free(x->state);
	x->state = NULL;
}

#define LIST_ITEMS 2000

static inline void
print_item(char out[1024], unsigned i)
{
	memset(out, 'x', 1000);
	sprintf(out + 1000, "%u", i);
}

static inline enum err
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

static inline void
answer_list(struct exchange *x)
{
	struct json *head = json_object();

	json_add_u64(head, "count", LIST_ITEMS);
	exchange_list(x, head, "list", fill_list, calloc(1, sizeof(unsigned)));
}

static inline enum err
fill_badly(struct exchange *x, void *cursor, struct why *why)
{
	enum err e = fill_list(x, cursor, why);

	return *(unsigned *)cursor > LIST_ITEMS / 2 ? err_set(why, ERR_IO, "the disk") : e;
}

static inline void
answer_badly(struct exchange *x)
{
	exchange_list(x, NULL, "list", fill_badly, calloc(1, sizeof(unsigned)));
}

static inline const struct route *
find(enum http_verb verb, const char *path, char param[2][72], bool *path_known)
{
	static const struct route table[] = {
	    {VERB_GET, "/now", ROLE_ADMIN, ROUTE_NOW, .handle = answer_now},
	    {VERB_GET, "/aside", ROLE_ADMIN, ROUTE_ASIDE, .handle = answer_now},
	    {VERB_GET, "/wait", ROLE_ADMIN, ROUTE_NOW, .handle = answer_wait},
	    {VERB_GET, "/list", ROLE_ADMIN, ROUTE_NOW, .handle = answer_list},
	    {VERB_HEAD, "/list", ROLE_ADMIN, ROUTE_NOW, .handle = answer_list},
	    {VERB_GET, "/bad-list", ROLE_ADMIN, ROUTE_NOW, .handle = answer_badly},
	    {VERB_POST, "/poll", ROLE_ADMIN, ROUTE_POLL, true, .body_max = 100, .handle = poll_once,
		.drop = poll_drop},
	    {VERB_GET, "/look", ROLE_ADMIN, ROUTE_POLL, .reads = true, .handle = look_once,
		.drop = poll_drop},
	};

	(void)param;
	*path_known = false;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].verb == verb && strcmp(table[i].pattern, path) == 0)
			return &table[i];
	return NULL;
}

static const struct route_table fixture_routes = {NULL, 0, find};

static inline int
setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	log_set_level(LOG_LEVEL_ERROR);
	config_defaults(&b->config);
	b->services.fixed = &b->config;
	assert_int_equal(shared_new(&b->services.config, &b->config, NULL), ERR_OK);
	b->io.services = &b->services;
	b->io.routes = &fixture_routes;
	b->io.scratch = malloc(SCRATCH);
	assert_non_null(b->io.scratch);
	memset(b->io.scratch, CANARY, SCRATCH);
	assert_int_equal(loop_new(&b->io.loop), ERR_OK);
	assert_int_equal(worker_pool_new(&b->services.pool, 1), ERR_OK);
	assert_int_equal(tally_new(&b->io.identities), ERR_OK);
	b->peer = -1;
	polls = drops = looks = 0;
	news = false;
	*state = b;
	return 0;
}

static inline int
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

static inline void
open_pair(struct bench *b)
{
	int fd[2], large = 1 << 20;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &large, sizeof(large));
	b->peer = fd[0];
	conn_open(&b->io, fd[1], CONN_LOCAL, "test");
	assert_non_null(b->io.conns);
}

static inline void
say(struct bench *b, const char *text)
{
	assert_int_equal(send(b->peer, text, strlen(text), 0), strlen(text));
	if (b->io.conns)
		conn_drive(b->io.conns);
}

/* All that was answered so far. */
static inline const char *
heard(struct bench *b)
{
	ssize_t n = recv(b->peer, b->got, sizeof(b->got) - 1, 0);

	b->got[n > 0 ? n : 0] = '\0';
	return b->got;
}

#define HEARD(b, text) assert_non_null(strstr(heard(b), text))

/* --- heads */

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
