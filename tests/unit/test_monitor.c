/* stages: gcc clang openssl address */
/* What says which model is the best: its words in a document, own metrics that a few devices cannot move, and what a coordinator keeps,
 * decides and knows again after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec.h"
#include "coordinator_fixture.h"
#include "metric.h"
#include "metric_rows.h"
#include "retention.h"

#define OWN ",\"monitor\":{\"metric\":\"metrics.perplexity\",\"mode\":\"min\"}"

/* --- words */

static enum err
parse(struct job_spec *job, const char *text, struct why *why)
{
	enum err e = job_parse(job, text, strlen(text), why);

	return e ? e : job_check(job, why);
}

static void
words(void **state)
{
	static const struct {
		const char *text, *why; /* "": it is taken */
	} rows[] = {
	    {JOB("a", "\"goal\":1", ""), ""},
	    {JOB("a", "\"goal\":1", ",\"monitor\":{\"metric\":\"loss\"}"), ""},
	    {JOB("a", "\"goal\":1", OWN ",\"stop\":{\"target\":{\"metrics.perplexity\":3}}"), ""},
	    {JOB("a", "\"goal\":1",
		 OWN
		 ",\"guard\":{\"metric\":\"metrics.perplexity\",\"factor\":2,\"do\":\"pause\"}"),
		""},
	    {JOB("a", "\"goal\":1", ",\"keep\":{\"last\":1,\"every\":0,\"best\":16}"), ""},
	    {JOB("a", "\"goal\":1", ",\"monitor\":{\"metric\":\"loss\",\"mode\":\"max\"}"),
		"monitor.mode: of loss it is \"min\""},
	    {JOB("a", "\"goal\":1", ",\"monitor\":{\"metric\":\"metrics.x\"}"),
		"monitor.mode: missing"},
	    {JOB("a", "\"goal\":1", ",\"monitor\":{\"metric\":\"metrics.\",\"mode\":\"min\"}"),
		"monitor.metric: must be \"accuracy\", \"loss\" or \"metrics.NAME\""},
	    {JOB("a", "\"goal\":1", OWN ",\"stop\":{\"target\":{\"metrics.x\":3}}"),
		"an own metric must be that of \"monitor\""},
	    {JOB("a", "\"goal\":1",
		 ",\"guard\":{\"metric\":\"metrics.x\",\"factor\":2,\"do\":\"pause\"}"),
		"guard.metric: an own metric must be that of \"monitor\""},
	    {JOB("a", "\"goal\":1",
		 OWN ",\"guard\":{\"metric\":\"metrics.perplexity\",\"drop\":2,\"do\":\"pause\"}"),
		"guard.factor: missing"},
	    {JOB("a", "\"goal\":1", ",\"keep\":{\"best\":17}"), "keep.best"},
	    {JOB("a", "\"goal\":1", ",\"keep\":{\"last\":0}"), "keep.last"},
	    {JOB("a", "\"goal\":1", ",\"keep\":{\"first\":1}"), "keep.first: unknown key"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct job_spec job;
		struct why why = {""};
		enum err e = parse(&job, rows[i].text, &why);
		if (e != (*rows[i].why ? ERR_INVALID : ERR_OK) || !strstr(why.text, rows[i].why))
			fail_msg("%s: %s", rows[i].text, why.text);
		job_deinit(&job);
	}
}

#define ASKED(figures, data) \
	"{\"name\":\"f\",\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":" \
	"\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"validation\":0.1," data "}," \
	"\"local\":{\"optimizer\":{\"rate\":0.1}},\"round\":{\"goal\":1},\"evaluate\":{\"by\":" \
	"\"devices\",\"figures\":" figures "}}"

static void
figures(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
	    {ASKED("[\"classes\",\"confusion\",\"auc\",\"top2\",\"top1\"]", "\"classes\":2"), ""},
	    {ASKED("[]", "\"classes\":2"), ""},
	    {ASKED("[\"classes\",\"classes\"]", "\"classes\":2"), "evaluate.figures[1]: stands"},
	    {ASKED("[\"top1\",\"top1\"]", "\"classes\":2"), "evaluate.figures[1]: stands"},
	    {ASKED("[\"top3\"]", "\"classes\":2"), "\"top3\" of 2 classes"},
	    {ASKED("[\"top05\"]", "\"classes\":5"), "evaluate.figures[0]: must be one of"},
	    {ASKED("[\"recall\"]", "\"classes\":2"), "evaluate.figures[0]: must be one of"},
	    {ASKED("[\"auc\"]", "\"classes\":3"), "\"auc\" needs two classes"},
	    {ASKED("[\"regression\"]", "\"classes\":2"), "\"regression\" is for numbers"},
	    {ASKED("[\"confusion\"]", "\"classes\":29"), ""},
	    /* Few examples make reports short, and the counts no smaller. */
	    {ASKED("[\"confusion\"]},\"aggregate\":{\"max_examples\":500", "\"classes\":100"),
		"evaluate.figures: 100 classes are too many"},
	    {ASKED("[\"confusion\"]", "\"classes\":30"), "evaluate.figures: with 30 classes"},
	};
	struct job_spec job;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct why why = {""};
		enum err e = parse(&job, rows[i].text, &why);
		if (e != (*rows[i].why ? ERR_INVALID : ERR_OK) || !strstr(why.text, rows[i].why))
			fail_msg("%s: %s", rows[i].text, why.text);
		job_deinit(&job);
	}
	assert_int_equal(parse(&job, rows[0].text, NULL), ERR_OK);
	assert_true(job.recipe.figures.tops[0] == 1 && job.recipe.figures.tops[1] == 2);
	assert_string_equal(
	    recipe_feature_missing(&job.recipe, codec_find_name("f32"), NULL, 0), "figures");
	assert_null(recipe_feature_missing(
	    &job.recipe, codec_find_name("f32"), (const char[][RECIPE_NAME_MAX]){"figures"}, 1));
	job_deinit(&job);
}

