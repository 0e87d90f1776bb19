/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "backoff.h"
#include "file.h"
#include "program.h"
#include "trainer.h"
#include "trainer_offer.h"

#undef TRAINER_OFFER_S
#define TRAINER_OFFER_S 1
#include "trainer_offer.c"

#define GOOD "{\"kinds\":[\"train\"],\"layers\":[\"linear\",\"relu\"]"

static struct offer offer;
static char line[EVENTS_LINE_MAX];
static unsigned lines;

static void
sink(void *context, int level, const char *text)
{
	(void)context;
	lines++;
	snprintf(line, sizeof(line), "%s %s", line_level_name(level), text);
}

static bool
at_once(void *context)
{
	(void)context;
	return true;
}

/* A device's offer with what the built-in trainer can do, and settings whose [trainer builtin] is that shell script. */
static void
put(const char *script, const char *more, bool (*stop)(void *context))
{
	static const struct events events = {.sink = sink};
	struct settings *s;
	struct why why;
	char path[] = "/tmp/test_offer.XXXXXX", text[512];
	int fd = mkstemp(path);

	assert_int_equal(write(fd, script, strlen(script)), (ssize_t)strlen(script));
	close(fd);
	snprintf(text, sizeof(text),
	    "[trainer a]\nexec=/a\n[trainer builtin]\nexec=sh %s 'two words'\n%s", path, more);
	if (settings_parse(&s, "test", text, strlen(text), &why))
		fail_msg("%s", why.text);
	memset(&offer, 0, sizeof(offer));
	strcpy(offer.layers[0], "conv2d");
	strcpy(offer.features[0], "prox");
	offer.layer_count = offer.feature_count = 1;
	offer.memory_bytes = 1 << 30;
	*line = '\0';
	lines = 0;
	trainer_offer_put(
	    &offer, &(struct trainer_offer){.settings = s, .events = &events, .stop = stop});
	settings_free(s);
	unlink(path);
}

