#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../client/session/renew.c"

#define DAY 86400
#define MADE 1700000000 /* when the certificates here were issued; they begin two days before */

/* A certificate of 90 days, of which the coordinator says that it is to be renewed after 60. */
#define YEARLY MADE - 2 * DAY, MADE + 90 * DAY

static void
check(struct renew_facts f, enum renew_need need, int64_t due_day)
{
	int64_t at = 0;

	assert_int_equal(renew_needed(&f, &at), need);
	assert_int_equal((at - MADE) / DAY, due_day);
}

static void
test_dates(void **state)
{
	(void)state;
	static const struct {
		int day; /* now */
		int after; /* renew_after; 0: not said */
		bool signer;
		enum renew_need need;
		int due;
	} rows[] = {
	    {0, 60, true, RENEW_NO, 60},
	    {59, 60, true, RENEW_NO, 60},
	    {60, 60, true, RENEW_DUE, 60},
	    {89, 60, true, RENEW_DUE, 60},
	    {90, 60, true, RENEW_EXPIRED, 60},
	    {4000, 60, true, RENEW_EXPIRED, 60},
	    {0, 60, false, RENEW_SIGNER, 60},
	    {61, 60, false, RENEW_DUE, 60},
	    /* The certificate's own dates say it as well, and the earlier one counts. */
	    {59, 0, true, RENEW_NO, 60},
	    {60, 0, true, RENEW_DUE, 60},
	    {60, 3000, true, RENEW_DUE, 60},
	    {10, 10, true, RENEW_DUE, 10},
	    {9, 10, true, RENEW_NO, 10},
	    /* A clock before the certificate's time: nothing to do. */
	    {-500, 60, true, RENEW_NO, 60},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check(
		    (struct renew_facts){MADE + rows[i].day * DAY, YEARLY,
			rows[i].after ? MADE + (int64_t)rows[i].after * DAY : 0, rows[i].signer, 0},
		    rows[i].need, rows[i].due);
}

/* Certificates of some seconds, as tests use them, and one without the two days before. */
static void
test_short(void **state)
{
	struct renew_facts f = {MADE + 19, MADE - 2 * DAY, MADE + 30, 0, true, 0};
	int64_t at;

	(void)state;
	assert_int_equal(renew_needed(&f, &at), RENEW_NO);
	assert_int_equal(at, MADE + 20);
	f.now = MADE + 20;
	assert_int_equal(renew_needed(&f, &at), RENEW_DUE);
	f.not_before = MADE;
	assert_int_equal(renew_needed(&f, &at), RENEW_DUE);
	assert_int_equal(at, MADE + 20);
}

/* Devices that joined together do not renew together, and none waits past the first quarter of the time left. */
static void
test_spread(void **state)
{
	struct renew_facts f = {MADE, YEARLY, MADE + 50 * DAY, true, 0.5};
	int64_t at;

	(void)state;
	assert_int_equal(renew_needed(&f, &at), RENEW_NO);
	assert_int_equal(at, MADE + 55 * DAY);
	f.spread = 1;
	assert_int_equal(renew_needed(&f, &at), RENEW_NO);
	assert_int_equal(at, MADE + 60 * DAY);
}

/* A device whose clock stands years ahead or behind goes by the coordinator's, once an answer has told it. */
static void
test_clock(void **state)
{
	static struct session s = {.home = "/nowhere", .locked = true};
	const int64_t now = clock_unix(), years = 3 * 365 * (int64_t)DAY;

	(void)state;
	s.held.cert.not_before = now - 10 * DAY;
	s.held.cert.not_after = now + 80 * DAY;
	s.held.has_signer = true;
	assert_null(cause_of(&s));
	assert_true(renew_in(&s) > 40 * DAY);
	/* The same certificate is long over by the coordinator's clock: ours is slow. */
	s.clock_offset = years;
	assert_null(cause_of(&s));
	s.clock_known = true;
	assert_string_equal(cause_of(&s), "expired");
	assert_true(renew_in(&s) <= 0);
	/* And here ours is fast: it looks expired, but is not. */
	s.held.cert.not_before -= years;
	s.held.cert.not_after -= years;
	s.clock_known = false;
	assert_string_equal(cause_of(&s), "expired");
	s.clock_known = true;
	s.clock_offset = -years;
	assert_null(cause_of(&s));
	/* Asked for by the coordinator, or for the signer's sake: whatever the dates. */
	s.renew_wanted = true;
	assert_string_equal(cause_of(&s), "asked");
	s.renew_wanted = false;
	s.held.has_signer = false;
	assert_string_equal(cause_of(&s), "signer");
	s.locked = false;
	assert_null(cause_of(&s));
}

/* Failures wait longer and longer, but never more than an hour; success starts over. */
static void
test_failures(void **state)
{
	static struct session s = {.home = "/nowhere"};
	static const struct events silent;
	const struct why why = {"no"};
	double last = 0;

	(void)state;
	s.events = &silent;
	for (int i = 0; i < 20; i++) {
		failed(&s, "due", &why);
		double pause = s.renew_at - backoff_now();
		assert_true(pause > 0.9 && pause <= PAUSE_MAX_S);
		assert_true(i < 12 || pause >= PAUSE_MAX_S / 2 - 1);
		assert_true(pause > last / 5);
		last = pause;
	}
	s.held.cert.not_before = clock_unix() - 2 * DAY;
	s.held.cert.not_after = clock_unix() + 10;
	succeeded(&s, "due");
	assert_int_equal(s.renew_failures, 0);
	/* A tenth of ten seconds and one more: not at once again, though the dates say so. */
	assert_true(s.renew_at - backoff_now() > 1.5 && s.renew_at - backoff_now() < 2.5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_dates),
	    cmocka_unit_test(test_short),
	    cmocka_unit_test(test_spread),
	    cmocka_unit_test(test_clock),
	    cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
