/* stages: gcc openssl address */
/* Why jobs cannot move: the verdict of facts, and over time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "stuck.h"

/* --- facts */

static const struct stuck_reopened never;

/* A round that needs two reports of the two devices that there are, which both asked. */
static struct stuck_facts
facts(void)
{
	return (struct stuck_facts){.state = JOB_RUNNING,
	    .reason = "why",
	    .detail = "detail",
	    .evaluation = "",
	    .is_open = true,
	    .round = 4,
	    .quorum = 2,
	    .per_device = 1,
	    .deadline_s = 10,
	    .reopened = &never,
	    .knows_reach = true,
	    .reach = {.devices = 2, .heard = 2}};
}

static void
judged(const struct stuck_facts *f, enum stuck_kind kind, const char *reason)
{
	struct stuck s;

	stuck_judge(f, &s);
	if (s.kind != kind)
		fail_msg("%s, not %s: %s", stuck_name(s.kind), stuck_name(kind), s.reason);
	if (!strstr(s.reason, reason))
		fail_msg("\"%s\" is not in \"%s\"", reason, s.reason);
}

static void
each_kind_has_words(void **state)
{
	(void)state;
	for (enum stuck_kind k = STUCK_NONE + 1; k < STUCK_KINDS; k++) {
		assert_true(stuck_name(k)[0]);
		assert_true(strlen(stuck_advice(k)) > 20);
		for (enum stuck_kind o = STUCK_NONE; o < k; o++)
			assert_string_not_equal(stuck_name(k), stuck_name(o));
	}
	assert_string_equal(stuck_name(STUCK_NONE), "");
}

static void
what_devices_were_told(void **state)
{
	static const struct {
		enum wait_reason told;
		enum stuck_kind kind;
	} rows[] = {{WAIT_NO_DATA, STUCK_NO_DATA}, {WAIT_NO_TRAINER, STUCK_NO_TRAINER},
	    {WAIT_NO_CODEC, STUCK_OLD_AGENT}, {WAIT_OLD_AGENT, STUCK_OLD_AGENT},
	    {WAIT_JOB_FULL, STUCK_JOB_FULL}, {WAIT_OUT_OF_MEMORY, STUCK_NO_MEMORY},
	    {WAIT_SPOOL_FULL, STUCK_SPOOL_FULL}, {WAIT_ABORTED, STUCK_GAVE_UP},
	    {WAIT_RESTING, STUCK_GAVE_UP}, {WAIT_NO_FIGURES, STUCK_NO_EVALUATION},
	    {WAIT_TOO_MANY_EXAMPLES, STUCK_OLD_AGENT}, {WAIT_ON_BATTERY, STUCK_OWNERS},
	    {WAIT_HOT, STUCK_OWNERS}, {WAIT_HOURS, STUCK_OWNERS}, {WAIT_CHECK, STUCK_OWNERS},
	    {WAIT_METERED, STUCK_OWNERS}, {WAIT_DATA_CAP, STUCK_OWNERS}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct stuck_facts f = facts();
		char text[64];
		f.status.waiting[rows[i].told] = 1;
		f.status.ready = 1;
		snprintf(text, sizeof(text), "needs 2 reports, and 1 can come; 1 wait (%s 1)",
		    wait_reason_name(rows[i].told));
		judged(&f, rows[i].kind, text);
		f.status.ready = 2;
		judged(&f, STUCK_NONE, "");
	}
}

static void
what_devices_did(void **state)
{
	static const struct {
		enum abort_reason reason;
		enum stuck_kind kind;
	} rows[] = {{ABORT_TRAINER_FAILED, STUCK_GAVE_UP}, {ABORT_DATA_MISMATCH, STUCK_GAVE_UP},
	    {ABORT_UNKNOWN, STUCK_GAVE_UP}, {ABORT_OUT_OF_MEMORY, STUCK_NO_MEMORY},
	    {ABORT_DEADLINE, STUCK_TOO_SLOW}, {ABORT_REFUSED, STUCK_OWNERS},
	    {ABORT_HOURS, STUCK_OWNERS}, {ABORT_STOPPED, STUCK_SILENT}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct stuck_facts f = facts();
		f.status.gave_up[rows[i].reason] = 2;
		judged(&f, rows[i].kind, "2 gave up (");
		/* They have tasks again. */
		f.out = 2;
		judged(&f, STUCK_NONE, "");
	}
}

