/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gate.h"

#define JOB "0123456789abcdef0123456789abcdef"

static void
test_gate(void **state)
{
	static const struct {
		struct gate gate;
		const char *name;
		bool admitted;
	} cases[] = {
	    {{"", ""}, "anything", true},
	    {{"", ""}, "", true},
	    {{"mnist", ""}, "mnist", true},
	    {{"mnist", ""}, "mnist2", false},
	    {{"mnist", ""}, "", false},
	    {{"mnist*", ""}, "mnist2", true},
	    {{"*-prod, test", ""}, "a-prod", true},
	    {{"*-prod, test", ""}, "test", true},
	    {{"*-prod, test", ""}, "a-prod-", false},
	    {{"a*b*c", ""}, "aXbYbZc", true},
	    {{"a*b*c", ""}, "aXbYbZ", false},
	    {{"", "old*"}, "old1", false},
	    {{"", "old*"}, "new", true},
	    {{"*", "old*"}, "old1", false},
	    {{"0123456789ab*", ""}, "whatever", true},
	    {{"", JOB}, "whatever", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (gate_admits(&cases[i].gate, JOB, cases[i].name) != cases[i].admitted)
			fail_msg("case %zu", i);
	assert_false(gate_used(&cases[0].gate));
	assert_true(gate_used(&cases[2].gate));
	assert_true(gate_used(&cases[11].gate));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_gate)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
