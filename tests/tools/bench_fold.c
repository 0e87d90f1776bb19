/* bench_fold [DELTAS ELEMENTS THREADS]: seconds to fold f32 deltas that lie in memory, best of five runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu.h"
#include "prng.h"
#include "mean.h"

struct bench {
	size_t deltas, elements, threads;
	float *data;
	float *update;
	double *weights;
};

struct part {
	const struct bench *bench;
	uint64_t first;
	size_t count;
	enum err result;
};

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct bench *b = context;

	memcpy(out, b->data + delta * b->elements + first, count * sizeof(*out));
	return ERR_OK;
}

static void *
fold_part(void *arg)
{
	struct part *p = arg;
	struct mean_input in = {read_tile, (void *)p->bench, p->bench->deltas, p->bench->weights};

	p->result = mean_fold(&in, p->first, p->count, p->bench->update + p->first);
	return NULL;
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One fold over all threads; negative if it failed. */
static double
fold_once(const struct bench *b)
{
	struct part part[64];
	pthread_t thread[64];
	double start = now();

	for (size_t i = 0; i < b->threads; i++) {
		size_t first = b->elements * i / b->threads;
		part[i] =
		    (struct part){b, first, b->elements * (i + 1) / b->threads - first, ERR_OK};
		if (pthread_create(&thread[i], NULL, fold_part, &part[i]) != 0)
			abort();
	}
	for (size_t i = 0; i < b->threads; i++)
		pthread_join(thread[i], NULL);
	double took = now() - start;
	for (size_t i = 0; i < b->threads; i++)
		if (part[i].result)
			return -1;
	return took;
}

static int
fill(struct bench *b)
{
	struct prng r;

	b->data = calloc(b->deltas * b->elements, sizeof(float));
	b->update = calloc(b->elements, sizeof(float));
	b->weights = calloc(b->deltas, sizeof(double));
	if (!b->data || !b->update || !b->weights)
		return -1;
	prng_seed(&r, 1);
	for (size_t i = 0; i < b->deltas * b->elements; i++)
		b->data[i] = prng_float(&r) - 0.5f;
	for (size_t d = 0; d < b->deltas; d++)
		b->weights[d] = 600;
	return 0;
}

int
main(int argc, char **argv)
{
	struct bench b = {.deltas = 100, .elements = 1663370, .threads = cpu_count()};
	double best = -1;

	if (argc == 4) {
		b.deltas = strtoul(argv[1], NULL, 10);
		b.elements = strtoul(argv[2], NULL, 10);
		b.threads = strtoul(argv[3], NULL, 10);
	}
	if (b.threads > 64)
		b.threads = 64;
	if (b.deltas == 0 || b.threads == 0 || fill(&b) != 0) {
		fprintf(stderr, "bench_fold: bad numbers or no memory\n");
		return 1;
	}
	for (int run = 0; run < 5; run++) {
		double took = fold_once(&b);
		if (took < 0) {
			fprintf(stderr, "bench_fold: the fold failed\n");
			return 1;
		}
		best = best < 0 || took < best ? took : best;
	}
	printf("fold mean %zu x %zu: %.4f s, %zu threads\n", b.deltas, b.elements, best, b.threads);
	free(b.data);
	free(b.update);
	free(b.weights);
	return 0;
}
