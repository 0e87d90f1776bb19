/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flush.h"
#include "normal.h"
#include "prng.h"
#include "sparse.h"

#define BLOCK 16384
#define N (3 * BLOCK + 100)
#define ROOM (3 * N + 64)

static const struct codec *const c = &codec_sparse;

/* p with the length and a table of its own. */
static enum err
encode(struct codec_params *p, uint8_t *payload, const float *values)
{
	enum err e = c->encode(payload, &p->payload, values, p);

	return e;
}

static enum err
check_cut(const struct codec_params *params, const uint8_t *payload, size_t most, double *sum)
{
	struct codec_params p = *params;
	uint8_t carry[64] = {0};
	enum err e = ERR_OK;
	struct prng r;

	prng_seed(&r, most);
	p.table = malloc(codec_table_bytes(c, p.elements) + 1);
	*sum = 0;
	for (size_t at = 0; at < p.payload && e == ERR_OK;) {
		size_t n = most ? 1 + (size_t)prng_below(&r, most) : p.payload;
		n = n < p.payload - at ? n : p.payload - at;
		struct flush f = flush_new(payload + at, n);
		e = c->check(&p, at, f.data, n, sum, carry);
		flush_free(&f);
		at += n;
	}
	free(p.table);
	return e;
}

static enum err
check(const struct codec_params *p, const uint8_t *payload)
{
	double whole, cut;
	enum err e = check_cut(p, payload, 0, &whole);

	for (size_t most = 1; most < 8; most += 3) {
		assert_int_equal(check_cut(p, payload, most, &cut), e);
		if (e == ERR_OK)
			assert_true(whole == cut);
	}
	return e;
}

static enum err
read_all(const struct codec_params *p, const uint8_t *payload, uint64_t first, size_t n, float *out)
{
	struct codec_memory memory = {payload, p->payload};
	const struct codec_source source = {codec_memory_read, &memory};

	return codec_read(c, p, &source, first, n, out);
}

/* The example of FORMAT.md. */
static void
example(void **state)
{
	(void)state;
	static const uint8_t want[] = {14, 0, 0, 0, 14, 0, 0, 0, 17, 0, 0, 0, /* the table */
	    2, 0x80, 0x3f, /* element 2: 1 */
	    0, 0x00, 0xc0, /* element 3: -2 */
	    0xac, 0x02, 0x00, 0x3f, /* element 304: 0.5 */
	    0xce, 0x7d, 0x80, 0x40, /* element 16384 - 1: 4 */
	    7, 0x00, 0x41}; /* element 2 * 16384 + 7: 8 */
	static float values[2 * BLOCK + 8], back[2 * BLOCK + 8];
	static uint8_t payload[sizeof(values)];
	struct codec_params p = {.elements = 2 * BLOCK + 8, .block = BLOCK, .entries = 5};

	values[0] = 0.25f;
	values[2] = 1;
	values[3] = -2;
	values[304] = 0.5f;
	values[16383] = 4;
	values[2 * BLOCK + 7] = 8;
	assert_int_equal(encode(&p, payload, values), ERR_OK);
	assert_int_equal(p.payload, sizeof(want));
	assert_memory_equal(payload, want, sizeof(want));
	assert_int_equal(check(&p, payload), ERR_OK);
	assert_int_equal(read_all(&p, payload, 0, p.elements, back), ERR_OK);
	values[0] = 0;
	assert_memory_equal(back, values, sizeof(values));
}

static int
larger(const void *a, const void *b)
{
	float x = fabsf(**(const float *const *)a), y = fabsf(**(const float *const *)b);

	if (x != y)
		return x > y ? -1 : 1;
	return *(const float *const *)a < *(const float *const *)b ? -1 : 1;
}

