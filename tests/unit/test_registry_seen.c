/* stages: gcc clang openssl address */
#include "audit_rows.h"
#include "job.h"
#include "registry_fixture.h"
#include "registry_inside.h"

/* The clock on the wall, which a test may move. */
static double wall_moved;

double
clock_wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9 + wall_moved;
}

int64_t
clock_unix(void)
{
	return (int64_t)clock_wall();
}

static double
monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint64_t
clock_ms(void)
{
	return (uint64_t)(monotonic() * 1000);
}

uint64_t
clock_elapsed_ms(void)
{
	return (uint64_t)(monotonic() * 1000);
}

double
clock_seconds(void)
{
	return monotonic() + 10000; /* whenever this machine was started */
}

/* --- what is noted since the start */

static void
contacts(void **state)
{
	struct fixture *f = *state;
	struct store_device a = device(1, "gate"), b = device(2, "press");
	struct registry_view v;
	struct registry_report report;

	registry_report(f->r, &report);
	assert_int_equal(report.joined + report.seen, 0);
	put(f, &a);
	put(f, &b);
	registry_report(f->r, &report);
	assert_int_equal(report.joined, 2);
	assert_int_equal(report.seen, 0);
	registry_touch(f->r, a.id, "1.0", "no-data");
	registry_touch(f->r, a.id, NULL, NULL);
	registry_count_report(f->r, a.id);
	registry_count_report(f->r, a.id);
	assert_int_equal(registry_get(f->r, a.id, &v), ERR_OK);
	assert_string_equal(v.seen.agent, "1.0");
	assert_string_equal(v.seen.reason, "no-data");
	assert_int_equal(v.reports, 2);
	assert_true(v.seen.last_contact > clock_wall() - 60);
	registry_report(f->r, &report);
	assert_int_equal(report.seen, 1);
	/* A changed row keeps them; a reason may be cleared; strangers are ignored. */
	strcpy(a.name, "gate-2");
	put(f, &a);
	registry_touch(f->r, a.id, NULL, "");
	assert_int_equal(registry_get(f->r, a.id, &v), ERR_OK);
	assert_string_equal(v.row.name, "gate-2");
	assert_string_equal(v.seen.agent, "1.0");
	assert_string_equal(v.seen.reason, "");
	assert_int_equal(v.reports, 2);
	memset(a.id, 9, 32);
	registry_touch(f->r, a.id, "2.0", "x");
	registry_count_report(f->r, a.id);
}

static void
counts(void **state)
{
	struct fixture *f = *state;
	struct store_device a = device(1, "gate"), b = device(2, "press");
	struct registry_report report;

	put(f, &a);
	put(f, &b);
	b.state = DEVICE_REVOKED;
	put(f, &b);
	registry_touch(f->r, a.id, NULL, NULL);
	registry_report(f->r, &report);
	assert_int_equal(report.joined, 2);
	assert_int_equal(report.by_state[DEVICE_ACTIVE], 1);
	assert_int_equal(report.by_state[DEVICE_REVOKED], 1);
	assert_int_equal(report.by_state[DEVICE_SUSPENDED] + report.by_state[DEVICE_LEFT], 0);
	assert_int_equal(report.seen, 1);
	registry_forget(f->r, a.id);
	registry_report(f->r, &report);
	assert_int_equal(report.seen, 0);
	assert_int_equal(report.by_state[DEVICE_ACTIVE], 1);
}

/* Who may not work any more is not there, from that moment on. */
static void
not_there(void **state)
{
	static const enum device_state states[] = {DEVICE_SUSPENDED, DEVICE_REVOKED, DEVICE_LEFT};
	struct fixture *f = *state;
	struct registry_report report;

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		struct store_device a = device(1, "gate");
		put(f, &a);
		registry_touch(f->r, a.id, NULL, NULL);
		registry_report(f->r, &report);
		assert_int_equal(report.seen, 1);
		a.state = states[i];
		put(f, &a);
		registry_report(f->r, &report);
		assert_int_equal(report.seen, 0);
	}
}

