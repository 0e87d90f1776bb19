/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "buf.h"
#include "grid.h"

static const char base[] =
    "{\"name\":\"a\",\"seed\":9007199254740991,\"local\":{\"epochs\":1,\"optimizer\":{\"rate\":0.1,"
    "\"name\":"
    "\"sgd\"}},\"tensors\":{\"fc1.*\":\"train\"},\"stop\":null,\"labels\":[1,2]}";

/* The document afterwards, or why there is none; valid until the next call. */
static const char *
edited(const char *text)
{
	static struct why why;
	static char out[1024];
	struct json *doc;
	struct buf b;

	assert_int_equal(json_parse(&doc, base, strlen(base), NULL), ERR_OK);
	buf_init(&b, sizeof(out) - 1);
	enum err e = edit_set(&doc, text, &why);
	/* After a failure it is as it was. */
	assert_int_equal(json_print(&b, doc, false), ERR_OK);
	strcpy(out, buf_str(&b));
	buf_deinit(&b);
	json_free(doc);
	if (e)
		assert_string_equal(out, base);
	return e ? why.text : out;
}

/* The base with one piece of its text replaced. */
static const char *
with(const char *old, const char *new)
{
	static char out[1024];
	const char *at = strstr(base, old);

	assert_non_null(at);
	snprintf(out, sizeof(out), "%.*s%s%s", (int)(at - base), base, new, at + strlen(old));
	return out;
}

static void
test_set(void **state)
{
	(void)state;

	assert_string_equal(
	    edited("local.optimizer.rate=0.01"), with("\"rate\":0.1", "\"rate\":0.01"));
	assert_string_equal(edited("name=b"), with("\"name\":\"a\"", "\"name\":\"b\""));
	assert_string_equal(edited("name=\"7\""), with("\"name\":\"a\"", "\"name\":\"7\""));
	assert_string_equal(edited("name="), with("\"name\":\"a\"", "\"name\":\"\""));
	assert_string_equal(edited("seed=7"), with("9007199254740991", "7"));
	assert_string_equal(
	    edited("stop={\"rounds\":3}"), with("\"stop\":null", "\"stop\":{\"rounds\":3}"));
	assert_string_equal(edited("name=a=b"), with("\"name\":\"a\"", "\"name\":\"a=b\""));
	assert_string_equal(edited("tensors.fc1\\.*=frozen"), with("\"train\"", "\"frozen\""));
	/* New keys stand at the end of their object, and objects are made on the way. */
	assert_string_equal(
	    edited("local.batch=5"), with("\"name\":\"sgd\"}", "\"name\":\"sgd\"},\"batch\":5"));
	assert_string_equal(
	    edited("upload.codec=f16"), with("[1,2]}", "[1,2],\"upload\":{\"codec\":\"f16\"}}"));
	assert_string_equal(
	    edited("a.b.c=true"), with("[1,2]}", "[1,2],\"a\":{\"b\":{\"c\":true}}}"));
}

static void
test_refusals(void **state)
{
	char path[600];
	(void)state;

	assert_string_equal(
	    edited("name.x=1"), "\"name\" is not an object: \"x\" cannot be set in it");
	assert_string_equal(
	    edited("labels.0=1"), "\"labels\" is not an object: \"0\" cannot be set in it");
	assert_string_equal(
	    edited("stop.rounds=1"), "\"stop\" is not an object: \"rounds\" cannot be set in it");
	assert_string_equal(edited("local"), "--set wants PATH=VALUE, not \"local\"");
	assert_string_equal(edited("=1"), "--set wants PATH=VALUE, not \"=1\"");
	assert_string_equal(edited("local..x=1"), "a path with an empty key");
	assert_string_equal(edited(".=1"), "a path with an empty key");
	assert_string_equal(
	    edited("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q=1"), "a path of more than 16 keys");
	memset(path, 'a', sizeof(path));
	strcpy(path + 200, "=1");
	assert_string_equal(edited(path), "a key longer than 127 bytes");
	memset(path, 'a', sizeof(path));
	strcpy(path + 500, "=1");
	assert_string_equal(edited(path), "a path longer than 255 bytes");
}

static void
test_grid(void **state)
{
	static const char *const names[] = {"lr-0.1-x", "lr-0.1-y-z", "lr-0.01-x", "lr-0.01-y-z"};
	struct grid g;
	struct json *doc, *out;
	struct buf b;
	(void)state;

	assert_int_equal(json_parse(&doc, base, strlen(base), NULL), ERR_OK);
	grid_init(&g);
	assert_int_equal(grid_add(&g, "local.optimizer.rate=0.1,0.01", NULL), ERR_OK);
	assert_int_equal(grid_add(&g, "stop={\"rounds\":3,\"target\":[1,2]}", NULL), ERR_OK);
	assert_int_equal(grid_add(&g, "note=x,y/z", NULL), ERR_OK);
	assert_int_equal(g.cells, 4);
	for (size_t i = 0; i < g.cells; i++) {
		char name[GRID_NAME_MAX];
		grid_name(name, &g, i, "lr-");
		assert_string_equal(name, names[i]);
	}
	assert_int_equal(grid_document(&out, &g, 3, doc, "lr-", NULL), ERR_OK);
	buf_init(&b, 4096);
	assert_int_equal(json_print(&b, out, false), ERR_OK);
	assert_string_equal(buf_str(&b),
	    "{\"name\":\"lr-0.01-y-z\",\"seed\":9007199254740991,\"local\":{\"epochs\":1,"
	    "\"optimizer\":{\"rate\":0.01,\"name\":"
	    "\"sgd\"}},\"tensors\":{\"fc1.*\":\"train\"},\"stop\":{\"rounds\":3,\"target\":[1,2]},"
	    "\"labels\":[1,2],\"note\":\"y/z\"}");
	buf_deinit(&b);
	json_free(out);
	json_free(doc);
	grid_deinit(&g);
}

static void
test_grid_bounds(void **state)
{
	char text[4096] = "a=0", name[GRID_NAME_MAX];
	struct why why;
	struct grid g;
	(void)state;

	for (int i = 1; i < 40; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%d", i);
	grid_init(&g);
	assert_int_equal(grid_add(&g, text, &why), ERR_OK);
	assert_int_equal(grid_add(&g, "b=1,1.0", &why), ERR_INVALID);
	assert_string_equal(why.text, "b=1.0 is given twice");
	assert_int_equal(grid_add(&g, "a=1", &why), ERR_INVALID);
	assert_int_equal(grid_add(&g, "name=x,y", &why), ERR_INVALID);
	text[0] = 'b';
	assert_int_equal(grid_add(&g, text, &why), ERR_LIMIT);
	assert_string_equal(why.text, "a grid of more than 1000 jobs");
	assert_int_equal(g.cells, 40);
	for (char path[] = "c=1"; path[0] < 'j'; path[0]++)
		assert_int_equal(grid_add(&g, path, &why), ERR_OK);
	assert_int_equal(grid_add(&g, "j=1", &why), ERR_LIMIT);
	memset(text, 'p', 100);
	text[100] = '\0';
	grid_name(name, &g, 39, text);
	assert_int_equal(strlen(name), GRID_NAME_MAX - 1);
	grid_deinit(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_set),
	    cmocka_unit_test(test_refusals),
	    cmocka_unit_test(test_grid),
	    cmocka_unit_test(test_grid_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
