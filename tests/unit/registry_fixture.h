#ifndef REGISTRY_FIXTURE_H
#define REGISTRY_FIXTURE_H
/* A registry on an empty database, and devices: what tests of the registry share. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "fleet.h"
#include "hex.h"
#include "registry.h"
#include "report.h"
#include "store.h"

#define NOW 1000000.0

struct fixture {
	char dir[64], path[80];
	struct store *store;
	struct registry *r;
	struct why why;
};

static inline int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_registry.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/rivulet.db", f->dir);
	assert_int_equal(store_create(f->path, NULL, NULL, &f->why), ERR_OK);
	assert_int_equal(store_open(&f->store, f->path, &f->why), ERR_OK);
	assert_int_equal(registry_new(&f->r, f->store, &f->why), ERR_OK);
	*state = f;
	return 0;
}

static inline int
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

static inline struct store_device
device(uint8_t tag, const char *name)
{
	struct store_device d = {
	    .role = "device", .state = DEVICE_ACTIVE, .labels = "{}", .joined_at = 5};

	memset(d.id, tag, sizeof(d.id));
	memset(d.spki, tag + 100, sizeof(d.spki));
	snprintf(d.name, sizeof(d.name), "%s", name);
	return d;
}

static inline void
put(struct fixture *f, const struct store_device *d)
{
	assert_int_equal(registry_put(f->r, d), ERR_OK);
}

/* The certificate a device would show, valid around NOW. */
static inline struct x509_info
certificate(const struct store_device *d)
{
	struct x509_info c = {.not_before = (int64_t)NOW - 10, .not_after = (int64_t)NOW + 10};

	hex_encode(c.common_name, d->id, sizeof(d->id));
	memcpy(c.spki, d->spki, sizeof(c.spki));
	return c;
}

static inline struct identity
identify(struct fixture *f, const struct x509_info *cert, double now)
{
	struct identity who = {.roles = ROLE_ANYONE, .has_cert = true};

	registry_identify(f->r, cert, now, &who);
	return who;
}

static inline enum err
write_device(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_device_put(db, arg);
}

#define WITH_REGISTRY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
