/* stages: gcc clang openssl address */
/* The folder: whose round is next, what it may take, and what a stop breaks off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

#include "budget.h"
#include "config.h"
#include "coordinator_fixture.h"
#include "cpu.h"
#include "data_source.h"
#include "jobs_inside.h"
#include "stop.h"

#define TWO "\"goal\":2,\"quorum\":2"
static const char plain[] = JOB("plain", TWO, "");
static const char momentum[] = JOB("momentum", TWO,
    ",\"aggregate\":{\"server_optimizer\":{\"name\":\"sgd\",\"rate\":0.5,\"momentum\":0.5}}");
static const char stepwise[] = JOB("stepwise", TWO, ",\"download\":{\"codec\":\"int8\"}");

static struct coordinator *
another(void)
{
	void *c = NULL;

	coordinator_setup(&c);
	return c;
}

/* Files of models that have no name yet. */
static unsigned
unfinished(struct coordinator *c)
{
	DIR *d = opendir(coordinator_path(c, "models"));
	struct dirent *ent;
	unsigned n = 0;

	assert_non_null(d);
	while ((ent = readdir(d)))
		n += strncmp(ent->d_name, "tmp.", 4) == 0;
	closedir(d);
	return n;
}

/* One round of two reports by the devices a and b. */
static void
one_round(struct coordinator *c, uint8_t a, float va, uint8_t b, float vb)
{
	struct task ta, tb;

	assert_string_equal(ask(c, a, &ta), "");
	assert_string_equal(ask(c, b, &tb), "");
	assert_null(deliver(c, &ta, a, va, 300));
	assert_null(deliver(c, &tb, b, vb, 100));
}

static const char sorted[] =
    JOB("sorted", TWO, ",\"aggregate\":{\"rule\":{\"name\":\"median\",\"hostile\":0}}");

/* A sorting rule needs tiles of all deltas: in so small a budget its rounds are large ones, those of a mean are small. */
static void
a_small_budget(struct coordinator *c)
{
	const uint64_t small = ((uint64_t)cpu_count() + 1) << 20;

	c->config.work_bytes = small * 32;
	assert_int_equal(budget_new(&c->s.budget), ERR_OK);
}

/* Who needs much waits until there is room, and nobody else with it. */
static void
room_for_large_ones(void **state)
{
	struct coordinator *c = *state;
	struct budget *budget;
	uint8_t large[16], small[16];

	a_small_budget(c);
	budget = c->s.budget;
	const uint64_t all = budget_large(c->config.work_bytes);
	assert_true(budget_take(budget, c->config.work_bytes, all, false));
	submit(c, sorted, large);
	one_round(c, 1, 1.0f, 2, 5.0f);
	submit(c, plain, small);
	for (uint64_t n = 1; n <= 3; n++) {
		one_round(c, 3, 1.0f, 4, 5.0f);
		await_rounds(c, small, n);
	}
	assert_int_equal(job_number(c, large, "rounds_committed"), 0);
	assert_true(job_is(c, large, "running"));
	budget_give(budget, all, false);
	/* The next who is done wakes those who wait. */
	one_round(c, 3, 1.0f, 4, 5.0f);
	await_rounds(c, small, 4);
	await_rounds(c, large, 1);
	coordinator_stop(c);
	assert_int_equal(budget_taken(budget), 0);
	budget_free(budget);
	coordinator_start(c);
}

static void
submit_of(struct coordinator *c, const char *text, uint8_t owner, uint8_t id[16])
{
	struct engine_document d = {.text = text, .len = strlen(text), .owner = {owner}};
	bool created;

	if (engine_submit(c->s.engine, &d, id, &created, &c->why))
		fail_msg("%s", c->why.text);
}

static void
a_table(struct coordinator *c)
{
	struct config_data *d = &c->config.data[0];
	FILE *f = fopen(coordinator_path(c, "few"), "w");

	assert_non_null(f);
	fprintf(f, "a,b,c,d,e\n0.5,1,2,3,0\n1,0.5,2,3,1\n");
	assert_int_equal(fclose(f), 0);
	*d = (struct config_data){.name = "few", .source = {.format = DATA_CSV, .label = "e"}};
	snprintf(d->source.path, sizeof(d->source.path), "%s", c->path);
	c->config.data_count = 1;
}

