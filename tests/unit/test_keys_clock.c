/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock_fixture.h"
#include "file.h"
#include "keys.h"
#include "services_ca.h"
#include "x509.h"

/* The coordinator's own certificates, made while its clock stands wrong by days and years. */

#define DAY 86400
#define YEARS (12.0 * 365 * DAY)
#define RIGHT 1800000000

static char dir[64];
static struct why why;

static void
init(void)
{
	static const char *const names[] = {"localhost"};
	bool fresh;

	wall = RIGHT;
	strcpy(dir, "/tmp/test_keys_clock.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(keys_init(dir, names, 1, &fresh, &why), ERR_OK);
}

static void
end(void)
{
	char keys[96];

	snprintf(keys, sizeof(keys), "%s/keys", dir);
	assert_int_equal(file_empty_dir(keys, &why), ERR_OK);
	assert_int_equal(rmdir(keys), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* Is this certificate good now that the clock is right, and a year later? */
static void
good(const char *name)
{
	struct x509_cert cert;
	struct x509_info info;

	assert_int_equal(keys_load_cert(dir, name, &cert, &why), ERR_OK);
	assert_int_equal(x509_parse(&info, &cert, &why), ERR_OK);
	if (info.not_before > RIGHT || info.not_after < RIGHT + 365 * DAY)
		fail_msg("%s: from %lld d to %lld d", name,
		    (long long)(info.not_before - RIGHT) / DAY,
		    (long long)(info.not_after - RIGHT) / DAY);
}

static void
ahead(void **state)
{
	static const char *const names[] = {"localhost", "127.0.0.1"};
	static const double moves[] = {-DAY, 2 * DAY, 400 * DAY};
	bool fresh;

	(void)state;
	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		init();
		wall = RIGHT + moves[i];
		assert_int_equal(keys_begin_rotation(dir, &why), ERR_OK);
		good("ca-2.crt");
		good("ca-2.cross.crt");
		assert_int_equal(keys_init(dir, names, 2, &fresh, &why), ERR_OK);
		good("server.crt");
		assert_int_equal(keys_finish_rotation(dir, &why), ERR_OK);
		good("ca.crt");
		good("server.crt");
		good("sign.crt");
		end();
	}
}

static void
behind(void **state)
{
	static const char *const names[] = {"localhost", "127.0.0.1"};
	bool fresh;

	(void)state;
	init();
	wall = RIGHT - YEARS;
	assert_int_equal(keys_begin_rotation(dir, &why), ERR_STATE);
	assert_non_null(strstr(why.text, "2015-01-18T08:00:00Z, stands before the CA"));
	assert_int_equal(keys_init(dir, names, 2, &fresh, &why), ERR_STATE);
	wall = RIGHT;
	assert_int_equal(keys_begin_rotation(dir, &why), ERR_OK);
	wall = RIGHT - YEARS;
	assert_int_equal(keys_finish_rotation(dir, &why), ERR_STATE);
	wall = RIGHT;
	assert_int_equal(keys_finish_rotation(dir, &why), ERR_OK);
	good("server.crt");
	good("sign.crt");
	end();
}

/* One change at a time, also where the one before was broken off between the certificate and the key. */
static void
one_at_a_time(void **state)
{
	char from[128], to[128];
	struct services_ca *ca;

	(void)state;
	init();
	assert_int_equal(keys_begin_rotation(dir, &why), ERR_OK);
	assert_int_equal(keys_begin_rotation(dir, &why), ERR_EXISTS);
	assert_int_equal(keys_finish_rotation(dir, &why), ERR_OK);
	snprintf(from, sizeof(from), "%s/keys/ca.key", dir);
	snprintf(to, sizeof(to), "%s/keys/ca-2.key", dir);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(keys_load_ca(dir, &ca, &why), ERR_OK);
	assert_int_equal(ca->generation, 2);
	keys_free_ca(ca);
	assert_int_equal(keys_begin_rotation(dir, &why), ERR_EXISTS);
	assert_int_equal(keys_finish_rotation(dir, &why), ERR_OK);
	assert_int_equal(keys_begin_rotation(dir, &why), ERR_OK);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ahead),
	    cmocka_unit_test(behind),
	    cmocka_unit_test(one_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
