/* stages: gcc openssl address */
/* Devices that cannot hold a job's tasks: not asked again for the same offer, seen by persons, and forgotten with what they stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator_fixture.h"

static void
give_back(struct coordinator *c, uint8_t tag, const struct task *t, uint64_t needed)
{
	struct abort_cause cause = abort_reason_cause(ABORT_OUT_OF_MEMORY);

	cause.needed_bytes = needed;
	cause.memory_bytes = 1000;
	assert_int_equal(tasks_abort(c->s.engine, device_id(tag), t->task, cause, NULL), ERR_OK);
}

/* The round's only place goes to another device at once, and with the next round the first one is not asked again. */
static void
not_again(void **state)
{
	struct coordinator *c = *state;
	struct engine_refusal shown[ENGINE_REFUSALS];
	uint8_t job[16];
	struct task t;

	submit(c, JOB("one", "\"goal\":1", ""), job);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(ask(c, 2, &t), "not-selected");
	assert_string_equal(ask(c, 1, &t), "");
	give_back(c, 1, &t, 5000);
	assert_string_equal(ask(c, 1, &t), "out-of-memory");
	assert_string_equal(ask(c, 2, &t), "");
	assert_null(deliver(c, &t, 2, 1, 100));
	await_rounds(c, job, 1);
	/* What tells of the moment alone is no other offer. */
	c->offer.time_ms = 12345;
	c->offer.wait_s = 7;
	c->offer.has_disk_free = true;
	c->offer.disk_free_bytes = 99;
	assert_string_equal(ask(c, 1, &t), "out-of-memory");
	assert_int_equal(tasks_refusals(c->s.engine, job, shown), 1);
	assert_memory_equal(shown[0].device, device_id(1), 32);
	assert_memory_equal(shown[0].job, job, 16);
	assert_int_equal(shown[0].needed_bytes, 5000);
	assert_int_equal(shown[0].memory_bytes, 1000);
	assert_int_equal(shown[0].kind, TASK_TRAIN);
	assert_int_equal(tasks_refusals_of(c->s.engine, device_id(1), shown), 1);
	assert_int_equal(tasks_refusals_of(c->s.engine, device_id(2), shown), 0);
}

/* Each of these is another offer; then it is asked within the same round, and may refuse anew. */
static void
another_offer(void **state)
{
	struct coordinator *c = *state;
	struct engine_refusal shown[ENGINE_REFUSALS];
	uint8_t job[16];
	struct task t;

	submit(c, JOB("one", "\"goal\":1", ""), job);
	for (int change = 0; change < 4; change++) {
		assert_string_equal(ask(c, 1, &t), "");
		assert_int_equal(tasks_refusals(c->s.engine, job, shown), 0);
		give_back(c, 1, &t, 5000);
		assert_string_equal(ask(c, 1, &t), "out-of-memory");
		assert_int_equal(tasks_refusals(c->s.engine, job, shown), 1);
		if (change == 0)
			c->offer.memory_bytes += 1 << 20;
		else if (change == 1)
			strcpy(c->offer.trainers[c->offer.trainer_count++], "another");
		else if (change == 2)
			c->offer.data[0].examples++;
		else
			strcpy(c->offer.agent, "9.9");
	}
	assert_string_equal(ask(c, 1, &t), "");
}

/* An older agent's, or a trainer's that ran out of it: as ever, the next round asks again. */
static void
without_bytes(void **state)
{
	struct coordinator *c = *state;
	struct engine_refusal shown[ENGINE_REFUSALS];
	uint8_t job[16];
	struct task t;

	submit(c, JOB("one", "\"goal\":1", ""), job);
	assert_string_equal(ask(c, 1, &t), "");
	give_back(c, 1, &t, 0);
	assert_int_equal(tasks_refusals(c->s.engine, job, shown), 0);
	assert_string_equal(ask(c, 1, &t), "aborted");
	assert_string_equal(ask(c, 2, &t), "");
	assert_null(deliver(c, &t, 2, 1, 100));
	await_rounds(c, job, 1);
	assert_string_equal(ask(c, 1, &t), "");
}

/* Of one job alone, each device by itself, and gone with the device. */
static void
others(void **state)
{
	struct coordinator *c = *state;
	struct engine_refusal shown[ENGINE_REFUSALS];
	uint8_t large[16], small[16];
	char hex[33];
	struct task t;

	submit(c, JOB("large", "\"goal\":3", ",\"priority\":1"), large);
	submit(c, JOB("small", "\"goal\":3", ""), small);
	for (uint8_t tag = 3; tag > 0; tag--) {
		assert_string_equal(ask(c, tag, &t), "");
		give_back(c, tag, &t, 5000 + tag);
	}
	assert_int_equal(tasks_refusals(c->s.engine, large, shown), 3);
	for (uint8_t tag = 1; tag <= 3; tag++)
		assert_int_equal(shown[tag - 1].needed_bytes, 5000 + tag);
	assert_string_equal(ask(c, 2, &t), "");
	hex_encode(hex, small, sizeof(small));
	assert_string_equal(t.job, hex);
	assert_int_equal(tasks_refusals(c->s.engine, small, shown), 0);
	tasks_device_gone(c->s.engine, device_id(2), "revoked");
	assert_int_equal(tasks_refusals(c->s.engine, large, shown), 2);
	tasks_forget(c->s.engine, device_id(3));
	assert_int_equal(tasks_refusals(c->s.engine, large, shown), 1);
	assert_memory_equal(shown[0].device, device_id(1), 32);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(not_again), WITH(another_offer), WITH(without_bytes), WITH(others)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
