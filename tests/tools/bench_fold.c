/* bench_fold [DELTAS ELEMENTS THREADS]: what each rule takes for deltas that lie in memory, beside one plain pass that reads and adds
 * the same arrays, and what decoding each codec takes. Best of three. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec.h"
#include "cpu.h"
#include "prng.h"
#include "rule.h"

#define THREADS_MAX 64
#define RUNS 3

struct bench {
	size_t deltas, elements, threads;
	float *data, *update, *centre;
	double *weights;
	struct rule *rule;
	enum err failed;
};

/* Work for one thread: strips to measure, or a range to fold. */
struct part {
	struct bench *b;
	size_t index;
	unsigned strips; /* 0: fold */
	enum err e;
};

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct bench *b = context;

	memcpy(out, b->data + delta * b->elements + first, count * sizeof(*out));
	return ERR_OK;
}

static void *
work(void *arg)
{
	struct part *p = arg;
	struct bench *b = p->b;

	for (unsigned s = (unsigned)p->index; s < p->strips && !p->e; s += (unsigned)b->threads)
		p->e = rule_measure(b->rule, s);
	size_t tiles = p->strips ? 0 : (b->elements + RULE_TILE - 1) / RULE_TILE;
	for (size_t t = p->index; t < tiles && !p->e; t += b->threads) {
		size_t first = t * RULE_TILE, left = b->elements - first;
		p->e = rule_fold(
		    b->rule, first, left < RULE_TILE ? left : RULE_TILE, b->update + first);
	}
	return NULL;
}

