/* stages: gcc openssl address */
/* What a job will still need of the disk: the sums of docs/configuration.md, worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "forecast.h"
#include "job.h"
#include "manifest.h"

#define MODEL 100000
#define PAYLOAD 60000
#define HEAD 4096

static struct job_spec
parse(const char *rest)
{
	char text[512];
	struct job_spec job;
	struct why why = {""};

	snprintf(text, sizeof(text),
	    "{\"name\": \"j\", \"model\": {\"layers\": [{\"type\": \"linear\", \"name\": \"a\", "
	    "\"out\": 2}], \"loss\": \"cross_entropy\"}, \"data\": {\"name\": \"d\", \"shape\": "
	    "[4], "
	    "\"classes\": 2}, \"local\": {\"epochs\": 1, \"batch\": 1, \"optimizer\": {\"name\": "
	    "\"sgd\", \"rate\": 1}}, %s}",
	    rest);
	if (job_parse(&job, text, strlen(text), &why))
		fail_msg("%s", why.text);
	return job;
}

static struct forecast_job
of(const struct job_spec *job)
{
	return (struct forecast_job){.spec = job,
	    .keep = {.last = 3, .every = 10, .best = 1},
	    .elements = 25000,
	    .model_bytes = MODEL,
	    .payload_bytes = PAYLOAD,
	    .state_bytes = 1000,
	    .rounds = job->stop.rounds};
}

static void
synchronous(void **state)
{
	struct job_spec job = parse("\"round\": {\"goal\": 4}, \"stop\": {\"rounds\": 20}");
	struct forecast_job j = of(&job);
	const uint64_t delta = manifest_body_bytes(PAYLOAD) + HEAD;

	(void)state;
	struct job_forecast f = forecast_job(&j);
	assert_int_equal(f.rounds_left, 20);
	/* In the end the first, the tenth and the newest three, of which the first is there: four more, and one at the worst. */
	assert_int_equal(f.models_bytes, 5 * (MODEL + HEAD) + 2 * 1000);
	assert_int_equal(f.spool_bytes, 4 * delta);
	assert_int_equal(f.deltas_bytes, 20 * 4 * delta);
	assert_int_equal(f.database_bytes, 20 * (2048 + 4 * 1536));

	j.committed = 19;
	j.accepted = 3;
	f = forecast_job(&j);
	assert_int_equal(f.rounds_left, 1);
	assert_int_equal(f.spool_bytes, delta);
	assert_int_equal(f.deltas_bytes, 4 * delta);
	j.accepted = 5;
	assert_int_equal(forecast_job(&j).spool_bytes, 0);
	job_deinit(&job);
}

/* Without an end the figures are those of one round. */
static void
endless(void **state)
{
	struct job_spec job =
	    parse("\"round\": {\"goal\": 2}, \"stop\": {\"target\": {\"loss\": 0.1}}, "
		  "\"evaluate\": {\"by\": \"coordinator\", \"data\": \"d\"}");
	const struct forecast_job j = of(&job);
	struct keep_spec keep = {.last = 3, .every = 0, .best = 1};

	(void)state;
	const struct job_forecast f = forecast_job(&j);
	assert_int_equal(f.rounds_left, 0);
	assert_int_equal(f.database_bytes, 2048 + 2 * 1536);
	assert_int_equal(forecast_kept(&keep, MODEL, 0), 5 * MODEL);
	keep.every = 1;
	assert_true(forecast_kept(&keep, MODEL, 0) == UINT64_MAX);
	assert_true(forecast_kept(&keep, UINT64_MAX / 2, 10) == UINT64_MAX);
	job_deinit(&job);
}

/* Tasks that are out hold their bases, and their deltas come while a round is folded. */
static void
buffered(void **state)
{
	struct job_spec job =
	    parse("\"round\": {\"mode\": \"buffered\", \"goal\": 2, "
		  "\"concurrency\": 6, \"max_staleness\": 5}, \"stop\": {\"rounds\": 2}");
	const struct forecast_job j = of(&job);
	const uint64_t delta = manifest_body_bytes(PAYLOAD) + HEAD;

	(void)state;
	const struct job_forecast f = forecast_job(&j);
	assert_int_equal(f.spool_bytes, (2 + 6) * delta);
	assert_int_equal(f.models_bytes, 3 * (MODEL + HEAD) + 2 * 1000 + 5 * (MODEL + HEAD + 1000));
	job_deinit(&job);
}

/* The files beside the models, which devices fetch in their place. */
static void
differences(void **state)
{
	struct job_spec job =
	    parse("\"round\": {\"goal\": 1}, \"download\": {\"codec\": \"int8\"}, "
		  "\"stop\": {\"rounds\": 1}");
	struct job_spec plain = parse("\"round\": {\"goal\": 1}, \"stop\": {\"rounds\": 1}");
	const uint64_t one = forecast_difference_bytes(&job, 25000);

	(void)state;
	assert_in_range(one, 25000, 25000 * 11 / 10);
	assert_int_equal(forecast_difference_bytes(&plain, 25000), 0);
	const struct forecast_job with = of(&job), without = of(&plain);
	assert_int_equal(
	    forecast_job(&with).models_bytes - forecast_job(&without).models_bytes, 2 * one);
	job_deinit(&job);
	job_deinit(&plain);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(synchronous),
	    cmocka_unit_test(endless),
	    cmocka_unit_test(buffered),
	    cmocka_unit_test(differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
