/* stages: gcc openssl address */
/* The switch of tests that keeps what is answered: what is new is written once, a list in one piece, and without the switch nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers.h"
#include "json.h"
#include "route.h"

#define FILE_MAX (64u << 10)

struct bench {
	char dir[64], path[128];
	struct answers *answers;
	struct buf *list;
	struct exchange x;
	struct route route;
	char text[FILE_MAX]; /* of the file */
};

static enum err
some_fill(struct exchange *x, void *cursor, struct why *why)
{
	(void)x, (void)cursor, (void)why;
	return ERR_OK;
}

static int
setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	strcpy(b->dir, "/tmp/rivulet-answers-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->path, sizeof(b->path), "%s/%ld.jsonl", b->dir, (long)getpid());
	setenv("RIVULET_KEEP_ANSWERS", b->dir, 1);
	answers_open(&b->answers);
	assert_non_null(b->answers);
	b->route.pattern = "/v1/things";
	b->x.asked = &b->route;
	strcpy(b->x.request.path, "/v1/things");
	b->x.who.roles = ROLE_ANYONE | ROLE_READER;
	*state = b;
	return 0;
}

static int
teardown(void **state)
{
	struct bench *b = *state;

	answers_drop(&b->list);
	answers_free(b->answers);
	exchange_reset(&b->x);
	unlink(b->path);
	rmdir(b->dir);
	free(b);
	return 0;
}

static void
answer(struct bench *b, const char *text)
{
	exchange_bytes(&b->x, 200, "application/json", text, strlen(text));
	answers_keep(b->answers, &b->list, &b->x);
}

/* The file has so many lines, each of them JSON. */
static void
expect_lines(struct bench *b, unsigned lines)
{
	FILE *f = fopen(b->path, "r");
	unsigned seen = 0;

	assert_non_null(f);
	b->text[fread(b->text, 1, sizeof(b->text) - 1, f)] = '\0';
	fclose(f);
	for (char *at = b->text, *end; (end = strchr(at, '\n')); at = end + 1, seen++) {
		struct json *v = NULL;
		assert_int_equal(json_parse(&v, at, (size_t)(end - at), NULL), ERR_OK);
		json_free(v);
	}
	assert_int_equal(seen, lines);
}

static void
what_is_new_is_kept_once(void **state)
{
	static const struct {
		const char *text;
		unsigned lines; /* after it */
	} table[] = {
	    {"{\"a\":1,\"b\":[{\"c\":null}]}", 1},
	    {"{\"a\":2,\"b\":[{\"c\":null},{\"c\":null}]}", 1},
	    {"{\"b\":[],\"a\":3}", 1},
	    {"{\"a\":2.5,\"b\":[]}", 2},
	    {"{\"a\":-2,\"b\":[]}", 3},
	    {"{\"a\":null,\"b\":[]}", 4},
	    {"{\"a\":1,\"b\":[{\"c\":\"X1\"}]}", 5},
	    {"{\"a\":1,\"b\":[{\"c\":\"Y2, {\\\"d\\\": 1}\"}]}", 5},
	    {"{\"a\":1,\"b\":[{\"c\":\"word\"}]}", 6},
	    {"{\"a\":1,\"b\":[{\"c\":\"other\"}]}", 7},
	    {"{\"a\":1,\"b\":[{\"d\":1}]}", 8},
	    {"{\"a\":1,\"b\":[{\"d\":1}],\"d\":1}", 9},
	    {"{\"a\":1,\"c\":true}", 10},
	    {"{\"a\":1,\"c\":false}", 11},
	    {"{\"a\":1,\n \"c\":\tfalse,\r\n\"b\":[]}\n", 11},
	    {"{\n\"e\":1}\n", 12},
	};
	struct bench *b = *state;

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		answer(b, table[i].text);
		expect_lines(b, table[i].lines);
	}
}

static void
each_status_and_role_counts(void **state)
{
	struct bench *b = *state;

	answer(b, "{}");
	expect_lines(b, 1);
	b->x.who.roles = ROLE_ANYONE | ROLE_DEVICE;
	answer(b, "{}");
	expect_lines(b, 2);
	exchange_bytes(&b->x, 201, "application/octet-stream", "\1\2", 2);
	exchange_header(&b->x, "Retry-After", "5");
	answers_keep(b->answers, &b->list, &b->x);
	expect_lines(b, 3);
	assert_non_null(strstr(b->text,
	    "\"status\":201,\"role\":\"device\",\"type\":\"application/octet-stream\","
	    "\"headers\":[\"Retry-After\"]}"));
	assert_non_null(strstr(b->text, "\"role\":\"reader\""));
}

static void
a_list_is_kept_whole(void **state)
{
	static const char *const pieces[] = {"{\"things\":[{\"a\":1}", ",{\"a\":\"two\"}", "]}\n"};
	struct bench *b = *state;

	for (size_t i = 0; i < 3; i++) {
		exchange_bytes(&b->x, 200, "application/json", pieces[i], strlen(pieces[i]));
		b->x.response.list.fill = i < 2 ? some_fill : NULL;
		expect_lines(b, 0);
		answers_keep(b->answers, &b->list, &b->x);
	}
	expect_lines(b, 1);
	assert_non_null(strstr(b->text, "\"body\":{\"things\":[{\"a\":1},{\"a\":\"two\"}]}"));
	assert_null(b->list);
}

static void
without_the_switch_nothing(void **state)
{
	struct answers *answers = (struct answers *)state;

	unsetenv("RIVULET_KEEP_ANSWERS");
	answers_open(&answers);
	assert_null(answers);
	setenv("RIVULET_KEEP_ANSWERS", "/nowhere/at/all", 1);
	answers_open(&answers);
	assert_null(answers);
	answers_free(answers);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(what_is_new_is_kept_once, setup, teardown),
	    cmocka_unit_test_setup_teardown(each_status_and_role_counts, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_list_is_kept_whole, setup, teardown),
	    cmocka_unit_test(without_the_switch_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
