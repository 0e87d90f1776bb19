/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive.c"
#include "coordinator_fixture.h"
#include "report.h"

#define BYTES 1000

/* A file in the spool that stands for an accepted delta: moving looks at names and lengths only. */
static const uint8_t *
in_spool(struct coordinator *c, uint8_t tag)
{
	static uint8_t task[16];
	static const char bytes[BYTES];
	char name[64] = "spool/";

	memset(task, tag, sizeof(task));
	hex_encode(name + 6, task, sizeof(task));
	strcat(name, ".delta");
	assert_int_equal(
	    file_write(coordinator_path(c, name), bytes, BYTES, 0600, &c->why), ERR_OK);
	return task;
}

static bool
is_kept(struct coordinator *c, uint8_t tag)
{
	uint8_t task[16];
	char name[64] = "kept/";

	memset(task, tag, sizeof(task));
	hex_encode(name + 5, task, sizeof(task));
	strcat(name, ".delta");
	return access(coordinator_path(c, name), F_OK) == 0;
}

static void
check_used(struct coordinator *c, uint64_t want)
{
	struct archive_report kept;

	archive_report(c->s.archive, &kept);
	assert_int_equal(kept.deltas, want);
	assert_int_equal(kept.used_bytes, want * BYTES);
}

static void
reopen(struct coordinator *c)
{
	archive_close(c->s.archive);
	assert_int_equal(
	    archive_open(&c->s.archive, coordinator_path(c, "kept"), c->s.spool, &c->why), ERR_OK);
}

static void
the_oldest_go_first(void **state)
{
	struct coordinator *c = *state;

	for (uint8_t tag = 1; tag <= 5; tag++)
		assert_int_equal(
		    archive_add(c->s.archive, in_spool(c, tag), 3 * BYTES, &c->why), ERR_OK);
	check_used(c, 3);
	for (uint8_t tag = 1; tag <= 5; tag++)
		assert_int_equal(is_kept(c, tag), tag > 2);
	/* A smaller limit takes effect with the next. */
	assert_int_equal(archive_add(c->s.archive, in_spool(c, 6), BYTES, &c->why), ERR_OK);
	check_used(c, 1);
	assert_true(is_kept(c, 6));
}

/* It would drive out all others, and then itself. */
static void
too_long(void **state)
{
	struct coordinator *c = *state;

	for (uint8_t tag = 1; tag <= 2; tag++)
		assert_int_equal(
		    archive_add(c->s.archive, in_spool(c, tag), 3 * BYTES, &c->why), ERR_OK);
	assert_int_equal(archive_add(c->s.archive, in_spool(c, 3), BYTES - 1, &c->why), ERR_OK);
	check_used(c, 2);
	assert_false(is_kept(c, 3));
	assert_int_equal(file_empty_dir(coordinator_path(c, "spool"), &c->why), ERR_OK);
}

static void
no_limit(void **state)
{
	struct coordinator *c = *state;

	for (unsigned tag = 1; tag <= 255; tag++)
		assert_int_equal(
		    archive_add(c->s.archive, in_spool(c, (uint8_t)tag), 0, &c->why), ERR_OK);
	check_used(c, 255);
	reopen(c);
	check_used(c, 255);
}

/* The list of them takes no more memory than the limit has them be, however many there were. */
static void
room_is_used_again(void **state)
{
	struct coordinator *c = *state;

	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(
		    archive_add(c->s.archive, in_spool(c, (uint8_t)i), 5 * BYTES, &c->why), ERR_OK);
	check_used(c, 5);
	for (unsigned i = 2990; i < 3000; i++)
		assert_int_equal(is_kept(c, (uint8_t)i), i >= 2995);
	assert_true(c->s.archive->room <= 256);
}

