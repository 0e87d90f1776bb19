/* stages: gcc openssl address */
/* Checksums of rows: who writes them, what they find, and how an older database gets them. */
#include "inspect.h"
#include "store_fixture.h"

#include "sums.c"

/* As a program that is not ours; `quietly`: as the disk would do it, without triggers. */
static void
alter(struct fixture *f, const char *sql, bool quietly)
{
	sqlite3 *db;
	char *error = NULL;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	if (quietly)
		sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_busy_timeout(db, 10000);
	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		fail_msg("%s: %s", sql, error);
	sqlite3_close(db);
}

static int
count(struct fixture *f, const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *st;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	int n = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}

struct faults {
	int count;
	char last[256];
	uint64_t missing;
};

static void
see_fault(void *ctx, const char *table, const char *row)
{
	struct faults *s = ctx;

	s->count++;
	snprintf(s->last, sizeof(s->last), "%s %s", table, row);
}

static struct faults
faults_of(struct fixture *f)
{
	struct faults s = {.count = 0};
	struct store_db *db = NULL;
	uint64_t version;

	assert_int_equal(store_inspect_open(&db, f->path, false, &version, &f->why), ERR_OK);
	assert_int_equal(store_inspect_sums(db, see_fault, &s, &s.missing, &f->why), ERR_OK);
	assert_int_equal(store_inspect_schema(db, version, &f->why), ERR_OK);
	store_inspect_close(db);
	return s;
}

static void
rows_that_are_written(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(5), got = {.id = {0}};

	write_ok(f, put_device, &d);
	/* Again, with another name: an update. */
	strcpy(d.name, "renamed");
	write_ok(f, put_device, &d);
	assert_int_equal(count(f, "SELECT count(*) FROM device WHERE checksum IS NULL"), 0);
	assert_int_equal(faults_of(f).count, 0);
	memcpy(got.id, d.id, 32);
	read_ok(f, get_device, &got);
	/* What the disk changes is found, and not read. */
	alter(f, "UPDATE device SET role = 'admin'", true);
	struct faults s = faults_of(f);
	assert_int_equal(s.count, 1);
	assert_ptr_equal(strstr(s.last, "device id 05050505"), s.last);
	assert_int_equal(store_read(f->s, get_device, &got, &f->why), ERR_CORRUPT);
	assert_non_null(strstr(f->why.text, "row of table device does not match its checksum"));
	/* Who puts it right, with whatever program, may. */
	alter(f, "UPDATE device SET role = 'device'", false);
	assert_int_equal(count(f, "SELECT count(*) FROM device WHERE checksum IS NULL"), 1);
	read_ok(f, get_device, &got);
	s = faults_of(f);
	assert_int_equal(s.count, 0);
	assert_int_equal(s.missing, 1);
}

/* No table but those that change with each request is left out, and a checksum is over all of a row that nothing else proves. */
static void
every_table(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
	    count(f,
		"SELECT count(*) FROM sqlite_schema AS t WHERE type = 'table' AND "
		"name NOT IN ('seen', 'audit', 'spent') AND name NOT LIKE 'sqlite_%' AND NOT "
		"EXISTS (SELECT 1 FROM pragma_table_info(t.name) WHERE name = "
		"'checksum')"),
	    0);
}

/* What is in no checksum: what something else proves, and what changes with each request. */
static const char *const left_out[] = {"checksum", "job.document", "token.last_used",
    "token.last_address", "audit_detail.salt", "audit_detail.data"};

static bool
is_left_out(const char *table, const char *column)
{
	char name[128];

	snprintf(name, sizeof(name), "%s.%s", table, column);
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (strcmp(left_out[i], column) == 0 || strcmp(left_out[i], name) == 0)
			return true;
	return false;
}

static bool
has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ' ') && (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}

static void
every_column(void **state)
{
	struct fixture *f = *state;
	sqlite3 *db;
	sqlite3_stmt *st;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	for (size_t i = 0; i < TABLES; i++) {
		assert_int_equal(
		    sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?)", -1, &st, NULL),
		    SQLITE_OK);
		sqlite3_bind_text(st, 1, summed[i].table, -1, SQLITE_STATIC);
		while (sqlite3_step(st) == SQLITE_ROW) {
			const char *column = (const char *)sqlite3_column_text(st, 0);
			if (!is_left_out(summed[i].table, column) &&
			    !has_word(summed[i].columns, column))
				fail_msg("%s.%s is in no checksum", summed[i].table, column);
		}
		sqlite3_finalize(st);
	}
	sqlite3_close(db);
}

