/* stages: gcc clang openssl address */
/*
 * Every generalisation with its neutral parameter equals its parent, bit for bit: job documents side by side, folded over the same
 * deltas for several rounds with their states, or trained on the same examples.
 * Whole jobs side by side are in tests/e2e/52-simulate.sh and 36-guard.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fold_round.h"
#include "glyphs.h"
#include "nets.h"
#include "prng.h"
#include "rate_control.h"
#include "train.h"

#define N 9
#define ELEMENTS (RULE_TILE + 777)
#define ROUNDS 6

static float deltas[ROUNDS][N][ELEMENTS];
static double examples[N], normalisers[N];

static enum err
read_vector(void *context, unsigned vector, size_t delta, uint64_t first, size_t count, float *out)
{
	const uint64_t *round = context;

	assert_int_equal(vector, 0);
	memcpy(out, deltas[*round - 1][delta] + first, count * sizeof(*out));
	return ERR_OK;
}

static void
draw(bool alike)
{
	struct prng r;

	prng_seed(&r, 11);
	for (size_t n = 0; n < ROUNDS; n++)
		for (size_t i = 0; i < N; i++)
			for (size_t k = 0; k < ELEMENTS; k++)
				deltas[n][i][k] = (prng_float(&r) - 0.5f) * 0.1f;
	for (size_t i = 0; i < N; i++) {
		examples[i] = alike ? 100 : (double)(10 + 7 * i);
		normalisers[i] = 5;
	}
}

/* The job document with these members of `local` and `aggregate`. */
static void
parse(struct job_spec *job, const char *local, const char *aggregate)
{
	struct why why = {""};
	char text[1024];

	snprintf(text, sizeof(text),
	    "{\"name\":\"x\",\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":"
	    "\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},\"local\":{"
	    "%s},\"round\":{\"goal\":9},\"aggregate\":{%s}}",
	    local, aggregate);
	if (job_parse(job, text, strlen(text), &why) != ERR_OK)
		fail_msg("%s; %s: %s", local, aggregate, why.text);
}

/* A model after ROUNDS rounds of a job, with the state that it ends with. */
struct result {
	float weights[ELEMENTS];
	float *state;
	size_t floats;
};

static void
fold_rounds(const struct job_spec *job, const struct tensor_table *table, struct result *out)
{
	struct rate_control schedule = rate_control_start();
	struct rate_control_turn turn;
	static const uint8_t id[32];

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		const struct schedule_round ended = {
		    .round = round, .reports = N, .base = id, .model = id, .state = id};
		rate_control_step(&schedule, job, &ended, &turn);
		struct fold_round f = {.job = job,
		    .table = table,
		    .number = round,
		    .factor = turn.factor,
		    .threads = 1,
		    .read = read_vector,
		    .context = &round,
		    .step = {.data = (uint8_t *)out->weights, .state = out->state}};
		assert_int_equal(fold_round_plan(&f, NULL), ERR_OK);
		if (round == 1) {
			out->floats = server_step_floats(&f.step);
			out->state = f.step.state = calloc(out->floats + 1, sizeof(float));
			assert_non_null(out->state);
			assert_int_equal(server_step_start(&f.step, out->state, NULL), ERR_OK);
		}
		for (size_t i = 0; i < N; i++)
			assert_int_equal(
			    fold_round_add(&f, examples[i], normalisers[i], 1), ERR_OK);
		assert_int_equal(fold_round_begin(&f, NULL), ERR_OK);
		assert_int_equal(fold_round_run(&f), ERR_OK);
		fold_round_deinit(&f);
	}
}

#define LOCAL_STEP "\"steps\":1,\"optimizer\":{\"rate\":1}"

