/* stages: gcc clang openssl address */
/* What identities have spent, under clocks of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock_fixture.h"
#include "file.h"
#include "row.h"
#include "spent.h"
#include "store.h"

#define HOUR 3600.0
#define MOST 1000

static const uint8_t *
who(uint8_t tag)
{
	static uint8_t ids[256][32];

	memset(ids[tag], tag, 32);
	return ids[tag];
}

static uint32_t
take(struct spent *s, uint8_t tag, uint64_t bytes)
{
	return spent_take(s, who(tag), &(struct spent_bytes){SPENT_ROWS, bytes, MOST});
}

static struct spent *
fresh(void)
{
	struct spent *s = NULL;

	assert_int_equal(spent_new(&s), ERR_OK);
	return s;
}

/* All at once, then one each share of an hour. */
static void
changes(void **state)
{
	struct spent *s = fresh();

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(spent_change(s, who(1), 4), 0);
	assert_in_range(spent_change(s, who(1), 4), 899, 900);
	assert_int_equal(spent_change(s, who(2), 4), 0);
	pass(900);
	assert_int_equal(spent_change(s, who(1), 4), 0);
	assert_true(spent_change(s, who(1), 4) > 0);
	assert_int_equal(spent_change(s, who(1), 0), 0);
	spent_free(s);
}

/* In no 24 hours there is more than the limit, whatever the moments. */
static void
bytes_of_a_day(void **state)
{
	struct spent *s = fresh();
	uint32_t wait;

	(void)state;
	assert_int_equal(take(s, 1, 400), 0);
	pass(10 * HOUR);
	assert_int_equal(take(s, 1, 500), 0);
	assert_true(take(s, 1, 101) > 0);
	assert_int_equal(take(s, 1, 100), 0);
	assert_int_equal(take(s, 2, MOST), 0);
	assert_true(take(s, 2, 1) > 0);
	pass(13 * HOUR);
	wait = take(s, 1, 300);
	assert_in_range(wait, HOUR, 2 * HOUR + 1);
	pass(wait);
	assert_int_equal(take(s, 1, 300), 0);
	assert_true(take(s, 1, 101) > 0);
	/* More than the limit at once never fits. */
	assert_true(take(s, 3, MOST + 1) > 0);
	pass(100 * HOUR);
	assert_true(take(s, 3, MOST + 1) > 0);
	assert_int_equal(take(s, 1, MOST), 0);
	spent_free(s);
}

static void
given_back(void **state)
{
	struct spent *s = fresh();

	(void)state;
	assert_int_equal(take(s, 1, 600), 0);
	assert_int_equal(take(s, 1, 400), 0);
	spent_give(s, who(1), SPENT_ROWS, 400);
	assert_int_equal(take(s, 1, 400), 0);
	/* An hour later it is found all the same. */
	pass(HOUR);
	spent_give(s, who(1), SPENT_ROWS, 1000);
	assert_int_equal(take(s, 1, MOST), 0);
	spent_give(s, who(2), SPENT_ROWS, 7);
	assert_int_equal(take(s, 2, MOST), 0);
	assert_true(take(s, 2, 1) > 0);
	spent_free(s);
}

/* Neither frees anybody nor locks anybody out. */
static void
the_wall_clock_jumps(void **state)
{
	static const double jumps[] = {400 * 24 * HOUR, -12 * 365 * 24 * HOUR, 2 * HOUR, -HOUR};

	(void)state;
	for (size_t i = 0; i < sizeof(jumps) / sizeof(*jumps); i++) {
		struct spent *s = fresh();
		assert_int_equal(take(s, 1, 900), 0);
		wall += jumps[i];
		assert_true(take(s, 1, 101) > 0);
		assert_int_equal(take(s, 1, 100), 0);
		pass(25 * HOUR);
		assert_int_equal(take(s, 1, MOST), 0);
		wall -= jumps[i];
		spent_free(s);
	}
}

/* Lines are counted apart: whoever fills the log may still change things. */
static void
lines(void **state)
{
	struct spent *s = fresh();
	unsigned written = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		written += spent_line(s, who(1), 100, MOST);
	assert_int_equal(written, 10);
	assert_int_equal(take(s, 1, MOST), 0);
	assert_true(spent_line(s, who(2), 100, MOST));
	assert_true(spent_line(NULL, who(1), 100, MOST));
	pass(25 * HOUR);
	assert_true(spent_line(s, who(1), 100, MOST));
	spent_free(s);
}

/* Who has spent nothing of late takes no memory, however many there were. */
static void
idle_ones_go(void **state)
{
	struct spent *s = fresh();
	uint8_t id[32] = {0};

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		memcpy(id, &i, sizeof(i));
		assert_true(spent_line(s, id, 1, MOST));
		pass(60);
	}
	assert_in_range(spent_count(s), 1, 3000);
	assert_int_equal(spent_change(s, who(1), 1), 0);
	spent_free(s);
}

/* --- rows */

static enum err
write_bytes(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return spent_store(arg, db, who(1), 600);
}

struct counted {
	unsigned rows;
	uint64_t bytes;
};

static enum err
count_row(void *ctx, const struct store_spent *row)
{
	struct counted *n = ctx;

	n->rows++;
	n->bytes += row->bytes;
	return ERR_OK;
}

static enum err
count_rows(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	*(struct counted *)arg = (struct counted){.rows = 0};
	return store_spent_each(db, count_row, arg);
}

static struct spent *
loaded(struct store *store)
{
	struct spent *s = fresh();

	assert_int_equal(spent_load(s, store, NULL), ERR_OK);
	return s;
}

/* A start knows what the database has of the last day. */
static void
rows(void **state)
{
	char dir[] = "/tmp/spent.XXXXXX", path[64];
	struct store *store = NULL;
	struct counted n;
	struct why why = {""};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/db", dir);
	assert_int_equal(store_create(path, NULL, NULL, &why), ERR_OK);
	assert_int_equal(store_open(&store, path, &why), ERR_OK);
	struct spent *s = fresh();
	for (int hour = 0; hour < 60; hour += 2) {
		assert_int_equal(store_write(store, write_bytes, s, &why), ERR_OK);
		pass(2 * HOUR);
	}
	spent_free(s);
	/* Older ones have gone. */
	assert_int_equal(store_read(store, count_rows, &n, &why), ERR_OK);
	assert_in_range(n.rows, 12, 13);
	assert_int_equal(n.bytes, 600 * n.rows);
	s = loaded(store);
	assert_true(take(s, 1, 1) > 0);
	assert_int_equal(take(s, 2, MOST), 0);
	spent_free(s);
	/* Behind a wall clock that was set back an hour they count as of now, behind one of other days they do not. */
	wall -= 3 * HOUR;
	s = loaded(store);
	assert_true(take(s, 1, 1) > 0);
	pass(25 * HOUR);
	assert_int_equal(take(s, 1, MOST), 0);
	spent_free(s);
	wall += 400 * 24 * HOUR;
	s = loaded(store);
	assert_int_equal(take(s, 1, MOST), 0);
	spent_free(s);
	store_close(store);
	assert_int_equal(file_remove_dir(dir, &why), ERR_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(changes),
	    cmocka_unit_test(bytes_of_a_day),
	    cmocka_unit_test(given_back),
	    cmocka_unit_test(the_wall_clock_jumps),
	    cmocka_unit_test(lines),
	    cmocka_unit_test(idle_ones_go),
	    cmocka_unit_test(rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
