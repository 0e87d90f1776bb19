/* stages: gcc clang openssl address */
/* Which keys a restored state takes for newer than its own: by certificate, dates and what else is known; whose request decides. */
#include "claim.c"

#include "registry_fixture.h"
#include "registry_inside.h"

#define BACKUP 500000.0 /* when the backup's key became the device's */
#define RESTORED 900000.0
#define BACK (2 * 86400) /* certificates begin so long before they are made */

static const uint8_t authority[X509_KEY_ID_LEN] = {7};

/* --- a registry whose state was restored */

static enum err
write_restored(struct store_db *db, void *arg, struct why *why)
{
	enum err e = store_device_put(db, arg);

	(void)why;
	e = e ? e : store_claims_restored(db);
	return e ? e : store_keys_dated(db, RESTORED);
}

/* The device as the backup had it. */
static struct store_device
restore(struct fixture *f)
{
	struct store_device d = device(1, "gate");

	d.key_at = BACKUP;
	assert_int_equal(store_write(f->store, write_restored, &d, &f->why), ERR_OK);
	registry_free(f->r);
	assert_int_equal(registry_new(&f->r, f->store, &f->why), ERR_OK);
	memcpy(f->r->ca[0].key, authority, sizeof(authority));
	f->r->ca[0].generation = 1;
	f->r->ca_count = 1;
	d.restored_key_at = BACKUP;
	d.claim = CLAIM_NONE;
	return d;
}

/* Of another key of the device, issued then. */
static struct x509_info
newer(const struct store_device *d, uint8_t key, double issued)
{
	struct x509_info c = certificate(d);

	memset(c.spki, key, sizeof(c.spki));
	memcpy(c.issuer_key, authority, sizeof(authority));
	c.not_before = (int64_t)issued - BACK;
	return c;
}

static struct x509_info
own(const struct store_device *d)
{
	struct x509_info c = certificate(d);

	memcpy(c.issuer_key, authority, sizeof(authority));
	return c;
}

/* --- who may ask */

static void
asks(void **state)
{
	struct fixture *f = *state;
	struct store_device d = restore(f), stranger = device(9, "");

	struct x509_info cert = newer(&d, 50, 700000);
	struct identity who = identify(f, &cert, NOW);
	assert_true(who.claims && who.issued_at == 700000 && who.roles == ROLE_ANYONE);
	assert_int_equal(who.problem, PROBLEM_UNAVAILABLE);
	assert_memory_equal(who.device, d.id, 32);
	/* The same second as the backup's key; before it. */
	cert = newer(&d, 50, BACKUP);
	assert_true(identify(f, &cert, NOW).claims);
	cert = newer(&d, 50, BACKUP - 1);
	who = identify(f, &cert, NOW);
	assert_true(!who.claims && who.problem == PROBLEM_UNKNOWN_DEVICE);
	/* Of a CA that is trusted no more, or of none. */
	cert = newer(&d, 50, 700000);
	cert.issuer_key[0]++;
	assert_false(identify(f, &cert, NOW).claims);
	cert.issuer_key[0]--;
	f->r->ca_count = 0;
	assert_false(identify(f, &cert, NOW).claims);
	f->r->ca_count = 1;
	/* Of a device that is not here; of no device. */
	cert = newer(&stranger, 50, 700000);
	assert_false(identify(f, &cert, NOW).claims);
	cert = newer(&d, 50, 700000);
	strcpy(cert.common_name, "gate");
	assert_false(identify(f, &cert, NOW).claims);
	/* A state that is no copy. */
	cert = newer(&d, 50, 700000);
	f->r->restored = false;
	who = identify(f, &cert, NOW);
	assert_true(!who.claims && who.problem == PROBLEM_UNKNOWN_DEVICE);
}

/* Somebody else's key claims nothing, and who is not active learns that. */
static void
asks_in_vain(void **state)
{
	static const struct {
		enum device_state state;
		enum problem_type problem;
	} rows[] = {{DEVICE_SUSPENDED, PROBLEM_DEVICE_SUSPENDED},
	    {DEVICE_REVOKED, PROBLEM_DEVICE_REVOKED}, {DEVICE_LEFT, PROBLEM_DEVICE_LEFT}};
	struct fixture *f = *state;
	struct store_device d = restore(f), other = device(2, "other");

	put(f, &other);
	struct x509_info cert = newer(&d, 50, 700000);
	memcpy(cert.spki, other.spki, sizeof(cert.spki));
	struct identity who = identify(f, &cert, NOW);
	assert_true(!who.claims && who.problem == PROBLEM_UNKNOWN_DEVICE);
	cert = newer(&d, 50, 700000);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		d.state = rows[i].state;
		put(f, &d);
		who = identify(f, &cert, NOW);
		assert_true(!who.claims && who.problem == rows[i].problem);
	}
	d.state = DEVICE_ACTIVE;
	d.claim = CLAIM_SETTLED;
	put(f, &d);
	who = identify(f, &cert, NOW);
	assert_true(!who.claims && who.problem == PROBLEM_UNKNOWN_DEVICE);
	/* Contested: each key once, for the list. */
	d.state = DEVICE_SUSPENDED;
	d.claim = CLAIM_CONTESTED;
	put(f, &d);
	who = identify(f, &cert, NOW);
	assert_true(who.claims && who.problem == PROBLEM_DEVICE_SUSPENDED);
	registry_claim_end(f->r, d.id, cert.spki, false);
	assert_false(identify(f, &cert, NOW).claims);
}

