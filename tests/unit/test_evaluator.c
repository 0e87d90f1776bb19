/* stages: gcc clang openssl address */
/* The coordinator's evaluations: whom they hold up, what ends them, what they may cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config.h"
#include "coordinator_fixture.h"
#include "data_source.h"
#include "evalset.h"
#include "jobs_inside.h"

/* Two jobs of ten parameters. One example of the first is quick, one of the second takes over a million multiply-adds. */
#define QUICK "{\"type\":\"linear\",\"out\":2}"
#define SLOW \
	"{\"type\":\"conv2d\",\"out\":1,\"kernel\":1,\"padding\":200,\"bias\":false}," \
	"{\"type\":\"avgpool2d\",\"kernel\":401},{\"type\":\"flatten\"}," \
	"{\"type\":\"linear\",\"out\":3}"
#define MEASURED(name, layers, shape, classes, evaluate) \
	"{\"name\":\"" name "\",\"model\":{\"layers\":[" layers "],\"loss\":\"cross_entropy\"}," \
	"\"data\":{\"name\":\"d\",\"shape\":" shape ",\"classes\":" classes "}," \
	"\"local\":{\"optimizer\":{\"rate\":0.1}},\"round\":{\"goal\":1}," \
	"\"evaluate\":{\"by\":\"coordinator\"," evaluate "}}"
#define QUICK_JOB(name, more) MEASURED(name, QUICK, "[4]", "2", "\"data\":\"few\"" more)
#define SLOW_JOB(name, more) MEASURED(name, SLOW, "[4]", "3", "\"data\":\"many\"" more)

static const char plain[] = JOB("plain", "\"goal\":1", "");

static void
table(struct coordinator *c, struct config_data *d, const char *name, unsigned rows)
{
	FILE *f = fopen(coordinator_path(c, name), "w");

	assert_non_null(f);
	fprintf(f, "a,b,c,d,e\n");
	for (unsigned i = 0; i < rows; i++)
		fprintf(f, "0.5,1,%u,2,%u\n", i % 7, i % 2);
	assert_int_equal(fclose(f), 0);
	*d = (struct config_data){.source = {.format = DATA_CSV, .label = "e"}};
	snprintf(d->name, sizeof(d->name), "%s", name);
	snprintf(d->source.path, sizeof(d->source.path), "%s", c->path);
}

static int
setup(void **state)
{
	int result = coordinator_setup(state);
	struct coordinator *c = *state;

	table(c, &c->config.data[0], "few", 40);
	table(c, &c->config.data[1], "many", 200000);
	c->config.data_count = 2;
	for (size_t i = 0; i < 3; i++)
		strcpy(c->offer.layers[c->offer.layer_count++],
		    ((const char *[]){"conv2d", "avgpool2d", "flatten"})[i]);
	return result;
}

static void
submit_of(struct coordinator *c, const char *text, uint8_t owner, uint8_t id[16])
{
	struct engine_document d = {.text = text, .len = strlen(text), .owner = {owner}};
	bool created;

	if (engine_submit(c->s.engine, &d, id, &created, &c->why))
		fail_msg("%s", c->why.text);
}

/* The round's only report, by a device that has no other task. */
static void
report(struct coordinator *c, uint8_t tag, const uint8_t job[16])
{
	struct task t;
	char hex[33];

	hex_encode(hex, job, 16);
	assert_string_equal(ask(c, tag, &t), "");
	assert_string_equal(t.job, hex);
	assert_null(deliver(c, &t, tag, 0.5f, 100));
}

static void
await_folding(struct coordinator *c, const uint8_t job[16])
{
	uint64_t until = clock_ms() + 60000;
	const struct job *j = jobs_find(c->s.engine, job);

	while (j->facts.round.state != ROUND_FOLDING && clock_ms() < until)
		rounds_tick(c->s.engine);
	assert_int_equal(j->facts.round.state, ROUND_FOLDING);
}

