/*
 * bench_train [SECONDS [NAME BATCH]]: training speed of the built-in trainer, one thread: forward, loss, backward and SGD
 * step per batch over examples that already lie in memory. One line per case, each measured in a process of its own so that
 * the peak of its memory is its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit/nets.h"
#include "net.h"
#include "prng.h"

#define EXAMPLES 640
#define FEATURES 784

static const struct {
	const char *name;
	void (*make)(struct nets *n);
	uint32_t batch;
} cases[] = {
    {"2nn", nets_2nn, 10},
    {"2nn", nets_2nn, 64},
    {"lenet", nets_lenet, 10},
    {"lenet", nets_lenet, 64},
    {"cnn", nets_cnn, 10},
    {"cnn", nets_cnn, 64},
};

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
fill(float *x, int32_t *labels)
{
	struct prng r;

	prng_seed(&r, 1);
	for (size_t i = 0; i < (size_t)EXAMPLES * FEATURES; i++)
		x[i] = prng_float(&r);
	for (size_t i = 0; i < EXAMPLES; i++)
		labels[i] = (int32_t)prng_below(&r, 10);
}

/* Passes over the data until the time is over; samples per second, negative if it fails. */
static double
measure(struct net *net, uint32_t batch, double seconds, const float *x, const int32_t *labels)
{
	struct net_update sgd = {.rate = 0.01f};
	struct net_result result;
	double start = now(), used = 0;
	uint64_t done = 0;

	for (size_t at = 0; used < seconds; at = at + 2 * batch <= EXAMPLES ? at + batch : 0) {
		if (net_step(net,
			&(struct net_batch){
			    .x = x + at * FEATURES, .labels = labels + at, .n = batch},
			&sgd, &result))
			return -1;
		done += batch;
		used = now() - start;
	}
	return (double)done / used;
}

static int
run(size_t index, double seconds)
{
	static float x[EXAMPLES * FEATURES];
	static int32_t labels[EXAMPLES];
	uint32_t batch = cases[index].batch;
	struct nets n;
	struct net *net;
	struct why why = {""};

	fill(x, labels);
	cases[index].make(&n);
	if (net_new(&net, &n.spec, 10, batch, true, 0, &why)) {
		fprintf(stderr, "bench_train: %s\n", why.text);
		return 1;
	}
	net_init(net, 1);
	double rate = measure(net, batch, seconds / 5, x, labels); /* warm up */
	if (rate > 0)
		rate = measure(net, batch, seconds, x, labels);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	net_free(net);
	printf("train %s batch %u: %.0f samples/s, RSS %.1f MiB\n", cases[index].name, batch, rate,
	    (double)usage.ru_maxrss / 1024);
	fflush(stdout);
	return rate > 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	int failed = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = 0;
		if (argc > 3 &&
		    (strcmp(cases[i].name, argv[2]) != 0 || (int)cases[i].batch != atoi(argv[3])))
			continue;
		pid_t child = fork();
		if (child == 0)
			_exit(run(i, seconds));
		if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
			failed = 1;
	}
	return failed;
}