static void
older_rows(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 700; i++) {
		struct store_device d = device((uint8_t)i);
		d.id[1] = (uint8_t)(i >> 8);
		write_ok(f, put_device, &d);
	}
	alter(f, "DELETE FROM meta; UPDATE device SET checksum = NULL", true);
	reopen(f);
	assert_int_equal(faults_of(f).missing, 700);
	for (int i = 0;
	     i < 1000 && count(f, "SELECT count(*) FROM meta WHERE key = 'summed.task_out'") == 0;
	     i++)
		store_fill(f->s);
	struct faults s = faults_of(f);
	assert_int_equal(s.missing, 0);
	assert_int_equal(s.count, 0);
	/* Once is enough: what loses its checksum later says so. */
	alter(f, "UPDATE device SET checksum = NULL WHERE id = (SELECT min(id) FROM device)", true);
	reopen(f);
	store_fill(f->s);
	assert_int_equal(faults_of(f).missing, 1);
}

static enum err
put_token(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_token_put(db, arg);
}

#define TOKEN_OF_8 \
	"id, secret_hash, role, labels, uses, uses_left, created_at, expires_at, revoked, " \
	"access, name, name_prefix, owner"

/* Tokens of version 8, which had no column `suspended`: what their checksums said of them is said of them afterwards. */
static void
tokens_of_8(void **state)
{
	struct fixture *f = *state;
	struct store_db old = {.sql = NULL};

	for (uint8_t i = 1; i <= 3; i++) {
		struct store_token t = {.id = {i}, .role = "reader", .labels = "{}", .uses = i};
		write_ok(f, put_token, &t);
	}
	store_close(f->s);
	assert_int_equal(store_schema_connect(&old, f->path, "PRAGMA synchronous = OFF"), ERR_OK);
	sqlite3_db_config(old.sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	assert_int_equal(store_schema_execute(&old,
			     "ALTER TABLE token DROP COLUMN suspended;"
			     "UPDATE token SET checksum = row_checksum(" TOKEN_OF_8 ");"
			     "UPDATE token SET uses_left = 7 WHERE uses = 2;"
			     "UPDATE token SET checksum = NULL WHERE uses = 3;"
			     "PRAGMA user_version = 8"),
	    ERR_OK);
	store_schema_close(&old);
	assert_int_equal(store_open(&f->s, f->path, &f->why), ERR_OK);
	struct faults s = faults_of(f);
	assert_int_equal(s.count, 1);
	assert_non_null(strstr(s.last, "token id 02"));
	assert_int_equal(s.missing, 1);
	assert_int_equal(count(f, "SELECT sum(suspended) FROM token"), 0);
	/* What the disk makes of the new column is found, too. */
	alter(f, "UPDATE token SET suspended = 1 WHERE uses = 1", true);
	assert_int_equal(faults_of(f).count, 2);
}

static void
changed_schema(void **state)
{
	struct fixture *f = *state;
	struct store_db *db = NULL;
	uint64_t version;

	alter(f, "PRAGMA user_version = 3", true);
	assert_int_equal(store_inspect_open(&db, f->path, false, &version, &f->why), ERR_OK);
	assert_int_equal(version, 3);
	assert_int_equal(store_inspect_schema(db, version, &f->why), ERR_CORRUPT);
	store_inspect_close(db);
	char header[100];
	int fd = open(f->path, O_RDWR);
	assert_int_equal(pread(fd, header, sizeof(header), 0), 100);
	assert_int_equal(store_inspect_header(f->path, &f->why), ERR_OK);
	header[59] ^= 2; /* the encoding of texts */
	assert_int_equal(pwrite(fd, header, sizeof(header), 0), 100);
	close(fd);
	assert_int_equal(store_inspect_header(f->path, &f->why), ERR_CORRUPT);
	header[59] ^= 2;
	fd = open(f->path, O_RDWR);
	assert_int_equal(pwrite(fd, header, sizeof(header), 0), 100);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(rows_that_are_written, setup, teardown),
	    cmocka_unit_test_setup_teardown(every_table, setup, teardown),
	    cmocka_unit_test_setup_teardown(every_column, setup, teardown),
	    cmocka_unit_test_setup_teardown(older_rows, setup, teardown),
	    cmocka_unit_test_setup_teardown(tokens_of_8, setup, teardown),
	    cmocka_unit_test_setup_teardown(changed_schema, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