/* Contacts are counted by the second: one that moves is counted once, one that is too old not at all. */
static void
seconds(void **state)
{
	struct fixture *f = *state;
	struct registry_report report;
	double now = clock_seconds(), long_ago = now - REGISTRY_SEEN_SECONDS - 5;

	registry_counts_heard(f->r, NAN, long_ago);
	registry_counts_heard(f->r, NAN, now - 100 - REGISTRY_SECONDS);
	registry_counts_heard(f->r, NAN, now - 100);
	registry_counts_heard(f->r, NAN, now - 100);
	registry_report(f->r, &report);
	assert_int_equal(report.seen, 2);
	registry_counts_heard(f->r, now - 100, now);
	registry_counts_heard(f->r, long_ago, now);
	registry_report(f->r, &report);
	assert_int_equal(report.seen, 3);
}

#define YEARS (12 * 365 * 86400.0)

/* Who is there is counted whatever the clock on the wall does. */
static void
jumps(void **state)
{
	static const double moves[] = {-YEARS, -86400, 2 * 86400, 400 * 86400.0};
	struct fixture *f = *state;
	struct store_device a = device(1, "gate"), b = device(2, "press");
	struct registry_report report;
	struct registry_view v;

	put(f, &a);
	put(f, &b);
	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		registry_touch(f->r, a.id, NULL, NULL);
		wall_moved = moves[i];
		registry_touch(f->r, b.id, NULL, NULL);
		registry_report(f->r, &report);
		assert_int_equal(report.seen, 2);
		wall_moved = 0;
		registry_report(f->r, &report);
		assert_int_equal(report.seen, 2);
	}
	/* Its time with us is not years either. */
	assert_int_equal(registry_get(f->r, a.id, &v), ERR_OK);
	assert_true(v.heard_seconds < 60 && clock_seconds() - v.heard_from < 60);
	for (size_t i = 0; i < 2; i++) {
		registry_forget(f->r, i ? a.id : b.id);
		registry_report(f->r, &report);
		assert_int_equal(report.seen, 1 - i);
	}
}

/* What was noted by a clock that stood far ahead, or behind, makes nobody present after a restart. */
static void
jumps_over_a_restart(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct registry_report report;

	assert_int_equal(store_write(f->store, write_device, &d, &f->why), ERR_OK);
	put(f, &d);
	for (int i = 0; i < 3; i++) {
		wall_moved = i == 0 ? YEARS : i == 1 ? -YEARS : 0;
		registry_touch(f->r, d.id, NULL, NULL);
		registry_flush(f->r, f->store);
		/* What was queued before is done then. */
		assert_int_equal(store_write(f->store, write_device, &d, &f->why), ERR_OK);
		wall_moved = 0;
		registry_free(f->r);
		f->r = NULL;
		assert_int_equal(registry_new(&f->r, f->store, &f->why), ERR_OK);
		registry_report(f->r, &report);
		assert_int_equal(report.seen, i == 2);
	}
	registry_touch(f->r, d.id, NULL, NULL);
	registry_report(f->r, &report);
	assert_int_equal(report.seen, 1);
}

static uint64_t
locked_out(struct fixture *f)
{
	struct registry_report report;

	registry_report(f->r, &report);
	return report.locked_out;
}

/* An active device whose certificate is refused is told apart until it is heard of, whatever the clock shows. */
static void
lock_outs(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct registry_view v;

	put(f, &d);
	assert_int_equal(locked_out(f), 0);
	wall_moved = YEARS;
	registry_note_refusal(f->r, d.id, PROBLEM_STALE_ROUND);
	assert_int_equal(locked_out(f), 0);
	registry_note_refusal(f->r, d.id, PROBLEM_EXPIRED_CERTIFICATE);
	registry_note_refusal(f->r, d.id, PROBLEM_EXPIRED_CERTIFICATE);
	assert_int_equal(locked_out(f), 1);
	assert_int_equal(registry_get(f->r, d.id, &v), ERR_OK);
	assert_int_equal(v.locked_out, PROBLEM_EXPIRED_CERTIFICATE);
	/* A changed row keeps it; it counts among the active ones alone. */
	put(f, &d);
	assert_int_equal(locked_out(f), 1);
	d.state = DEVICE_SUSPENDED;
	put(f, &d);
	assert_int_equal(locked_out(f), 0);
	d.state = DEVICE_ACTIVE;
	put(f, &d);
	assert_int_equal(locked_out(f), 1);
	wall_moved = 0;
	registry_touch(f->r, d.id, NULL, NULL);
	assert_int_equal(locked_out(f), 0);
	registry_note_refusal(f->r, d.id, PROBLEM_RETIRED_CA);
	assert_int_equal(locked_out(f), 1);
	registry_forget(f->r, d.id);
	assert_int_equal(locked_out(f), 0);
}

