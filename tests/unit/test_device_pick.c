/* stages: gcc openssl address */
/* Which devices a list is of: what its query says, and whom that means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device_pick.h"
#include "exchange.h"
#include "registry.h"
#include "services.h"

#define NOW 1e9

static bool
read_query(const char *query, struct device_pick *out, char why[352])
{
	const struct services none = {.audit = NULL};
	struct exchange x = {.services = &none, .request = {.path = "/v1/devices"}};

	snprintf(x.request.query, sizeof(x.request.query), "%s", query);
	bool ok = device_pick_read(&x, out);
	assert_int_equal(ok, x.response.status == 0);
	assert_true(ok || x.response.status == 400);
	snprintf(why, 352, "%s", x.response.why);
	exchange_reset(&x);
	return ok;
}

static struct device_pick
pick(const char *query)
{
	struct device_pick p;
	char why[352];

	if (!read_query(query, &p, why))
		fail_msg("%s: %s", query, why);
	p.now = NOW;
	return p;
}

static void
refused(void **state)
{
	static const struct {
		const char *query, *why;
	} rows[] = {
	    {"limit=0", "from 1 to 1000"},
	    {"limit=1001", "up to 1000"},
	    {"limit=-1", "number"},
	    {"limit=", "number"},
	    {"limit=ten", "number"},
	    {"after=", "64 digits"},
	    {"after=gw-1", "64 digits"},
	    {"after=00000000000000000000000000000000000000000000000000000000000000", "64 digits"},
	    {"after=000000000000000000000000000000000000000000000000000000000000000000",
		"64 digits"},
	    {"after=000000000000000000000000000000000000000000000000000000000000000G", "64 digits"},
	    {"where=", "key=value"},
	    {"where=site", "key=value"},
	    {"where==x", "key=value"},
	    {"where=a=b,", "key=value"},
	    {"where=a=b&where=c", "key=value"},
	    {"where=a%3db,%2c", "key=value"},
	    {"where=a=1234567890123456789012345678901234567890123456789012345678901234",
		"key=value"},
	    {"where=a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,a=,"
	     "a=,a=,a=,a=,a=,a=,a=,a=",
		"more than 32"},
	    {"state=", "active, suspended, revoked or left"},
	    {"state=gone", "active, suspended, revoked or left"},
	    {"reason=", "reason wants"},
	    {"reason=1234567890123456789012345678901234567890123456789012345678901234",
		"at most 63 bytes"},
	    {"agent=", "agent wants"},
	    {"silent_s=", "number"},
	    {"silent_s=7d", "number"},
	    {"silent_s=99999999999999999999999", "number"},
	};
	struct device_pick p;
	char why[352];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (read_query(rows[i].query, &p, why) || !strstr(why, rows[i].why))
			fail_msg("%s: %s", rows[i].query, why);
}

static void
pages(void **state)
{
	(void)state;
	static const uint8_t zero[32];
	uint8_t id[32] = {0};

	struct device_pick p = pick("");
	assert_true(p.left == UINT64_MAX && !p.none);
	assert_memory_equal(p.from, zero, 32);
	assert_int_equal(pick("limit=1000").left, 1000);
	/* Behind it, whether it is there or not. */
	p = pick("after=00000000000000000000000000000000000000000000000000000000000001ff&limit=1");
	id[30] = 2;
	assert_memory_equal(p.from, id, 32);
	assert_true(p.left == 1 && !p.none);
	p = pick("after=ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff");
	assert_true(p.none);
	p = pick("after=fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe");
	assert_false(p.none);
	memset(id, 0xff, sizeof(id));
	assert_memory_equal(p.from, id, 32);
}

static struct registry_view
gateway(void)
{
	return (struct registry_view){.row = {.name = "gw",
					  .state = DEVICE_ACTIVE,
					  .labels = "{\"site\":\"north\",\"note\":\"a&b, c=d\","
						    "\"ort\":\"K\xc3\xb6ln\",\"none\":\"\"}"},
	    .seen = {.agent = "1.1.0+1015.g8904a80", .reason = "no-job", .last_contact = NOW - 60}};
}

static void
whom(void **state)
{
	static const struct {
		const char *query;
		bool fits;
	} rows[] = {
	    {"", true},
	    {"state=active", true},
	    {"state=suspended", false},
	    {"where=site=north", true},
	    {"where=site=nort", false},
	    {"where=site=northern", false},
	    {"where=sit=north", false},
	    {"where=site=north&where=none=", true},
	    {"where=site=north&where=none=x", false},
	    {"where=site=north,none=", true},
	    {"where=site=north,site=south", false},
	    {"where=note=a%26b%2C%20c=d", true},
	    {"where=note=a%26b", false},
	    {"where=ort=K%c3%b6ln", true},
	    {"reason=no-job", true},
	    {"reason=no-jo", false},
	    {"agent=1.1", true},
	    {"agent=1.1.0", true},
	    {"agent=1.1.0%2B1015.g8904a80", true},
	    {"agent=1.1.0%2b1015", true},
	    {"agent=1.1.0%2b101", false},
	    {"where=note=a%26b%2C+c=d", true},
	    {"agent=1", true},
	    {"agent=1.10", false},
	    {"agent=1.1.0%2b1015.g8904a80.dirty", false},
	    {"silent_s=60", true},
	    {"silent_s=61", false},
	    {"silent_s=0", true},
	    {"state=active&where=site=north&reason=no-job&agent=1.1&silent_s=30", true},
	    {"state=active&where=site=north&reason=no-job&agent=1.0&silent_s=30", false},
	};
	const struct registry_view d = gateway();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct device_pick p = pick(rows[i].query);
		if (device_pick_fits(&p, &d) != rows[i].fits)
			fail_msg("%s", rows[i].query);
	}
}

static void
rare_devices(void **state)
{
	struct registry_view d = gateway();
	struct device_pick reason = pick("reason=expired-certificate"), was = pick("reason=no-job");
	struct device_pick silent = pick("silent_s=1000000"), label = pick("where=site=north");

	(void)state;
	/* Why the device is not let in counts before what it was told while it was. */
	d.locked_out = PROBLEM_EXPIRED_CERTIFICATE;
	assert_true(device_pick_fits(&reason, &d));
	assert_false(device_pick_fits(&was, &d));
	assert_false(device_pick_fits(&silent, &d));
	d.seen.last_contact = NAN;
	assert_true(device_pick_fits(&silent, &d));
	/* Erased. */
	d.row.labels[0] = '\0';
	assert_false(device_pick_fits(&label, &d));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(refused),
	    cmocka_unit_test(pages),
	    cmocka_unit_test(whom),
	    cmocka_unit_test(rare_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