/* A round that waits for room does not hold up the one whose memory it waits for, which was measured meanwhile and came behind it. */
static void
what_is_folded_goes_first(void **state)
{
	static const char measured[] =
	    "{\"name\":\"measured\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\","
	    "\"name\":\"fc\",\"out\":2}],"
	    "\"loss\":\"cross_entropy\"},\"select\":{\"devices\":[\"device-1\",\"device-2\"]},"
	    "\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},"
	    "\"local\":{\"optimizer\":"
	    "{\"rate\":0.1}},\"round\":{" TWO
	    "},\"evaluate\":{\"by\":\"coordinator\",\"data\":\"few\"},"
	    "\"aggregate\":{\"rule\":{\"name\":\"median\",\"hostile\":0}}}";
	static const char waits[] = JOB("waits", TWO,
	    ",\"select\":{\"devices\":[\"device-3\",\"device-4\"]},\"aggregate\":{\"rule\":{"
	    "\"name\":\"median\",\"hostile\":0}}");
	static const char wakes[] =
	    JOB("wakes", TWO, ",\"select\":{\"devices\":[\"device-5\",\"device-6\"]}");
	struct coordinator *c = *state;
	uint8_t first[16], second[16], third[16];

	a_table(c);
	submit_of(c, measured, 1, first);
	submit_of(c, waits, 2, second);
	submit_of(c, wakes, 3, third);
	/* So little that each round has it alone. */
	a_small_budget(c);
	struct budget *budget = c->s.budget;
	const uint64_t all = jobs_find(c->s.engine, first)->work->cost.bytes;
	c->config.work_bytes = all;
	assert_true(budget_take(budget, all, all, false));
	one_round(c, 1, 1.0f, 2, 5.0f);
	one_round(c, 3, 1.0f, 4, 5.0f);
	budget_give(budget, all, false);
	/* Whatever comes wakes those who wait. */
	one_round(c, 5, 1.0f, 6, 5.0f);
	await_rounds(c, third, 1);
	await_rounds(c, first, 1);
	await_rounds(c, second, 1);
	assert_true(round_row(c, first, 1).evaluate.known);
	coordinator_stop(c);
	assert_int_equal(budget_taken(budget), 0);
	budget_free(budget);
	coordinator_start(c);
}

/* Nothing of a round that a stop breaks off is lost, and its job is not paused. */
static void
a_stop_breaks_it_off(void **state)
{
	static const char *const jobs[] = {plain, sorted, momentum, stepwise};

	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
		struct coordinator *c = another();
		struct stop stop = {.sees_signals = false};
		uint8_t job[16];

		(void)state;
		c->s.stop = &stop;
		models_until(c->s.models, &stop);
		submit(c, jobs[i], job);
		stop_ask(&stop);
		one_round(c, 1, 1.0f, 2, 5.0f);
		coordinator_stop(c);
		coordinator_start(c);
		assert_true(job_is(c, job, "running"));
		await_rounds(c, job, 1);
		assert_int_equal(round_row(c, job, 1).reports, 2);
		assert_int_equal(unfinished(c), 0);
		coordinator_teardown(&(void *){c});
	}
}

/* A start that is told to end says so, and the next one finds all there is. */
static void
a_start_breaks_off(void **state)
{
	static const uint8_t task_key[32] = {42};
	struct coordinator *c = *state;
	struct stop stop = {.sees_signals = false};
	struct engine *g = NULL;
	uint8_t job[16];

	submit(c, plain, job);
	coordinator_stop(c);
	coordinator_start(c);
	stop_ask(&stop);
	c->s.stop = &stop;
	assert_int_equal(jobs_new(&g, &c->s, task_key, &c->why), ERR_CLOSED);
	assert_null(g);
	c->s.stop = NULL;
	assert_true(job_is(c, job, "running"));
}

/* What a job will take of the coordinator is known before it is taken. */
static void
bounds_of_a_fold(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	c->config.fold_work = 1;
	coordinator_refuses(c, plain, "fold_work");
	c->config.fold_work = 0;
	assert_int_equal(budget_new(&c->s.budget), ERR_OK);
	c->config.work_bytes = 1000;
	coordinator_refuses(c, plain, "work_bytes");
	c->config.work_bytes = 0;
	submit(c, plain, id);
	struct budget *budget = c->s.budget;
	coordinator_stop(c);
	budget_free(budget);
	coordinator_start(c);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(room_for_large_ones),
	    WITH(what_is_folded_goes_first),
	    WITH(a_stop_breaks_it_off),
	    WITH(a_start_breaks_off),
	    WITH(bounds_of_a_fold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