static void
own_metrics_of_devices(void **state)
{
	struct job_spec spec = {.monitor = {.metric = MONITOR_OWN}};
	struct metric_value v[] = {{30, 1}, {10, 5}, {60, 2}};
	struct metric_value lies[] = {{1, 2}, {1, 3}, {1, 2.5}, {1e6, 1e300}, {1, 2}};

	(void)state;
	assert_true(isnan(metric_own(&spec, v, 0)));
	assert_true(metric_own(&spec, v, 3) == 2);
	spec.aggregate.rule.hostile = 1;
	double value = metric_own(&spec, lies, 5);
	assert_true(value >= 2 && value <= 3);
	/* One honest word against one that may be a lie decides nothing. */
	assert_true(isnan(metric_own(&spec, lies, 2)));
}

/* --- in a coordinator */

static void
one_round(struct coordinator *c, const uint8_t job[16], uint64_t round, const char *report)
{
	static char text[256];
	struct task t;

	snprintf(text, sizeof(text), "%s", report);
	c->report = text;
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(t.round, round);
	assert_null(deliver(c, &t, 1, (float)round, 100));
	c->report = NULL;
	await_rounds(c, job, round);
}

static void
accuracy(struct coordinator *c, const uint8_t job[16], uint64_t round, double value)
{
	char report[128];

	snprintf(report, sizeof(report),
	    "{\"evaluate\":{\"examples\":10,\"loss\":1,\"accuracy\":%g}}", value);
	one_round(c, job, round, report);
}

static bool
has_model(struct coordinator *c, const uint8_t id[32])
{
	char path[256], hex[65];

	hex_encode(hex, id, 32);
	snprintf(path, sizeof(path), "%s/models/%s", c->dir, hex);
	return access(path, F_OK) == 0;
}

/* The folder cleans up behind the commit. */
static void
await_gone(struct coordinator *c, const uint8_t id[32])
{
	for (uint64_t until = clock_ms() + 60000; has_model(c, id) && clock_ms() < until;)
		usleep(2000);
	assert_false(has_model(c, id));
}

static void
best_is(struct coordinator *c, const uint8_t job[16], uint64_t round, double value,
    const uint8_t model[32])
{
	struct job_view v;

	assert_true(engine_job(c->s.engine, job, NULL, &v));
	assert_true(v.has_best);
	assert_int_equal(v.best.round, round);
	assert_true(v.best.value == value);
	assert_memory_equal(v.best.model, model, 32);
}

static void
restart(struct coordinator *c)
{
	coordinator_stop(c);
	coordinator_start(c);
}

