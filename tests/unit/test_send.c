#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "send.h"

struct refusal {
	long status;
	const char *word;
};

/* The delta is as good as before: somebody mends the device, its certificate or the coordinator. */
static void
test_passing(void **state)
{
	static const struct refusal all[] = {{401, "no-certificate"}, {401, "bad-token"}, {401, ""},
	    {401, "wrong-task"}, {403, "expired-certificate"}, {403, "device-suspended"},
	    {403, "unknown-device"}, {403, "forbidden"}, {403, ""}, {403, "a-later-word"},
	    {409, "device-suspended"}, {408, ""}, {429, "a-later-word"}, {500, "internal"},
	    {502, ""}, {503, "unavailable"}, {507, "no-space"}, {302, ""}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (send_final(all[i].status, all[i].word))
			fail_msg("%ld %s ends the delta", all[i].status, all[i].word);
}

static void
test_final(void **state)
{
	static const struct refusal all[] = {{400, "bad-manifest"}, {400, "bad-report"},
	    {400, "wrong-length"}, {400, "wrong-chunk"}, {400, "not-finite"}, {400, "no-examples"},
	    {400, "too-many-examples"}, {400, "norm-too-large"}, {400, "unknown-codec"},
	    {400, "unsupported"}, {403, "device-revoked"}, {403, "wrong-device"},
	    {403, "wrong-task"}, {403, "bad-signature"}, {404, "not-found"}, {404, "unknown-job"},
	    {409, "stale-round"}, {409, "wrong-base"}, {409, "used-task"}, {409, "round-closed"},
	    {413, "too-large"}, {400, "a-later-word"}, {409, "a-later-word"}, {410, ""},
	    {431, "header-too-large"}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!send_final(all[i].status, all[i].word))
			fail_msg("%ld %s keeps the delta", all[i].status, all[i].word);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_passing), cmocka_unit_test(test_final)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
