/* stages: gcc clang openssl address thread */
#include "job.h"
#include "messages.h"
#include "registry_fixture.h"
#include "services_ca.h"

static void
a_device(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate"), other = device(2, "other");
	struct x509_info c = certificate(&d);

	put(f, &d);
	put(f, &other);
	struct identity who = identify(f, &c, NOW);
	assert_int_equal(who.problem, PROBLEM_NONE);
	assert_int_equal(who.roles, ROLE_ANYONE | ROLE_DEVICE);
	assert_memory_equal(who.device, d.id, 32);
	assert_memory_equal(who.spki, d.spki, sizeof(d.spki));
}

static void
an_admin(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "desk");
	struct x509_info c = certificate(&d);

	strcpy(d.role, "admin");
	put(f, &d);
	assert_int_equal(identify(f, &c, NOW).roles, ROLE_ANYONE | ROLE_ADMIN);
}

static void
no_role(struct fixture *f, const struct x509_info *c, double now, enum problem_type problem)
{
	struct identity who = identify(f, c, now);
	unsigned some = problem == PROBLEM_EXPIRED_CERTIFICATE ? ROLE_EXPIRED : 0;
	some |= problem == PROBLEM_DEVICE_SUSPENDED ? ROLE_SUSPENDED : 0;
	assert_int_equal(who.roles, ROLE_ANYONE | some);
	assert_int_equal(who.problem, problem);
}

static void
unknown(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {"", "gate", "../../etc",
	    "0101010101010101010101010101010101010101010101010101010101010101ff",
	    "010101010101010101010101010101010101010101010101010101010101010",
	    "ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB"};
	struct store_device d = device(1, "gate"), stranger = device(2, "gate");
	struct x509_info c = certificate(&stranger);

	put(f, &d);
	no_role(f, &c, NOW, PROBLEM_UNKNOWN_DEVICE);
	c = certificate(&d);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		strcpy(c.common_name, names[i]);
		no_role(f, &c, NOW, PROBLEM_UNKNOWN_DEVICE);
	}
}

/* The name of a device with a key of one's own. */
static void
another_key(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct x509_info c = certificate(&d);

	put(f, &d);
	c.spki[90] ^= 1;
	no_role(f, &c, NOW, PROBLEM_UNKNOWN_DEVICE);
}

static void
suspended_and_revoked(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct x509_info c = certificate(&d);

	strcpy(d.role, "admin");
	put(f, &d);
	assert_true(registry_is_active(f->r, d.id));
	d.state = DEVICE_SUSPENDED;
	put(f, &d);
	no_role(f, &c, NOW, PROBLEM_DEVICE_SUSPENDED);
	assert_false(registry_is_active(f->r, d.id));
	d.state = DEVICE_REVOKED;
	put(f, &d);
	no_role(f, &c, NOW, PROBLEM_DEVICE_REVOKED);
	/* The worse news first: an expired certificate of a revoked device. */
	no_role(f, &c, NOW + 99, PROBLEM_DEVICE_REVOKED);
	d.state = DEVICE_ACTIVE;
	put(f, &d);
	assert_int_equal(identify(f, &c, NOW).roles, ROLE_ANYONE | ROLE_ADMIN);
	memset(d.id, 9, sizeof(d.id));
	assert_false(registry_is_active(f->r, d.id));
}

static void
dates(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct x509_info c = certificate(&d);

	put(f, &d);
	no_role(f, &c, NOW - 10.5, PROBLEM_EXPIRED_CERTIFICATE);
	assert_int_equal(identify(f, &c, NOW - 10).problem, PROBLEM_NONE);
	assert_int_equal(identify(f, &c, NOW + 10).problem, PROBLEM_NONE);
	no_role(f, &c, NOW + 10.5, PROBLEM_EXPIRED_CERTIFICATE);
}

static void
by_id_and_name(void **state)
{
	struct fixture *f = *state;
	struct store_device a = device(1, "gate"), b = device(2, "press"), c = device(3, "gate");
	struct registry_view v;
	char hex[65];

	put(f, &c);
	put(f, &a);
	put(f, &b);
	assert_int_equal(registry_find(f->r, "press", &v), ERR_OK);
	assert_memory_equal(v.row.id, b.id, 32);
	assert_int_equal(registry_find(f->r, "gate", &v), ERR_EXISTS);
	assert_int_equal(registry_find(f->r, "nobody", &v), ERR_NOTFOUND);
	assert_int_equal(registry_find(f->r, "", &v), ERR_NOTFOUND);
	hex_encode(hex, c.id, 32);
	assert_int_equal(registry_find(f->r, hex, &v), ERR_OK);
	assert_memory_equal(v.row.id, c.id, 32);
	memset(c.id, 4, 32);
	hex_encode(hex, c.id, 32);
	assert_int_equal(registry_find(f->r, hex, &v), ERR_NOTFOUND);
	assert_int_equal(registry_get(f->r, c.id, &v), ERR_NOTFOUND);
}