/* A device's figure of round n is of its base: model n - 1. The best two stay, whatever is newer, also over restarts and when the
 * job is over. */
static void
the_best_stay(void **state)
{
	static const char text[] =
	    JOB("best", "\"goal\":1", ",\"keep\":{\"last\":1,\"every\":0,\"best\":2}");
	static const double values[] = {.25, .75, .5, .625, .375, .375};
	struct coordinator *c = *state;
	struct store_round r[7];
	uint8_t id[16];

	submit(c, text, id);
	for (uint64_t n = 1; n <= 6; n++) {
		accuracy(c, id, n, values[n - 1]);
		r[n] = round_row(c, id, n);
		if (n == 4)
			restart(c);
	}
	/* .75 is of model 1, .625 of model 3. */
	best_is(c, id, 1, .75, r[1].model);
	await_gone(c, r[2].model);
	await_gone(c, r[4].model);
	await_gone(c, r[5].model);
	assert_true(
	    has_model(c, r[1].model) && has_model(c, r[3].model) && has_model(c, r[6].model));
	assert_true(engine_uses_model(c->s.engine, r[3].model));
	restart(c);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	for (int again = 0; again < 2; again++) {
		best_is(c, id, 1, .75, r[1].model);
		struct json *v = job_json(c, id);
		assert_string_equal(
		    json_string(json_get(json_get(v, "monitor"), "metric")), "accuracy");
		assert_string_equal(json_string(json_get(json_get(v, "monitor"), "mode")), "max");
		json_free(v);
		assert_int_equal(retention_pass(c->s.engine), ERR_OK);
		assert_true(has_model(c, r[1].model) && has_model(c, r[3].model));
		restart(c);
	}
}

static void
huge_round(struct coordinator *c, const uint8_t job[16], uint64_t round)
{
	static char report[] = "{\"evaluate\":{\"examples\":10,\"loss\":1,\"accuracy\":0.5}}";
	struct task t;

	c->report = report;
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 3e38F, 100));
	c->report = NULL;
	await_rounds(c, job, round);
}

/* A failed round leaves its base, which the next one measures again: after a restart, too, the best is of the round that made it. */
static void
a_round_fails(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, JOB("fails", "\"goal\":1", ""), id);
	accuracy(c, id, 1, .25);
	huge_round(c, id, 2);
	huge_round(c, id, 3);
	assert_int_equal(round_row(c, id, 2).state, OUTCOME_COMMITTED);
	assert_int_equal(round_row(c, id, 3).state, OUTCOME_FAILED);
	restart(c);
	accuracy(c, id, 4, .75);
	best_is(c, id, 2, .75, round_row(c, id, 2).model);
}

#define PERPLEXITY(x) "{\"metrics\":{\"perplexity\":" x ",\"other\":1}}"

/* Without any evaluation: the job's own metric says what is best, acts as the guard's and ends the job. */
static void
by_an_own_metric(void **state)
{
	static const char text[] =
	    "{\"name\":\"own\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":"
	    "\"fc\",\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4]"
	    ",\"classes\":2,\"min_examples\":10},\"local\":{\"optimizer\":{\"rate\":0.1}},"
	    "\"round\":{\"goal\":1}" OWN
	    ",\"guard\":{\"metric\":\"metrics.perplexity\",\"factor\":2,\"do\":\"rollback\"},"
	    "\"stop\":{\"target\":{\"metrics.perplexity\":3}}}";
	struct coordinator *c = *state;
	struct store_round r[6];
	uint8_t id[16];

	submit(c, text, id);
	one_round(c, id, 1, PERPLEXITY("20"));
	one_round(c, id, 2, PERPLEXITY("8"));
	/* Nobody says: neither good nor bad. */
	one_round(c, id, 3, "{\"metrics\":{\"other\":1}}");
	one_round(c, id, 4, PERPLEXITY("17"));
	for (uint64_t n = 1; n <= 5; n++)
		r[n] = round_row(c, id, n);
	assert_true(r[2].eval_own == 8 && isnan(r[3].eval_own) && !r[2].evaluate.known);
	/* 8 was of model 1, which is the best: the guard goes back to it. */
	best_is(c, id, 1, 8, r[1].model);
	assert_memory_equal(r[5].base, r[1].model, 32);
	assert_non_null(strstr(r[4].reason, "guard: perplexity 17, after 8 of round 1"));
	restart(c);
	best_is(c, id, 1, 8, r[1].model);
	one_round(c, id, 5, PERPLEXITY("3"));
	await_state(c, id, "done");
	best_is(c, id, 1, 3, r[1].model);
}

