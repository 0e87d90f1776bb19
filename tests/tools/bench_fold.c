/* bench_fold [DELTAS ELEMENTS]: what folding takes, in three tables: each rule over deltas that lie in memory, beside one plain
 * pass that reads and adds the same arrays; the codecs; the mean out of spool files. One thread unless a row says otherwise. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "codec.h"
#include "cpu.h"
#include "delta_file.h"
#include "fold_round.h"
#include "job.h"
#include "prng.h"
#include "tensor.h"

#define DELTAS 100
#define ELEMENTS 1663370
#define RUNS \
	3 /* and as many more as fit into ENOUGH seconds: the best counts, for machines are shared */
#define ENOUGH 0.6
#define COPIES 32 /* payloads of the same bytes: together they do not fit a cache */

struct bench {
	size_t deltas;
	uint64_t elements;
	unsigned threads;
	float *data, *model, *state;
	struct job_spec job;
	struct tensor_table table;
	bool usual; /* the size that the goals are for */
};

/* Encoded deltas: in memory, or in files. */
struct store {
	const struct codec *codec;
	struct codec_params params;
	uint8_t *payloads;
	uint64_t len; /* of one payload */
	struct delta_file *files; /* one per delta, or NULL */
	size_t count;
};

/* One thread's own time, so that a shared machine shows the same; of several threads what a clock on the wall says. */
static double
now(bool alone)
{
	struct timespec t;

	clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The best time of several runs, and when they began. */
struct best {
	bool alone;
	double start, begun, least;
	int runs;
};

static bool
again(struct best *t)
{
	double at = now(t->alone);

	if (t->runs == 0) {
		t->start = at;
		t->least = 1e9;
	} else {
		t->least = at - t->begun < t->least ? at - t->begun : t->least;
		if (t->runs >= RUNS && at - t->start > ENOUGH)
			return false;
	}
	t->runs++;
	t->begun = now(t->alone);
	return true;
}

static void
verdict(double value, double goal, bool more)
{
	bool met = more ? value >= goal : value <= goal;

	printf(goal > 0 ? met ? "  met" : "  NOT MET" : "");
	printf("\n");
}

/* --- reading */

static enum err
read_data(void *context, unsigned vector, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct bench *b = context;

	(void)vector;
	memcpy(out, b->data + delta * b->elements + first, count * sizeof(*out));
	return ERR_OK;
}

static enum err
read_file(void *file, void *out, size_t len, uint64_t at)
{
	const struct delta_file *f = file;

	return delta_file_read(f, out, len, f->leaf_bytes + at);
}

static enum err
read_store(void *context, unsigned vector, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct store *s = context;
	struct codec_memory memory = {s->payloads + delta % s->count * s->len, s->len};
	struct codec_source source = {codec_memory_read, &memory};

	(void)vector;
	if (s->files)
		source = (struct codec_source){read_file, &s->files[delta % s->count]};
	return codec_read(s->codec, &s->params, &source, first, count, out);
}

/* --- rules */

/* One round by the rule; *compare is the time before folding. */
static enum err
fold_once(struct bench *b, struct fold_round *r, double *compare)
{
	struct why why = {""};
	double start = now(true);
	enum err e = fold_round_plan(r, &why);

	for (size_t d = 0; d < b->deltas && !e; d++)
		e = fold_round_add(r, 600, 1, 1);
	if (!e)
		e = fold_round_begin(r, &why);
	if (!e)
		e = fold_round_compare(r);
	*compare = now(true) - start;
	if (!e)
		e = fold_round_run(r);
	if (e)
		fprintf(stderr, "bench_fold: %s\n", why.text[0] ? why.text : err_name(e));
	fold_round_deinit(r);
	return e;
}

/* Seconds; *compare is the best of its own. Negative if it failed. */
static double
fold_best(struct bench *b, const struct rule_spec *spec,
    enum err (*read)(void *, unsigned, size_t, uint64_t, size_t, float *), void *context,
    double *compare)
{
	struct fold_round r = {.job = &b->job,
	    .table = &b->table,
	    .number = 1,
	    .factor = 1,
	    .threads = b->threads,
	    .read = read,
	    .context = context,
	    .step = {.data = (uint8_t *)b->model, .state = b->state}};
	struct best t = {.alone = b->threads == 1};
	double part;

	b->job.aggregate.rule = *spec;
	*compare = 1e9;
	while (again(&t)) {
		if (fold_once(b, &r, &part) != ERR_OK)
			return -1;
		*compare = part < *compare ? part : *compare;
	}
	return t.least;
}

/* What the memory alone takes. */
CPU_CLONES static void
add_pass(float *restrict sum, const float *restrict x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum[i] += x[i];
}

static double
memory_pass(struct bench *b)
{
	struct best t = {.alone = true};

	while (again(&t))
		for (size_t at = 0; at < b->elements; at += RULE_TILE) {
			size_t n = b->elements - at < RULE_TILE ? b->elements - at : RULE_TILE;
			for (size_t d = 0; d < b->deltas; d++)
				add_pass(b->model + at, b->data + d * b->elements + at, n);
		}
	return t.least;
}

static const struct row {
	const char *label;
	struct rule_spec spec;
	double passes, seconds, comparing; /* goals; 0: none */
} rows[] = {
    {"mean", {.name = "mean"}, 2.2, 0, 0},
    {"mean, norm bound", {.name = "mean", .bound_median = true}, 0, 0, 0},
    {"median", {.name = "median"}, 0, 0.32, 0},
    {"trimmed mean, 10 %", {.name = "trimmed_mean", .hostile = 10}, 0, 0.32, 0},
    {"Krum", {.name = "krum", .hostile = 10, .picks = 1}, 0, 0, 0.45},
    {"Multi-Krum of 50", {.name = "krum", .hostile = 10, .picks = 50}, 0, 0, 0},
    {"Bulyan", {.name = "bulyan", .hostile = 10}, 0, 0, 0},
    {"geometric median", {.name = "geometric_median", .iterations = 8, .smoothing = 1e-6}, 0, 0, 0},
    {"centered clipping", {.name = "centered_clipping", .iterations = 1, .radius = 1}, 0, 0, 0},
    {"median of buckets of 2", {.name = "median", .bucket = 2}, 0, 0, 0},
    {"median of nearest", {.name = "median", .hostile = 10, .nearest = true}, 0, 0, 0},
};

static int
bench_rules(struct bench *b, double pass)
{
	double part;

	printf("rules: %zu x %zu f32 in memory, one thread; a pass: one plain loop that reads the "
	       "same arrays and adds them, %.4f s, "
	       "%.1f GB/s\n",
	    b->deltas, b->elements, pass,
	    (double)b->deltas * (double)b->elements * sizeof(float) / pass * 1e-9);
	printf("  %-24s %9s %10s %7s  %s\n", "", "seconds", "comparing", "passes", "goal");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		double took = fold_best(b, &r->spec, read_data, b, &part);
		if (took < 0)
			return -1;
		printf("  %-24s %9.4f %10.4f %7.1f  ", r->label, took, part, took / pass);
		if (r->passes > 0) {
			printf("%.1f passes", r->passes);
			verdict(took / pass, r->passes, false);
		} else if (b->usual && r->seconds > 0) {
			printf("%.2f s", r->seconds);
			verdict(took, r->seconds, false);
		} else if (b->usual && r->comparing > 0) {
			printf("comparing %.2f s", r->comparing);
			verdict(part, r->comparing, false);
		} else
			printf("\n");
	}
	return 0;
}

