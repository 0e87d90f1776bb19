/*
 * [THREADS=N] [ARITHMETIC=exact|fast] bench_train [SECONDS [NAME BATCH]]: training speed of the built-in trainer, one thread or more: forward, loss, backward and SGD
 * step per batch over examples that already lie in memory. One line per case, each measured in a process of its own so that
 * its memory is its own: what is anonymous when the last step is done, of which nothing was given back before.
 *
 * ARITHMETIC=both: one thread, steps of the two kinds in turn in one process, judged by the time that their thread had a processor, so that
 * a busy machine hurts both alike; prints how many times as fast "fast" is as what the job's layers get without the key. The kernels of "fast" are
 * measured before, if RIVULET_KERNELS does not force them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "contention.h"
#include "gemm_choice.h"
#include "net.h"
#include "preset.h"
#include "prng.h"
#include "recipe.h"
#include "team.h"

#define EXAMPLES 128

#define PICTURE "{\"shape\": [1, 28, 28], \"classes\": 10}"
#define CONV(out, padding) \
	"{\"type\": \"conv2d\", \"out\": " #out ", \"kernel\": 5, \"padding\": " #padding "}"
#define RELU "{\"type\": \"relu\"}"
#define POOL "{\"type\": \"maxpool2d\", \"kernel\": 2}"
#define FLAT "{\"type\": \"flatten\"}"
#define LINEAR(out) "{\"type\": \"linear\", \"out\": " #out "}"
#define LAYERS(list) "{\"loss\": \"cross_entropy\", \"layers\": [" list "]}"

/* The networks of bench_torch.py, in the same order. */
static const struct {
	const char *name, *model, *data; /* data NULL: model is a preset's settings */
	const char *preset;
} cases[] = {
    {"2nn", LAYERS(FLAT ", " LINEAR(200) ", " RELU ", " LINEAR(200) ", " RELU ", " LINEAR(10)),
	PICTURE, NULL},
    {"lenet",
	LAYERS(CONV(6, 2) ", " RELU ", " POOL
			  ", " CONV(16, 0) ", " RELU ", " POOL ", " FLAT ", " LINEAR(
			      120) ", " RELU ", " LINEAR(84) ", " RELU ", " LINEAR(10)),
	PICTURE, NULL},
    {"cnn",
	LAYERS(CONV(32, 2) ", " RELU ", " POOL ", " CONV(
	    64, 2) ", " RELU ", " POOL ", " FLAT ", " LINEAR(512) ", " RELU ", " LINEAR(10)),
	PICTURE, NULL},
    {"dscnn", "{}", NULL, "ds-cnn"},
    {"mbv2", "{\"width\": 35}", NULL, "mobilenetv2"},
    {"ae", "{}", NULL, "autoencoder"},
    {"resnet20", "{}", NULL, "resnet20-gn"},
    {"gru",
	LAYERS("{\"type\": \"embedding\", \"vocabulary\": 10004, \"out\": 96}, {\"type\": \"gru\", "
	       "\"out\": 512}, " LINEAR(96) ", " LINEAR(10004)),
	"{\"window\": 20}", NULL},
    {"lstm", "{\"vocabulary\": 90}", NULL, "char-lstm"},
    {"gpt", "{\"vocabulary\": 65}", NULL, "gpt"},
    {"resnet18", "{}", NULL, "resnet18-gn"},
    {"gpt124",
	"{\"vocabulary\": 50257, \"window\": 1024, \"width\": 768, \"layers\": 12, \"heads\": 12, "
	"\"tied\": 1}",
	NULL, "gpt"},
};
static const uint32_t batches[] = {10, 64};

