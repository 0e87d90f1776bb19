/* stages: gcc clang openssl address */
/* Jobs played on simulated fleets: times worked out by hand, the same bits for any number of threads, and what does not end well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "refuse.h"

#define LINES_MAX 300
#define CONFIG \
	"[data digits]\nformat = glyphs\nseed = 1\ncount = 40\nskew = 0.2\n" \
	"[data test]\nformat = glyphs\nseed = 1\ncount = 64\n"
/* One step of one example: a device does so many tasks in a second as it trains on examples. */
#define STEP \
	"\"local\": {\"steps\": 1, \"batch\": 1, \"optimizer\": {\"name\": \"sgd\", \"rate\": " \
	"0.1}}"
#define EPOCH \
	"\"local\": {\"epochs\": 1, \"batch\": 10, \"optimizer\": {\"name\": \"sgd\", \"rate\": " \
	"0.1}}"
#define MEASURED "\"evaluate\": {\"by\": \"coordinator\", \"data\": \"digits\"}"

struct game {
	const char *members, *fleet; /* of the job's document; CSV */
	const char *data; /* more of the document's "data"; NULL: nothing */
	bool timing_only;
	unsigned threads;
	uint64_t rounds;
	double sigma;
	struct simulate_line lines[LINES_MAX];
	size_t count;
	struct simulate_result result;
	enum err e;
	struct why why;
};

static void
note(void *context, const struct simulate_line *line)
{
	struct game *g = context;

	assert_true(g->count < LINES_MAX);
	g->lines[g->count++] = *line;
}

static void
play(struct game *g)
{
	struct fleet_profiles profiles;
	struct simulate_options o = {.line = note, .context = g, .rounds = g->rounds};
	struct job_spec job;
	struct settings *settings;
	struct fleet fleet;
	char text[2048];

	int n = snprintf(text, sizeof(text),
	    "{\"name\": \"j\", \"seed\": 3, \"model\": {\"layers\": [{\"type\": \"flatten\"}, "
	    "{\"type\": \"linear\", \"name\": \"fc\", \"out\": 10}], \"loss\": "
	    "\"cross_entropy\"}, \"data\": {\"name\": \"digits\", \"shape\": [1, 28, 28], "
	    "\"classes\": 10%s}, %s}",
	    g->data ? g->data : "", g->members);
	if (job_parse(&job, text, (size_t)n, &g->why))
		fail_msg("%s", g->why.text);
	assert_int_equal(settings_parse(&settings, "c", CONFIG, strlen(CONFIG), &g->why), ERR_OK);
	if (fleet_profiles_parse(&profiles, "f", g->fleet, strlen(g->fleet), &g->why))
		fail_msg("%s", g->why.text);
	assert_int_equal(fleet_init(&fleet, &profiles, g->sigma, 5, &g->why), ERR_OK);
	o.setup = (struct simulate_setup){.job = &job,
	    .text = text,
	    .len = (size_t)n,
	    .settings = settings,
	    .test = "test",
	    .threads = g->threads ? g->threads : 1,
	    .train = !g->timing_only,
	    .measure = !g->timing_only};
	for (size_t i = 0; i < fleet.profiles.count; i++)
		o.setup.hostile |= fleet.profiles.items[i].attack != FLEET_HONEST;
	o.fleet = &fleet;
	o.jobs = 1;
	o.seed = 5;
	o.data = g->timing_only ? NULL : settings_find_data(settings, "digits");
	g->e = simulate_refuse(&o, &g->why);
	if (!g->e)
		g->e = simulate_play(&g->result, &o, NULL, &g->why);
	fleet_deinit(&fleet);
	settings_free(settings);
	job_deinit(&job);
}

static void
well(struct game *g)
{
	play(g);
	if (g->e)
		fail_msg("%s", g->why.text);
}

static void
at(const struct simulate_line *l, double began, double ended)
{
	assert_true(fabs((double)l->began_us / 1e6 - began) < 2e-3);
	if (!(fabs((double)l->ended_us / 1e6 - ended) < 2e-3))
		fail_msg("ends at %g, not at %g", (double)l->ended_us / 1e6, ended);
}

