#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "hex.h"
#include "registry.h"

#define NOW 1000000.0

struct fixture {
	char dir[64], path[80];
	struct store *store;
	struct registry *r;
	struct why why;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_registry.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/rivulet.db", f->dir);
	assert_int_equal(store_open(&f->store, f->path, &f->why), ERR_OK);
	assert_int_equal(registry_new(&f->r, f->store, &f->why), ERR_OK);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	registry_free(f->r);
	store_close(f->store);
	assert_int_equal(file_empty_dir(f->dir, &f->why), ERR_OK);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static struct store_device
device(uint8_t tag, const char *name)
{
	struct store_device d = {
	    .role = "device", .state = "active", .labels = "{}", .joined_at = 5};

	memset(d.id, tag, sizeof(d.id));
	memset(d.spki, tag + 100, sizeof(d.spki));
	snprintf(d.name, sizeof(d.name), "%s", name);
	return d;
}

static void
put(struct fixture *f, const struct store_device *d)
{
	assert_int_equal(registry_put(f->r, d), ERR_OK);
}

/* The certificate a device would show, valid around NOW. */
static struct x509_info
certificate(const struct store_device *d)
{
	struct x509_info c = {.not_before = (int64_t)NOW - 10, .not_after = (int64_t)NOW + 10};

	hex_encode(c.common_name, d->id, sizeof(d->id));
	memcpy(c.spki, d->spki, sizeof(c.spki));
	return c;
}

static struct identity
identify(struct fixture *f, const struct x509_info *cert, double now)
{
	struct identity who = {.roles = ROLE_ANYONE, .has_cert = true};

	registry_identify(f->r, cert, now, &who);
	return who;
}

/* --- who a certificate is */

static void
a_device(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1, "gate"), other = device(2, "other");
	struct x509_info c = certificate(&d);

	put(f, &d);
	put(f, &other);
	struct identity who = identify(f, &c, NOW);
	assert_null(who.problem);
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
no_role(struct fixture *f, const struct x509_info *c, double now, const char *problem)
{
	struct identity who = identify(f, c, now);

	assert_int_equal(who.roles,
	    ROLE_ANYONE | (strcmp(problem, "expired-certificate") == 0 ? ROLE_EXPIRED : 0));
	assert_string_equal(who.problem, problem);
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
	no_role(f, &c, NOW, "unknown-device");
	c = certificate(&d);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		strcpy(c.common_name, names[i]);
		no_role(f, &c, NOW, "unknown-device");
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
	no_role(f, &c, NOW, "unknown-device");
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
	strcpy(d.state, "suspended");
	put(f, &d);
	no_role(f, &c, NOW, "device-suspended");
	assert_false(registry_is_active(f->r, d.id));
	strcpy(d.state, "revoked");
	put(f, &d);
	no_role(f, &c, NOW, "device-revoked");
	/* The worse news first: an expired certificate of a revoked device. */
	no_role(f, &c, NOW + 99, "device-revoked");
	strcpy(d.state, "active");
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
	no_role(f, &c, NOW - 10.5, "expired-certificate");
	assert_null(identify(f, &c, NOW - 10).problem);
	assert_null(identify(f, &c, NOW + 10).problem);
	no_role(f, &c, NOW + 10.5, "expired-certificate");
}

/* --- finding */

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
	assert_int_equal(registry_each(f->r, note, &l), ERR_OK);
	assert_int_equal(l.count, 200);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(l.tags[i], i);
	l = (struct list){.stop_at = 3};
	assert_int_equal(registry_each(f->r, note, &l), ERR_CLOSED);
	assert_int_equal(l.count, 3);
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
	strcpy(names[0], "gate");
	hex_encode(names[1], b.id, 32);
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

/* --- what is noted since the start */

static void
contacts(void **state)
{
	struct fixture *f = *state;
	struct store_device a = device(1, "gate"), b = device(2, "press");
	struct registry_view v;
	uint64_t joined = 9, active = 9;

	registry_counts(f->r, 60, &joined, &active);
	assert_int_equal(joined + active, 0);
	put(f, &a);
	put(f, &b);
	registry_counts(f->r, 60, &joined, &active);
	assert_int_equal(joined, 2);
	assert_int_equal(active, 0);
	registry_touch(f->r, a.id, "1.0", "no-data");
	registry_touch(f->r, a.id, NULL, NULL);
	registry_count_report(f->r, a.id);
	registry_count_report(f->r, a.id);
	assert_int_equal(registry_get(f->r, a.id, &v), ERR_OK);
	assert_string_equal(v.seen.agent, "1.0");
	assert_string_equal(v.seen.reason, "no-data");
	assert_int_equal(v.reports, 2);
	assert_true(v.seen.last_contact > clock_wall() - 60);
	registry_counts(f->r, 60, &joined, &active);
	assert_int_equal(active, 1);
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

/* --- from the store */

static enum err
write_device(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_device_put(db, arg);
}

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
	assert_null(identify(f, &c, NOW).problem);
	assert_true(registry_matches(f->r, d.id, &s));
	/* A damaged row stops the start: nobody is left out silently. */
	strcpy(bad.labels, "{");
	assert_int_equal(store_write(f->store, write_device, &bad, &f->why), ERR_OK);
	registry_free(f->r);
	f->r = NULL;
	assert_int_equal(registry_new(&f->r, f->store, &f->why), ERR_CORRUPT);
	assert_null(f->r);
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
			b->failures += registry_each(b->f->r, note, &l) != ERR_OK;
	}
	return NULL;
}

static void
threads(void **state)
{
	struct fixture *f = *state;
	struct busy b[4];
	pthread_t ids[4];
	uint64_t joined, active;

	for (uint8_t i = 0; i < 4; i++) {
		b[i] = (struct busy){f, i, 0};
		assert_int_equal(pthread_create(&ids[i], NULL, work, &b[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(ids[i], NULL);
		assert_int_equal(b[i].failures, 0);
	}
	registry_counts(f->r, 60, &joined, &active);
	assert_int_equal(joined, 240);
	assert_int_equal(active, 240);
}

#define WITH_REGISTRY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

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
	    WITH_REGISTRY(contacts),
	    WITH_REGISTRY(loaded),
	    WITH_REGISTRY(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
