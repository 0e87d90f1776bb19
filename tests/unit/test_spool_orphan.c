/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "coordinator_fixture.h"

static const char plain[] = JOB("plain", "\"goal\":3,\"quorum\":3,\"deadline_s\":600", "");

static enum err
failing(void *ctx, struct why *why)
{
	(void)ctx;
	return err_set(why, ERR_IO, "the disk fails");
}

static bool
is_there(struct coordinator *c, const struct task *t)
{
	struct stat st;
	char name[64];

	snprintf(name, sizeof(name), "spool/%s.delta", t->task);
	return stat(coordinator_path(c, name), &st) == 0;
}

static enum err
nothing(struct store_db *db, void *arg, struct why *why)
{
	(void)db;
	(void)arg;
	(void)why;
	return ERR_OK;
}

/* All that was queued has run. */
static void
drain(struct coordinator *c)
{
	assert_int_equal(store_write(c->s.store, nothing, NULL, &c->why), ERR_OK);
}

/* Delivers while the commit fails. */
static void
lose(struct coordinator *c, const struct task *t, uint8_t tag)
{
	store_before_commit(c->s.store, failing, NULL);
	assert_string_equal(deliver(c, t, tag, 1, 100), err_name(ERR_IO));
	store_before_commit(c->s.store, spool_sync_names, c->s.spool);
}

/* A file whose commit failed goes, with its quota, once another commit succeeded, and not before. */
static void
released(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];
	struct task one, two;

	submit(c, plain, id);
	assert_string_equal(ask(c, 1, &one), "");
	assert_string_equal(ask(c, 2, &two), "");
	lose(c, &one, 1);
	drain(c);
	assert_true(is_there(c, &one));
	assert_int_equal(spool_used(c->s.spool), SPOOL_BYTES);
	assert_null(deliver(c, &two, 2, 1, 100));
	drain(c);
	assert_false(is_there(c, &one));
	assert_true(is_there(c, &two));
	assert_int_equal(spool_used(c->s.spool), SPOOL_BYTES);
	/* It was never accepted: the device sends it again. */
	assert_null(deliver(c, &one, 1, 1, 100));
	drain(c);
	assert_true(is_there(c, &one));
	assert_int_equal(spool_used(c->s.spool), 2 * SPOOL_BYTES);
}

/* The same task was accepted meanwhile: its file has a row now. */
static void
owned_again(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];
	struct task t[3];

	submit(c, plain, id);
	for (uint8_t i = 0; i < 3; i++)
		assert_string_equal(ask(c, i + 1, &t[i]), "");
	lose(c, &t[0], 1);
	lose(c, &t[0], 1);
	assert_int_equal(spool_used(c->s.spool), SPOOL_BYTES);
	assert_null(deliver(c, &t[0], 1, 1, 100));
	drain(c);
	spool_orphan_release(c->s.spool, c->s.store);
	drain(c);
	assert_true(is_there(c, &t[0]));
	assert_int_equal(spool_used(c->s.spool), SPOOL_BYTES);
	/* And it is folded. */
	assert_null(deliver(c, &t[1], 2, 2, 100));
	assert_null(deliver(c, &t[2], 3, 3, 100));
	await_rounds(c, id, 1);
}

/* Also when the coordinator ends before. */
static void
ended(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];
	struct task t;

	submit(c, plain, id);
	assert_string_equal(ask(c, 1, &t), "");
	lose(c, &t, 1);
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(is_there(c, &t));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(released),
	    WITH(owned_again),
	    WITH(ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