#define THREE "name,count,samples_per_s\nfast,1,1\nmiddle,1,0.5\nslow,1,0.25\n"

/* All three: each round takes as long as the slowest. */
static void
test_synchronous(void **state)
{
	struct game g = {.members = STEP ", \"round\": {\"goal\": 3}, \"stop\": {\"rounds\": 3}",
	    .fleet = THREE,
	    .timing_only = true};

	(void)state;
	well(&g);
	assert_int_equal(g.count, 3);
	at(&g.lines[0], 0, 4);
	at(&g.lines[2], 8, 12);
	assert_int_equal(g.result.end, SIMULATE_DONE);
	assert_int_equal(g.result.device_us, 3 * 7000000);
	assert_int_equal(g.result.wasted_us, 0);
	simulate_result_deinit(&g.result);
}

/* Two of three: the slow one's first delta comes after its round, in which it is not asked again. */
static void
test_over_selection(void **state)
{
	struct game g = {.members = STEP
	    ", \"round\": {\"goal\": 2, \"over_select\": 1.5}, \"stop\": {\"rounds\": 4}",
	    .fleet = THREE,
	    .timing_only = true};

	(void)state;
	well(&g);
	at(&g.lines[0], 0, 2);
	at(&g.lines[1], 2, 4);
	assert_int_equal(g.lines[0].late, 0);
	/* It arrives at 4, as the second delta of round 2 does, and by its id before or after. */
	assert_int_equal(g.result.late, 1);
	assert_int_equal(g.result.folded[0] + g.result.folded[1] + g.result.folded[2], 8);
	assert_int_equal(g.result.staleness[0], 8);
	simulate_result_deinit(&g.result);
}

/* The quorum waits for the rest no longer than its grace; without a quorum the deadline opens the round again. */
static void
test_grace_and_deadline(void **state)
{
	struct game g = {.members = STEP ", \"round\": {\"goal\": 3, \"quorum\": 2, \"grace_s\": "
					 "0.5}, \"stop\": {\"rounds\": 1}",
	    .fleet = THREE,
	    .timing_only = true};
	struct game d = {.members = STEP ", \"round\": {\"goal\": 3, \"deadline_s\": 3}, "
					 "\"stop\": {\"rounds\": 1}",
	    .fleet = THREE,
	    .timing_only = true};

	(void)state;
	well(&g);
	at(&g.lines[0], 0, 2.5);
	assert_int_equal(g.lines[0].round.reports, 2);
	simulate_result_deinit(&g.result);
	/* What was accepted stays; a delta of the opening before counts. */
	well(&d);
	at(&d.lines[0], 0, 4);
	assert_int_equal(d.lines[0].reopened, 1);
	assert_int_equal(d.lines[0].round.reports, 3);
	simulate_result_deinit(&d.result);
}

/* A buffer of two, three tasks out: folds at 2 (fast, middle), then with the fast one's at 3 and the slow one's, which is a round old. */
static void
test_buffered(void **state)
{
	struct game g = {.members = STEP
	    ", \"round\": {\"mode\": \"buffered\", \"goal\": 2, \"concurrency\": 3}, \"stop\": "
	    "{\"rounds\": 3}",
	    .fleet = "name,count,samples_per_s\nfast,1,1\nmiddle,1,0.5\nslow,1,0.3\n",
	    .timing_only = true};

	(void)state;
	well(&g);
	at(&g.lines[0], 0, 2);
	assert_int_equal(g.lines[0].stale_max, 0);
	at(&g.lines[1], 2, 3.333);
	assert_int_equal(g.lines[1].stale_max, 1);
	assert_int_equal(g.result.late, 0);
	/* Middle's second, a round old by then, and fast's third. */
	at(&g.lines[2], 3.333, 4.333);
	assert_int_equal(g.lines[2].stale_max, 1);
	simulate_result_deinit(&g.result);
}