static void
run_job(const char *aggregate, struct result *out)
{
	static const uint64_t shape[] = {ELEMENTS};
	struct tensor_table table = {.items = NULL};
	struct job_spec job;

	parse(&job, LOCAL_STEP, aggregate);
	assert_int_equal(tensor_table_add(&table, "w", shape, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(&table, NULL, 0, NULL), ERR_OK);
	for (size_t k = 0; k < ELEMENTS; k++)
		out->weights[k] = (float)(k % 91) / 64 - 1;
	fold_rounds(&job, &table, out);
	tensor_table_deinit(&table);
	job_deinit(&job);
}

#define SERVER(x) "\"server_optimizer\":{" x "}"
#define RULE(x) "\"rule\":{\"name\":" x "}"
#define MOMENTUM "\"rate\":0.5,\"momentum\":0.9"
#define ADAM "\"name\":\"adam\",\"rate\":0.02"
/* Beside "aggregate", which ends with it. */
#define DOWNLOAD(x) "},\"download\":{\"codec\":" x
#define SCHEDULE(x) SERVER("\"rate\":0.3,\"schedule\":{" x "}")

static const struct pair {
	const char *general, *parent;
	bool alike; /* only among deltas of as many examples each */
} pairs[] = {
    /* rules */
    {RULE("\"mean\""), "", false},
    {RULE("\"trimmed_mean\""), "", true},
    {RULE("\"trimmed_mean\",\"hostile\":0"), "", true},
    {RULE("\"krum\",\"picks\":9"), "", true},
    {RULE("\"mean\",\"bucket\":1"), "", false},
    {RULE("\"mean\",\"nearest\":false"), "", false},
    {RULE("\"median\",\"nearest\":true"), "", true},
    {RULE("\"median\",\"bucket\":1,\"hostile\":2"), RULE("\"median\",\"hostile\":2"), false},
    {RULE("\"krum\",\"picks\":1,\"hostile\":1"), RULE("\"krum\",\"hostile\":1"), false},
    {RULE("\"geometric_median\",\"iterations\":8,\"smoothing\":1e-6"), RULE("\"geometric_median\""),
	false},
    /* The median does not ask how many may be hostile. */
    {RULE("\"median\",\"hostile\":4"), RULE("\"median\""), false},
    /* bounds */
    {"\"norm_bound\":0", "", false},
    {"\"norm_bound\":1e29", "", false},
    {"\"norm_bound\":1e29," RULE("\"krum\",\"hostile\":1"), RULE("\"krum\",\"hostile\":1"), false},
    {"\"norm_bound\":1e29," RULE("\"geometric_median\""), RULE("\"geometric_median\""), false},
    {"\"max_norm\":0", "", false},
    /* FedNova, where all did the same work */
    {"\"normalise\":false", "", false},
    {"\"normalise\":true", "", false},
    /* server optimizers: SGD of rate 1 without momentum is FedAvg */
    {SERVER("\"name\":\"sgd\",\"rate\":1,\"momentum\":0"), "", false},
    {SERVER("\"momentum\":0,\"nesterov\":false"), "", false},
    {SERVER(MOMENTUM ",\"nesterov\":false"), SERVER(MOMENTUM), false},
    {SERVER(ADAM ",\"beta1\":0.9,\"beta2\":0.99,\"tau\":1e-3"), SERVER(ADAM), false},
    /* schedules */
    {SCHEDULE("\"type\":\"constant\""), SERVER("\"rate\":0.3"), false},
    {SCHEDULE("\"warmup\":0"), SERVER("\"rate\":0.3"), false},
    {SCHEDULE("\"warmup\":1"), SERVER("\"rate\":0.3"), false},
    {SCHEDULE("\"type\":\"step\",\"every\":2,\"gamma\":1"), SERVER("\"rate\":0.3"), false},
    {SCHEDULE("\"type\":\"step\",\"every\":1000,\"gamma\":0.1"), SERVER("\"rate\":0.3"), false},
    {SCHEDULE("\"type\":\"cosine\",\"period\":3,\"floor\":1"), SERVER("\"rate\":0.3"), false},
    {SCHEDULE("\"type\":\"linear\",\"period\":3,\"floor\":1"), SERVER("\"rate\":0.3"), false},
    {SCHEDULE("\"type\":\"wsd\",\"stable\":1,\"period\":3,\"floor\":1"), SERVER("\"rate\":0.3"),
	false},
    {SCHEDULE("\"type\":\"wsd\",\"stable\":1000,\"period\":3"), SERVER("\"rate\":0.3"), false},
    {SCHEDULE("\"type\":\"wsd\",\"stable\":0,\"period\":4"),
	SCHEDULE("\"type\":\"linear\",\"period\":4"), false},
    /* the rate after the number of reports, which is what it was chosen for */
    {SERVER("\"rate\":0.3,\"scale\":{\"by\":\"linear\",\"reports\":9}"), SERVER("\"rate\":0.3"),
	false},
    {SERVER("\"rate\":0.3,\"scale\":{\"by\":\"sqrt\",\"reports\":9,\"warmup\":3}"),
	SERVER("\"rate\":0.3"), false},
    {SERVER(ADAM ",\"scale\":{\"by\":\"sqrt\",\"reports\":9}"), SERVER(ADAM), false},
    /* and of another number: the rate times 1/2, 3 and 3 of nine reports, to the bit */
    {SERVER("\"rate\":0.3,\"scale\":{\"by\":\"linear\",\"reports\":18}"), SERVER("\"rate\":0.15"),
	false},
    {SERVER("\"rate\":0.25,\"scale\":{\"by\":\"linear\",\"reports\":3}"), SERVER("\"rate\":0.75"),
	false},
    {SERVER("\"rate\":0.25,\"momentum\":0.9,\"scale\":{\"by\":\"sqrt\",\"reports\":1}"),
	SERVER("\"rate\":0.75,\"momentum\":0.9"), false},
};

static void
equal(const struct pair *p, struct result *a, struct result *b)
{
	if (memcmp(a->weights, b->weights, sizeof(a->weights)) != 0 || a->floats != b->floats ||
	    memcmp(a->state, b->state, a->floats * sizeof(float)) != 0)
		fail_msg("{%s} is not {%s}", p->general, p->parent);
}

static void
neutral(void **state)
{
	static struct result a, b;

	(void)state;
	for (int alike = 0; alike < 2; alike++) {
		draw(alike);
		for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
			if (pairs[i].alike && !alike)
				continue;
			run_job(pairs[i].general, &a);
			run_job(pairs[i].parent, &b);
			equal(&pairs[i], &a, &b);
			free(a.state);
			free(b.state);
		}
	}
}