static void
age_survives_a_restart(void **state)
{
	static const uint8_t order[] = {9, 2, 7};
	struct coordinator *c = *state;
	struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
	char hex[33], name[64];

	for (size_t i = 0; i < sizeof(order); i++) {
		const uint8_t *task = in_spool(c, order[i]);
		assert_int_equal(archive_add(c->s.archive, task, 0, &c->why), ERR_OK);
		hex_encode(hex, task, 16);
		snprintf(name, sizeof(name), "kept/%s.delta", hex);
		times[1].tv_sec += 10;
		assert_int_equal(utimensat(AT_FDCWD, coordinator_path(c, name), times, 0), 0);
	}
	reopen(c);
	assert_int_equal(archive_add(c->s.archive, in_spool(c, 1), 2 * BYTES, &c->why), ERR_OK);
	assert_true(is_kept(c, 7) && is_kept(c, 1) && !is_kept(c, 9) && !is_kept(c, 2));
}

/* A clock that goes back, far ahead and back again makes none of them older than those before it. */
static void
whatever_the_clock_did(void **state)
{
	static const struct {
		uint8_t tag;
		time_t at;
	} rows[] = {{9, 4000000000}, {2, 1000000}, {7, 1000000}, {3, 2000000000}};
	struct coordinator *c = *state;
	char hex[33], name[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct timespec times[2] = {{.tv_sec = rows[i].at}, {.tv_sec = rows[i].at}};
		const uint8_t *task = in_spool(c, rows[i].tag);
		hex_encode(hex, task, 16);
		snprintf(name, sizeof(name), "spool/%s.delta", hex);
		assert_int_equal(utimensat(AT_FDCWD, coordinator_path(c, name), times, 0), 0);
		assert_int_equal(archive_add(c->s.archive, task, 0, &c->why), ERR_OK);
	}
	reopen(c);
	assert_int_equal(archive_add(c->s.archive, in_spool(c, 1), 3 * BYTES, &c->why), ERR_OK);
	assert_true(is_kept(c, 7) && is_kept(c, 3) && is_kept(c, 1));
	assert_true(!is_kept(c, 9) && !is_kept(c, 2));
	reopen(c);
	assert_int_equal(archive_add(c->s.archive, in_spool(c, 4), 2 * BYTES, &c->why), ERR_OK);
	assert_true(is_kept(c, 1) && is_kept(c, 4));
}

static void
removing_one(void **state)
{
	struct coordinator *c = *state;
	uint8_t task[16];

	for (uint8_t tag = 1; tag <= 3; tag++)
		assert_int_equal(archive_add(c->s.archive, in_spool(c, tag), 0, &c->why), ERR_OK);
	memset(task, 2, sizeof(task));
	assert_int_equal(archive_remove(c->s.archive, task), ERR_OK);
	assert_int_equal(archive_remove(c->s.archive, task), ERR_NOTFOUND);
	check_used(c, 2);
	assert_true(is_kept(c, 1) && !is_kept(c, 2) && is_kept(c, 3));
	assert_int_equal(archive_add(c->s.archive, task, 0, &c->why), ERR_NOTFOUND);
}

/* A round of a coordinator that keeps deltas: they open with what they were made of. */
static void
after_a_round(void **state)
{
	struct coordinator *c = *state;
	struct delta_file f = {.fd = -1};
	float values[ELEMENTS];
	struct task t[3];
	uint8_t id[16], task[16];

	c->config.keep_deltas = true;
	submit(c, JOB("kept", "\"goal\":2", ",\"stop\":{\"rounds\":1}"), id);
	for (uint8_t tag = 1; tag <= 2; tag++) {
		assert_string_equal(ask(c, tag, &t[tag]), "");
		assert_null(deliver(c, &t[tag], tag, (float)tag, 100));
	}
	await_state(c, id, "done");
	for (int i = 0; i < 5000 && spool_used(c->s.spool) > 0; i++)
		usleep(2000);
	assert_int_equal(spool_used(c->s.spool), 0);
	for (uint8_t tag = 1; tag <= 2; tag++) {
		assert_true(hex_decode(task, sizeof(task), t[tag].task, 32));
		assert_int_equal(archive_read(c->s.archive, task, &f, &c->why), ERR_OK);
		assert_int_equal(delta_file_read(&f, values, sizeof(values), f.leaf_bytes), ERR_OK);
		for (int i = 0; i < ELEMENTS; i++)
			assert_true(values[i] == (float)tag);
		delta_file_close(&f);
	}
}

