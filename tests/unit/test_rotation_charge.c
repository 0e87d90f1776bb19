/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../daemon/api/identity.c"
#include "clock_fixture.h"
#include "shared.h"

/* How often a device may change its key, under a clock that jumps. */

#define HOUR 3600.0
#define RIGHT 1800000000.0

static void
jumps(void **state)
{
	static const double moves[] = {-12 * 365 * 86400.0, -86400, 2 * 86400, 400 * 86400.0};
	struct config *config = calloc(1, sizeof(*config));
	struct services s = {.config = NULL};
	struct why why;

	(void)state;
	assert_non_null(config);
	config->rotate_every_s = (uint64_t)HOUR;
	assert_int_equal(shared_new(&s.config, config, free), ERR_OK);
	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		struct rotation r = {.services = &s};
		wall = RIGHT + moves[i];
		for (int k = 0; k < ROTATIONS; k++)
			assert_int_equal(charge(&r, &why), ERR_OK);
		assert_int_equal(charge(&r, &why), ERR_DENIED);
		assert_true(r.wait_s == (uint32_t)HOUR);
		/* Right again: at once, and then as ever. */
		wall = RIGHT;
		for (int k = 0; k < ROTATIONS; k++)
			assert_int_equal(charge(&r, &why), ERR_OK);
		assert_int_equal(charge(&r, &why), ERR_DENIED);
		wall += HOUR;
		assert_int_equal(charge(&r, &why), ERR_OK);
	}
	shared_free(s.config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(jumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