/* Devices of 1, 10 and 100 steps in a second that are to work for 30 s: after a first round of the least each does what it can. */
static void
test_sized(void **state)
{
	struct game g = {.members =
			     "\"local\": {\"target_s\": 30, \"min_steps\": 5, \"max_steps\": "
			     "10000, \"batch\": 1, \"optimizer\": {\"name\": \"sgd\", "
			     "\"rate\": 0.1}}, \"round\": {\"goal\": 3}, \"stop\": "
			     "{\"rounds\": 3}",
	    .fleet = "name,count,samples_per_s\na,1,1\nb,1,10\nc,1,100\n",
	    .timing_only = true};

	(void)state;
	well(&g);
	at(&g.lines[0], 0, 5);
	at(&g.lines[1], 5, 35);
	assert_int_equal(g.lines[1].device_us, 90000000);
	simulate_result_deinit(&g.result);
}

/* Who is out for longer than the task's time makes place for another, and is taken all the same. */
static void
test_expiry(void **state)
{
	struct game g = {.members = STEP
	    ", \"round\": {\"mode\": \"buffered\", \"goal\": 1, \"concurrency\": 1, "
	    "\"task_timeout_s\": 1.5, \"max_staleness\": 9}, \"stop\": {\"rounds\": 3}",
	    .fleet = "name,count,samples_per_s\na,2,0.5\n",
	    .timing_only = true};

	(void)state;
	well(&g);
	/* The first is out until 2, the second from 1.5 to 3.5, and from 2 on the first again. */
	at(&g.lines[0], 0, 2);
	at(&g.lines[1], 2, 3.5);
	simulate_result_deinit(&g.result);
}

/* Late deltas of a synchronous round go into the next one. */
static void
test_late_next(void **state)
{
	struct game g = {.members =
			     STEP ", \"round\": {\"goal\": 2, \"over_select\": 1.5, \"late\": "
				  "\"next\"}, \"stop\": {\"rounds\": 3}",
	    .fleet = "name,count,samples_per_s\nfast,1,1\nmiddle,1,0.5\nslow,1,0.3\n",
	    .timing_only = true};

	(void)state;
	well(&g);
	at(&g.lines[0], 0, 2);
	/* The fast one at 3, the slow one's of round 1 at 3.33. */
	at(&g.lines[1], 2, 3.333);
	assert_int_equal(g.lines[1].stale_max, 1);
	simulate_result_deinit(&g.result);
}

#define MANY \
	"name,count,samples_per_s,up_bytes_per_s,available,failure\na,60,40,1e5,0.7,0.1\nb,20," \
	"400,1e6,1,0\n"

/* The same models and the same times, whatever trains side by side. */
static void
same_for_any_threads(const char *members, const char *fleet, double sigma)
{
	static const unsigned threads[] = {1, 2, 16};
	struct game g[3] = {{.members = members, .fleet = fleet, .sigma = sigma},
	    {.members = members, .fleet = fleet, .sigma = sigma},
	    {.members = members, .fleet = fleet, .sigma = sigma}};

	for (size_t i = 0; i < 3; i++) {
		g[i].threads = threads[i];
		well(&g[i]);
		assert_true(g[i].count >= 5);
		assert_int_equal(g[i].count, g[0].count);
		for (size_t k = 0; k < g[0].count; k++) {
			const struct simulate_line *a = &g[0].lines[k], *b = &g[i].lines[k];
			assert_memory_equal(a->round.model, b->round.model, 32);
			assert_true(a->round.loss == b->round.loss);
			assert_int_equal(a->ended_us, b->ended_us);
			assert_int_equal(a->device_us, b->device_us);
			assert_int_equal(a->round.reports, b->round.reports);
		}
	}
	for (size_t i = 0; i < 3; i++)
		simulate_result_deinit(&g[i].result);
}