/* GPT-2 small as published, only if it is named: with Adam, blocks worked out again, a batch of 1. */
static bool
is_large(size_t index)
{
	return strcmp(cases[index].name, "gpt124") == 0;
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct examples {
	float *x;
	int32_t *labels;
};

static void
fill(struct examples *e, const struct net *net)
{
	size_t in = net_inputs(net) * EXAMPLES, labels = net_labels(net) * EXAMPLES;
	struct prng r;

	prng_seed(&r, 1);
	e->x = malloc(in * sizeof(*e->x));
	e->labels = malloc((labels + 1) * sizeof(*e->labels));
	for (size_t i = 0; i < in; i++)
		e->x[i] = net_vocabulary(net) > 0 ? (float)prng_below(&r, net_vocabulary(net))
						  : prng_float(&r);
	for (size_t i = 0; i < labels; i++)
		e->labels[i] = (int32_t)prng_below(&r, net_outputs(net));
}

/* Passes over the data until the time is over, with as many threads of the team as the trainer would take; samples per second, negative if it
 * fails. */
static double
measure(struct net *net, const struct net_update *how, uint32_t batch, double seconds,
    const struct examples *e, struct team *team, struct contention *contention)
{
	struct net_result result;
	double start = now(), used = 0;
	uint64_t done = 0;

	for (size_t at = 0; used < seconds; at = at + 2 * batch <= EXAMPLES ? at + batch : 0) {
		if (net_step(net,
			&(struct net_batch){.x = e->x + at * net_inputs(net),
			    .labels = e->labels + at * net_labels(net),
			    .n = batch},
			how, &result))
			return -1;
		done += batch;
		used = now() - start;
		team_use(team, contention_threads(contention, start + used));
	}
	return (double)done / used;
}

static double
processor_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Kilobytes. */
static double
anonymous(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	double kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %lf", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

/* arithmetic NULL: without the key. */
static enum err
read_recipe(struct recipe *out, size_t index, const char *arithmetic, struct why *why)
{
	struct json *doc = json_object(), *model = NULL, *data = NULL, *settings = NULL;
	const char *text = cases[index].model;
	enum err e = json_parse(&settings, text, strlen(text), why);

	if (!e && cases[index].preset)
		e = preset_model(&model, &data, cases[index].preset, settings, why);
	else if (!e)
		e = json_parse(&data, cases[index].data, strlen(cases[index].data), why);
	if (!e) {
		json_add_string(data, "name", "bench");
		json_add(doc, "model", model ? model : json_copy(settings));
		json_add(doc, "data", data);
		struct json *local = json_object(), *optimizer = json_object();
		json_add_double(optimizer, "rate", 0.01);
		json_add_string(optimizer, "name", "sgd");
		json_add(local, "optimizer", optimizer);
		json_add_u64(local, "epochs", 1);
		if (arithmetic)
			json_add_string(local, "arithmetic", arithmetic);
		json_add(doc, "local", local);
		e = recipe_parse(out, doc, true, why);
	}
	json_free(settings);
	json_free(doc);
	return e;
}

/* As a device has its kernels before its first fast network. */
static enum err
choose_kernels(void)
{
	static struct gemm_times times;
	struct gemm_choice choice;
	enum err e = gemm_choice_measure(&choice, &times);

	if (!e)
		gemm_choice_set(&choice);
	return e;
}

static int
run(size_t index, uint32_t batch, double seconds)
{
	struct recipe recipe;
	struct examples examples;
	struct net *net = NULL;
	struct why why = {""};
	enum err e = read_recipe(&recipe, index, getenv("ARITHMETIC"), &why);

	struct team *team = NULL;
	if (!e && recipe.net.arithmetic == ARITHMETIC_FAST)
		e = choose_kernels();
	if (!e)
		e = team_new(&team, getenv("THREADS") ? (unsigned)atoi(getenv("THREADS")) : 1);
	const struct net_part whole = {.spec = &recipe.net,
	    .classes = recipe.data.class_count,
	    .last = recipe.net.layer_count,
	    .max_batch = batch,
	    .contexts = 1,
	    .train = true,
	    .recompute = is_large(index),
	    .team = team};
	const struct net_update how = is_large(index) ? (struct net_update){.type = OPTIMIZER_ADAM,
							    .rate = 1e-4f,
							    .beta1 = 0.9,
							    .beta2 = 0.999,
							    .epsilon = 1e-8}
						      : (struct net_update){.rate = 0.01f};
	if (!e)
		e = net_new_part(&net, &whole, &why);
	if (!e)
		e = net_prepare(net, &how, &why);
	if (e) {
		fprintf(stderr, "bench_train: %s: %s\n", cases[index].name, why.text);
		return 1;
	}
	net_init(net, 1);
	fill(&examples, net);
	struct contention contention;
	contention_begin(&contention, team_size(team), now());
	double rate =
	    measure(net, &how, batch, seconds / 5, &examples, team, &contention); /* warm up */
	if (rate > 0)
		rate = measure(net, &how, batch, seconds, &examples, team, &contention);
	printf("train %s batch %u: %.*f samples/s, RSS %.1f MiB, planned %.1f MiB, data %.1f MiB\n",
	    cases[index].name, batch,
	    rate < 10	     ? 3
		: rate < 100 ? 2
			     : 0,
	    rate, anonymous() / 1024, (double)net_bytes(net) / (1 << 20),
	    (double)(net_inputs(net) + net_labels(net)) * EXAMPLES * sizeof(float) / (1 << 20));
	fflush(stdout);
	return rate > 0 ? 0 : 1;
}

/* --- both kinds in turn */

/* A step of each kind at a time would measure cold caches: slices are of some steps, and of a hundredth of a second or more. */
#define SLICE 0.01
#define SLICES_MOST 4096

struct side {
	struct recipe recipe;
	struct net *net;
	double each[SLICES_MOST]; /* seconds of a step, by slice */
	size_t at;
};

static enum err
make_side(struct side *s, size_t index, uint32_t batch, const char *arithmetic, struct why *why)
{
	enum err e = read_recipe(&s->recipe, index, arithmetic, why);
	const struct net_part whole = {.spec = &s->recipe.net,
	    .classes = s->recipe.data.class_count,
	    .last = s->recipe.net.layer_count,
	    .max_batch = batch,
	    .contexts = 1,
	    .train = true};

	if (!e)
		e = net_new_part(&s->net, &whole, why);
	if (!e)
		e = net_prepare(s->net, &(struct net_update){.rate = 0.01f}, why);
	if (!e)
		net_init(s->net, 1);
	return e;
}

static double
slice(struct side *s, uint32_t batch, const struct examples *e)
{
	struct net_result result;
	double began = processor_time(), used = 0;
	size_t steps = 0;

	for (; used < SLICE; steps++) {
		if (net_step(s->net,
			&(struct net_batch){.x = e->x + s->at * net_inputs(s->net),
			    .labels = e->labels + s->at * net_labels(s->net),
			    .n = batch},
			&(struct net_update){.rate = 0.01f}, &result))
			return -1;
		s->at = s->at + 2 * batch <= EXAMPLES ? s->at + batch : 0;
		used = processor_time() - began;
	}
	return used / (double)steps;
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* A quarter of the slices is quicker: other work does not reach these. */
static double
quartile(double *list, size_t n)
{
	qsort(list, n, sizeof(*list), by_size);
	return list[n / 4];
}

static int
run_both(size_t index, uint32_t batch, double seconds)
{
	static struct side side[2];
	struct examples examples;
	struct why why = {""};
	enum err e = choose_kernels();

	for (size_t i = 0; !e && i < 2; i++)
		e = make_side(&side[i], index, batch, i ? "fast" : NULL, &why);
	if (e) {
		fprintf(stderr, "bench_train: %s: %s\n", cases[index].name, why.text);
		return 1;
	}
	fill(&examples, side[0].net);
	size_t n = 0;
	for (double end = processor_time() + seconds; n < 3 || processor_time() < end; n++)
		for (size_t i = 0; i < 2 && n < SLICES_MOST; i++)
			side[i].each[n] = slice(&side[i], batch, &examples);
	n = n < SLICES_MOST ? n : SLICES_MOST;
	double plain = quartile(side[0].each, n), fast = quartile(side[1].each, n);
	printf("both %s batch %u: fast %.3f of %.4g samples/s\n", cases[index].name, batch,
	    plain / fast, batch / plain);
	fflush(stdout);
	return plain > 0 && fast > 0 ? 0 : 1;
}

static bool
wanted(int argc, char **argv, size_t index, uint32_t batch)
{
	if (argc <= 3)
		return !is_large(index);
	return (strcmp(cases[index].name, argv[2]) == 0 && (int)batch == atoi(argv[3]));
}

int
main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	const char *arithmetic = getenv("ARITHMETIC");
	bool both = arithmetic && strcmp(arithmetic, "both") == 0;
	int failed = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++) {
			int status = 0;
			uint32_t batch = is_large(i) ? 1 : batches[b];
			if ((is_large(i) && b > 0) || !wanted(argc, argv, i, batch))
				continue;
			pid_t child = fork();
			if (child == 0)
				_exit((both ? run_both : run)(i, batch, seconds));
			if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
				failed = 1;
		}
	return failed;
}