/* --- from the store */

static void
loaded(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate"), bad = device(2, "bad");
	struct select_spec s = {
	    .labels = {{"site", "north"}}, .label_count = 1, .percent = {0, 100}};

	strcpy(d.labels, "{\"site\":\"north\"}");
	assert_int_equal(store_write(f->store, write_device, &d, &f->why), ERR_OK);
	registry_free(f->r);
	f->r = NULL;
	assert_int_equal(registry_new(&f->r, f->store, &f->why), ERR_OK);
	struct x509_info c = certificate(&d);
	assert_int_equal(identify(f, &c, NOW).problem, PROBLEM_NONE);
	assert_true(registry_matches(f->r, d.id, &s));
	/* A damaged row stops the start: nobody is left out silently. */
	strcpy(bad.labels, "{");
	assert_int_equal(store_write(f->store, write_device, &bad, &f->why), ERR_OK);
	registry_free(f->r);
	f->r = NULL;
	assert_int_equal(registry_new(&f->r, f->store, &f->why), ERR_CORRUPT);
	assert_null(f->r);
}

/* --- what is kept of a device */

static void
machines(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct offer *offer = calloc(1, sizeof(*offer));
	struct registry_view v;

	assert_non_null(offer);
	put(f, &d);
	assert_int_equal(registry_get(f->r, d.id, &v), ERR_OK);
	assert_true(isnan(v.seen.clock_offset) && isnan(v.seen.disk_free));
	assert_false(registry_note_offer(f->r, d.id, offer));
	memset(offer->machine, '1', 64);
	assert_false(registry_note_offer(f->r, d.id, offer));
	assert_false(registry_note_offer(f->r, d.id, offer));
	memset(offer->machine, '2', 64);
	assert_true(registry_note_offer(f->r, d.id, offer));
	/* Told once, however often they take turns. */
	assert_false(registry_note_offer(f->r, d.id, offer));
	memset(offer->machine, '1', 64);
	assert_false(registry_note_offer(f->r, d.id, offer));
	assert_int_equal(registry_get(f->r, d.id, &v), ERR_OK);
	assert_true(v.seen.machine[0] == 0x11 && v.seen.other_machine[0] == 0x22);
	assert_true(isnan(v.seen.clock_offset));
	registry_forget_machines(f->r, d.id);
	assert_false(registry_note_offer(f->r, d.id, offer));
	offer->time_ms = (uint64_t)((clock_wall() - 3600) * 1000);
	offer->has_disk_free = true;
	offer->disk_free_bytes = 77;
	(void)registry_note_offer(f->r, d.id, offer);
	assert_int_equal(registry_get(f->r, d.id, &v), ERR_OK);
	assert_true(v.seen.clock_offset > -3660 && v.seen.clock_offset < -3540);
	assert_true(v.seen.disk_free == 77);
	free(offer);
}

static enum err
write_keys(struct store_db *db, void *arg, struct why *why)
{
	const struct store_device *d = arg;
	uint8_t key[32];

	(void)why;
	memset(key, 77, sizeof(key));
	enum err e = store_key_put(db, key, d->id);
	return e ? e : store_key_put(db, key, d->id);
}

static void
kept_over_a_restart(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate"), stranger = device(2, "erased");
	struct registry_view before, after;

	assert_int_equal(store_write(f->store, write_device, &d, &f->why), ERR_OK);
	put(f, &d);
	put(f, &stranger);
	registry_touch(f->r, d.id, "1.0", "no-data");
	registry_touch(f->r, stranger.id, "1.0", "no-data");
	registry_note_refusal(f->r, d.id, PROBLEM_FORBIDDEN);
	registry_note_abort(f->r, d.id, "deadline");
	assert_int_equal(registry_get(f->r, d.id, &before), ERR_OK);
	/* One without a row does not keep the others from being written. */
	registry_flush(f->r, f->store);
	assert_int_equal(store_write(f->store, write_keys, &d, &f->why), ERR_EXISTS);
	registry_free(f->r);
	f->r = NULL;
	assert_int_equal(registry_new(&f->r, f->store, &f->why), ERR_OK);
	assert_int_equal(registry_get(f->r, d.id, &after), ERR_OK);
	assert_string_equal(after.seen.agent, "1.0");
	assert_string_equal(after.seen.reason, "no-data");
	assert_string_equal(after.seen.refused, "forbidden");
	assert_string_equal(after.seen.aborted, "deadline");
	assert_true(after.seen.last_contact == before.seen.last_contact);
	assert_true(after.seen.aborted_at == before.seen.aborted_at);
	assert_true(isnan(after.seen.disk_free));
	assert_int_equal(registry_get(f->r, stranger.id, &after), ERR_NOTFOUND);
}