/* More than anything else keeps most of them from it. */
static void
the_main_cause(void **state)
{
	struct stuck_facts f = facts();

	(void)state;
	f.reach = (struct stuck_reach){.devices = 9, .heard = 9, .suspended = 2};
	f.quorum = 8;
	f.status = (struct device_status){.ready = 1};
	f.status.waiting[WAIT_NO_DATA] = 3;
	f.status.waiting[WAIT_HOURS] = 2;
	f.status.waiting[WAIT_HOT] = 2;
	f.status.gave_up[ABORT_TRAINER_FAILED] = 1;
	judged(&f, STUCK_OWNERS,
	    "8 reports, and 1 can come; 7 wait (no-data 3, hot 2, hours 2); 1 gave up "
	    "(trainer-failed 1); 2 are suspended");
	f.evaluates = true;
	f.status.waiting[WAIT_NO_TRAINER] = 9;
	judged(&f, STUCK_NO_EVALUATION, "no-trainer 9");
	/* Whom the job does not select is no cause. */
	f = facts();
	f.reach = (struct stuck_reach){.devices = 1, .heard = 1};
	f.status.ready = 1;
	f.status.waiting[WAIT_INELIGIBLE] = 5;
	judged(&f, STUCK_TOO_FEW, "and 1 can come");
	f.reach = (struct stuck_reach){.suspended = 3};
	f.status.ready = 0;
	judged(&f, STUCK_SUSPENDED, "3 are suspended");
	f.reach.suspended = 0;
	judged(&f, STUCK_NO_DEVICES, "no device that it selects has joined");
}

static void
what_may_still_come(void **state)
{
	struct stuck_facts f = facts();
	struct stuck s;

	(void)state;
	/* Another job has them: the turn will come. */
	f.elsewhere = 2;
	judged(&f, STUCK_NONE, "");
	/* No job has: they are gone, though they were heard a minute ago. */
	f.elsewhere = 1;
	assert_true(stuck_judge(&f, &s) >= 60000);
	judged(&f, STUCK_SILENT, "1 did not ask for work lately");
	/* They were not heard: that takes longer to be sure of than what they were told. */
	f.reach.heard = 0;
	assert_true(stuck_judge(&f, &s) >= 60000);
	assert_int_equal(s.kind, STUCK_SILENT);
	f.reach.heard = 2;
	f.status.waiting[WAIT_NO_DATA] = 2;
	assert_true(stuck_judge(&f, &s) <= 5000);
	/* What has come counts. */
	f.accepted = 2;
	judged(&f, STUCK_NONE, "");
	f.accepted = f.out = 1;
	judged(&f, STUCK_NONE, "");
	/* A buffer takes several of one device. */
	f = facts();
	f.status.ready = 1;
	f.status.waiting[WAIT_NO_DATA] = 1;
	f.per_device = 2;
	judged(&f, STUCK_NONE, "");
	f.quorum = 3;
	judged(&f, STUCK_NO_DATA, "3 reports, and 2 can come");
	/* Nobody looked yet. */
	f.knows_reach = false;
	assert_true(stuck_wants_reach(&f));
	judged(&f, STUCK_NONE, "");
}

static void
not_the_devices(void **state)
{
	struct stuck_facts f = facts();

	(void)state;
	f.status.ready = 2;
	f.evaluation = "no data set \"t\"";
	judged(&f, STUCK_NO_EVALUATION, "no figures: no data set \"t\"");
	f.fold_failures = 2;
	f.is_open = false;
	judged(&f, STUCK_NO_EVALUATION, "");
	f.fold_failures = 3;
	judged(&f, STUCK_FOLD, "why");
	f.unready = WAIT_DISK_FULL;
	judged(&f, STUCK_NOT_READY, "disk-full: detail");
	f.state = JOB_PAUSED;
	judged(&f, STUCK_HALTED, "why");
	f.by_hand = true;
	judged(&f, STUCK_PAUSED, "why");
	f.aside = true;
	judged(&f, STUCK_SET_ASIDE, "why");
	f.state = JOB_DONE;
	judged(&f, STUCK_NONE, "");
}