static void
test_threads(void **state)
{
	(void)state;
	same_for_any_threads(EPOCH
	    ", \"round\": {\"goal\": 8, \"quorum\": 5, \"over_select\": 1.5, "
	    "\"pick\": \"sample\"}, " MEASURED ", \"stop\": {\"rounds\": 5}",
	    MANY, 1);
	same_for_any_threads(EPOCH ", \"round\": {\"mode\": \"buffered\", \"goal\": 4, "
				   "\"concurrency\": 16}, \"upload\": {\"codec\": \"sign\", "
				   "\"feedback\": true}, " MEASURED ", \"stop\": {\"rounds\": 12}",
	    MANY, 1);
	same_for_any_threads(EPOCH
	    ", \"round\": {\"goal\": 8}, \"aggregate\": {\"rule\": {\"name\": "
	    "\"median\", \"hostile\": 2}}, " MEASURED ", \"stop\": {\"rounds\": 5}",
	    "name,count,samples_per_s,attack\na,6,100,\nliar,2,300,alie\n", 0.5);
}

/* A rate that soon is too large: the guard goes back by what devices have measured of a base some rounds after its own, which is a good
 * model again; what slow ones made of those that are given up comes too late. */
static void
test_branches(void **state)
{
	struct game g = {.members = EPOCH
	    ", \"round\": {\"mode\": \"buffered\", \"goal\": 2, \"concurrency\": 6}, "
	    "\"aggregate\": {\"server_optimizer\": {\"rate\": 1, \"schedule\": {\"type\": "
	    "\"step\", \"every\": 4, \"gamma\": 10}}}, \"evaluate\": {\"by\": \"devices\"}, "
	    "\"guard\": {\"metric\": \"loss\", \"factor\": 1.5, \"do\": \"rollback\"}, "
	    "\"stop\": {\"rounds\": 14}",
	    .data = ", \"validation\": 0.2",
	    .fleet = "name,count,samples_per_s\na,4,100\nb,4,30\n"};
	unsigned later = 0, back = 0;

	(void)state;
	well(&g);
	for (size_t i = 0; i + 1 < g.count; i++) {
		const struct simulate_round *r = &g.lines[i].round, *next = &g.lines[i + 1].round;
		later += r->measured > 0 && r->measured < r->number;
		if (!r->turn.back)
			continue;
		back++;
		assert_memory_equal(next->base, r->turn.base, 32);
		assert_memory_not_equal(next->base, r->model, 32);
		assert_true(r->turn.round < r->measured);
		assert_memory_equal(next->base, g.lines[r->turn.round].round.base, 32);
	}
	assert_true(back >= 1 && later >= 1 && g.result.late >= 1);
	simulate_result_deinit(&g.result);
}

/* Who is fast fills no buffers where a rule bears hostile devices: of 60 each is in one of five. */
static void
test_rest(void **state)
{
	struct game g = {.members = EPOCH
	    ", \"round\": {\"mode\": \"buffered\", \"goal\": 4, \"concurrency\": 60}, "
	    "\"aggregate\": {\"rule\": {\"name\": \"median\", \"hostile\": 1}}, "
	    "\"stop\": {\"rounds\": 20}",
	    .fleet = "name,count,samples_per_s,examples\nfast,2,10000,20\nslow,58,1,20\n",
	    .sigma = 0.5,
	    .timing_only = true};

	(void)state;
	well(&g);
	assert_int_equal(g.count, 20);
	for (size_t i = 0; i < 60; i++)
		assert_in_range(g.result.folded[i], 0, 4);
	simulate_result_deinit(&g.result);
}

/* The buffer that took a delta of a device takes no other, even if the job says three: the fast deliver at 1, 2, 3 and 4 s. Of the three at 2
 * the last is in the third buffer, for whose end it has to wait; at 4 s the two that come first close the fourth. */