struct list {
	uint8_t tags[300];
	size_t count, stop_at;
};

static enum err
note(void *ctx, const struct registry_view *v)
{
	struct list *l = ctx;

	l->tags[l->count++] = v->row.id[0];
	return l->count == l->stop_at ? ERR_CLOSED : ERR_OK;
}

static void
in_id_order(void **state)
{
	struct fixture *f = *state;
	struct list l = {.count = 0};

	for (unsigned i = 0; i < 200; i++) {
		struct store_device d = device((uint8_t)(i * 77 % 200), "d");
		put(f, &d);
	}
	assert_int_equal(registry_each(f->r, NULL, note, &l), ERR_OK);
	assert_int_equal(l.count, 200);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(l.tags[i], i);
	l = (struct list){.stop_at = 3};
	assert_int_equal(registry_each(f->r, NULL, note, &l), ERR_CLOSED);
	assert_int_equal(l.count, 3);
	struct store_device from = device(150, "d");
	l = (struct list){.count = 0};
	assert_int_equal(registry_each(f->r, from.id, note, &l), ERR_OK);
	assert_int_equal(l.count, 50);
	assert_int_equal(l.tags[0], 150);
}

/* --- what a job selects */

static void
labels(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate"), bare = device(2, "bare");
	struct select_spec none = {.percent = {0, 100}};
	struct select_spec s = {
	    .labels = {{"site", "north"}, {"gpu", "none"}}, .label_count = 1, .percent = {0, 100}};

	strcpy(d.labels, "{\"site\":\"north\",\"gpu\":\"none\"}");
	bare.labels[0] = '\0';
	put(f, &d);
	put(f, &bare);
	assert_true(registry_matches(f->r, d.id, &none));
	assert_true(registry_matches(f->r, bare.id, &none));
	assert_true(registry_matches(f->r, d.id, &s));
	assert_false(registry_matches(f->r, bare.id, &s));
	s.label_count = 2;
	assert_true(registry_matches(f->r, d.id, &s));
	strcpy(s.labels[1].value, "one");
	assert_false(registry_matches(f->r, d.id, &s));
	strcpy(s.labels[1].key, "rack");
	assert_false(registry_matches(f->r, d.id, &s));
	memset(bare.id, 9, 32);
	assert_false(registry_matches(f->r, bare.id, &none));
	/* New labels take the place of the old. */
	strcpy(d.labels, "{\"site\":\"south\"}");
	put(f, &d);
	s.label_count = 1;
	assert_false(registry_matches(f->r, d.id, &s));
}

static void
listed_devices(void **state)
{
	struct fixture *f = *state;
	struct store_device a = device(1, "gate"), b = device(2, "press"), c = device(3, "saw");
	char(*names)[RECIPE_NAME_MAX + 1] = calloc(2, sizeof(*names));
	struct select_spec s = {.devices = names, .device_count = 2, .percent = {0, 100}};

	assert_non_null(names);
	strcpy(names[1], "gate");
	hex_encode(names[0], b.id, 32);
	put(f, &a);
	put(f, &b);
	put(f, &c);
	assert_true(registry_matches(f->r, a.id, &s));
	assert_true(registry_matches(f->r, b.id, &s));
	assert_false(registry_matches(f->r, c.id, &s));
	/* Both conditions must hold. */
	strcpy(s.labels[0].key, "site");
	s.label_count = 1;
	assert_false(registry_matches(f->r, a.id, &s));
	free(names);
}

static void
labels_that_are_none(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct registry_view v;

	strcpy(d.labels, "{\"a\":");
	assert_int_equal(registry_put(f->r, &d), ERR_CORRUPT);
	strcpy(d.labels, "[\"a\"]");
	assert_int_equal(registry_put(f->r, &d), ERR_CORRUPT);
	assert_int_equal(registry_get(f->r, d.id, &v), ERR_NOTFOUND);
}

/* --- keys that were changed */