/* Found by their heads: no row says any more whose they are. */
static void
all_of_a_device(void **state)
{
	struct coordinator *c = *state;
	struct task t[4];
	uint8_t id[16];
	uint64_t count;

	c->config.keep_deltas = true;
	submit(c, JOB("kept", "\"goal\":3", ",\"stop\":{\"rounds\":1}"), id);
	for (uint8_t tag = 1; tag <= 3; tag++) {
		assert_string_equal(ask(c, tag, &t[tag]), "");
		assert_null(deliver(c, &t[tag], tag, (float)tag, 100));
	}
	await_state(c, id, "done");
	for (int i = 0; i < 5000 && spool_used(c->s.spool) > 0; i++)
		usleep(2000);
	assert_int_equal(
	    archive_remove_device(c->s.archive, device_id(2), &count, &c->why), ERR_OK);
	assert_int_equal(count, 1);
	for (uint8_t tag = 1; tag <= 3; tag++) {
		struct delta_file f = {.fd = -1};
		uint8_t task[16];
		assert_true(hex_decode(task, sizeof(task), t[tag].task, 32));
		assert_int_equal(archive_read(c->s.archive, task, &f, &c->why),
		    tag == 2 ? ERR_NOTFOUND : ERR_OK);
		delta_file_close(&f);
	}
	assert_int_equal(
	    archive_remove_device(c->s.archive, device_id(2), &count, &c->why), ERR_OK);
	assert_int_equal(count, 0);
	/* What cannot be read is told, and does not save the others. */
	assert_int_equal(archive_add(c->s.archive, in_spool(c, 200), 0, &c->why), ERR_OK);
	assert_int_equal(
	    archive_remove_device(c->s.archive, device_id(1), &count, &c->why), ERR_CORRUPT);
	assert_int_equal(count, 1);
}

static enum err
erase_device_2(struct store_db *db, void *arg, struct why *why)
{
	struct store_device row;

	(void)arg, (void)why;
	enum err e = store_device_get(db, device_id(2), &row);
	registry_erase(&row);
	return e ? e : store_device_put(db, &row);
}

/* Erased while its round was being written: whoever erased it could not find its delta among the kept ones. */
static void
erased_meanwhile(void **state)
{
	struct coordinator *c = *state;
	struct archive_report kept = {.deltas = 0};
	struct task t[3];
	uint8_t id[16], task[16];

	c->config.keep_deltas = true;
	submit(c, JOB("kept", "\"goal\":2", ",\"stop\":{\"rounds\":1}"), id);
	for (uint8_t tag = 1; tag <= 2; tag++)
		assert_string_equal(ask(c, tag, &t[tag]), "");
	assert_null(deliver(c, &t[2], 2, 2, 100));
	assert_int_equal(store_write(c->s.store, erase_device_2, NULL, &c->why), ERR_OK);
	assert_int_equal(registry_follow(c->s.registry, device_id(2)), ERR_OK);
	assert_null(deliver(c, &t[1], 1, 1, 100));
	await_state(c, id, "done");
	for (int i = 0; i < 5000 && (spool_used(c->s.spool) > 0 || kept.deltas != 1); i++) {
		archive_report(c->s.archive, &kept);
		usleep(2000);
	}
	assert_int_equal(kept.deltas, 1);
	assert_true(hex_decode(task, sizeof(task), t[2].task, 32));
	assert_int_equal(archive_remove(c->s.archive, task), ERR_NOTFOUND);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(the_oldest_go_first),
	    WITH(too_long),
	    WITH(no_limit),
	    WITH(room_is_used_again),
	    WITH(age_survives_a_restart),
	    WITH(whatever_the_clock_did),
	    WITH(removing_one),
	    WITH(after_a_round),
	    WITH(all_of_a_device),
	    WITH(erased_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
