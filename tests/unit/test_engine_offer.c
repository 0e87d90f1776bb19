/* stages: gcc openssl address */
/* What a device says in its offer decides what it is given: jobs that it leaves alone, examples that it could not claim, figures that
 * its trainer does not give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "coordinator_fixture.h"
#include "hex.h"

static void
rests(struct coordinator *c, const uint8_t job[16], uint64_t seconds)
{
	struct offer_resting *r = &c->offer.resting[c->offer.resting_count++];

	memcpy(r->job, job, 16);
	r->seconds = (uint32_t)seconds;
}

/* The other job is worked on meanwhile; nothing is kept of a rest. */
static void
a_resting_job_is_passed_over(void **state)
{
	struct coordinator *c = *state;
	uint8_t one[16], two[16];
	char hex[33];
	struct task t;

	submit(c, JOB("one", "\"goal\":1", ",\"priority\":1"), one);
	submit(c, JOB("two", "\"goal\":2", ""), two);
	rests(c, one, 7);
	assert_string_equal(ask(c, 1, &t), "");
	hex_encode(hex, two, 16);
	assert_string_equal(t.job, hex);
	rests(c, two, 1);
	assert_string_equal(ask(c, 1, &t), "resting");
	/* It has rested. */
	c->offer.resting[0].seconds = 0;
	assert_string_equal(ask(c, 1, &t), "");
	hex_encode(hex, one, 16);
	assert_string_equal(t.job, hex);
	/* What it holds is not given again either, and is still its own when it has rested. */
	c->offer.resting[0].seconds = 3;
	assert_string_equal(ask(c, 1, &t), "resting");
	c->offer.resting_count = 0;
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(t.job, hex);
	/* Others are asked. */
	rests(c, one, 7);
	assert_string_equal(ask(c, 2, &t), "");
}

static void
forget(struct coordinator *c, const char *feature)
{
	struct offer *o = &c->offer;

	for (size_t i = 0; i < o->feature_count; i++)
		if (strcmp(o->features[i], feature) == 0)
			memcpy(o->features[i], o->features[--o->feature_count],
			    sizeof(o->features[i]));
}

/* 100 examples, a tenth of them for evaluation. */
static void
who_would_claim_too_much(void **state)
{
	static const struct {
		const char *local;
		unsigned most;
		bool fits;
	} rows[] = {
	    {"{\"epochs\":1,\"batch\":10,\"optimizer\":{\"rate\":0.1}}", 90, true},
	    {"{\"epochs\":1,\"batch\":10,\"optimizer\":{\"rate\":0.1}}", 89, false},
	    {"{\"steps\":8,\"batch\":10,\"optimizer\":{\"rate\":0.1}}", 80, true},
	    {"{\"steps\":9,\"batch\":10,\"optimizer\":{\"rate\":0.1}}", 80, false},
	    {"{\"seconds\":1,\"batch\":10,\"optimizer\":{\"rate\":0.1}}", 80, false},
	    {"{\"steps\":1,\"batch\":9,\"optimizer\":{\"rate\":0.1}}", 9,
		false}, /* 10 are measured */
	};
	struct coordinator *c = *state;
	char text[1024];
	uint8_t id[16];
	struct task t;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(text, sizeof(text),
		    "{\"name\":\"j%zu\",\"seed\":3,\"priority\":%zu,\"model\":{\"layers\":[{"
		    "\"type\":\"linear\","
		    "\"name\":\"fc\",\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":"
		    "\"d\","
		    "\"shape\":[4],\"classes\":2,\"validation\":0.1},\"local\":%s,\"evaluate\":{"
		    "\"by\":"
		    "\"devices\"},\"round\":{\"goal\":1},\"aggregate\":{\"max_examples\":%u}}",
		    i, i + 1, rows[i].local, rows[i].most);
		submit(c, text, id);
		assert_string_equal(ask(c, 1, &t), "");
		assert_int_equal(t.max_examples, rows[i].most);
		const struct offer whole = c->offer;
		forget(c, RECIPE_FEATURE_MAX_EXAMPLES);
		const char *said = ask(c, (uint8_t)(i + 2), &t);
		if (rows[i].fits ? strcmp(said, "not-selected") != 0
				 : strcmp(said, "too-many-examples") != 0)
			fail_msg("row %zu: %s", i, said);
		c->offer = whole;
		assert_int_equal(
		    engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	}
}

/* Whoever does not say, as older agents, is asked as before. */
static void
who_gives_figures(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];
	struct task t;

	submit(c,
	    "{\"name\":\"f\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":"
	    "\"fc\","
	    "\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],"
	    "\"classes\":2,"
	    "\"validation\":0.1},\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"rate\":0.1}}"
	    ","
	    "\"evaluate\":{\"by\":\"devices\",\"figures\":[\"classes\"]},\"round\":{\"goal\":4}}",
	    id);
	assert_string_equal(ask(c, 1, &t), "");
	c->offer.says_figures = true;
	assert_string_equal(ask(c, 2, &t), "no-figures");
	messages_offer_set_figures(&c->offer, "torch", true);
	assert_string_equal(ask(c, 2, &t), "no-figures");
	messages_offer_set_figures(&c->offer, "builtin", true);
	assert_string_equal(ask(c, 2, &t), "");
	forget(c, RECIPE_FEATURE_FIGURES);
	assert_string_equal(ask(c, 3, &t), "old-agent");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_resting_job_is_passed_over),
	    TEST(who_would_claim_too_much),
	    TEST(who_gives_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