/* --- codecs */

static int
store_encode(struct store *s, const struct bench *b, const struct codec *c, size_t copies)
{
	uint64_t most = c->payload_bytes(b->elements);

	*s = (struct store){.codec = c, .count = copies};
	s->params = (struct codec_params){.elements = b->elements, .block = c->block, .seed = 1};
	s->params.entries = c->fixed_size ? 0 : b->elements / 100;
	s->payloads = malloc(most);
	if (!s->payloads || c->encode(s->payloads, &s->len, b->data, &s->params) != ERR_OK)
		return -1;
	s->params.payload = s->len;
	uint8_t *all = realloc(s->payloads, copies * s->len);
	if (!all)
		return -1;
	s->payloads = all;
	for (size_t i = 1; i < copies; i++)
		memcpy(all + i * s->len, all, s->len);
	return 0;
}

static void
store_free(struct store *s)
{
	for (size_t i = 0; s->files && i < s->count; i++)
		delta_file_close(&s->files[i]);
	free(s->files);
	free(s->payloads);
}

static double
time_encode(struct store *s, const struct bench *b)
{
	struct best t = {.alone = true};
	uint64_t len;

	while (again(&t))
		if (s->codec->encode(s->payloads, &len, b->data, &s->params) != ERR_OK)
			return -1;
	return t.least;
}