/* Against sorting: magnitudes, and of equal ones the first. */
static void
chosen(void **state)
{
	(void)state;
	static float values[N], back[N], want[N];
	static const float *order[N];
	static uint8_t payload[ROOM];
	static const uint64_t counts[] = {1, 2, 7, 100, 491, 5000, N / 2, N - 1, N};
	struct prng r;

	prng_seed(&r, 3);
	for (int kind = 0; kind < 3; kind++) {
		normal_fill(values, N, (uint64_t)kind + 1);
		for (size_t i = 0; kind == 1 && i < N; i++) /* many ties */
			values[i] = (float)((int)prng_below(&r, 9) - 4);
		for (size_t i = 0; kind == 2 && i < N; i++) /* every exponent */
			values[i] = ldexpf(values[i], (int)prng_below(&r, 250) - 130);
		for (size_t i = 0; i < N; i++)
			order[i] = &values[i];
		qsort(order, N, sizeof(*order), larger);
		for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
			struct codec_params p = {
			    .elements = N, .block = BLOCK, .entries = counts[k]};
			memset(want, 0, sizeof(want));
			for (size_t i = 0; i < counts[k]; i++) {
				uint32_t bits;
				memcpy(&bits, order[i], sizeof(bits));
				bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
				if (bits << 1 != 0) /* no zeros of either sign */
					memcpy(&want[order[i] - values], &bits, sizeof(bits));
			}
			assert_int_equal(encode(&p, payload, values), ERR_OK);
			assert_true(p.payload <= codec_sparse_most(N, counts[k]));
			assert_int_equal(read_all(&p, payload, 0, N, back), ERR_OK);
			assert_memory_equal(back, want, sizeof(back));
			assert_int_equal(check(&p, payload), ERR_OK);
		}
	}
}

/* What was decoded encodes to the same bytes; any part decodes to what the whole does; the sum is of the squares. */
static void
canonical(void **state)
{
	(void)state;
	static float values[N], back[N], part[N];
	static uint8_t payload[ROOM], again[ROOM];
	struct codec_params p = {.elements = N, .block = BLOCK, .entries = N / 100}, q = p;
	double sum, exact = 0;
	struct prng r;

	prng_seed(&r, 5);
	normal_fill(values, N, 5);
	assert_int_equal(encode(&p, payload, values), ERR_OK);
	assert_int_equal(read_all(&p, payload, 0, N, back), ERR_OK);
	q.entries = 0;
	assert_int_equal(encode(&q, again, back), ERR_OK);
	assert_int_equal(q.payload, p.payload);
	assert_memory_equal(again, payload, p.payload);
	for (size_t i = 0; i < N; i++)
		exact += (double)back[i] * back[i];
	assert_int_equal(check_cut(&p, payload, 1000, &sum), ERR_OK);
	assert_true(fabs(sum - exact) <= 1e-12 * exact);
	for (int turn = 0; turn < 500; turn++) {
		size_t first = (size_t)prng_below(&r, N);
		size_t count = (size_t)prng_below(&r, N - first + 1);
		assert_int_equal(read_all(&p, payload, first, count, part), ERR_OK);
		assert_memory_equal(part, back + first, count * sizeof(float));
	}
	assert_int_equal(read_all(&p, payload, N, 1, part), ERR_INVALID);
	assert_int_equal(read_all(&p, payload, UINT64_MAX, 2, part), ERR_INVALID);
}

/* Reads only eight bytes of the table and the block: a source that counts. */
static size_t reads, bytes_read;

static enum err
count_reads(void *memory, void *out, size_t len, uint64_t at)
{
	reads++;
	bytes_read += len;
	return codec_memory_read(memory, out, len, at);
}

static void
reads_little(void **state)
{
	(void)state;
	static float values[N], back[BLOCK];
	static uint8_t payload[ROOM];
	struct codec_params p = {.elements = N, .block = BLOCK, .entries = N / 100};

	normal_fill(values, N, 6);
	assert_int_equal(encode(&p, payload, values), ERR_OK);
	struct codec_memory memory = {payload, p.payload};
	const struct codec_source source = {count_reads, &memory};
	assert_int_equal(codec_read(c, &p, &source, BLOCK, BLOCK, back), ERR_OK);
	uint32_t ends[2];
	memcpy(ends, payload, sizeof(ends));
	assert_int_equal(reads, 2);
	assert_int_equal(bytes_read, 8 + ends[1] - ends[0]);
}

