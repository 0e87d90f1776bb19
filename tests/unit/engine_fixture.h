#ifndef ENGINE_FIXTURE_H
#define ENGINE_FIXTURE_H
#include "coordinator_fixture.h"
#include "jobs_inside.h"

/* What an engine is asked, and what it answers. */

static const char plain[] = JOB("plain", "\"goal\":2,\"quorum\":2,\"over_select\":1.5", "");

/* Asks as tag; the reason to wait, "" for a task, is this. */
static inline void
expect(struct coordinator *c, uint8_t tag, const char *reason)
{
	struct task t;
	const char *got = ask(c, tag, &t);

	if (strcmp(got, reason) != 0)
		fail_msg("device %u: '%s', not '%s'", tag, got, reason);
	if (t.wait)
		assert_int_equal(t.wait_s, c->config.retry_after_s);
}

/* The manifest is refused so, with a reason. */
static inline void
as_wrong(struct coordinator *c, const struct task *t, const struct manifest *m,
    enum problem_type problem)
{
	struct engine_claim claim;

	c->why.text[0] = '\0';
	enum problem_type got = tasks_claim(c->s.engine, m, device_id(1), t->task, &claim, &c->why);
	if (got != problem || !c->why.text[0])
		fail_msg(
		    "%s instead of %s: %s", problem_word(got), problem_word(problem), c->why.text);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

#endif
