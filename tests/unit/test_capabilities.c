/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "capabilities.h"
#include "flush.h"

#define WHOLE \
	"{\"kinds\":[\"train\",\"evaluate\"],\"layers\":[\"linear\",\"relu\"],\"features\":[" \
	"\"clip\"]," \
	"\"memory_bytes\":8589934592,\"threads\":4,\"gpus\":[1]}"

static struct why why;

/* Its last byte stands before an unreadable page. */
static enum err
decode(struct capabilities *out, const char *text, size_t len)
{
	struct flush f = flush_new(text, len);
	enum err e = capabilities_decode(out, f.data, len, &why);

	flush_free(&f);
	return e;
}

static void
test_good(void **state)
{
	static struct capabilities c;
	static const char least[] = "{\"kinds\":[\"later\"],\"layers\":[\"linear\"]}";

	(void)state;
	assert_int_equal(decode(&c, WHOLE, strlen(WHOLE)), ERR_OK);
	assert_true(c.trains);
	assert_int_equal(c.layer_count, 2);
	assert_string_equal(c.layers[1], "relu");
	assert_int_equal(c.feature_count, 1);
	assert_string_equal(c.features[0], "clip");
	assert_true(c.memory_bytes == 8589934592u && c.threads == 4);
	assert_int_equal(decode(&c, least, strlen(least)), ERR_OK);
	assert_false(c.trains);
	assert_true(c.layer_count == 1 && c.feature_count == 0);
	assert_true(c.memory_bytes == 0 && c.threads == 0);
}

/* Every beginning of a good text is refused, and leaves nothing. */
static void
test_truncated(void **state)
{
	static const struct capabilities nothing;
	static struct capabilities c;

	(void)state;
	for (size_t len = 0; len < strlen(WHOLE); len++) {
		assert_int_equal(decode(&c, WHOLE, len), ERR_INVALID);
		assert_memory_equal(&c, &nothing, sizeof(c));
	}
}

static void
test_bad(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
	    {"hello", ""},
	    {"[]", "object"},
	    {"{\"layers\":[\"linear\"]}", "kinds"},
	    {"{\"kinds\":[],\"layers\":[\"linear\"]}", "kinds"},
	    {"{\"kinds\":[\"train\"]}", "layers"},
	    {"{\"kinds\":[\"train\"],\"layers\":[]}", "layers"},
	    {"{\"kinds\":[\"train\"],\"layers\":[7]}", "layers[0]"},
	    {"{\"kinds\":[\"train\"],\"layers\":[\"a b\"]}", "layers[0]"},
	    {"{\"kinds\":[\"train\"],\"layers\":\"linear\"}", "layers"},
	    {"{\"kinds\":[\"train\"],\"layers\":[\"linear\"],\"features\":{}}", "features"},
	    {"{\"kinds\":[\"train\"],\"layers\":[\"linear\"],\"memory_bytes\":-1}", "memory_bytes"},
	    {"{\"kinds\":[\"train\"],\"layers\":[\"linear\"],\"threads\":1025}", "threads"},
	    {"{\"kinds\":[\"train\"],\"layers\":[\"linear\"]} {}", ""},
	};
	static struct capabilities c;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		enum err e = decode(&c, rows[i].text, strlen(rows[i].text));
		if (e != ERR_INVALID || !strstr(why.text, rows[i].why))
			fail_msg("%s: %s, \"%s\"", rows[i].text, err_name(e), why.text);
	}
}

/* So many names of that width. */
static size_t
many(char *out, size_t names, int width)
{
	char *at = out + sprintf(out, "{\"kinds\":[\"train\"],\"layers\":[");

	for (size_t i = 0; i < names; i++)
		at += sprintf(at, "%s\"%0*zu\"", i ? "," : "", width, i);
	return (size_t)(at + sprintf(at, "]}") - out);
}

static void
test_limits(void **state)
{
	static struct capabilities c;
	static char text[CAPABILITIES_MAX + 2];

	(void)state;
	assert_int_equal(decode(&c, text, many(text, 64, 63)), ERR_OK);
	assert_int_equal(strlen(c.layers[63]), 63);
	assert_int_equal(decode(&c, text, many(text, 65, 63)), ERR_INVALID);
	assert_int_equal(decode(&c, text, many(text, 64, 64)), ERR_INVALID);
	size_t len = many(text, 1, 4);
	memset(text + len, ' ', sizeof(text) - len);
	assert_int_equal(decode(&c, text, CAPABILITIES_MAX), ERR_OK);
	assert_int_equal(decode(&c, text, CAPABILITIES_MAX + 1), ERR_LIMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_truncated),
	    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