static void
refused_values(void **state)
{
	(void)state;
	static float values[N];
	static uint8_t payload[ROOM];
	struct codec_params p = {.elements = N, .block = BLOCK, .entries = 10};

	normal_fill(values, N, 7);
	values[N - 1] = NAN;
	assert_int_equal(encode(&p, payload, values), ERR_NUMERIC);
	values[N - 1] = -INFINITY;
	assert_int_equal(encode(&p, payload, values), ERR_NUMERIC);
	values[N - 1] = 3.4e38f; /* infinite as bf16 */
	assert_int_equal(encode(&p, payload, values), ERR_NUMERIC);
	values[N - 1] = -0x1.fep127f;
	assert_int_equal(encode(&p, payload, values), ERR_OK);
	p.elements = CODEC_SPARSE_ELEMENTS_MAX + 1ull;
	assert_true(c->payload_bytes(p.elements) == UINT64_MAX);
	assert_true(c->payload_bytes(UINT64_MAX) == UINT64_MAX);
}

static void
nothing(void **state)
{
	(void)state;
	static float values[BLOCK + 1], back[BLOCK + 1];
	uint8_t payload[64];
	struct codec_params p = {.elements = BLOCK + 1, .block = BLOCK, .entries = 3};

	values[0] = -0.0f;
	values[7] = 0x1p-134f; /* rounds to zero as bf16 */
	assert_int_equal(encode(&p, payload, values), ERR_OK);
	assert_int_equal(p.payload, 8);
	assert_int_equal(check(&p, payload), ERR_OK);
	back[0] = 1;
	assert_int_equal(read_all(&p, payload, 0, p.elements, back), ERR_OK);
	for (size_t i = 0; i < BLOCK + 1; i++)
		assert_true(back[i] == 0 && !signbit(back[i]));
}

struct lie {
	const char *what;
	uint8_t bytes[32];
	size_t len;
	enum err e;
};

