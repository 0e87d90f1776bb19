/* stages: gcc openssl address thread */
/* Jobs that a start cannot go on with: each waits for what it lacks, and all others go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "coordinator_fixture.h"
#include "hex.h"
#include "jobs_inside.h"
#include "worker.h"

static const char a[] = JOB("a", "\"goal\":1", ""), b[] = JOB("b", "\"goal\":1", "");

static void
model_path(struct coordinator *c, const uint8_t job[16], char out[256])
{
	char hex[65];

	hex_encode(hex, jobs_find(c->s.engine, job)->facts.model, 32);
	snprintf(out, 256, "%s/models/%s", c->dir, hex);
}

static void
again(struct coordinator *c)
{
	coordinator_stop(c);
	coordinator_start(c);
}

/* What is there and cannot be opened or read, as on a disk that fails: here a link that leads to itself. */
static void
unreadable(void **state)
{
	struct coordinator *c = *state;
	char path[256], kept[280];
	uint8_t first[16], second[16];

	submit(c, a, first);
	submit(c, b, second);
	model_path(c, first, path);
	snprintf(kept, sizeof(kept), "%s.kept", path);
	assert_int_equal(rename(path, kept), 0);
	assert_int_equal(symlink(path, path), 0);
	again(c);
	assert_true(job_is(c, first, "paused"));
	assert_int_equal(jobs_find(c->s.engine, first)->facts.lack.kind, LACKS_MODEL);
	assert_true(job_is(c, second, "running"));
	/* And it goes on when that is over. */
	assert_int_equal(rename(kept, path), 0);
	assert_int_equal(worker_pool_new(&c->s.pool, 1), ERR_OK);
	for (unsigned i = 0; i < 1000 && !job_is(c, first, "running"); i++) {
		rounds_look_after(c->s.engine);
		usleep(10000);
	}
	worker_pool_free(c->s.pool);
	c->s.pool = NULL;
	assert_true(job_is(c, first, "running"));
}

/* One whose rows are damaged does not wait for the file of another. */
static void
each_its_own(void **state)
{
	struct coordinator *c = *state;
	char path[256], sql[128], hex[33];
	uint8_t first[16], second[16];
	sqlite3 *db = NULL;

	submit(c, a, first);
	submit(c, b, second);
	model_path(c, first, path);
	hex_encode(hex, second, sizeof(second));
	snprintf(sql, sizeof(sql), "DELETE FROM round WHERE job = x'%s'", hex);
	coordinator_stop(c);
	assert_int_equal(sqlite3_open(coordinator_path(c, "db"), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(unlink(path), 0);
	coordinator_start(c);
	assert_true(jobs_find(c->s.engine, first)->facts.aside &&
	    jobs_find(c->s.engine, second)->facts.aside);
	assert_int_equal(jobs_find(c->s.engine, first)->facts.lack.kind, LACKS_MODEL);
	assert_int_equal(jobs_find(c->s.engine, second)->facts.lack.kind, LACKS_NOTHING);
	assert_non_null(strstr(jobs_find(c->s.engine, second)->facts.reason, "its rows"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(unreadable, coordinator_setup, coordinator_teardown),
	    cmocka_unit_test_setup_teardown(each_its_own, coordinator_setup, coordinator_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