/* What a document has the coordinator keep counts against its owner's bytes. */
static void
within_the_owners_bytes(void **state)
{
	static const char endless[] = JOB("endless", "\"goal\":1", ",\"keep\":{\"every\":1}");
	static const char many[] =
	    JOB("many", "\"goal\":1", ",\"keep\":{\"every\":1},\"stop\":{\"rounds\":1000}");
	static const char few[] =
	    JOB("few", "\"goal\":1", ",\"keep\":{\"last\":1,\"every\":0,\"best\":2}");
	struct coordinator *c = *state;
	struct engine_document d = {.bounded = true};
	uint8_t id[16];
	bool created;

	c->config.owner_model_bytes = 20000;
	d.text = endless;
	d.len = strlen(endless);
	assert_int_equal(engine_submit(c->s.engine, &d, id, &created, &c->why), ERR_DENIED);
	assert_non_null(strstr(c->why.text, "keep.every needs"));
	d.text = many;
	d.len = strlen(many);
	assert_int_equal(engine_submit(c->s.engine, &d, id, &created, &c->why), ERR_DENIED);
	assert_non_null(strstr(c->why.text, "owner_model_bytes"));
	d.text = few;
	d.len = strlen(few);
	assert_int_equal(engine_submit(c->s.engine, &d, id, &created, &c->why), ERR_OK);
}

struct figures_at {
	const uint8_t *job;
	uint64_t round;
	char *text;
};

static enum err
read_figures(struct store_db *db, void *arg, struct why *why)
{
	struct figures_at *at = arg;

	(void)why;
	return metric_rows_figures(db, at->job, at->round, &at->text);
}

static char *
figures_text(struct coordinator *c, const uint8_t job[16], uint64_t round)
{
	struct figures_at at = {.job = job, .round = round};

	assert_int_equal(store_read(c->s.store, read_figures, &at, &c->why), ERR_OK);
	return at.text;
}

/* Figures of two devices, added up, are what the round shows; they are there after a restart. */
static void
figures_of_a_round(void **state)
{
	static const char text[] =
	    "{\"name\":\"figures\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":"
	    "\"fc\",\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4]"
	    ",\"classes\":2,\"validation\":0.1},\"local\":{\"optimizer\":{\"rate\":0.1}},"
	    "\"round\":{\"goal\":2},\"evaluate\":{\"by\":\"devices\",\"figures\":[\"confusion\","
	    "\"top1\"]}}";
	static char reports[][160] = {
	    "{\"evaluate\":{\"examples\":5,\"loss\":1,\"accuracy\":0.6,\"confusion\":[[0,0,3],[1,0,"
	    "2]],\"top\":[[1,3]]}}",
	    "{\"evaluate\":{\"examples\":4,\"loss\":1,\"accuracy\":1,\"confusion\":[[1,1,4]],"
	    "\"top\":[[1,4]]}}"};
	struct coordinator *c = *state;
	struct task t[2];
	uint8_t id[16];

	submit(c, text, id);
	for (uint8_t i = 0; i < 2; i++) {
		c->report = reports[i];
		assert_string_equal(ask(c, (uint8_t)(i + 1), &t[i]), "");
		assert_null(deliver(c, &t[i], (uint8_t)(i + 1), 1, 100));
	}
	c->report = NULL;
	await_rounds(c, id, 1);
	for (int again = 0; again < 2; again++) {
		char *figures = figures_text(c, id, 1);
		assert_string_equal(figures,
		    "{\"examples\":9,\"reports\":2,\"confusion\":[[0,0,3],[1,0,2],[1,1,4]],"
		    "\"top1\":0.7777777777777778}");
		free(figures);
		restart(c);
	}
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(words),
	    cmocka_unit_test(figures),
	    cmocka_unit_test(own_metrics_of_devices),
	    WITH(the_best_stay),
	    WITH(a_round_fails),
	    WITH(by_an_own_metric),
	    WITH(within_the_owners_bytes),
	    WITH(figures_of_a_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