static double
time_check(struct store *s)
{
	uint8_t *table = calloc(1, codec_table_bytes(s->codec, s->params.elements) + 1);
	struct best t = {.alone = true};
	double sum;

	s->params.table = table;
	while (table && again(&t)) {
		uint8_t carry[64] = {0};
		sum = 0;
		if (s->codec->check(&s->params, 0, s->payloads, s->len, &sum, carry) != ERR_OK)
			break;
	}
	free(table);
	return table ? t.least : -1;
}

/* Decodes tile after tile of every copy and adds it to f32 sums, or leaves it. */
static double
time_decode(const struct store *s, struct bench *b, bool add)
{
	float tile[RULE_TILE];
	struct best t = {.alone = true};

	while (again(&t))
		for (size_t at = 0; at < b->elements; at += RULE_TILE) {
			size_t left = b->elements - at, n = left < RULE_TILE ? left : RULE_TILE;
			for (size_t d = 0; d < s->count; d++) {
				if (read_store((void *)(uintptr_t)s, 0, d, at, n, tile) != ERR_OK)
					return -1;
				if (add)
					add_pass(b->model + at, tile, n);
			}
		}
	return t.least / (double)s->count;
}

static int
bench_codec(struct bench *b, const struct codec *c)
{
	double n = (double)b->elements * 1e-9, part;
	struct store s;

	if (store_encode(&s, b, c, COPIES) != 0)
		return -1;
	double mean = fold_best(b, &rows[0].spec, read_store, &s, &part) / (double)b->deltas;
	double decode = time_decode(&s, b, false), add = time_decode(&s, b, true);
	double check = time_check(&s), encode = time_encode(&s, b);
	printf("  %-7s %10.3f %8.2f %8.2f %8.2f %10.2f %10.2f", c->name,
	    (double)s.len / (double)b->elements, n / encode, n / check, n / decode, n / add,
	    n / mean);
	if (c->id == CODEC_INT8) {
		printf("  4.00");
		verdict(n / add, 4, true);
	} else
		printf("\n");
	store_free(&s);
	return mean < 0 || decode < 0 || add < 0 || check < 0 || encode < 0 ? -1 : 0;
}

static int
bench_codecs(struct bench *b)
{
	const char *const *names = codec_names();

	printf("\ncodecs: G elements/s, one thread, payloads in memory; decode + add: a tile is "
	       "decoded and added to sums in f32; mean: the "
	       "fold's own, weighted, in f64\n");
	printf("  %-7s %10s %8s %8s %8s %10s %10s  %s\n", "", "bytes/elem", "encode", "check",
	    "decode", "decode+add", "mean", "goal");
	for (size_t i = 0; names[i]; i++)
		if (bench_codec(b, codec_find_name(names[i])) != 0)
			return -1;
	return 0;
}

/* --- the spool */

/* A file without a name, so that nothing is left. */
static enum err
file_of(struct delta_file *f, const struct store *s, const uint8_t *payload,
    const struct delta_key *key)
{
	const char *dir = getenv("TMPDIR");
	struct manifest m = {.payload_bytes = s->len,
	    .elements = s->params.elements,
	    .examples = 1,
	    .steps = 1,
	    .codec = s->codec->id,
	    .block = s->codec->block};
	uint8_t raw[MANIFEST_LEN] = {0};
	char path[256];

	snprintf(path, sizeof(path), "%s/bench_fold.XXXXXX", dir ? dir : "/tmp");
	int fd = mkstemp(path);
	if (fd < 0)
		return ERR_IO;
	unlink(path);
	manifest_encode(raw, &m);
	enum err e = delta_file_create(f, fd, raw, key, NULL);
	return e ? e : delta_file_write(f, payload, s->len, f->leaf_bytes);
}