/* Rules that sum add up the weights of mixed deltas first, and those are rounded: as close as that. */
static const struct pair close_pairs[] = {
    {RULE("\"mean\",\"nearest\":true"), "", true},
    {RULE("\"trimmed_mean\",\"nearest\":true"), "", true},
    {RULE("\"krum\",\"nearest\":true"), "", true},
    {RULE("\"bulyan\""), "", true},
    {RULE("\"centered_clipping\",\"radius\":1e9"), "", true},
    /* f32 loses the rounding of a difference and of its sum. */
    {DOWNLOAD("\"f32\""), "", true},
};

static void
nearly(void **state)
{
	static struct result a, b;

	(void)state;
	draw(true);
	run_job("", &b);
	for (size_t i = 0; i < sizeof(close_pairs) / sizeof(*close_pairs); i++) {
		run_job(close_pairs[i].general, &a);
		for (size_t k = 0; k < ELEMENTS; k++)
			if (!(fabsf(a.weights[k] - b.weights[k]) <= ROUNDS * 0x1p-24f * 2))
				fail_msg("{%s}: %.9g is not %.9g", close_pairs[i].general,
				    (double)a.weights[k], (double)b.weights[k]);
		free(a.state);
	}
	free(b.state);
}

/* Where no difference is rounded, a download in f32 loses nothing: weights and deltas on a grid, and a rule that picks among them.
 * With int8 the same is another model. */