static void
rotate(struct store_device *d, uint8_t tag)
{
	memcpy(d->previous, d->spki, sizeof(d->spki));
	memset(d->spki, tag, sizeof(d->spki));
}

static void
rotated_keys(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate");
	struct x509_info first = certificate(&d), second, third;

	put(f, &d);
	rotate(&d, 201);
	second = certificate(&d);
	put(f, &d);
	struct identity who = identify(f, &second, NOW);
	assert_int_equal(who.problem, PROBLEM_NONE);
	assert_memory_equal(who.device, d.id, 32);
	who = identify(f, &first, NOW);
	assert_int_equal(who.problem, PROBLEM_KEY_ROTATED);
	assert_int_equal(who.roles, ROLE_ANYONE | ROLE_ROTATED);
	assert_memory_equal(who.device, d.id, 32);
	/* Out of date it is not even good for asking again. */
	assert_int_equal(identify(f, &first, NOW + 99).roles, ROLE_ANYONE);
	rotate(&d, 202);
	third = certificate(&d);
	put(f, &d);
	assert_int_equal(identify(f, &third, NOW).problem, PROBLEM_NONE);
	assert_int_equal(identify(f, &second, NOW).roles, ROLE_ANYONE | ROLE_ROTATED);
	no_role(f, &first, NOW, PROBLEM_KEY_ROTATED);
	/* The state comes first. */
	d.state = DEVICE_LEFT;
	put(f, &d);
	no_role(f, &third, NOW, PROBLEM_DEVICE_LEFT);
	no_role(f, &second, NOW, PROBLEM_DEVICE_LEFT);
}

static void
roles_of_people(void **state)
{
	static const struct {
		const char *role;
		unsigned bit;
	} rows[] = {{"reader", ROLE_READER}, {"submitter", ROLE_SUBMITTER}, {"admin", ROLE_ADMIN},
	    {"device", ROLE_DEVICE}, {"root", 0}, {"", 0}, {"admins", 0}};
	struct fixture *f = *state;
	struct store_device d = device(1, "desk");
	struct x509_info c = certificate(&d);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		strcpy(d.role, rows[i].role);
		put(f, &d);
		assert_int_equal(identify(f, &c, NOW).roles, ROLE_ANYONE | rows[i].bit);
		assert_memory_equal(identify(f, &c, NOW).owner, d.id, 32);
	}
}

/* --- the CA is replaced */

static uint64_t
not_renewed(struct fixture *f)
{
	struct registry_report report;

	registry_report(f->r, &report);
	return report.not_renewed;
}

static enum err
read_device(struct store_db *db, void *arg, struct why *why)
{
	struct store_device *d = arg;
	uint8_t id[32];

	(void)why;
	memcpy(id, d->id, sizeof(id));
	return store_device_get(db, id, d);
}

static enum err
nothing(struct store_db *db, void *arg, struct why *why)
{
	(void)db, (void)arg, (void)why;
	return ERR_OK;
}

static uint64_t
stored_generation(struct fixture *f, const uint8_t id[32])
{
	struct store_device d;

	memcpy(d.id, id, sizeof(d.id));
	/* What was queued before is done then. */
	assert_int_equal(store_write(f->store, nothing, NULL, &f->why), ERR_OK);
	assert_int_equal(store_read(f->store, read_device, &d, &f->why), ERR_OK);
	return d.ca_generation;
}