/* --- what the database says now */

/* Two changes of a device are durable one after the other, and the first to come to the registry is the second's: what is
 * durable stays. */
static void
late_follower(void **state)
{
	struct fixture *f = *state;
	struct store_device early = device(1, "one"), late = early;
	struct registry_view v;

	late.state = DEVICE_REVOKED;
	assert_int_equal(store_write(f->store, write_device, &early, &f->why), ERR_OK);
	assert_int_equal(store_write(f->store, write_device, &late, &f->why), ERR_OK);
	assert_int_equal(registry_follow(f->r, late.id), ERR_OK);
	assert_int_equal(registry_follow(f->r, early.id), ERR_OK);
	assert_int_equal(registry_get(f->r, early.id, &v), ERR_OK);
	assert_int_equal(v.row.state, DEVICE_REVOKED);
	assert_false(registry_is_active(f->r, early.id));
}

/* Inside of a read nothing else can be read: a database that fails. */
static enum err
follow_without_reading(struct store_db *db, void *arg, struct why *why)
{
	struct fixture *f = arg;
	struct store_device d = device(1, "one"), stranger = device(2, "two");

	(void)db;
	(void)why;
	assert_int_not_equal(registry_follow(f->r, d.id), ERR_OK);
	assert_int_not_equal(registry_follow(f->r, stranger.id), ERR_OK);
	registry_settle(f->r);
	return ERR_OK;
}

static void
follower_who_cannot_read(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "one"), revoked = d;
	struct x509_info c = certificate(&d);
	struct registry_view v;

	assert_int_equal(store_write(f->store, write_device, &d, &f->why), ERR_OK);
	assert_int_equal(registry_follow(f->r, d.id), ERR_OK);
	assert_int_equal(identify(f, &c, NOW).problem, PROBLEM_NONE);
	/* Revoked, and nobody can tell: it may do nothing meanwhile. */
	revoked.state = DEVICE_REVOKED;
	assert_int_equal(store_write(f->store, write_device, &revoked, &f->why), ERR_OK);
	assert_int_equal(store_read(f->store, follow_without_reading, f, &f->why), ERR_OK);
	assert_int_equal(identify(f, &c, NOW).problem, PROBLEM_UNAVAILABLE);
	assert_int_equal(identify(f, &c, NOW).roles, ROLE_ANYONE);
	assert_false(registry_is_active(f->r, d.id));
	memset(c.spki, 2 + 100, sizeof(c.spki));
	assert_int_equal(registry_get(f->r, c.spki, &v), ERR_NOTFOUND);
	/* The database is back. */
	registry_settle(f->r);
	c = certificate(&d);
	assert_int_equal(identify(f, &c, NOW).problem, PROBLEM_DEVICE_REVOKED);
	assert_int_equal(store_write(f->store, write_device, &d, &f->why), ERR_OK);
	assert_int_equal(store_read(f->store, follow_without_reading, f, &f->why), ERR_OK);
	assert_int_equal(identify(f, &c, NOW).problem, PROBLEM_UNAVAILABLE);
	assert_int_equal(registry_follow(f->r, d.id), ERR_OK);
	assert_int_equal(identify(f, &c, NOW).problem, PROBLEM_NONE);
	assert_true(registry_is_active(f->r, d.id));
}

/* --- erased */

struct count {
	uint8_t device[32];
	unsigned n;
};

static enum err
count_seen(void *ctx, const struct store_seen *seen)
{
	struct count *c = ctx;

	c->n += memcmp(c->device, seen->device, 32) == 0;
	return ERR_OK;
}

static enum err
each_seen(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_seen_each(db, count_seen, arg);
}

/* How many rows say what a device was heard to say, once all that is queued is written. */
static unsigned
seen_rows(struct fixture *f, const struct store_device *d)
{
	struct count c = {.n = 0};
	struct store_device other = device(200, "other");

	memcpy(c.device, d->id, 32);
	registry_flush(f->r, f->store);
	assert_int_equal(store_write(f->store, write_device, &other, &f->why), ERR_OK);
	assert_int_equal(store_read(f->store, each_seen, &c, &f->why), ERR_OK);
	return c.n;
}

