/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../client/session/renew.c"
#include "clock_fixture.h"

#define DAY 86400
#define MADE 1800000000 /* when the certificates here were issued; they begin two days before */

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
	    /* A clock before the certificate's time: the coordinator refuses it. */
	    {-500, 60, true, RENEW_NOT_YET, 60},
	    {-3, 60, true, RENEW_NOT_YET, 60},
	    {-2, 60, true, RENEW_NO, 60},
	    {-500, 60, false, RENEW_NOT_YET, 60},
	    /* What was said by a clock that stood years behind. */
	    {0, -4000, true, RENEW_NO, 60},
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
	assert_true(skew_hear(&s.skew, now + years, steady) == 0);
	assert_string_equal(cause_of(&s), "expired");
	assert_true(renew_in(&s) <= 0);
	/* And here ours is fast: it looks expired, but is not. */
	s.held.cert.not_before -= years;
	s.held.cert.not_after -= years;
	s.skew.known = false;
	assert_string_equal(cause_of(&s), "expired");
	assert_true(skew_hear(&s.skew, now - years, steady) == 0);
	assert_null(cause_of(&s));
	/* However ours jumps then. */
	wall += (double)years;
	assert_null(cause_of(&s));
	wall -= 2 * (double)years;
	assert_null(cause_of(&s));
	wall += (double)years;
	/* Not valid yet: by ours, which proves nothing, and by the coordinator's. */
	s.held.cert.not_before += 10 * years;
	s.held.cert.not_after += 10 * years;
	assert_string_equal(cause_of(&s), "not-yet");
	assert_true(renew_in(&s) <= 0);
	s.skew.known = false;
	assert_null(cause_of(&s));
	s.held.cert.not_before = now - 10 * DAY;
	s.held.cert.not_after = now + 80 * DAY;
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
	double rest = s.renew_dates_at - backoff_now();
	assert_true(rest > 1.5 && rest < 2.5 && s.renew_at <= s.renew_dates_at);
}

/* A session with a certificate of 90 days that was renewed just now. */
static struct session *
renewed(void)
{
	static struct session s;
	static const struct events silent;

	s = (struct session){.home = "/nowhere", .locked = true, .events = &silent, .spread = 0.5};
	backoff_init(&s.backoff, 5);
	s.held.has_signer = true;
	s.held.cert.not_before = clock_unix() - 2 * DAY;
	s.held.cert.not_after = clock_unix() + 90 * DAY;
	assert_true(skew_hear(&s.skew, clock_unix(), steady) == 0);
	succeeded(&s, "due");
	return &s;
}

/* What the coordinator asks for waits for no tenth of a life. */
static void
test_asked(void **state)
{
	struct session *s = renewed();

	(void)state;
	assert_true(renew_in(s) > 40 * DAY);
	renew_asked(s, true, false);
	assert_string_equal(cause_of(s), "asked");
	assert_true(renew_in(s) >= SPREAD_S * 0.5 && renew_in(s) <= RENEW_PAUSE_MAX_S);
	/* Who was given a task with it does so before. */
	s = renewed();
	pass(RENEW_PAUSE_MAX_S);
	renew_asked(s, true, true);
	assert_true(renew_in(s) == 0);
	/* Also after failures that had made the pause long. */
	s = renewed();
	for (int i = 0; i < 20; i++)
		failed(s, "due", &(struct why){"no"});
	assert_true(renew_in(s) > 1000);
	renew_asked(s, true, false);
	assert_true(renew_in(s) <= RENEW_PAUSE_MAX_S);
	/* A coordinator that goes on asking, whatever comes, is served less and less often. */
	double last = 0;
	for (int i = 0; i < 20; i++) {
		succeeded(s, "asked");
		last = s->renew_at - backoff_now();
		assert_true(last >= RENEW_PAUSE_MIN_S);
		assert_true(i >= RENEW_CALM || last <= RENEW_PAUSE_MAX_S);
		renew_asked(s, true, false);
	}
	assert_true(last > 1000);
	/* Until it no longer asks. */
	renew_asked(s, false, false);
	pass(PAUSE_MAX_S);
	succeeded(s, "due");
	renew_asked(s, true, false);
	assert_true(renew_in(s) <= RENEW_PAUSE_MAX_S);
}

/* A refusal is answered by a renewal at once, or after a short pause, however lately another one was made for the dates' sake. Here each
 * renewal fails, for the home is none. */
