/* stages: gcc address */
/* What local.control_variates in a job document means, and what it cannot stand beside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "job.h"

#define VARIATES "\"control_variates\":{\"devices\":4}"

/* A job with these members of "local", "round" and beside them. */
static enum err
parse(struct job_spec *job, const char *local, const char *round, const char *more, struct why *why)
{
	char text[2048];
	int n = snprintf(text, sizeof(text),
	    "{\"name\":\"j\",\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":"
	    "\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},\"local\":{%"
	    "s},"
	    "\"round\":{%s}%s}",
	    local, round, more);

	assert_true(n > 0 && (size_t)n < sizeof(text));
	return job_parse(job, text, (size_t)n, why);
}

static void
taken(void **state)
{
	struct job_spec job;
	struct why why = {""};

	(void)state;
	enum err e = parse(&job,
	    "\"optimizer\":{\"rate\":0.1,\"weight_decay\":1e-4},\"clip_norm\":1,\"prox\":0.1,"
	    "\"accumulate\":2," VARIATES,
	    "\"goal\":4,\"pick\":\"sample\"",
	    ",\"upload\":{\"codec\":\"int8\"},\"aggregate\":{\"max_norm\":3,\"server_optimizer\":{"
	    "\"momentum\":0.9}}",
	    &why);
	if (e)
		fail_msg("%s", why.text);
	assert_int_equal(job.recipe.local.variates, 4);
	assert_int_equal(job.aggregate.variates, 4);
	job_deinit(&job);
	assert_int_equal(
	    parse(&job, "\"optimizer\":{\"rate\":0.1}", "\"goal\":4", "", &why), ERR_OK);
	assert_int_equal(job.recipe.local.variates, 0);
	job_deinit(&job);
}

/* Also with an owner's program, on devices that hand it the correction. */
static void
of_own_trainer(void **state)
{
	static const char offered[][RECIPE_NAME_MAX] = {"variates", "trainer-variates"};
	const struct codec *f32 = codec_find_name("f32");
	struct job_spec job;
	struct why why = {""};

	(void)state;
	assert_int_equal(parse(&job, "\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":1",
			     ",\"trainer\":\"own\"", &why),
	    ERR_OK);
	assert_int_equal(job.aggregate.variates, 4);
	assert_string_equal(
	    recipe_feature_missing(&job.recipe, f32, offered, 1), "trainer-variates");
	assert_null(recipe_feature_missing(&job.recipe, f32, &offered[1], 1));
	job_deinit(&job);
}

static const struct {
	const char *local, *round, *more, *reason;
} rows[] = {
    {"\"optimizer\":{\"rate\":0.1},\"control_variates\":{}", "\"goal\":1", "",
	"local.control_variates.devices: missing"},
    {"\"optimizer\":{\"rate\":0.1},\"control_variates\":{\"devices\":0}", "\"goal\":1", "",
	"local.control_variates.devices: must be a whole number from 1 to 65536"},
    {"\"optimizer\":{\"rate\":0.1},\"control_variates\":{\"devices\":65537}", "\"goal\":1", "",
	"local.control_variates.devices: must be a whole number from 1 to 65536"},
    {"\"optimizer\":{\"rate\":0.1},\"control_variates\":{\"devices\":2,\"more\":1}", "\"goal\":1",
	"", "local.control_variates.more: unknown key"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":5", "",
	"local.control_variates: has fewer devices than round.goal"},
    {"\"optimizer\":{\"rate\":0.1,\"momentum\":0.5}," VARIATES, "\"goal\":1", "",
	"local.control_variates: needs plain sgd, without momentum"},
    {"\"optimizer\":{\"name\":\"adam\",\"rate\":0.1}," VARIATES, "\"goal\":1", "",
	"local.control_variates: needs plain sgd, without momentum"},
    {"\"optimizer\":{\"rate\":0}," VARIATES, "\"goal\":1", "",
	"local.control_variates: needs a learning rate above 0"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":1", ",\"upload\":{\"codec\":\"sparse\"}",
	"local.control_variates: needs a codec of fixed size, not sparse"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":1",
	",\"upload\":{\"codec\":[\"int8\",\"sparse\"]}",
	"local.control_variates: needs a codec of fixed size, not sparse"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":1",
	",\"upload\":{\"codec\":\"int8\",\"feedback\":true}",
	"local.control_variates: not with upload.feedback"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":1",
	",\"evaluate\":{\"by\":\"coordinator\"},\"guard\":{\"metric\":\"loss\",\"factor\":2,\"do\":"
	"\"rollback\"}",
	"local.control_variates: not with a guard that rolls back"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":3", ",\"aggregate\":{\"normalise\":true}",
	"aggregate.normalise: not with local.control_variates, which do without"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":3",
	",\"aggregate\":{\"rule\":{\"name\":\"median\"}}",
	"aggregate.rule: local.control_variates needs the plain mean"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":3",
	",\"aggregate\":{\"rule\":{\"bucket\":2}}",
	"aggregate.rule: local.control_variates needs the plain mean"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":3",
	",\"aggregate\":{\"rule\":{\"nearest\":true}}",
	"aggregate.rule: local.control_variates needs the plain mean"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":3", ",\"aggregate\":{\"norm_bound\":1}",
	"aggregate.norm_bound: not with local.control_variates"},
    {"\"optimizer\":{\"rate\":0.1}," VARIATES, "\"goal\":3",
	",\"aggregate\":{\"norm_bound\":\"median\"}",
	"aggregate.norm_bound: not with local.control_variates"},
};

static void
refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct job_spec job;
		struct why why = {""};
		enum err e = parse(&job, rows[i].local, rows[i].round, rows[i].more, &why);
		if (e != ERR_INVALID || strcmp(why.text, rows[i].reason) != 0)
			fail_msg("row %zu: %s: %s", i, err_name(e), why.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(taken), cmocka_unit_test(of_own_trainer), cmocka_unit_test(refused)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
