/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "excerpt.h"

static const char traceback[] = "trainer mine exited with 1\n"
				"epoch 1\n"
				"Traceback (most recent call last):\n"
				"  File \"/home/ann/secret/train.py\", line 42, in <module>\n"
				"    main()\n"
				"  File \"/home/ann/secret/parse.py\", line 7, in number\n"
				"    return float(text)\n"
				"           ^^^^^^^^^^^\n"
				"ValueError: could not convert string to float: 'John Smith'\n";

static void
expect(enum settings_log log, const char *text, const char *want)
{
	char out[2048];

	memset(out, 'x', sizeof(out));
	excerpt_make(out, sizeof(out), log, text);
	assert_string_equal(out, want);
}

static void
the_owner_decides(void **state)
{
	(void)state;
	expect(SETTINGS_LOG_TAIL, traceback, traceback);
	expect(SETTINGS_LOG_NO, traceback, "");
	expect(SETTINGS_LOG_REASON, traceback, "ValueError, parse.py line 7");
}

static void
only_class_and_line(void **state)
{
	(void)state;
	expect(SETTINGS_LOG_REASON, "", "");
	expect(SETTINGS_LOG_REASON, "no such gadget: John Smith\n", "");
	expect(SETTINGS_LOG_REASON, "John: Smith\nValueError: John\n", "");
	expect(SETTINGS_LOG_REASON,
	    "  File \"a.py\", line 3, in f\ntorch.cuda.OutOfMemoryError: CUDA out of memory",
	    "torch.cuda.OutOfMemoryError, a.py line 3");
	expect(SETTINGS_LOG_REASON, "  File \"<string>\", line 1, in <module>\nKeyboardInterrupt\n",
	    "KeyboardInterrupt, <string> line 1");
	/* The last one counts: the others were handled, or led to it. */
	expect(SETTINGS_LOG_REASON,
	    "  File \"a.py\", line 3\nKeyError: 'x'\n\nDuring handling:\n"
	    "  File \"b.py\", line 4\nTypeError: y\n",
	    "TypeError, b.py line 4");
	/* What is not as Python writes it is a message like any other. */
	expect(SETTINGS_LOG_REASON, "  File \"a.py\", line 3\nJohn Smith: 1\n", "");
	expect(SETTINGS_LOG_REASON, "  File \"a.py\", line 3\n", "");
	expect(SETTINGS_LOG_REASON, "  File \"a.py", "");
	expect(SETTINGS_LOG_REASON, "  File \"John Smith.py\", line 3\nKeyError: 1\n", "KeyError");
	expect(SETTINGS_LOG_REASON, "  File \"a.py\", line John\nKeyError: 1\n", "KeyError");
	expect(SETTINGS_LOG_REASON, "say   File \"a.py\", line 3\nKeyError: 1\n", "");
}

/* A library's line tells nobody what to mend. */
static void
the_owners_line(void **state)
{
	(void)state;
	static const char deep[] =
	    "  File \"/srv/train.py\", line 15, in <module>\n    net(x)\n"
	    "  File \"/srv/venv/lib/python3.11/site-packages/torch/nn/modules/module.py\", line "
	    "1787\n    return f()\n  [3 of libraries]\n"
	    "  File \"/usr/lib/python3.11/json/__init__.py\", line 9, in load\n    loads()\n"
	    "  File \"<frozen runpy>\", line 8, in run\nRuntimeError: x\n";

	expect(SETTINGS_LOG_REASON, deep, "RuntimeError, train.py line 15");
	/* Not of the traceback before, which was of another exception; and a path in the code is none. */
	expect(SETTINGS_LOG_REASON,
	    "  File \"a.py\", line 3\nKeyError: 'x'\n\nDuring handling:\n"
	    "  File \"/v/site-packages/b.py\", line 4\n  File \"/v/site-packages/c.py\", line 5\n"
	    "TypeError: y\n",
	    "TypeError, c.py line 5");
	expect(SETTINGS_LOG_REASON,
	    "  File \"a.py\", line 3\n    open('/v/site-packages/x')\n"
	    "  File \"/usr/lib/python3/dist-packages/b.py\", line 4\nOSError: y\n",
	    "OSError, a.py line 3");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_owner_decides),
	    cmocka_unit_test(only_class_and_line),
	    cmocka_unit_test(the_owners_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
