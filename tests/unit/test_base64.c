/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base64.h"

/* RFC 4648, section 10, and bytes that reach the last two characters of the alphabet. */
static const struct {
	const char *plain, *text;
} vectors[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xff\xff\xff", "////"},
    {"\xfb\xef\xbe", "++++"},
    {"\xfb\xff", "+/8="},
};

static void
known_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		char text[16], plain[16];
		size_t len = strlen(vectors[i].plain), room = len;
		assert_int_equal(BASE64_LEN(len), strlen(vectors[i].text));
		base64_encode(text, vectors[i].plain, len);
		assert_string_equal(text, vectors[i].text);
		assert_int_equal(base64_decode(plain, &room, text, strlen(text)), ERR_OK);
		assert_int_equal(room, len);
		assert_memory_equal(plain, vectors[i].plain, len);
	}
}

static void
every_byte_and_length(void **state)
{
	uint8_t data[256], back[256];
	char text[BASE64_LEN(256) + 1];
	(void)state;

	for (size_t i = 0; i < 256; i++)
		data[i] = (uint8_t)(i * 167 + 13);
	for (size_t len = 0; len <= 256; len++) {
		size_t room = sizeof(back);
		base64_encode(text, data, len);
		assert_int_equal(strlen(text), BASE64_LEN(len));
		assert_int_equal(base64_decode(back, &room, text, strlen(text)), ERR_OK);
		assert_int_equal(room, len);
		assert_memory_equal(back, data, len);
	}
}

static void
refuses_all_else(void **state)
{
	const char *bad[] = {"Z", "Zg", "Zg=", "Zm9vY", "====", "Z===", "=Zg=", "Zg=a", "Zm==Zm9v",
	    "Zm9v====",
	    /* bits beyond the last byte that are not zero */
	    "Zh==", "Zm9=", "Zm9vYh==",
	    /* other alphabets, white space, controls, high bytes */
	    "Zm-v", "Zm_v", "Zm9 ", "Zm9\n", "Zm9v\n", "Zm9\x80", "\xc3\xa4Zm", "Zm9,", "Zm9.",
	    "Zm9:", "Zm9@", "Zm9[", "Zm9`", "Zm9{"};
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char out[32];
		size_t room = sizeof(out);
		assert_int_equal(base64_decode(out, &room, bad[i], strlen(bad[i])), ERR_INVALID);
		assert_int_equal(room, sizeof(out));
	}
	char out[32];
	size_t room = sizeof(out);
	assert_int_equal(base64_decode(out, &room, "Zm\0v", 4), ERR_INVALID);
}

static void
stays_in_its_room(void **state)
{
	char out[6] = "......";
	size_t room = 4;
	(void)state;

	assert_int_equal(base64_decode(out, &room, "Zm9vYmE=", 8), ERR_LIMIT);
	assert_int_equal(room, 4);
	assert_memory_equal(out, "......", 6);
	room = 5;
	assert_int_equal(base64_decode(out, &room, "Zm9vYmE=", 8), ERR_OK);
	assert_memory_equal(out, "fooba.", 6);
	room = 0;
	assert_int_equal(base64_decode(out, &room, "Zg==", 4), ERR_LIMIT);
	assert_int_equal(base64_decode(NULL, &room, "", 0), ERR_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_answers),
	    cmocka_unit_test(every_byte_and_length),
	    cmocka_unit_test(refuses_all_else),
	    cmocka_unit_test(stays_in_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