static void
neutral_download(void **state)
{
	static const struct pair pair = {
	    RULE("\"median\"") DOWNLOAD("\"f32\""), RULE("\"median\""), false};
	static struct result a, b;
	float *all = &deltas[0][0][0];

	(void)state;
	draw(false);
	for (size_t i = 0; i < sizeof(deltas) / sizeof(*all); i++)
		all[i] = roundf(all[i] * 4096) / 4096;
	run_job(pair.general, &a);
	run_job(pair.parent, &b);
	equal(&pair, &a, &b);
	free(a.state);
	run_job(RULE("\"median\"") DOWNLOAD("\"int8\""), &a);
	assert_memory_not_equal(a.weights, b.weights, sizeof(a.weights));
	free(a.state);
	free(b.state);
}

static void
same_turn(const struct rate_control_turn *x, const struct rate_control_turn *y)
{
	assert_int_equal(x->verdict, y->verdict);
	assert_true(!x->back && !y->back && x->round == y->round && x->factor == y->factor);
	assert_memory_equal(x->base, y->base, 32);
	assert_memory_equal(x->state, y->state, 32);
	assert_true(x->reason[0] == 0 && y->reason[0] == 0);
}

/* A guard that sees nothing bad, whatever it would do, leaves every round where it was. */
static void
neutral_guard(void **state)
{
	static const char *const guards[] = {
	    "\"metric\":\"accuracy\",\"drop\":0,\"do\":\"rollback\"",
	    "\"metric\":\"accuracy\",\"drop\":0.1,\"do\":\"stop\"",
	    "\"metric\":\"loss\",\"factor\":1,\"do\":\"pause\",\"rounds\":1"};
	static const char evaluated[] = SERVER("\"scale\":{\"by\":\"linear\",\"reports\":4,"
					       "\"warmup\":3}") "},\"evaluate\":{\"by\":"
								"\"coordinator\",\"data\":\"d\"";
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(guards) / sizeof(*guards); i++) {
		struct job_spec with, without;
		struct rate_control a = rate_control_start(), b = rate_control_start();
		struct rate_control_turn x, y;
		snprintf(text, sizeof(text), "%s},\"guard\":{%s", evaluated, guards[i]);
		parse(&with, LOCAL_STEP, text);
		parse(&without, LOCAL_STEP, evaluated);
		for (uint8_t n = 1; n <= 30; n++) {
			const uint8_t base[32] = {n}, model[32] = {n + 1}, kept[32] = {0, n};
			const struct schedule_round ended = {.round = n,
			    .reports = (uint64_t)(n % 7) + 3,
			    .base = base,
			    .model = model,
			    .state = kept,
			    .evaluated = n % 5 != 0,
			    .loss = 1.0 / n,
			    .accuracy = 1 - 1.0 / n};
			rate_control_step(&a, &with, &ended, &x);
			rate_control_step(&b, &without, &ended, &y);
			same_turn(&x, &y);
			assert_memory_equal(x.base, model, 32);
		}
		assert_non_null(guard_best(&a.guard));
		job_deinit(&with);
		job_deinit(&without);
	}
}

/* What the pairs above would not see if parameters were not looked at: each of these moves something. */
static void
not_neutral(void **state)
{
	static const char *const moved[] = {RULE("\"trimmed_mean\",\"hostile\":1"),
	    RULE("\"krum\",\"picks\":8"), RULE("\"mean\",\"hostile\":0,\"bucket\":2"),
	    RULE("\"median\",\"nearest\":true,\"hostile\":1"), "\"norm_bound\":1",
	    "\"norm_bound\":\"median\"", SERVER("\"rate\":0.999"), SERVER("\"momentum\":0.001"),
	    SERVER("\"schedule\":{\"warmup\":2}"),
	    SERVER("\"schedule\":{\"type\":\"wsd\",\"stable\":4,\"period\":3}"),
	    SERVER("\"scale\":{\"by\":\"linear\",\"reports\":8}"),
	    SERVER("\"scale\":{\"by\":\"sqrt\",\"reports\":10,\"warmup\":100}")};
	static struct result a, b;

	(void)state;
	draw(true);
	run_job("", &b);
	for (size_t i = 0; i < sizeof(moved) / sizeof(*moved); i++) {
		run_job(moved[i], &a);
		if (memcmp(a.weights, b.weights, sizeof(a.weights)) == 0)
			fail_msg("{%s} is the plain mean", moved[i]);
		free(a.state);
	}
	free(b.state);
}