/* --- over time */

static void
three_times_for_one_reason(void **state)
{
	struct stuck_reopened r = {.round = 0};
	uint32_t slow[STUCK_KINDS] = {[STUCK_TOO_SLOW] = 2};
	uint32_t failed[STUCK_KINDS] = {[STUCK_GAVE_UP] = 2, [STUCK_TOO_SLOW] = 1};
	struct stuck_facts f = facts();

	(void)state;
	f.status.ready = 2;
	f.reopened = &r;
	stuck_reopen(&r, 4, 0, slow);
	stuck_reopen(&r, 4, 0, slow);
	stuck_reopen(&r, 4, 0, failed);
	stuck_reopen(&r, 4, 0, slow);
	stuck_reopen(&r, 4, 0, slow);
	judged(&f, STUCK_NONE, "");
	stuck_reopen(&r, 4, 0, slow);
	judged(&f, STUCK_TOO_SLOW,
	    "opened again 3 times with 0 of 2 reports; 2 tasks were not answered within 10 s");
	/* A report is a step on, another round another matter. */
	stuck_reopen(&r, 4, 1, slow);
	assert_int_equal(r.times, 1);
	for (int i = 0; i < 3; i++)
		stuck_reopen(&r, 4, 1, failed);
	judged(&f, STUCK_GAVE_UP, "opened again 3 times");
	f.round = 5;
	judged(&f, STUCK_NONE, "");
	stuck_reopen(&r, 5, 1, failed);
	assert_int_equal(r.times, 1);
}

static void
said_once(void **state)
{
	struct stuck_watch w = {.since = 0};
	struct stuck_facts f = facts();
	unsigned said = 0;

	(void)state;
	f.status.waiting[WAIT_NO_DATA] = 2;
	for (uint64_t t = 0; t < 60000; t += 1000) {
		/* What it says of them follows. */
		f.status.waiting[WAIT_NO_DATA] = t < 30000 ? 2 : 1;
		said += stuck_watch_step(&w, &f, t);
		assert_int_equal(w.said.kind, t < 3000 ? STUCK_NONE : STUCK_NO_DATA);
	}
	assert_int_equal(said, 1);
	assert_non_null(strstr(w.said.reason, "no-data 1"));
	f.status.ready = 2;
	assert_true(stuck_watch_step(&w, &f, 60000));
	assert_int_equal(w.said.kind, STUCK_NONE);
	/* A moment is nothing. */
	f.status.ready = 0;
	assert_false(stuck_watch_step(&w, &f, 61000));
	f.status.ready = 2;
	assert_false(stuck_watch_step(&w, &f, 62000));
	f.status.ready = 0;
	assert_false(stuck_watch_step(&w, &f, 64500));
}

/* Who fails, tries again and fails again is told of once. */
static void
trying_again_is_no_change(void **state)
{
	struct stuck_watch w = {.since = 0};
	struct stuck_facts f = facts();
	unsigned said = 0;

	(void)state;
	f.status.gave_up[ABORT_TRAINER_FAILED] = 2;
	for (uint64_t t = 0; t < 300000; t += 1000) {
		f.out = t / 20000 % 2 ? 2 : 0;
		said += stuck_watch_step(&w, &f, t);
	}
	assert_int_equal(said, 1);
	f.out = 1;
	f.accepted = 1;
	assert_true(stuck_watch_step(&w, &f, 300000));
	assert_int_equal(w.said.kind, STUCK_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_kind_has_words),
	    cmocka_unit_test(what_devices_were_told),
	    cmocka_unit_test(what_devices_did),
	    cmocka_unit_test(the_main_cause),
	    cmocka_unit_test(what_may_still_come),
	    cmocka_unit_test(not_the_devices),
	    cmocka_unit_test(three_times_for_one_reason),
	    cmocka_unit_test(said_once),
	    cmocka_unit_test(trying_again_is_no_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