static enum err
run_parts(struct bench *b, unsigned strips)
{
	struct part part[THREADS_MAX];
	pthread_t thread[THREADS_MAX];
	enum err e = ERR_OK;

	for (size_t i = 0; i < b->threads; i++) {
		part[i] = (struct part){b, i, strips, ERR_OK};
		if (pthread_create(&thread[i], NULL, work, &part[i]) != 0)
			abort();
	}
	for (size_t i = 0; i < b->threads; i++) {
		pthread_join(thread[i], NULL);
		e = e ? e : part[i].e;
	}
	return e;
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds of one round by the rule; *compare is the part before folding. Negative if it failed. */
static double
fold_once(struct bench *b, const struct rule_spec *spec, double *compare)
{
	struct rule_input in = {read_tile, b, b->elements, b->deltas, b->weights, b->centre, 1};
	struct why why = {""};
	double start = now();
	unsigned strips;

	enum err e = rule_new(&b->rule, spec, &in, &why);
	if (e) {
		fprintf(stderr, "bench_fold: %s\n", why.text);
		return -1;
	}
	while (e == ERR_OK && (strips = rule_measures(b->rule)) > 0) {
		e = run_parts(b, strips);
		e = e ? e : rule_plan(b->rule);
	}
	*compare = now() - start;
	e = e ? e : run_parts(b, 0);
	rule_free(b->rule);
	return e ? -1 : now() - start;
}

/* One thread reads every delta and adds it up: what the memory alone takes. */
CPU_CLONES static void
add_pass(float *restrict sum, const float *restrict x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum[i] += x[i];
}

static double
memory_pass(struct bench *b)
{
	double best = 1e9;

	for (int run = 0; run < RUNS; run++) {
		double start = now();
		for (size_t at = 0; at < b->elements; at += RULE_TILE) {
			size_t n = b->elements - at < RULE_TILE ? b->elements - at : RULE_TILE;
			for (size_t d = 0; d < b->deltas; d++)
				add_pass(b->update + at, b->data + d * b->elements + at, n);
		}
		double took = now() - start;
		best = took < best ? took : best;
	}
	return best;
}

static int
bench_rule(struct bench *b, const char *label, const struct rule_spec *spec, double pass)
{
	double best = -1, compare = 0;

	for (int run = 0; run < RUNS; run++) {
		double part, took = fold_once(b, spec, &part);
		if (took < 0)
			return -1;
		if (best < 0 || took < best) {
			best = took;
			compare = part;
		}
	}
	printf("fold %-26s %zu x %zu: %.4f s (comparing %.4f), %4.1f x one pass over memory, %zu "
	       "thread%s\n",
	    label, b->deltas, b->elements, best, compare, best / pass, b->threads,
	    b->threads > 1 ? "s" : "");
	return 0;
}

static int
bench_rules(struct bench *b)
{
	static const struct {
		const char *label;
		struct rule_spec spec;
	} rules[] = {
	    {"mean", {.name = "mean"}},
	    {"mean, norm bound", {.name = "mean", .bound_median = true}},
	    {"median", {.name = "median"}},
	    {"trimmed mean, 10 %", {.name = "trimmed_mean", .hostile = 10}},
	    {"Krum", {.name = "krum", .hostile = 10, .picks = 1}},
	    {"Multi-Krum of 50", {.name = "krum", .hostile = 10, .picks = 50}},
	    {"Bulyan", {.name = "bulyan", .hostile = 10}},
	    {"geometric median", {.name = "geometric_median", .iterations = 8, .smoothing = 1e-6}},
	    {"centered clipping", {.name = "centered_clipping", .iterations = 1, .radius = 1}},
	    {"median of buckets of 2", {.name = "median", .bucket = 2}},
	};
	double pass = memory_pass(b);

	printf(
	    "fold: one plain pass that reads and adds the same arrays: %.4f s, 1 thread\n", pass);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (bench_rule(b, rules[i].label, &rules[i].spec, pass) != 0)
			return -1;
	return 0;
}

/* Decoding and adding, as a fold does it: tile by tile. */
static int
bench_codec(struct bench *b, const struct codec *c)
{
	struct codec_params p = {.elements = b->elements, .block = c->block, .seed = 1};
	uint8_t *payload = malloc(c->payload_bytes(b->elements));
	float tile[RULE_TILE];
	uint64_t len, at;
	size_t bytes;
	double best = 1e9;

	if (!payload || c->encode(payload, &len, b->data, &p) != ERR_OK)
		return -1;
	for (int run = 0; run < 2 * RUNS; run++) {
		double start = now();
		for (size_t first = 0; first < b->elements; first += RULE_TILE) {
			size_t left = b->elements - first, n = left < RULE_TILE ? left : RULE_TILE;
			c->range(&p, first, n, &at, &bytes);
			if (c->decode(&p, first, n, payload + at, bytes, tile) != ERR_OK)
				return -1;
			add_pass(b->update + first, tile, n);
		}
		double took = now() - start;
		best = took < best ? took : best;
	}
	printf("decode and add %-5s %6.2f G elements/s, 1 thread; %.2f bytes per element\n",
	    c->name, (double)b->elements / best * 1e-9, (double)len / (double)b->elements);
	free(payload);
	return 0;
}

static int
fill(struct bench *b)
{
	struct prng r;

	b->data = calloc(b->deltas * b->elements, sizeof(float));
	b->update = calloc(b->elements, sizeof(float));
	b->centre = calloc(b->elements, sizeof(float));
	b->weights = calloc(b->deltas, sizeof(double));
	if (!b->data || !b->update || !b->centre || !b->weights)
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
	struct bench b = {.deltas = 100, .elements = 1663370, .threads = 1};
	int rc = 1;

	if (argc == 4) {
		b.deltas = strtoul(argv[1], NULL, 10);
		b.elements = strtoul(argv[2], NULL, 10);
		b.threads = strtoul(argv[3], NULL, 10);
	}
	if (b.threads > THREADS_MAX)
		b.threads = THREADS_MAX;
	if (b.deltas == 0 || b.elements == 0 || b.threads == 0 || fill(&b) != 0)
		fprintf(stderr, "bench_fold: bad numbers or no memory\n");
	else
		rc = bench_rules(&b) != 0;
	const char *const *names = codec_names();
	for (size_t i = 0; names[i] && rc == 0; i++)
		rc = bench_codec(&b, codec_find_name(names[i])) != 0;
	free(b.data);
	free(b.update);
	free(b.centre);
	free(b.weights);
	return rc;
}