static enum err
forget_seen(struct store_db *db, void *arg, struct why *why)
{
	struct store_device *d = arg;
	struct store_erased counts;

	(void)why;
	enum err e = store_audit_erase(db, d->id, NULL, NULL, &counts);
	registry_erase(d);
	return e ? e : store_device_put(db, d);
}

static void
knock(struct fixture *f, const struct store_device *d)
{
	struct offer *offer = calloc(1, sizeof(*offer));

	assert_non_null(offer);
	memset(offer->machine, '1', 64);
	offer->time_ms = 1;
	registry_touch(f->r, d->id, "1.0", "no-data");
	registry_note_refusal(f->r, d->id, PROBLEM_DEVICE_REVOKED);
	registry_note_abort(f->r, d->id, "deadline");
	registry_note_offer(f->r, d->id, offer);
	free(offer);
}

/* Who was erased may knock as often as it likes: nothing is noted again, not in memory and not in the database. */
static void
erased_who_knocks(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct registry_view v;

	assert_int_equal(store_write(f->store, write_device, &d, &f->why), ERR_OK);
	assert_int_equal(registry_follow(f->r, d.id), ERR_OK);
	assert_false(registry_is_erased(&d));
	knock(f, &d);
	assert_int_equal(seen_rows(f, &d), 1);
	/* What is on its way to the database when the row is erased does not arrive. */
	knock(f, &d);
	assert_int_equal(store_write(f->store, forget_seen, &d, &f->why), ERR_OK);
	assert_true(registry_is_erased(&d));
	assert_int_equal(seen_rows(f, &d), 0);
	assert_int_equal(registry_follow(f->r, d.id), ERR_OK);
	registry_forget(f->r, d.id);
	knock(f, &d);
	assert_int_equal(seen_rows(f, &d), 0);
	assert_int_equal(registry_get(f->r, d.id, &v), ERR_OK);
	assert_true(isnan(v.seen.last_contact) && isnan(v.seen.refused_at));
	assert_string_equal(v.seen.agent, "");
	assert_string_equal(v.seen.refused, "");
}

/* What a suspended identity may: renew by its present key, until that is in doubt; and try out what it got. */
static void
suspended(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct x509_info c = certificate(&d), old = certificate(&d);

	d.state = DEVICE_SUSPENDED;
	memset(d.previous, 9, sizeof(d.previous));
	memset(old.spki, 9, sizeof(old.spki));
	put(f, &d);
	struct identity who = identify(f, &c, NOW);
	assert_int_equal(who.roles, ROLE_ANYONE | ROLE_SUSPENDED);
	assert_int_equal(who.problem, PROBLEM_DEVICE_SUSPENDED);
	assert_int_equal(identify(f, &c, NOW + 1000).roles, ROLE_ANYONE | ROLE_SUSPENDED);
	assert_int_equal(identify(f, &old, NOW).roles, ROLE_ANYONE);
	assert_false(registry_tries_out(f->r, d.id));
	assert_true(registry_note_renewal(f->r, d.id, 3600));
	assert_true(registry_tries_out(f->r, d.id));
	assert_false(registry_tries_out(f->r, d.previous));
	d.claim = CLAIM_CONTESTED;
	put(f, &d);
	assert_int_equal(identify(f, &c, NOW).roles, ROLE_ANYONE);
	d.claim = CLAIM_NONE;
	d.state = DEVICE_REVOKED;
	put(f, &d);
	assert_int_equal(identify(f, &c, NOW).roles, ROLE_ANYONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_REGISTRY(contacts),
	    WITH_REGISTRY(counts),
	    WITH_REGISTRY(not_there),
	    WITH_REGISTRY(seconds),
	    WITH_REGISTRY(jumps),
	    WITH_REGISTRY(jumps_over_a_restart),
	    WITH_REGISTRY(lock_outs),
	    WITH_REGISTRY(loaded),
	    WITH_REGISTRY(machines),
	    WITH_REGISTRY(kept_over_a_restart),
	    WITH_REGISTRY(late_follower),
	    WITH_REGISTRY(follower_who_cannot_read),
	    WITH_REGISTRY(erased_who_knocks),
	    WITH_REGISTRY(suspended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