/* Two blocks, of 16384 and of 8 elements; at most four entries. */
static void
lies(void **state)
{
	(void)state;
	static const struct lie all[] = {
	    {"none", {3, 0, 0, 0, 6, 0, 0, 0, 2, 0x80, 0x3f, 7, 0x80, 0x3f}, 14, ERR_OK},
	    {"table alone, cut", {0, 0, 0, 0, 0, 0, 0}, 7, ERR_INVALID},
	    {"falling ends", {6, 0, 0, 0, 3, 0, 0, 0, 2, 0x80, 0x3f, 7, 0x80, 0x3f}, 14,
		ERR_INVALID},
	    {"ends early", {3, 0, 0, 0, 3, 0, 0, 0, 2, 0x80, 0x3f, 7, 0x80, 0x3f}, 14, ERR_INVALID},
	    {"ends late", {3, 0, 0, 0, 7, 0, 0, 0, 2, 0x80, 0x3f, 7, 0x80, 0x3f}, 14, ERR_INVALID},
	    {"end inside an entry", {2, 0, 0, 0, 6, 0, 0, 0, 2, 0x80, 0x3f, 7, 0x80, 0x3f}, 14,
		ERR_INVALID},
	    {"last entry cut", {3, 0, 0, 0, 5, 0, 0, 0, 2, 0x80, 0x3f, 7, 0x80}, 13, ERR_INVALID},
	    {"outside the last block", {3, 0, 0, 0, 6, 0, 0, 0, 2, 0x80, 0x3f, 8, 0x80, 0x3f}, 14,
		ERR_INVALID},
	    {"outside by the second", {0, 0, 0, 0, 6, 0, 0, 0, 7, 0x80, 0x3f, 0, 0x80, 0x3f}, 14,
		ERR_INVALID},
	    {"zero", {3, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 7, 0x80, 0x3f}, 14, ERR_INVALID},
	    {"minus zero", {3, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0x80, 7, 0x80, 0x3f}, 14, ERR_INVALID},
	    {"infinite", {3, 0, 0, 0, 6, 0, 0, 0, 2, 0x80, 0x7f, 7, 0x80, 0x3f}, 14, ERR_NUMERIC},
	    {"not a number", {3, 0, 0, 0, 6, 0, 0, 0, 2, 0xc1, 0xff, 7, 0x80, 0x3f}, 14,
		ERR_NUMERIC},
	    {"gap of two bytes", {4, 0, 0, 0, 4, 0, 0, 0, 0x80, 1, 0x80, 0x3f}, 12, ERR_OK},
	    {"long form", {4, 0, 0, 0, 4, 0, 0, 0, 0x82, 0, 0x80, 0x3f}, 12, ERR_INVALID},
	    {"gap of three bytes", {5, 0, 0, 0, 5, 0, 0, 0, 0x82, 0x80, 1, 0x80, 0x3f}, 13,
		ERR_INVALID},
	    {"four entries", {12, 0, 0, 0, 12, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1}, 20,
		ERR_OK},
	    {"five entries",
		{12, 0, 0, 0, 15, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1}, 23,
		ERR_INVALID},
	    {"more than the block holds",
		{0, 0, 0, 0, 27, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1}, 23,
		ERR_INVALID},
	};
	struct codec_params p = {.elements = BLOCK + 8, .block = BLOCK, .entries = 4};
	static float out[BLOCK + 8];

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		p.payload = all[i].len;
		enum err e = check(&p, all[i].bytes);
		if (e != all[i].e)
			print_error("%s: %s\n", all[i].what, err_name(e));
		assert_int_equal(e, all[i].e);
		/* Reading what check refuses harms nothing either. */
		e = read_all(&p, all[i].bytes, 0, p.elements, out);
		assert_true(all[i].e == ERR_OK ? e == ERR_OK : true);
	}
}

static void
past_the_end(void **state)
{
	(void)state;
	static const uint8_t bytes[16] = {3, 0, 0, 0, 2, 0x80, 0x3f};
	uint8_t table[4], carry[64] = {0};
	struct codec_params p = {
	    .elements = 8, .block = BLOCK, .entries = 4, .payload = 7, .table = table};
	double sum = 0;

	assert_int_equal(c->check(&p, 0, bytes, 8, &sum, carry), ERR_INVALID);
	assert_int_equal(c->check(&p, UINT64_MAX, bytes, 1, &sum, carry), ERR_INVALID);
	assert_int_equal(c->check(&p, 0, bytes, 7, &sum, carry), ERR_OK);
	assert_int_equal(c->check(&p, 7, bytes, 0, &sum, carry), ERR_OK);
	assert_true(sum == 1);
}

/* One in a hundred of what a delta looks like: below the 8 KiB of f32 / 50, and what its bound says. */
static void
small(void **state)
{
	(void)state;
	static const size_t n = 1663370;
	float *values = malloc(n * sizeof(*values));
	struct codec_params p = {.elements = n, .block = BLOCK, .entries = n / 100};
	uint8_t *payload = malloc(c->payload_bytes(n));

	normal_fill(values, n, 8);
	assert_int_equal(encode(&p, payload, values), ERR_OK);
	print_message("1 %% of %zu: %llu bytes, 1/%.1f of f32\n", n, (unsigned long long)p.payload,
	    (double)(n * sizeof(float)) / (double)p.payload);
	assert_true(p.payload * 110 < n * sizeof(float));
	assert_true(codec_sparse_most(n, p.entries) * 100 < n * sizeof(float));
	free(values);
	free(payload);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(example), cmocka_unit_test(chosen),
	    cmocka_unit_test(canonical), cmocka_unit_test(reads_little),
	    cmocka_unit_test(refused_values), cmocka_unit_test(nothing), cmocka_unit_test(lies),
	    cmocka_unit_test(past_the_end), cmocka_unit_test(small)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