/* Others fold on, are measured meanwhile if they are another owner's, and a stop ends it. */
static void
beside_the_others(void **state)
{
	static const char slow[] = SLOW_JOB("slow", ",\"deadline_s\":3600"),
			  same[] = QUICK_JOB("same", ""), other[] = QUICK_JOB("other", "");
	struct coordinator *c = *state;
	uint8_t a[16], b[16], d[16], e[16];

	submit_of(c, slow, 1, a);
	report(c, 1, a);
	await_folding(c, a);
	submit_of(c, plain, 1, b);
	for (uint8_t n = 1; n <= 3; n++) {
		report(c, 2, b);
		await_rounds(c, b, n);
	}
	assert_int_equal(engine_command(c->s.engine, b, JOB_STOPPED, NULL, &c->why), ERR_OK);
	submit_of(c, same, 1, d);
	report(c, 3, d);
	submit_of(c, other, 2, e);
	report(c, 4, e);
	await_rounds(c, e, 1);
	assert_true(round_row(c, e, 1).evaluate.known);
	assert_int_equal(round_row(c, d, 1).state, OUTCOME_OPEN);
	assert_int_equal(round_row(c, a, 1).state, OUTCOME_OPEN);
	assert_int_equal(engine_command(c->s.engine, a, JOB_STOPPED, NULL, &c->why), ERR_OK);
	await_rounds(c, a, 1);
	assert_int_equal(round_row(c, a, 1).state, OUTCOME_COMMITTED);
	assert_false(round_row(c, a, 1).evaluate.known);
	await_rounds(c, d, 1);
	assert_true(round_row(c, d, 1).evaluate.known);
	assert_int_equal(round_row(c, d, 1).evaluate.examples, 40);
}

static void
a_deadline(void **state)
{
	static const char slow[] = SLOW_JOB("slow", ",\"deadline_s\":0.1");
	struct coordinator *c = *state;
	uint8_t id[16];

	submit_of(c, slow, 1, id);
	report(c, 1, id);
	await_rounds(c, id, 1);
	assert_int_equal(round_row(c, id, 1).state, OUTCOME_COMMITTED);
	assert_false(round_row(c, id, 1).evaluate.known);
	assert_int_equal(round_row(c, id, 2).state, OUTCOME_OPEN);
}

static bool
is_folded(struct coordinator *c, const uint8_t job[16])
{
	lock_take(&c->s.engine->lock);
	bool folded = jobs_find(c->s.engine, job)->pace.folds > 0;
	lock_release(&c->s.engine->lock);
	return folded;
}

/* A coordinator that stops leaves the round as it is, and folds it again. */
static void
a_restart(void **state)
{
	static const char slow[] = SLOW_JOB("slow", ",\"deadline_s\":3600");
	struct coordinator *c = *state;
	uint8_t id[16];

	submit_of(c, slow, 1, id);
	report(c, 1, id);
	await_folding(c, id);
	coordinator_stop(c);
	coordinator_start(c);
	assert_int_equal(round_row(c, id, 1).state, OUTCOME_OPEN);
	await_folding(c, id);
	/* It may come before the delta is read again: the round ends then or stays open. */
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	uint64_t until = clock_ms() + 60000;
	while (is_folded(c, id) && clock_ms() < until)
		rounds_tick(c->s.engine);
	assert_false(is_folded(c, id));
}

/* The figure of the last measured round stays the job's, also after a restart. */
static void
each_third_round(void **state)
{
	static const char third[] = QUICK_JOB("third", ",\"every\":3");
	struct coordinator *c = *state;
	uint8_t id[16];

	submit_of(c, third, 1, id);
	for (uint8_t n = 1; n <= 8; n++) {
		report(c, 1, id);
		await_rounds(c, id, n);
		assert_int_equal(round_row(c, id, n).evaluate.known, n % 3 == 0);
	}
	coordinator_stop(c);
	coordinator_start(c);
	const struct job *j = jobs_find(c->s.engine, id);
	assert_true(j->facts.metric.known);
	assert_int_equal(j->facts.metric_round, 6);
}