/* --- local training: a device's rounds, over the same examples */

#define EXAMPLES 40
#define LOCAL_ROUNDS 2

/* Linear layers step within their products, convolutions gather first; dropout draws beside them. */
static void
mixed(struct nets *n)
{
	nets_start(n, 1, 28, 28, LOSS_CROSS_ENTROPY);
	nets_conv(n, "conv1", 4, 5, 2);
	nets_add(n, LAYER_RELU, "relu1");
	nets_window(n, LAYER_MAXPOOL2D, "pool1", 4, 4, 0);
	nets_add(n, LAYER_FLATTEN, "flatten");
	nets_linear(n, "fc1", 20);
	nets_add(n, LAYER_DROPOUT, "drop")->rate = 0.25f;
	nets_linear(n, "fc2", 10);
}

/* The weights after LOCAL_ROUNDS rounds of one device alone, malloc'd. */
static float *
train_local(const char *local, const float *shift, size_t *bytes)
{
	static const struct data_spec data = {.class_count = 10};
	struct dataset d;
	struct job_spec job;
	struct net *net;
	struct nets n;
	struct train_result result;

	parse(&job, local, "");
	mixed(&n);
	assert_int_equal(net_new(&net, &n.spec, 10, 10, true, 0, NULL), ERR_OK);
	net_init(net, 3);
	assert_int_equal(glyphs_make(&d, 1, 2, EXAMPLES, 0), ERR_OK);
	for (uint64_t round = 1; round <= LOCAL_ROUNDS; round++) {
		const struct train_config config = {.local = &job.recipe.local,
		    .data = &data,
		    .round = round,
		    .seed = round + 5,
		    .shift = shift};
		assert_int_equal(train_run(stepper_net(net), &d, &config, &result, NULL), ERR_OK);
	}
	*bytes = net_tensors(net)->bytes;
	float *out = malloc(*bytes);
	assert_non_null(out);
	memcpy(out, net_params(net), *bytes);
	dataset_deinit(&d);
	net_free(net);
	job_deinit(&job);
	return out;
}

#define EPOCHS "\"batch\":10,\"epochs\":2,"
#define PLAIN "\"optimizer\":{\"rate\":0.1}"
#define HEAVY "\"optimizer\":{\"rate\":0.05,\"momentum\":0.9"
#define LOCAL_ADAM "\"optimizer\":{\"name\":\"adam\",\"rate\":0.003"
#define LOCAL_SCHEDULE(x) PLAIN ",\"schedule\":{" x "}"

/* Among local settings, and plain SGD where there is no parent. */
static const struct pair local_pairs[] = {
    {.general = PLAIN ",\"prox\":0"},
    {.general = PLAIN ",\"clip_norm\":0"},
    {.general = PLAIN ",\"clip_norm\":1e29"},
    {.general = PLAIN ",\"accumulate\":1"},
    {.general = PLAIN "},\"parallel\":{\"micro_batch\":10"},
    {.general = PLAIN "},\"parallel\":{\"groups\":1"},
    {.general = PLAIN ",\"recompute\":\"none\""},
    {.general = PLAIN ",\"seconds\":1e6"},
    {.general = PLAIN ",\"random\":\"stream\""},
    {.general = "\"optimizer\":{\"rate\":0.1,\"momentum\":0}"},
    {.general = "\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1,\"momentum\":0,\"nesterov\":false}"},
    {.general = "\"optimizer\":{\"rate\":0.1,\"weight_decay\":0}"},
    {.general = PLAIN ",\"prox\":0,\"clip_norm\":1e29,\"accumulate\":1"},
    {.general = LOCAL_SCHEDULE("\"warmup\":0")},
    {.general = LOCAL_SCHEDULE("\"warmup\":1")},
    {.general = LOCAL_SCHEDULE("\"type\":\"cosine\",\"period\":2,\"floor\":1")},
    {.general = LOCAL_SCHEDULE("\"type\":\"step\",\"every\":1,\"gamma\":1")},
    {.general = HEAVY ",\"nesterov\":false}", .parent = HEAVY "}"},
    {.general = HEAVY "},\"clip_norm\":1e29", .parent = HEAVY "}"},
    {.general = LOCAL_ADAM ",\"weight_decay\":0}", .parent = LOCAL_ADAM "}"},
    {.general = LOCAL_ADAM "},\"prox\":0,\"clip_norm\":1e29,\"accumulate\":1",
	.parent = LOCAL_ADAM "}"},
    {.general = "\"optimizer\":{\"name\":\"adamw\",\"rate\":0.003,\"weight_decay\":0}",
	.parent = LOCAL_ADAM "}"},
};

