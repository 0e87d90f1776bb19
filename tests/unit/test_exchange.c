/* stages: gcc openssl address */
/* What a request looks at: lists in pieces, also where nothing is shown; long looks, one of an identity at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "exchange.h"
#include "hash.h"
#include "json.h"
#include "services.h"
#include "shared.h"
#include "walks.h"

#define ROWS 5000
#define SHOWN 1250 /* one of so many */

struct bench {
	struct config config;
	struct services services;
	struct exchange a, b; /* of one identity */
};

static int
setup(void **state)
{
	struct bench *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	config_defaults(&n->config);
	assert_int_equal(shared_new(&n->services.config, &n->config, NULL), ERR_OK);
	assert_int_equal(walks_new(&n->services.walks), ERR_OK);
	for (struct exchange *x = &n->a;; x = &n->b) {
		x->services = &n->services;
		x->who.by_token = true;
		x->who.owner[0] = 7;
		if (x == &n->b)
			break;
	}
	*state = n;
	return 0;
}

static int
teardown(void **state)
{
	struct bench *n = *state;

	exchange_reset(&n->a);
	exchange_reset(&n->b);
	walks_free(n->services.walks);
	shared_free(n->services.config);
	free(n);
	return 0;
}

static enum err
fill(struct exchange *x, void *cursor, struct why *why)
{
	static const uint64_t next = 42;
	uint64_t *at = cursor;

	(void)why;
	for (; *at < ROWS; ++*at) {
		if (exchange_list_full(x))
			return ERR_AGAIN;
		exchange_looked(x, 1);
		if (*at % SHOWN == 0)
			exchange_list_add(x, json_new_u64(*at));
	}
	exchange_list_tail(x, "next", &next);
	return ERR_OK;
}

static void
add(char text[256], const struct exchange *x)
{
	strncat(text, buf_str(&x->response.body), x->response.body.len);
}

/* A piece ends after some rows, with whatever it shows; what was looked at is known of each. */
static void
pieces(void **state)
{
	struct bench *n = *state;
	struct exchange *x = &n->a;
	char text[256] = "";
	unsigned count = 1, empty = 0;

	exchange_list(x, NULL, "list", fill, calloc(1, sizeof(uint64_t)));
	for (;; count++) {
		assert_in_range(x->looked, 1, 1000);
		empty += x->response.body.len == 0;
		add(text, x);
		if (!x->response.list.fill)
			break;
		x->looked = 0;
		exchange_list_next(x);
		assert_int_equal(x->response.list.e, ERR_OK);
	}
	assert_in_range(count, 5, 100);
	assert_true(empty > 0);
	assert_string_equal(text, "{\"list\":[0,1250,2500,3750],\"next\":42}\n");
}

static void
one_walk(void **state)
{
	struct bench *n = *state;
	struct exchange other = n->b;

	assert_true(exchange_walk(&n->a));
	assert_true(exchange_walk(&n->a));
	assert_false(exchange_walk(&n->b));
	assert_int_equal(n->b.response.status, 429);
	assert_non_null(strstr(n->b.response.extra, "Retry-After: 1\r\n"));
	/* Another identity may, and whoever administers on this host. */
	other.who.owner[0] = 8;
	assert_true(exchange_walk(&other));
	other.who.by_token = false;
	exchange_reset(&other);
	other.who.by_token = false;
	assert_true(exchange_walk(&other));
	assert_true(exchange_walk(&other));
	assert_false(other.walks);
}

/* With its last row, or with the request. */
static void
its_end(void **state)
{
	struct bench *n = *state;
	struct exchange *a = &n->a, *b = &n->b;

	assert_true(exchange_walk(a));
	exchange_list(a, NULL, "list", fill, calloc(1, sizeof(uint64_t)));
	assert_true(a->walks);
	while (a->response.list.fill) {
		assert_false(exchange_walk(b));
		a->looked = 0;
		exchange_list_next(a);
	}
	assert_false(a->walks);
	assert_true(exchange_walk(b));
	assert_false(exchange_walk(a));
	exchange_reset(b);
	a->who.by_token = true;
	a->who.owner[0] = 7;
	assert_true(exchange_walk(a));
}

/* What an answer was to say is not left out in silence. */
static void
long_headers(void **state)
{
	struct bench *n = *state;
	struct exchange *x = &n->a;
	char text[400];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	exchange_status(x, 204);
	exchange_header(x, "ETag", "%.200s", text);
	exchange_header(x, "Link", "%.255s", text);
	exchange_finish(x);
	assert_int_equal(x->response.status, 204);
	assert_int_equal(strlen(x->response.extra), 4 + 4 + 200 + 4 + 4 + 255);
	for (int one = 0; one < 2; one++) {
		if (one)
			exchange_reset(x);
		exchange_status(x, 204);
		exchange_header(x, "Range", "%.*s", one ? 256 : 40, text);
		exchange_header(x, "Retry-After", "%u", 5u);
		exchange_finish(x);
		assert_int_equal(x->response.status, 500);
		assert_string_equal(
		    x->response.why, "internal: the answer's header Range is too long");
		assert_string_equal(x->response.extra, "");
		exchange_finish(x);
		assert_int_equal(x->response.status, 500);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(pieces, setup, teardown),
	    cmocka_unit_test_setup_teardown(one_walk, setup, teardown),
	    cmocka_unit_test_setup_teardown(its_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(long_headers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