static enum err
read_claim(struct store_db *db, void *arg, struct why *why)
{
	struct store_device *d = arg;
	uint8_t id[32];

	(void)why;
	memcpy(id, d->id, sizeof(id));
	return store_device_get(db, id, d);
}

/* Use of the backup's key is known at once, and a row; while a claim is decided it may do nothing, and one is decided at a time. */
static void
used(void **state)
{
	struct fixture *f = *state;
	struct store_device d = restore(f);
	struct x509_info cert = own(&d);
	bool was = true;

	assert_true(registry_claim_begin(f->r, d.id, &was) && !was);
	assert_false(registry_claim_begin(f->r, d.id, &was));
	assert_int_equal(identify(f, &cert, NOW).problem, PROBLEM_UNAVAILABLE);
	registry_claim_end(f->r, d.id, cert.spki, false);
	/* One that has to wait keeps it waiting. */
	assert_true(registry_claim_begin(f->r, d.id, &was) && !was);
	registry_claim_end(f->r, d.id, cert.spki, true);
	put(f, &d);
	assert_int_equal(identify(f, &cert, NOW).problem, PROBLEM_UNAVAILABLE);
	assert_true(registry_claim_begin(f->r, d.id, &was) && !was);
	registry_claim_end(f->r, d.id, cert.spki, true);
	/* Not for ever, if it does not come again. */
	struct device *held = registry_device(f->r, d.id);
	assert_true(held->waits_ms > clock_ms() && held->waits_ms <= clock_ms() + 900000);
	held->waits_ms = clock_ms();
	/* An expired certificate may renew: that is use. */
	cert.not_after = (int64_t)NOW - 1;
	assert_int_equal(identify(f, &cert, NOW).problem, PROBLEM_EXPIRED_CERTIFICATE);
	assert_true(registry_claim_begin(f->r, d.id, &was) && was);
	registry_claim_end(f->r, d.id, cert.spki, false);
	assert_int_equal(store_write(f->store, read_claim, &d, &f->why), ERR_OK);
	assert_int_equal(d.claim, CLAIM_USED);
	/* A row that was read before does not take it back. */
	d.claim = CLAIM_NONE;
	put(f, &d);
	assert_true(registry_claim_begin(f->r, d.id, &was) && was);
}

/* --- what is decided */

struct row {
	const char *what;
	double issued, key_at, restored_at;
	bool used, doubted;
	enum device_claim before;
	/* then */
	enum device_claim after;
	enum problem_type problem;
};

static const struct row rows[] = {
    {"a newer key", 700000, BACKUP, RESTORED, 0, 0, CLAIM_NONE, CLAIM_TAKEN, PROBLEM_NONE},
    {"in the last second", RESTORED - 1, BACKUP, RESTORED, 0, 0, CLAIM_NONE, CLAIM_TAKEN,
	PROBLEM_NONE},
    {"issued after the restore", RESTORED, BACKUP, RESTORED, 0, 0, CLAIM_NONE, CLAIM_NONE,
	PROBLEM_UNKNOWN_DEVICE},
    {"an older key", BACKUP - 1, BACKUP, RESTORED, 0, 0, CLAIM_NONE, CLAIM_NONE,
	PROBLEM_UNKNOWN_DEVICE},
    {"of a device that joined since", 700000, HUGE_VAL, RESTORED, 0, 0, CLAIM_NONE, CLAIM_NONE,
	PROBLEM_UNKNOWN_DEVICE},
    {"the backup's was used, in memory", 700000, BACKUP, RESTORED, 1, 0, CLAIM_NONE,
	CLAIM_CONTESTED, PROBLEM_NONE},
    {"the backup's was used, by its row", 700000, BACKUP, RESTORED, 0, 0, CLAIM_USED,
	CLAIM_CONTESTED, PROBLEM_NONE},
    {"another one was taken", 700000, BACKUP, RESTORED, 0, 0, CLAIM_TAKEN, CLAIM_CONTESTED,
	PROBLEM_NONE},
    {"nobody knows the backup's date", 700000, 0, RESTORED, 0, 0, CLAIM_NONE, CLAIM_CONTESTED,
	PROBLEM_NONE},
    {"of a time to come", NOW + 1000, BACKUP, RESTORED, 0, 0, CLAIM_NONE, CLAIM_CONTESTED,
	PROBLEM_NONE},
    {"an administrator has decided", 700000, BACKUP, RESTORED, 0, 0, CLAIM_SETTLED, CLAIM_SETTLED,
	PROBLEM_UNKNOWN_DEVICE},
    {"the clock is doubted", 700000, BACKUP, RESTORED, 0, 1, CLAIM_NONE, CLAIM_NONE,
	PROBLEM_UNAVAILABLE},
    {"and the other was used", 700000, BACKUP, RESTORED, 1, 1, CLAIM_NONE, CLAIM_NONE,
	PROBLEM_UNAVAILABLE},
    {"nobody knows when it was restored", 700000, BACKUP, NAN, 0, 0, CLAIM_NONE, CLAIM_NONE,
	PROBLEM_UNAVAILABLE},
    {"never restored", 700000, BACKUP, 0, 0, 0, CLAIM_NONE, CLAIM_NONE, PROBLEM_UNKNOWN_DEVICE},
};