static float *
train_epochs(const char *local, const float *shift, size_t *bytes)
{
	char text[512];

	snprintf(text, sizeof(text), EPOCHS "%s", local);
	return train_local(text, shift, bytes);
}

static void
neutral_local(void **state)
{
	size_t bytes, parent_bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(local_pairs) / sizeof(*local_pairs); i++) {
		const struct pair *p = &local_pairs[i];
		const char *parent = p->parent ? p->parent : PLAIN;
		float *a = train_epochs(p->general, NULL, &bytes);
		float *b = train_epochs(parent, NULL, &parent_bytes);
		assert_int_equal(bytes, parent_bytes);
		if (memcmp(a, b, bytes) != 0)
			fail_msg("{%s} is not {%s}", p->general, parent);
		free(a);
		free(b);
	}
	/* So many steps as the epochs are, and control variates that say nothing. */
	float *plain = train_epochs(PLAIN, NULL, &bytes);
	float *steps = train_local("\"batch\":10,\"steps\":8," PLAIN, NULL, &bytes);
	assert_memory_equal(steps, plain, bytes);
	float *zeros = calloc(1, bytes);
	assert_non_null(zeros);
	float *shifted = train_epochs(PLAIN, zeros, &bytes);
	assert_memory_equal(shifted, plain, bytes);
	free(shifted);
	free(zeros);
	free(steps);
	free(plain);
}

/* What the pairs above would not see if parameters were not looked at. */
static void
not_neutral_local(void **state)
{
	static const char *const moved[] = {PLAIN ",\"prox\":0.01", PLAIN ",\"clip_norm\":0.5",
	    PLAIN ",\"accumulate\":2", PLAIN ",\"random\":\"counter\"", HEAVY "}",
	    HEAVY ",\"nesterov\":true}", LOCAL_ADAM "}",
	    "\"optimizer\":{\"name\":\"adamw\",\"rate\":0.003,\"weight_decay\":0.1}",
	    "\"optimizer\":{\"rate\":0.1,\"weight_decay\":0.01}", LOCAL_SCHEDULE("\"warmup\":2")};
	enum { COUNT = sizeof(moved) / sizeof(*moved) };
	float *got[COUNT + 1];
	size_t bytes;

	(void)state;
	for (size_t i = 0; i <= COUNT; i++) {
		got[i] = train_epochs(i < COUNT ? moved[i] : PLAIN, NULL, &bytes);
		for (size_t k = 0; k < i; k++)
			if (memcmp(got[i], got[k], bytes) == 0)
				fail_msg("{%s} is {%s}", moved[k], i < COUNT ? moved[i] : PLAIN);
	}
	for (size_t i = 0; i <= COUNT; i++)
		free(got[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(neutral),
	    cmocka_unit_test(nearly),
	    cmocka_unit_test(neutral_download),
	    cmocka_unit_test(neutral_guard),
	    cmocka_unit_test(not_neutral),
	    cmocka_unit_test(neutral_local),
	    cmocka_unit_test(not_neutral_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
