/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "rng.h"
#include "sessions.h"

static uint8_t id[SESSIONS_ID_MAX];

static enum err
get(struct sessions *s, const uint8_t *which, char out[16], int64_t now)
{
	size_t len = 16;

	return sessions_get(s, which, SESSIONS_ID_MAX, out, &len, now);
}

static void
put_and_get(void **state)
{
	struct sessions *s = sessions_new(100);
	char out[16];
	size_t len = 2;

	(void)state;
	assert_int_equal(rng_bytes(id, sizeof(id)), ERR_OK);
	assert_int_equal(get(s, id, out, 0), ERR_NOTFOUND);
	assert_int_equal(sessions_put(s, id, sizeof(id), "one", 4, 0), ERR_OK);
	assert_int_equal(get(s, id, out, 0), ERR_OK);
	assert_string_equal(out, "one");
	assert_int_equal(sessions_put(s, id, sizeof(id), "two", 4, 0), ERR_OK);
	assert_int_equal(get(s, id, out, 0), ERR_OK);
	assert_string_equal(out, "two");
	assert_int_equal(sessions_get(s, id, 31, out, &len, 0), ERR_NOTFOUND);
	assert_int_equal(sessions_get(s, id, 32, out, &len, 0), ERR_NOTFOUND);
	sessions_forget(s);
	assert_int_equal(get(s, id, out, 0), ERR_NOTFOUND);
	sessions_free(s);
	sessions_free(NULL);
}

static void
age(void **state)
{
	struct sessions *s = sessions_new(1);
	char out[16];

	(void)state;
	assert_int_equal(sessions_put(s, id, sizeof(id), "one", 4, 1000), ERR_OK);
	assert_int_equal(get(s, id, out, 1000 + SESSIONS_LIFETIME - 1), ERR_OK);
	assert_int_equal(get(s, id, out, 1000 + SESSIONS_LIFETIME), ERR_NOTFOUND);
	assert_int_equal(get(s, id, out, 1000), ERR_NOTFOUND);
	sessions_free(s);
}

static void
limits(void **state)
{
	static char large[SESSIONS_BLOB_MAX + 1];
	struct sessions *s = sessions_new(0);

	(void)state;
	assert_int_equal(sessions_put(s, id, 0, "x", 1, 0), ERR_LIMIT);
	assert_int_equal(sessions_put(s, id, SESSIONS_ID_MAX + 1, "x", 1, 0), ERR_LIMIT);
	assert_int_equal(sessions_put(s, id, 1, large, sizeof(large), 0), ERR_LIMIT);
	assert_int_equal(sessions_put(s, id, 1, large, 0, 0), ERR_LIMIT);
	assert_int_equal(sessions_put(s, id, 1, large, SESSIONS_BLOB_MAX, 0), ERR_OK);
	sessions_free(s);
}

/* Twice as many as fit: never more than the room, and the newest of each set stay. */
static void
eviction(void **state)
{
	enum { ROOM = 800, MADE = 1600 };
	static uint8_t ids[MADE][SESSIONS_ID_MAX];
	struct sessions *s = sessions_new(ROOM);
	char out[16];
	unsigned kept = 0, kept_new = 0;

	(void)state;
	assert_int_equal(rng_bytes(ids, sizeof(ids)), ERR_OK);
	for (int i = 0; i < MADE; i++) {
		assert_int_equal(sessions_put(s, ids[i], SESSIONS_ID_MAX, "x", 2, i / 10), ERR_OK);
		assert_int_equal(get(s, ids[i], out, i / 10), ERR_OK);
	}
	for (int i = 0; i < MADE; i++) {
		unsigned there = get(s, ids[i], out, MADE / 10) == ERR_OK;
		kept += there;
		kept_new += i >= MADE - ROOM / 4 ? there : 0;
	}
	assert_in_range(kept, ROOM * 9 / 10, ROOM);
	assert_in_range(kept_new, ROOM / 4 - 2, ROOM / 4);
	sessions_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(put_and_get),
	    cmocka_unit_test(age),
	    cmocka_unit_test(limits),
	    cmocka_unit_test(eviction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
