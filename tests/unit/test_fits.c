/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fits.h"
#include "hex.h"

static struct fits_thing
thing(char id, char owner, bool lives, double age)
{
	struct fits_thing t = {.id_len = 16, .lives = lives, .ages = true, .age = age};

	memset(t.id, id, 16);
	memset(t.owner, owner, 32);
	return t;
}

/* The first bytes of the ids that are found, in their order. */
static const char *
found(const struct fits *f)
{
	static char text[3];
	struct fits_thing out[2];
	size_t count = fits_found(f, out);

	for (size_t i = 0; i < count; i++)
		text[i] = (char)out[i].id[0];
	text[count] = '\0';
	return text;
}

/* Every order of these things of one name comes to the same. */
static void
same_in_any_order(const struct fits_thing *things, size_t count, const char *want)
{
	static const uint8_t orders[6][3] = {
	    {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	for (size_t o = 0; o < 6; o++) {
		struct fits f = {.name_count = 0};
		for (size_t i = 0; i < 3; i++)
			if (orders[o][i] < count)
				fits_name(&f, &things[orders[o][i]]);
		const char *got = found(&f);
		assert_int_equal(strlen(got), strlen(want));
		for (const char *c = got; *c; c++)
			assert_non_null(strchr(want, *c));
	}
}

static void
test_name(void **state)
{
	(void)state;
	/* Of one owner: what lives, else the latest. */
	same_in_any_order((struct fits_thing[]){thing('a', 1, true, 1), thing('b', 1, false, 2),
			      thing('c', 1, false, 3)},
	    3, "a");
	same_in_any_order((struct fits_thing[]){thing('a', 1, false, 1), thing('b', 1, false, 3),
			      thing('c', 1, false, 2)},
	    3, "b");
	same_in_any_order(
	    (struct fits_thing[]){thing('a', 1, true, 1), thing('b', 1, true, 3)}, 2, "ab");
	/* What lives of one owner does not stand for what is over of another. */
	same_in_any_order((struct fits_thing[]){thing('a', 1, true, 9), thing('b', 2, false, 1),
			      thing('c', 2, false, 2)},
	    3, "ac");
}

/* Two that are as old as each other do not take the place of another owner's. */
static void
test_as_old(void **state)
{
	const struct fits_thing things[] = {thing('a', 1, false, 1), thing('b', 1, false, 1),
	    thing('c', 2, false, 1), thing('d', 1, false, 5)};
	struct fits forward = {.name_count = 0}, backward = {.name_count = 0};
	(void)state;

	for (size_t i = 0; i < 4; i++) {
		fits_name(&forward, &things[i]);
		fits_name(&backward, &things[3 - i]);
	}
	assert_string_equal(found(&forward), "cd");
	assert_string_equal(found(&backward), "dc");
	same_in_any_order(things, 2, "b");
}

static void
test_device(void **state)
{
	struct fits_thing gone = thing('a', 0, false, 0), left = thing('b', 0, false, 0),
			  holds = thing('c', 0, true, 0);
	(void)state;

	gone.ages = left.ages = holds.ages = false;
	same_in_any_order((struct fits_thing[]){gone, left, holds}, 3, "c");
	same_in_any_order((struct fits_thing[]){gone, left}, 2, "ab");
	same_in_any_order((struct fits_thing[]){gone}, 1, "a");
}

static void
test_id(void **state)
{
	struct fits f = {.name_count = 0};
	const struct fits_thing a = thing('a', 1, true, 1), b = thing('b', 1, true, 1),
				c = thing('c', 2, true, 1);
	(void)state;

	assert_string_equal(found(&f), "");
	fits_id(&f, &a);
	fits_id(&f, &a);
	assert_string_equal(found(&f), "a");
	/* One thing by name and by its id is one; neither beats the other's. */
	fits_name(&f, &a);
	assert_string_equal(found(&f), "a");
	fits_id(&f, &b);
	assert_string_equal(found(&f), "ab");
	fits_id(&f, &c);
	assert_string_equal(found(&f), "ab");
}

static void
test_like_id(void **state)
{
	(void)state;
	assert_true(hex_like_id("abcdef"));
	assert_true(hex_like_id("0123456789abcdef0123456789abcdef"));
	assert_false(hex_like_id("abcde"));
	assert_false(hex_like_id("0123456789abcdef0123456789abcdef0"));
	assert_false(hex_like_id("Abcdef"));
	assert_false(hex_like_id("abc-def"));
	assert_false(hex_like_id(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_name),
	    cmocka_unit_test(test_as_old),
	    cmocka_unit_test(test_device),
	    cmocka_unit_test(test_id),
	    cmocka_unit_test(test_like_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