static void
test_rest_in_its_round(void **state)
{
	struct game g = {.members = STEP
	    ", \"round\": {\"mode\": \"buffered\", \"goal\": 3, \"concurrency\": 4, "
	    "\"per_device\": 3}, \"aggregate\": {\"rule\": {\"name\": \"median\", "
	    "\"hostile\": 1}}, \"stop\": {\"rounds\": 4}",
	    .fleet = "name,count,samples_per_s\nfast,3,1\nslow,1,0.667\n",
	    .timing_only = true};
	size_t in_all = 0, in_two = 0;

	(void)state;
	well(&g);
	at(&g.lines[3], 3, 4);
	for (size_t i = 0; i < 4; i++) {
		in_all += g.result.folded[i] == 4;
		in_two += g.result.folded[i] == 2;
	}
	assert_int_equal(in_all, 2);
	assert_int_equal(in_two, 2);
	simulate_result_deinit(&g.result);
}

/* Of 18 devices each rests for a buffer more; six of them work for two hours, and after one hour those 12 that ask rest no more. */
static void
test_rest_of_the_heard(void **state)
{
	struct game g = {.members = STEP
	    ", \"round\": {\"mode\": \"buffered\", \"goal\": 3, \"concurrency\": 18, "
	    "\"task_timeout_s\": 9000}, \"aggregate\": {\"rule\": {\"name\": \"median\", "
	    "\"hostile\": 1}}, \"stop\": {\"rounds\": 40}",
	    .fleet = "name,count,samples_per_s\nfast,12,0.001\nslow,6,0.0001\n",
	    .timing_only = true};
	size_t before = 0, after = 0;

	(void)state;
	well(&g);
	/* They come every 1000 s. */
	for (size_t i = 0; i < g.count; i++) {
		before += g.lines[i].ended_us == 3000000000u;
		after += g.lines[i].ended_us == 5000000000u;
	}
	assert_int_equal(before, 3);
	assert_int_equal(after, 4);
	simulate_result_deinit(&g.result);
}

/* Whose delta is too old keeps its place, and works on a newer task in that: from 0, 4, 8, 12 and 16 s on, beside one fast device. */
static void
test_too_old(void **state)
{
	struct game g = {.members = STEP
	    ", \"round\": {\"mode\": \"buffered\", \"goal\": 1, \"concurrency\": 2, "
	    "\"max_staleness\": 0}, \"stop\": {\"rounds\": 19}",
	    .fleet = "name,count,samples_per_s\nfast,2,1\nslow,1,0.25\n",
	    .timing_only = true};

	(void)state;
	well(&g);
	at(&g.lines[18], 18, 19);
	assert_int_equal(g.result.late, 4);
	simulate_result_deinit(&g.result);
}

/* So does one whose delta is refused, which lets the job rest until the next round; or its place is free when its time is over. */
static void
test_refused_place(void **state)
{
	struct game g = {.members = EPOCH
	    ", \"round\": {\"mode\": \"buffered\", \"goal\": 2, \"concurrency\": 2}, "
	    "\"stop\": {\"rounds\": 8}",
	    .fleet = "name,count,samples_per_s,attack\na,2,100,\nliar,1,100,lies\n"};
	struct game out = {.members = EPOCH
	    ", \"round\": {\"mode\": \"buffered\", \"goal\": 2, \"concurrency\": 2, "
	    "\"task_timeout_s\": 10}, \"stop\": {\"rounds\": 2}",
	    .fleet = "name,count,samples_per_s,attack\na,2,100,\nliar,30,100,lies\n"};

	(void)state;
	well(&g);
	assert_int_equal(g.result.refused, 8);
	simulate_result_deinit(&g.result);
	well(&out);
	assert_true(out.lines[0].refused > 2 && out.lines[0].ended_us > 10000000);
	simulate_result_deinit(&out.result);
}

/* A device's examples are those of its place in the table, whenever it is drawn: a fleet of one hand learns what that hand writes. */
static void
test_lazy_data(void **state)
{
	struct game g = {.members = EPOCH ", \"round\": {\"goal\": 2, \"pick\": \"sample\"}, "
					  "\"stop\": {\"rounds\": 3}",
	    .fleet = "name,count,samples_per_s,examples\na,100000,10,20\n"};

	(void)state;
	well(&g);
	assert_int_equal(g.count, 3);
	/* 20 examples at 10 in a second, after a second of gathering. */
	at(&g.lines[0], 0, 3);
	assert_true(isfinite(g.lines[2].round.train_loss));
	simulate_result_deinit(&g.result);
}