static double
time_reading(const struct store *s)
{
	static uint8_t piece[RULE_TILE * sizeof(float)];
	struct best t = {.alone = true};

	while (again(&t))
		for (uint64_t at = 0; at < s->len; at += sizeof(piece))
			for (size_t d = 0; d < s->count; d++) {
				uint64_t left = s->len - at;
				if (read_file(&s->files[d], piece,
					left < sizeof(piece) ? left : sizeof(piece), at) != ERR_OK)
					return -1;
			}
	return t.least;
}

static int
bench_spool(struct bench *b, const char *codec, const struct delta_key *key, double pass)
{
	struct store s;
	double part;
	enum err e = ERR_OK;

	if (store_encode(&s, b, codec_find_name(codec), 1) != 0)
		return -1;
	s.files = calloc(b->deltas, sizeof(*s.files));
	for (s.count = 0; s.files && s.count < b->deltas && !e; s.count++)
		e = file_of(&s.files[s.count], &s, s.payloads, key);
	if (e || !s.files)
		return -1;
	double reading = time_reading(&s);
	double one = fold_best(b, &rows[0].spec, read_store, &s, &part);
	b->threads = cpu_count();
	double all = fold_best(b, &rows[0].spec, read_store, &s, &part);
	b->threads = 1;
	printf("  %-5s %-10s %9.4f %10.4f %7.1f %10.4f\n", codec, key ? "encrypted" : "", reading,
	    one, one / pass, all);
	store_free(&s);
	return reading < 0 || one < 0 || all < 0 ? -1 : 0;
}

static int
bench_spools(struct bench *b, double pass)
{
	static const uint8_t secret[32] = {1};
	struct delta_key key;

	delta_file_key(&key, secret);
	printf("\nspool: the mean of %zu files of %zu elements that lie in the page cache; "
	       "reading: pread alone\n",
	    b->deltas, b->elements);
	printf("  %-16s %9s %10s %7s %7u thr.\n", "", "reading", "1 thread", "passes", cpu_count());
	if (bench_spool(b, "f32", NULL, pass) != 0 || bench_spool(b, "f32", &key, pass) != 0 ||
	    bench_spool(b, "int8", NULL, pass) != 0 || bench_spool(b, "int4", NULL, pass) != 0)
		return -1;
	return 0;
}

/* --- the whole */

static int
fill(struct bench *b)
{
	struct prng r;

	b->data = malloc(b->deltas * b->elements * sizeof(float));
	b->model = calloc(b->elements, sizeof(float));
	b->state = calloc(b->elements, sizeof(float));
	if (!b->data || !b->model || !b->state ||
	    tensor_table_add(&b->table, "w", &b->elements, 1, NULL) ||
	    tensor_table_assign(&b->table, NULL, 0, NULL))
		return -1;
	prng_seed(&r, 1);
	prng_floats(&r, b->data, b->deltas * b->elements);
	for (size_t i = 0; i < b->deltas * b->elements; i++)
		b->data[i] -= 0.5f;
	return 0;
}

int
main(int argc, char **argv)
{
	struct bench b = {.deltas = DELTAS,
	    .elements = ELEMENTS,
	    .threads = 1,
	    .job.aggregate = {.optimizer = "sgd", .rate = 1}};
	int rc = 1;

	if (argc == 3) {
		b.deltas = strtoul(argv[1], NULL, 10);
		b.elements = strtoul(argv[2], NULL, 10);
	}
	b.usual = b.deltas == DELTAS && b.elements == ELEMENTS;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (b.deltas == 0 || b.elements == 0 || fill(&b) != 0) {
		fprintf(stderr, "bench_fold: bad numbers or no memory\n");
	} else {
		double pass = memory_pass(&b);
		rc = bench_rules(&b, pass) != 0 || bench_codecs(&b) != 0 ||
		    bench_spools(&b, pass) != 0;
		if (rc)
			fprintf(stderr, "bench_fold: failed\n");
	}
	free(b.data);
	free(b.model);
	free(b.state);
	tensor_table_deinit(&b.table);
	return rc;
}
