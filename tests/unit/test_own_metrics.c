/* stages: gcc clang openssl address */
/* What trainers report by names of their own, from their reports to what a round shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "coordinator_fixture.h"
#include "near.h"
#include "own_metrics.h"

static void
report(struct report *r, const char *name, double value)
{
	struct report_metric *m = &r->metrics[r->metric_count++];

	snprintf(m->name, sizeof(m->name), "%s", name);
	m->value = value;
}

static void
means_are_weighted(void **state)
{
	struct own_metrics m = {.items = NULL};
	struct report one = {.metric_count = 0}, other = {.metric_count = 0};

	(void)state;
	own_metrics_choose(&m);
	assert_int_equal(m.count, 0);
	report(&one, "bleu", 10);
	report(&one, "alone", -2.5);
	report(&other, "bleu", 30);
	own_metrics_add(&m, &one, 300);
	own_metrics_add(&m, &other, 100);
	own_metrics_choose(&m);
	assert_int_equal(m.count, 2);
	assert_string_equal(m.items[0].row.name, "bleu");
	near(m.items[0].row.mean, 15);
	assert_int_equal(m.items[0].row.reports, 2);
	assert_string_equal(m.items[1].row.name, "alone");
	near(m.items[1].row.mean, -2.5);
	own_metrics_deinit(&m);
}

/* One device may name 64, and many as many as they like. */
static void
most_reported_names_stay(void **state)
{
	struct own_metrics m = {.items = NULL};
	struct report honest = {.metric_count = 0};
	char name[32];

	(void)state;
	report(&honest, "zz", 1);
	for (unsigned device = 0; device < 20; device++) {
		struct report r = {.metric_count = 0};
		for (unsigned i = 0; i < MESSAGES_LIST_MAX; i++) {
			snprintf(name, sizeof(name), "a%u-%u", device, i);
			report(&r, name, 1e308);
		}
		own_metrics_add(&m, &r, 1);
		if (device < 2)
			own_metrics_add(&m, &honest, 1);
	}
	assert_int_equal(m.count, OWN_METRICS_NAMES);
	own_metrics_choose(&m);
	assert_int_equal(m.count, METRIC_ROWS_MAX);
	assert_string_equal(m.items[0].row.name, "zz");
	assert_int_equal(m.items[0].row.reports, 2);
	own_metrics_deinit(&m);
}

static void
what_is_no_number_is_none(void **state)
{
	struct own_metrics m = {.items = NULL};
	struct report r = {.metric_count = 0};

	(void)state;
	report(&r, "x", 1e308);
	own_metrics_add(&m, &r, 1);
	r.metrics[0].value = -1e308;
	own_metrics_add(&m, &r, 1);
	r.metrics[0].value = 1e308;
	own_metrics_add(&m, &r, 1);
	own_metrics_choose(&m);
	assert_true(isnan(m.items[0].row.mean));
	own_metrics_deinit(&m);
}

struct found {
	const uint8_t *job;
	unsigned count;
	struct metric_row rows[2];
};

static enum err
find(void *ctx, const struct metric_row *row)
{
	struct found *f = ctx;

	assert_true(f->count < 2);
	f->rows[f->count++] = *row;
	return ERR_OK;
}

static enum err
read_rows(struct store_db *db, void *arg, struct why *why)
{
	struct found *f = arg;

	(void)why;
	f->count = 0;
	return metric_rows_each(db, f->job, 1, find, f);
}

static void
a_round_keeps_them_until_its_job_goes(void **state)
{
	static char reports[2][64] = {
	    "{\"metrics\":{\"f1\":0.5,\"beta\":1}}", "{\"metrics\":{\"f1\":1}}"};
	struct coordinator *c = *state;
	struct engine_deletion gone;
	struct task t[2];
	uint8_t id[16];
	struct found f = {.job = id};

	submit(c, JOB("own", "\"goal\":2", ",\"stop\":{\"rounds\":1}"), id);
	for (uint8_t i = 0; i < 2; i++)
		assert_string_equal(ask(c, i + 1, &t[i]), "");
	for (uint8_t i = 0; i < 2; i++) {
		c->report = reports[i];
		assert_null(deliver(c, &t[i], i + 1, 1, i ? 300 : 100));
	}
	c->report = NULL;
	await_state(c, id, "done");
	assert_int_equal(store_read(c->s.store, read_rows, &f, &c->why), ERR_OK);
	assert_int_equal(f.count, 2);
	assert_string_equal(f.rows[0].name, "beta");
	assert_int_equal(f.rows[0].reports, 1);
	assert_string_equal(f.rows[1].name, "f1");
	near(f.rows[1].mean, 0.875);
	assert_int_equal(f.rows[1].reports, 2);
	enum err e = ERR_STATE;
	for (unsigned i = 0; i < 60000 && e == ERR_STATE; i++, usleep(1000))
		e = engine_delete(c->s.engine, id, NULL, false, &gone, &c->why);
	if (e)
		fail_msg("%s: %s", err_name(e), c->why.text);
	assert_int_equal(store_read(c->s.store, read_rows, &f, &c->why), ERR_OK);
	assert_int_equal(f.count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(means_are_weighted),
	    cmocka_unit_test(most_reported_names_stay),
	    cmocka_unit_test(what_is_no_number_is_none),
	    cmocka_unit_test_setup_teardown(
		a_round_keeps_them_until_its_job_goes, coordinator_setup, coordinator_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
