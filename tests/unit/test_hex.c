/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "hex.h"

/* RFC 4648, section 10, in lower case. */
static void
known_answers(void **state)
{
	char text[13];
	uint8_t back[6];
	(void)state;

	hex_encode(text, "", 0);
	assert_string_equal(text, "");
	hex_encode(text, "foobar", 6);
	assert_string_equal(text, "666f6f626172");
	assert_true(hex_decode(back, 6, text, 12));
	assert_memory_equal(back, "foobar", 6);
	assert_true(hex_decode(back, 0, "", 0));
}

static void
every_byte(void **state)
{
	uint8_t data[256], back[256];
	char text[513];
	(void)state;

	for (size_t i = 0; i < 256; i++)
		data[i] = (uint8_t)i;
	hex_encode(text, data, 256);
	assert_int_equal(strlen(text), 512);
	assert_memory_equal(text, "000102", 6);
	assert_memory_equal(text + 506, "fdfeff", 6);
	assert_true(hex_decode(back, 256, text, 512));
	assert_memory_equal(back, data, 256);
}

/* Any character in either place; only 0-9 and a-f pass, and a refusal leaves out alone. */
static void
refuses_all_else(void **state)
{
	(void)state;
	for (int place = 0; place < 4; place++) {
		for (int c = 0; c < 256; c++) {
			char text[5] = "5a5a";
			uint8_t out[2] = {0xee, 0xee};
			bool good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
			text[place] = (char)c;
			assert_int_equal(hex_decode(out, 2, text, 4), good);
			if (!good)
				assert_memory_equal(out, "\xee\xee", 2);
		}
	}
	uint8_t out[2];
	assert_false(hex_decode(out, 2, "5a5a5", 5));
	assert_false(hex_decode(out, 2, "5a5", 3));
	assert_false(hex_decode(out, 2, "", 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_answers),
	    cmocka_unit_test(every_byte),
	    cmocka_unit_test(refuses_all_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