static void
test_bad_ends(void **state)
{
	struct game lies = {.members = EPOCH ", \"round\": {\"goal\": 4, \"deadline_s\": 60}, "
					     "\"stop\": {\"rounds\": 3}",
	    .fleet = "name,count,samples_per_s,attack\na,3,100,\nliar,1,100,lies\n"};
	struct game wild = {.members = "\"local\": {\"epochs\": 1, \"optimizer\": {\"name\": "
				       "\"sgd\", \"rate\": 1e6}}, \"round\": {\"goal\": 2, "
				       "\"deadline_s\": 60}, \"stop\": {\"rounds\": 5}",
	    .fleet = "name,count,samples_per_s\na,3,100\n"};
	struct game limit = {
	    .members = STEP ", \"round\": {\"goal\": 3}, \"stop\": {\"rounds\": 9}",
	    .fleet = THREE,
	    .timing_only = true,
	    .rounds = 2};

	(void)state;
	/* The fourth device is number 3 of the liars: it claims 2^31 examples. */
	well(&lies);
	assert_int_equal(lies.result.end, SIMULATE_STUCK);
	assert_true(lies.lines[0].abandoned && lies.lines[0].refused > 1);
	assert_string_equal(lies.lines[0].word, "too-many-examples");
	simulate_result_deinit(&lies.result);
	well(&wild);
	assert_true(wild.result.end == SIMULATE_STUCK || wild.result.end == SIMULATE_PAUSED ||
	    !isfinite(wild.lines[wild.count - 1].round.train_loss) ||
	    wild.lines[wild.count - 1].round.train_loss > 100);
	simulate_result_deinit(&wild.result);
	well(&limit);
	assert_int_equal(limit.result.end, SIMULATE_LIMIT);
	assert_int_equal(limit.count, 2);
	simulate_result_deinit(&limit.result);
}

static void
refuses(const char *members, const char *fleet, bool timing_only, const char *said)
{
	struct game g = {.members = members, .fleet = fleet, .timing_only = timing_only};

	play(&g);
	assert_int_not_equal(g.e, ERR_OK);
	if (!strstr(g.why.text, said))
		fail_msg("says \"%s\", not \"%s\"", g.why.text, said);
	simulate_result_deinit(&g.result);
}

static void
test_refused(void **state)
{
	(void)state;
	refuses(STEP ", \"round\": {\"goal\": 4}, \"stop\": {\"rounds\": 1}", THREE, true,
	    "3 devices may have its tasks");
	refuses(STEP ", \"round\": {\"goal\": 1}", THREE, true, "--rounds");
	refuses(EPOCH ", \"round\": {\"goal\": 1}, \"stop\": {\"rounds\": 1}", THREE, true,
	    "how many examples does a device have?");
	refuses(STEP ", \"round\": {\"goal\": 1}, \"select\": {\"labels\": {\"a\": \"b\"}}", THREE,
	    false, "select.labels");
	refuses(STEP ", \"round\": {\"goal\": 1}, \"trainer\": \"torch\"", THREE, false,
	    "[trainer torch]");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_synchronous),
	    cmocka_unit_test(test_over_selection),
	    cmocka_unit_test(test_grace_and_deadline),
	    cmocka_unit_test(test_buffered),
	    cmocka_unit_test(test_expiry),
	    cmocka_unit_test(test_sized),
	    cmocka_unit_test(test_late_next),
	    cmocka_unit_test(test_branches),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_rest),
	    cmocka_unit_test(test_rest_in_its_round),
	    cmocka_unit_test(test_rest_of_the_heard),
	    cmocka_unit_test(test_too_old),
	    cmocka_unit_test(test_refused_place),
	    cmocka_unit_test(test_lazy_data),
	    cmocka_unit_test(test_bad_ends),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