static void
generations(void **state)
{
	struct fixture *f = *state;
	struct fleet_member one = fleet_ca("Rivulet CA"), two = fleet_ca("Rivulet CA");
	struct services_ca *ca = calloc(1, sizeof(*ca));
	struct store_device d = device(1, "gate");
	struct x509_info old = certificate(&d), new = certificate(&d), none = certificate(&d);
	struct registry_view v;

	assert_non_null(ca);
	x509_key_id(old.issuer_key, key_spki(one.key));
	x509_key_id(new.issuer_key, key_spki(two.key));
	d.ca_generation = 1;
	put(f, &d);
	*ca = (struct services_ca){.current = one.cert, .generation = 1};
	registry_set_ca(f->r, ca);
	assert_int_equal(identify(f, &old, NOW).problem, PROBLEM_NONE);
	no_role(f, &new, NOW, PROBLEM_RETIRED_CA);
	no_role(f, &none, NOW, PROBLEM_RETIRED_CA);
	assert_false(registry_wants_renewal(f->r, d.id));
	ca->rotating = true;
	ca->next = two.cert;
	registry_set_ca(f->r, ca);
	assert_int_equal(identify(f, &old, NOW).problem, PROBLEM_NONE);
	assert_true(registry_wants_renewal(f->r, d.id));
	assert_int_equal(not_renewed(f), 1);
	/* To have shown it proves nothing: it may be lost before it is on the device's disk. Working with it does. */
	struct identity who = identify(f, &new, NOW);
	assert_true(who.problem == PROBLEM_NONE && who.generation == 2);
	assert_true(registry_wants_renewal(f->r, d.id));
	registry_note_generation(f->r, d.id, who.generation);
	assert_false(registry_wants_renewal(f->r, d.id));
	assert_int_equal(not_renewed(f), 0);
	/* And who works with the old one again has lost the new one. */
	who = identify(f, &old, NOW);
	assert_true(who.problem == PROBLEM_NONE && who.generation == 1);
	registry_note_generation(f->r, d.id, who.generation);
	assert_int_equal(not_renewed(f), 1);
	assert_true(registry_wants_renewal(f->r, d.id));
	registry_note_generation(f->r, d.id, 2);
	registry_note_generation(f->r, d.id, 0);
	assert_int_equal(registry_get(f->r, d.id, &v), ERR_OK);
	assert_int_equal(v.row.ca_generation, 2);
	/* That reaches the database in both directions. */
	assert_int_equal(store_write(f->store, write_device, &d, &f->why), ERR_OK);
	for (uint64_t i = 1; i <= 2; i++) {
		registry_note_generation(f->r, d.id, i);
		assert_true(registry_has_renewed(f->r));
		assert_false(registry_has_renewed(f->r));
		registry_flush(f->r, f->store);
		assert_int_equal(stored_generation(f, d.id), i);
	}
	*ca = (struct services_ca){.current = two.cert, .generation = 2};
	registry_set_ca(f->r, ca);
	no_role(f, &old, NOW, PROBLEM_RETIRED_CA);
	/* Not even for renewing. */
	no_role(f, &old, NOW + 99, PROBLEM_RETIRED_CA);
	assert_int_equal(identify(f, &new, NOW).problem, PROBLEM_NONE);
	fleet_free(&one);
	fleet_free(&two);
	free(ca);
}

/* --- access tokens */

static struct store_token
access_token(uint8_t tag, const char *role, struct token *t)
{
	struct store_token row = {.access = true, .expires_at = NOW};

	memset(t, tag, sizeof(*t));
	memcpy(row.id, t->id, sizeof(row.id));
	hash_sha256(row.secret_hash, t->secret, sizeof(t->secret));
	snprintf(row.role, sizeof(row.role), "%s", role);
	return row;
}

static struct identity
by_token(struct fixture *f, const struct token *t, double now)
{
	struct identity who = {.roles = ROLE_ANYONE};

	registry_identify_token(f->r, t, now, &who);
	return who;
}

static void
no_token(struct fixture *f, const struct token *t, double now)
{
	struct identity who = by_token(f, t, now);

	assert_int_equal(who.roles, ROLE_ANYONE);
	assert_int_equal(who.problem, PROBLEM_BAD_TOKEN);
	assert_false(who.by_token);
}

static void
access_tokens(void **state)
{
	struct fixture *f = *state;
	struct token reader, submitter, metrics, admin, joiner, wrong;
	struct store_token r = access_token(5, "reader", &reader);
	struct store_token s = access_token(3, "submitter", &submitter);
	struct store_token m = access_token(4, "metrics", &metrics);
	struct store_token a = access_token(7, "admin", &admin);
	struct store_token j = access_token(9, "reader", &joiner), *all[] = {&r, &s, &m, &a, &j};

	j.access = false;
	no_token(f, &reader, NOW);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(registry_put_token(f->r, all[i]), ERR_OK);
	struct identity one = by_token(f, &reader, NOW), two = by_token(f, &submitter, NOW);
	assert_int_equal(one.roles, ROLE_ANYONE | ROLE_READER);
	assert_int_equal(two.roles, ROLE_ANYONE | ROLE_SUBMITTER);
	assert_int_equal(by_token(f, &metrics, NOW).roles, ROLE_ANYONE | ROLE_METRICS);
	assert_true(one.by_token && !one.problem);
	assert_memory_not_equal(one.owner, two.owner, 32);
	/* Whatever a row says, a token makes nobody an administrator. */
	assert_int_equal(by_token(f, &admin, NOW).roles, ROLE_ANYONE);
	no_token(f, &joiner, NOW);
	no_token(f, &reader, NOW + 0.5);
	wrong = reader;
	wrong.secret[31] ^= 1;
	no_token(f, &wrong, NOW);
	memcpy(wrong.secret, submitter.secret, sizeof(wrong.secret));
	no_token(f, &wrong, NOW);
	r.revoked = true;
	assert_int_equal(registry_put_token(f->r, &r), ERR_OK);
	no_token(f, &reader, NOW);
	/* Its creation arrives last: whoever saw it in the list was quicker. */
	r.revoked = false;
	assert_int_equal(registry_put_token(f->r, &r), ERR_OK);
	no_token(f, &reader, NOW);
	assert_int_equal(by_token(f, &submitter, NOW).problem, PROBLEM_NONE);
}