struct deciding {
	struct store_device d;
	struct claim c;
	const struct row *row;
};

static enum err
decide_row(struct store_db *db, void *arg, struct why *why)
{
	struct deciding *x = arg;
	const double at = x->row->restored_at;

	enum err e = store_device_put(db, &x->d);
	if (!e)
		e = store_claim_clear(db, x->d.id);
	if (!e)
		e = store_meta_put(db, "restored_at", isnan(at) ? UINT64_MAX : (uint64_t)at);
	return e ? e : decide(db, &x->c, why);
}

static void
decisions(void **state)
{
	struct fixture *f = *state;
	struct services s = {.store = f->store};

	assert_int_equal(key_generate(&s.sign_key, &f->why), ERR_OK);
	for (uint8_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct identity who = {.issued_at = (int64_t)r->issued};
		struct deciding x = {.d = device(i + 1, "gate"), .row = r};
		struct store_device got;
		memset(who.spki, 200 - i, sizeof(who.spki));
		memcpy(who.device, x.d.id, 32);
		x.d.key_at = 1;
		x.d.restored_key_at = r->key_at;
		x.d.claim = r->before;
		x.c = (struct claim){.services = &s,
		    .who = &who,
		    .peer = "here",
		    .used = r->used,
		    .believed = !r->doubted,
		    .now = NOW};
		enum err e = store_write(f->store, decide_row, &x, &f->why);
		if (e)
			fail_msg("%s: %s %s", r->what, err_name(e), f->why.text);
		memcpy(got.id, x.d.id, 32);
		assert_int_equal(store_write(f->store, read_claim, &got, &f->why), ERR_OK);
		if (got.claim != r->after || x.c.problem != r->problem)
			fail_msg("%s: %s, %s", r->what, states_claim_name(got.claim),
			    problem_word(x.c.problem));
		const bool taken = r->after == CLAIM_TAKEN;
		assert_true(x.c.taken == taken);
		assert_memory_equal(got.spki, taken ? who.spki : x.d.spki, KEY_SPKI_LEN);
		assert_true(got.key_at == (taken ? r->issued : 1));
		assert_int_equal(
		    got.state, r->after == CLAIM_CONTESTED ? DEVICE_SUSPENDED : DEVICE_ACTIVE);
		assert_string_equal(got.name, "gate");
		/* Asking again changes nothing. */
		if (!taken)
			continue;
		x.c.taken = false;
		assert_int_equal(store_write(f->store, decide, &x.c, &f->why), ERR_OK);
		assert_true(!x.c.taken && !x.c.contested && !x.c.problem);
	}
	key_free(s.sign_key);
}

/* A device that is suspended, revoked or gone takes no key, whatever the registry thought a moment ago. */
static void
inactive(void **state)
{
	struct fixture *f = *state;
	struct services s = {.store = f->store};

	assert_int_equal(key_generate(&s.sign_key, &f->why), ERR_OK);
	for (enum device_state k = DEVICE_SUSPENDED; k <= DEVICE_LEFT; k++) {
		struct identity who = {.issued_at = 700000};
		struct deciding x = {.d = device((uint8_t)k, "gate"), .row = &rows[0]};
		memset(who.spki, 77, sizeof(who.spki));
		memcpy(who.device, x.d.id, 32);
		x.d.restored_key_at = BACKUP;
		x.d.state = k;
		x.c = (struct claim){.services = &s, .who = &who, .believed = true, .now = NOW};
		assert_int_equal(store_write(f->store, decide_row, &x, &f->why), ERR_OK);
		assert_int_equal(x.c.problem, registry_state_problem(k));
		assert_false(x.c.taken);
	}
	key_free(s.sign_key);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_REGISTRY(asks),
	    WITH_REGISTRY(asks_in_vain),
	    WITH_REGISTRY(used),
	    WITH_REGISTRY(decisions),
	    WITH_REGISTRY(inactive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