/* A batch too large for memory or time is refused; of a job that was taken before, fewer threads work at a time. */
static void
a_budget(void **state)
{
	static const char slow[] = SLOW_JOB("slow", ",\"deadline_s\":0.1"),
			  quick[] = QUICK_JOB("quick", "");
	struct coordinator *c = *state;
	uint8_t id[16];

	c->config.evaluation_work = 5000000;
	coordinator_refuses(c, slow, "evaluation_work");
	c->config.evaluation_work = 0;
	c->config.evaluation_bytes = 10 << 20;
	coordinator_refuses(c, slow, "evaluation_bytes");
	submit_of(c, quick, 1, id);
	report(c, 1, id);
	await_rounds(c, id, 1);
	assert_true(round_row(c, id, 1).evaluate.known);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	c->config.evaluation_bytes = 0;
	submit_of(c, slow, 1, id);
	c->config.evaluation_bytes = 10 << 20;
	report(c, 1, id);
	await_rounds(c, id, 1);
}

#define SEEN 16
struct seen {
	pthread_mutex_t lock;
	pthread_t threads[SEEN];
	size_t count, want;
};

static size_t
count_in(struct seen *s)
{
	bool is_new = true;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->count; i++)
		is_new = is_new && !pthread_equal(s->threads[i], pthread_self());
	if (is_new && s->count < SEEN)
		s->threads[s->count++] = pthread_self();
	size_t count = s->count;
	pthread_mutex_unlock(&s->lock);
	return count;
}

/* Nobody goes on before as many are there as are to come. */
static bool
look(void *context, uint64_t done, uint64_t planned)
{
	struct seen *s = context;
	uint64_t until = clock_ms() + 20000;

	(void)done;
	(void)planned;
	while (count_in(s) < s->want && clock_ms() < until)
		usleep(1000);
	return false;
}

static size_t
threads_of(const struct config *config, const struct recipe *recipe, size_t want,
    struct train_score *score)
{
	static const float params[ELEMENTS];
	struct seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .want = want};
	struct evalset *set = NULL;
	struct why why = {""};
	const struct evalset_work work = {
	    .recipe = recipe, .params = params, .threads = 4, .stop = look, .context = &seen};

	assert_int_equal(evalset_new(&set, config), ERR_OK);
	if (evalset_run(set, &work, score, &why))
		fail_msg("%s", why.text);
	evalset_free(set);
	return seen.count;
}

/* As many as the configuration says, as memory allows; the figures are the same. */
static void
its_threads(void **state)
{
	static const char quick[] = QUICK_JOB("quick", "");
	struct coordinator *c = *state;
	struct train_score alone, all;
	struct job_spec job;

	assert_int_equal(job_parse(&job, quick, strlen(quick), &c->why), ERR_OK);
	c->config.evaluation_bytes = 0;
	assert_int_equal(threads_of(&c->config, &job.recipe, 4, &all), 4);
	c->config.evaluation_threads = 1;
	assert_int_equal(threads_of(&c->config, &job.recipe, 1, &alone), 1);
	assert_true(all.loss == alone.loss && all.accuracy == alone.accuracy);
	c->config.evaluation_threads = 3;
	assert_int_equal(threads_of(&c->config, &job.recipe, 3, &all), 3);
	assert_true(all.loss == alone.loss);
	c->config.evaluation_bytes = 1;
	assert_int_equal(threads_of(&c->config, &job.recipe, 1, &all), 1);
	job_deinit(&job);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(beside_the_others),
	    WITH(a_deadline),
	    WITH(a_restart),
	    WITH(each_third_round),
	    WITH(a_budget),
	    WITH(its_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