static void
test_refused(void **state)
{
	struct session *s = renewed();

	(void)state;
	pass(RENEW_PAUSE_MAX_S);
	assert_true(renew_in(s) > 40 * DAY);
	assert_false(renew_refused(s, clock_unix() + 400 * DAY));
	assert_int_equal(s->renew_failures, 1);
	assert_true(s->refused);
	/* Not within the pause. */
	assert_false(renew_refused(s, clock_unix() + 400 * DAY));
	assert_int_equal(s->renew_failures, 1);
	pass(PAUSE_FIRST_S);
	assert_false(renew_refused(s, clock_unix() + 400 * DAY));
	assert_int_equal(s->renew_failures, 2);
	/* A date within the certificate's time contradicts the refusal: a long pause becomes short, three times in a row. */
	for (int i = 0; i < 20; i++)
		failed(s, "refused", &(struct why){"no"});
	s->renew_refused = 0;
	for (int i = 0; i < RENEW_CALM; i++) {
		s->renew_at = steady + PAUSE_MAX_S;
		assert_false(renew_refused(s, clock_unix()));
		assert_true(s->renew_at - steady <= RENEW_PAUSE_MAX_S);
		pass(RENEW_PAUSE_MAX_S);
		assert_false(renew_refused(s, clock_unix()));
		assert_int_equal(s->renew_refused, i + 1);
	}
	s->renew_at = steady + PAUSE_MAX_S;
	assert_false(renew_refused(s, clock_unix()));
	assert_true(s->renew_at - steady > PAUSE_MAX_S - 1);
	const unsigned before = s->revision;
	renew_accepted(s);
	assert_int_equal(s->revision, before + 1);
	renew_accepted(s);
	assert_int_equal(s->revision, before + 1);
	assert_false(renew_refused(s, clock_unix()));
	assert_true(s->renew_at - steady <= RENEW_PAUSE_MAX_S);
}

/* Renewals that a refusal led to and that did not end it come less often after three. */
static void
test_vain(void **state)
{
	struct session *s = renewed();

	(void)state;
	for (unsigned i = 1; i <= 12; i++) {
		s->renew_refused = i;
		succeeded(s, "refused");
		double pause = s->renew_at - steady;
		assert_true(pause >= RENEW_PAUSE_MIN_S && pause <= PAUSE_MAX_S);
		assert_true(i > RENEW_CALM || pause <= RENEW_PAUSE_MAX_S);
		assert_true(i < 7 || pause >= 4 * RENEW_PAUSE_MAX_S);
	}
	assert_true(s->renew_at - steady >= PAUSE_MAX_S / 2);
	/* A step of a clock, here or there, ends all that. */
	renew_hurry(s);
	assert_true(s->renew_at - steady >= RENEW_PAUSE_MIN_S);
	assert_true(s->renew_at - steady <= RENEW_PAUSE_MAX_S);
	assert_true(s->renew_dates_at - steady <= RENEW_PAUSE_MAX_S);
	/* And makes no pause longer. */
	s->renew_at = steady - 1;
	renew_hurry(s);
	assert_true(s->renew_at < steady);
}

/* --- clocks that step */

static void
test_steps(void **state)
{
	static const double jumps[] = {-12.0 * 365 * DAY, -DAY, -301, 301, 2 * DAY, 400.0 * DAY};
	struct skew k = {.known = false};

	(void)state;
	assert_true(skew_look(&k) == 0);
	assert_int_equal(skew_now(&k), clock_unix());
	for (size_t i = 0; i < sizeof(jumps) / sizeof(*jumps); i++) {
		pass(1000);
		wall += 299;
		assert_true(skew_look(&k) == 0);
		wall -= 299;
		assert_true(skew_look(&k) == 0);
		wall += jumps[i];
		pass(1);
		assert_true(fabs(skew_look(&k) - jumps[i]) < 0.5);
		assert_true(skew_look(&k) == 0);
		wall -= jumps[i];
		assert_true(fabs(skew_look(&k) + jumps[i]) < 0.5);
	}
	/* The coordinator's, which an answer tells; nothing that happens to ours moves it. */
	const int64_t there = clock_unix() + 1000000;
	assert_true(skew_hear(&k, there, steady) == 0);
	assert_int_equal(skew_offset(&k), 1000000);
	pass(500);
	wall -= 1e8;
	assert_int_equal(skew_now(&k), there + 500);
	assert_int_equal(skew_offset(&k), 101000000);
	wall += 1e8;
	assert_true(skew_hear(&k, there + 799, steady) == 0);
	assert_true(skew_hear(&k, there + 400 * DAY, steady) > 399.0 * DAY);
	assert_int_equal(skew_now(&k), there + 400 * DAY);
	assert_true(skew_hear(&k, there, steady) < -399.0 * DAY);
	/* A long answer, whose date came before its body. */
	pass(4000);
	assert_true(skew_hear(&k, there, steady - 4000) == 0);
	assert_int_equal(skew_now(&k), there + 4000);
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
	    cmocka_unit_test(test_asked),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_vain),
	    cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