static enum err
write_token(struct store_db *db, void *row, struct why *why)
{
	(void)why;
	return store_token_put(db, row);
}

/* The last use survives a restart, and a change of the token's row; it is written when others are, not at each use. */
static void
token_use(void **state)
{
	struct fixture *f = *state;
	struct registry_token_use use;
	struct token t;
	struct store_token row = access_token(5, "reader", &t);

	assert_int_equal(store_write(f->store, write_token, &row, &f->why), ERR_OK);
	assert_int_equal(registry_put_token(f->r, &row), ERR_OK);
	assert_false(registry_token_use(f->r, t.id, &use));
	registry_token_used(f->r, t.id, "192.0.2.7");
	assert_true(registry_token_use(f->r, t.id, &use));
	double at = use.at;
	registry_flush(f->r, f->store);
	row.revoked = true;
	assert_int_equal(store_write(f->store, write_token, &row, &f->why), ERR_OK);
	registry_free(f->r);
	assert_int_equal(registry_new(&f->r, f->store, &f->why), ERR_OK);
	assert_true(registry_token_use(f->r, t.id, &use));
	assert_true(use.at >= at && use.at < at + 1);
	assert_string_equal(use.address, "192.0.2.7");
}

/* --- many at once */

struct busy {
	struct fixture *f;
	uint8_t tag;
	unsigned failures;
};

static void *
work(void *arg)
{
	struct busy *b = arg;
	struct select_spec any = {.percent = {0, 100}};

	for (unsigned i = 0; i < 60; i++) {
		struct store_device d = device((uint8_t)(b->tag * 60 + i), "d");
		struct registry_view v;
		struct list l = {.count = 0};
		b->failures += registry_put(b->f->r, &d) != ERR_OK;
		registry_touch(b->f->r, d.id, "1.0", "busy");
		registry_count_report(b->f->r, d.id);
		b->failures += registry_get(b->f->r, d.id, &v) != ERR_OK || v.reports != 1;
		b->failures += !registry_matches(b->f->r, d.id, &any);
		if (i % 20 == 0)
			b->failures += registry_each(b->f->r, NULL, note, &l) != ERR_OK;
	}
	return NULL;
}

static void
threads(void **state)
{
	struct fixture *f = *state;
	struct busy b[4];
	pthread_t ids[4];
	struct registry_report report;

	for (uint8_t i = 0; i < 4; i++) {
		b[i] = (struct busy){f, i, 0};
		assert_int_equal(pthread_create(&ids[i], NULL, work, &b[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(ids[i], NULL);
		assert_int_equal(b[i].failures, 0);
	}
	registry_report(f->r, &report);
	assert_int_equal(report.joined, 240);
	assert_int_equal(report.by_state[DEVICE_ACTIVE], 240);
	assert_int_equal(report.seen, 240);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_REGISTRY(a_device),
	    WITH_REGISTRY(an_admin),
	    WITH_REGISTRY(unknown),
	    WITH_REGISTRY(another_key),
	    WITH_REGISTRY(suspended_and_revoked),
	    WITH_REGISTRY(dates),
	    WITH_REGISTRY(by_id_and_name),
	    WITH_REGISTRY(in_id_order),
	    WITH_REGISTRY(labels),
	    WITH_REGISTRY(listed_devices),
	    WITH_REGISTRY(labels_that_are_none),
	    WITH_REGISTRY(rotated_keys),
	    WITH_REGISTRY(roles_of_people),
	    WITH_REGISTRY(generations),
	    WITH_REGISTRY(access_tokens),
	    WITH_REGISTRY(token_use),
	    WITH_REGISTRY(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