/* The device's own features come first. */
static void
has_features(const char *const *names, size_t count)
{
	size_t own = 0;

	for (const char *const *name = recipe_feature_names(); *name; name++)
		if (recipe_feature_actor(*name) == FEATURE_BY_DEVICE)
			assert_string_equal(offer.features[own++], *name);
	assert_int_equal(offer.feature_count, own + count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(offer.features[own + i], names[i]);
}

/* What is there is what the program said: its words, then --offer. */
static void
test_answer(void **state)
{
	static const char *const named[] = {"clip", "later", "variates"};

	(void)state;
	put("[ \"$1\" = 'two words' ] && [ \"$2\" = --offer ] && [ $# = 2 ] && [ $PWD = / ] && "
	    "[ $OMP_NUM_THREADS = 3 ] && echo warning >&2 && echo '" GOOD
	    ",\"features\":[\"clip\",\"later\",\"variates\",\"feedback\"],"
	    "\"memory_bytes\":4000000,\"threads\":3}'",
	    "[device]\nthreads=3\n", NULL);
	assert_string_equal(line,
	    "info trainer.offer trainer=builtin layers=2 features=4 memory_bytes=4000000 "
	    "threads=3");
	assert_int_equal(lines, 1);
	assert_int_equal(offer.trainer_count, 2);
	assert_string_equal(offer.trainers[0], "builtin");
	assert_string_equal(offer.trainers[1], "a");
	assert_int_equal(offer.layer_count, 2);
	assert_string_equal(offer.layers[0], "linear");
	assert_string_equal(offer.layers[1], "relu");
	/* Feedback is the device's own. */
	has_features(named, 3);
	assert_int_equal(offer.memory_bytes, 4000000);
}

/* What program and owner agree on. */
static void
test_kinds(void **state)
{
	static const char *const both = "[trainer b]\nexec=/b\nkinds=train, evaluate\n";
	char settings[128];

	(void)state;
	snprintf(settings, sizeof(settings), "kinds = evaluate\n%s", both);
	put("echo '" GOOD "}'", settings, NULL);
	assert_int_equal(offer.trainer_count, 2);
	assert_string_equal(offer.trainers[0], "a");
	assert_string_equal(offer.trainers[1], "b");
	assert_int_equal(offer.evaluator_count, 1);
	assert_string_equal(offer.evaluators[0], "b");
	put("echo '{\"kinds\":[\"evaluate\"],\"layers\":[\"linear\"]}'", settings, NULL);
	assert_int_equal(offer.trainer_count, 2);
	assert_int_equal(offer.evaluator_count, 2);
	assert_string_equal(offer.evaluators[0], "builtin");
	put("echo '{\"kinds\":[\"evaluate\",\"train\"],\"layers\":[\"linear\"]}'", "", NULL);
	assert_int_equal(offer.trainer_count, 2);
	assert_int_equal(offer.evaluator_count, 0);
}

/* The owner's limit holds for a program, too; one that says nothing leaves the device's. */
static void
test_memory(void **state)
{
	(void)state;
	put("echo '" GOOD ",\"memory_bytes\":4000000}'", "[limits]\nmemory_bytes=2M\n", NULL);
	assert_int_equal(offer.memory_bytes, 2 << 20);
	put("echo '" GOOD ",\"memory_bytes\":4000000}'", "[limits]\nmemory_bytes=20M\n", NULL);
	assert_int_equal(offer.memory_bytes, 4000000);
	put("echo '" GOOD "}'", "", NULL);
	assert_int_equal(offer.memory_bytes, 1 << 30);
}

/* Whatever is wrong: nothing is offered for built-in jobs, one line says why, and the other trainers stay. */
static void
test_nothing(void **state)
{
	static const struct {
		const char *script, *why;
	} rows[] = {
	    {"echo first >&2; echo no gadget >&2; exit 3", "exited with 3: no gadget\""},
	    {"kill -9 $$", "ended by signal 9"},
	    {"echo '" GOOD "}'; exit 1", "exited with 1"},
	    {"echo hello", "its answer: "},
	    {"", "its answer: "},
	    {"echo '" GOOD ",\"threads\":-1}'", "threads: must be"},
	    {"echo '{\"kinds\":[\"dance\"],\"layers\":[\"relu\"]}'", "kinds: without"},
	    {"exec yes", "longer than 65536 bytes"},
	    {"echo '" GOOD "}'; sleep 60", "no answer within 1 s"},
	    {"trap '' TERM; while :; do sleep 0.1; done", "no answer within 1 s"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		put(rows[i].script, "", NULL);
		if (!strstr(line, "warn trainer.offers-nothing trainer=builtin reason=") ||
		    !strstr(line, rows[i].why) || lines != 1)
			fail_msg("%s: %s", rows[i].script, line);
		assert_int_equal(offer.trainer_count, 1);
		assert_string_equal(offer.trainers[0], "a");
		assert_int_equal(offer.layer_count, 0);
		assert_int_equal(offer.evaluator_count, 0);
		has_features(NULL, 0);
		assert_int_equal(offer.memory_bytes, 1 << 30);
	}
}

/* A device that is told to stop does not wait for an answer, and has nothing to complain of. */
static void
test_stop(void **state)
{
	double began = backoff_now();

	(void)state;
	put("sleep 60", "", at_once);
	assert_true(backoff_now() - began < 20);
	assert_int_equal(lines, 0);
	assert_int_equal(offer.trainer_count, 1);
}

static void
test_no_program(void **state)
{
	struct settings *s;
	static const struct events events = {.sink = sink};
	static const char text[] = "[trainer a]\nexec=/a\n[trainer b]\nexec=/b\n";
	struct capabilities c;

	(void)state;
	assert_int_equal(settings_parse(&s, "test", text, strlen(text), NULL), ERR_OK);
	memset(&offer, 0, sizeof(offer));
	offer.layer_count = 5;
	lines = 0;
	const struct trainer_offer t = {.settings = s, .events = &events};
	trainer_offer_put(&offer, &t);
	assert_int_equal(lines, 0);
	assert_int_equal(offer.trainer_count, 3);
	assert_string_equal(offer.trainers[0], "builtin");
	assert_string_equal(offer.trainers[2], "b");
	assert_int_equal(offer.layer_count, 5);
	assert_int_equal(trainer_offer_ask(&c, &t, NULL), ERR_NOTFOUND);
	settings_free(s);
}

/* Which row of the table does a job. */
static void
test_find(void **state)
{
	static const char text[] = "[trainer a]\nexec=/a\n[trainer builtin]\nexec=/b\n";
	struct settings *with, *without;
	const struct recipe builtin = {.trainer = RECIPE_BUILTIN, .builtin = true};
	const struct recipe a = {.trainer = "a"};

	(void)state;
	assert_int_equal(settings_parse(&with, "test", text, strlen(text), NULL), ERR_OK);
	assert_int_equal(settings_parse(&without, "test", "", 0, NULL), ERR_OK);
	assert_string_equal(trainer_find(with, &a)->name, "external");
	assert_string_equal(trainer_find(with, &builtin)->name, "external");
	assert_string_equal(trainer_find(without, &builtin)->name, "builtin");
	assert_null(trainer_find(without, &a));
	settings_free(with);
	settings_free(without);
}

/* What the agent says at its start, and the doctor: with the place. */
static void
test_try(void **state)
{
	static const char text[] = "[trainer fine]\nexec = \"/bin/sh\" -c 'exit 0'\n"
				   "[trainer absent]\nexec = /no/such --fast\n"
				   "[trainer open]\nexec = sh -c \"exit 0\n"
				   "[trainer path]\nexec = sh\nread = /tmp data\n";
	static const char *const said[] = {"",
	    "t.conf:4: trainer absent.exec: /no/such is not there or not executable",
	    "t.conf:6: trainer open.exec: cannot be split into words: a quote is open",
	    "t.conf:8: trainer path.exec: read: data does not begin with /"};
	struct settings *s;
	struct why why;

	(void)state;
	assert_int_equal(settings_parse(&s, "t.conf", text, strlen(text), &why), ERR_OK);
	for (size_t i = 0; i < s->trainer_count; i++) {
		why.text[0] = '\0';
		enum err e = program_try(s, &s->trainers[i], NULL, NULL, &why);
		assert_int_equal(e != ERR_OK, i > 0);
		assert_string_equal(why.text, said[i]);
	}
	settings_free(s);
}

/* The table of wire/FORMAT.md names each feature that an offer may have. */
static void
test_documented(void **state)
{
	char *text = NULL, cell[64];
	size_t len;

	(void)state;
	assert_int_equal(file_read("wire/FORMAT.md", 1u << 20, &text, &len, NULL), ERR_OK);
	const char *table = strstr(text, "| feature | recipes that need it |");
	assert_non_null(table);
	for (const char *const *name = recipe_feature_names(); *name; name++) {
		snprintf(cell, sizeof(cell), "`%s`", *name);
		const char *at = strstr(table, cell);
		if (!at || at > strstr(table, "\n\n"))
			fail_msg("%s is not in the table of features", *name);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_answer),
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_nothing),
	    cmocka_unit_test(test_stop),
	    cmocka_unit_test(test_no_program),
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_try),
	    cmocka_unit_test(test_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
