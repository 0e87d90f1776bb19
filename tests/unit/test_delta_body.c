/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec.h"
#include "delta_resume.h"
#include "file.h"
#include "files_in.h"
#include "hex.h"
#include "merkle.h"
#include "prng.h"
#include "problem.h"
#include "verified.h"

/* Two whole chunks and a piece: three leaves. */
#define ELEMENTS ((2 * MANIFEST_CHUNK + 4000) / 4)
#define PAYLOAD (ELEMENTS * 4)
#define LEAVES (3 * HASH_LEN)
#define BODY (LEAVES + PAYLOAD)
#define CHUNK(n) (LEAVES + (uint64_t)(n)*MANIFEST_CHUNK)

struct sample {
	uint8_t body[BODY], raw[MANIFEST_LEN];
	struct manifest m;
	double squares;
};

static void
sign_off(struct sample *s)
{
	for (uint64_t i = 0; i < 3; i++)
		merkle_leaf(s->body + i * HASH_LEN, s->body + CHUNK(i),
		    i < 2 ? MANIFEST_CHUNK : PAYLOAD - 2 * MANIFEST_CHUNK);
	merkle_root(s->m.root, s->body, 3);
	manifest_encode(s->raw, &s->m);
}

static int
setup(void **state)
{
	struct sample *s = calloc(1, sizeof(*s));
	struct prng r;

	assert_non_null(s);
	prng_seed(&r, 5);
	for (size_t i = 0; i < ELEMENTS; i++) {
		float x = prng_float(&r) - 0.5f;
		memcpy(s->body + LEAVES + 4 * i, &x, 4);
		s->squares += (double)x * (double)x;
	}
	s->m = (struct manifest){
	    .round = 1, .payload_bytes = PAYLOAD, .elements = ELEMENTS, .examples = 1, .steps = 1};
	memset(s->m.task, 3, 16);
	memset(s->m.device, 4, 32);
	sign_off(s);
	*state = s;
	return 0;
}

/* The same length as a payload with a table: entries of three bytes, and two of four. */
static int
setup_sparse(void **state)
{
	enum { DENSE = 700324, WIDE = 129, SPARSE = DENSE + 2 * WIDE };
	const struct codec *c = codec_find(CODEC_SPARSE);
	struct codec_params p = {.elements = SPARSE, .block = c->block};
	float *values = calloc(SPARSE, sizeof(*values));
	struct sample *s;
	struct prng r;

	assert_int_equal(setup(state), 0);
	s = *state;
	prng_seed(&r, 6);
	s->squares = 0;
	for (size_t i = 0; i < SPARSE; i++) {
		float x = (float)(1 + prng_below(&r, 100));
		bool sent = i < DENSE || (i - DENSE) % WIDE == WIDE - 1;
		values[i] = sent ? x : 0;
		s->squares += (double)values[i] * (double)values[i];
	}
	assert_int_equal(c->encode(s->body + LEAVES, &p.payload, values, &p), ERR_OK);
	assert_int_equal(p.payload, PAYLOAD);
	s->m.codec = CODEC_SPARSE;
	s->m.block = c->block;
	s->m.elements = SPARSE;
	sign_off(s);
	free(values);
	return 0;
}

static int
teardown(void **state)
{
	free(*state);
	return 0;
}

/* Any cutting gives the same marks and, to the bit, the same norm; a rewind at any place changes nothing. */
static void
any_cut(void **state)
{
	static const size_t most[] = {BODY, 1500000, 70000, 16384, 1000, 7};
	struct sample *s = *state;
	struct delta_body b;
	struct prng r;
	double first = 0;

	prng_seed(&r, 8);
	for (size_t k = 0; k < sizeof(most) / sizeof(*most); k++) {
		unsigned rewinds = 0;
		assert_int_equal(delta_body_init(&b, &s->m), ERR_OK);
		while (b.now.at < BODY) {
			size_t n = 1 + (size_t)(prng_u64(&r) % most[k]);
			if (n > BODY - b.now.at)
				n = BODY - b.now.at;
			assert_int_equal(delta_body_take(&b, s->body + b.now.at, n), PROBLEM_NONE);
			uint64_t whole =
			    b.now.at < LEAVES ? 0 : CHUNK((b.now.at - LEAVES) / MANIFEST_CHUNK);
			assert_int_equal(b.good.at, whole);
			if (b.now.at < BODY && rewinds < 40 && prng_u64(&r) % 50 == 0) {
				delta_body_rewind(&b);
				assert_int_equal(b.now.at, whole);
				rewinds++;
			}
		}
		if (k == 0)
			first = b.now.sum_squares;
		assert_memory_equal(&b.now.sum_squares, &first, sizeof(first));
		assert_true(fabs(first - s->squares) < 1e-9 * s->squares);
		assert_int_equal(delta_body_take(&b, "x", 1), PROBLEM_WRONG_LENGTH);
		delta_body_deinit(&b);
	}
}

static enum problem_type
verdict(struct sample *s, uint64_t *good)
{
	struct delta_body b;

	assert_int_equal(delta_body_init(&b, &s->m), ERR_OK);
	enum problem_type problem = PROBLEM_NONE;
	for (uint64_t at = 0; at < BODY && !problem; at += 50000)
		problem = delta_body_take(&b, s->body + at, at + 50000 < BODY ? 50000 : BODY - at);
	delta_body_rewind(&b);
	*good = b.now.at;
	delta_body_deinit(&b);
	return problem;
}

static void
refused(void **state)
{
	static const struct {
		uint64_t at;
		enum problem_type problem;
		uint64_t good;
	} flips[] = {{0, PROBLEM_WRONG_ROOT, 0}, {LEAVES - 1, PROBLEM_WRONG_ROOT, 0},
	    {CHUNK(0), PROBLEM_WRONG_CHUNK, CHUNK(0)},
	    {CHUNK(1) - 4, PROBLEM_WRONG_CHUNK, CHUNK(0)},
	    {CHUNK(1), PROBLEM_WRONG_CHUNK, CHUNK(1)}, {BODY - 4, PROBLEM_WRONG_CHUNK, CHUNK(2)}};
	struct sample *s = *state;
	uint64_t good;

	assert_int_equal(verdict(s, &good), PROBLEM_NONE);
	for (size_t i = 0; i < sizeof(flips) / sizeof(*flips); i++) {
		s->body[flips[i].at] ^= 1;
		assert_int_equal(verdict(s, &good), flips[i].problem);
		assert_int_equal(good, flips[i].good);
		s->body[flips[i].at] ^= 1;
	}
	/* Leaves may promise a NaN. */
	memset(s->body + CHUNK(1) + 400, 0xff, 4);
	sign_off(s);
	assert_int_equal(verdict(s, &good), PROBLEM_NOT_FINITE);
	assert_int_equal(good, CHUNK(1));
}

/* --- taken up from a file */

struct folder {
	char dir[64], part[128];
	struct spool *spool;
};

static struct folder
folder_with(const uint8_t *secret)
{
	struct folder f = {.dir = "/tmp/test_delta_body.XXXXXX"};
	uint8_t task[16];
	char hex[33];

	assert_non_null(mkdtemp(f.dir));
	const struct spool_options o = {.dir = f.dir, .lost = f.dir, .secret = secret};
	assert_int_equal(spool_open(&f.spool, &o, NULL), ERR_OK);
	memset(task, 3, sizeof(task));
	hex_encode(hex, task, 16);
	snprintf(f.part, sizeof(f.part), "%s/%s.part", f.dir, hex);
	return f;
}

static struct folder
folder_new(void)
{
	return folder_with(NULL);
}

static void
folder_free(struct folder *f)
{
	spool_close(f->spool);
	assert_int_equal(file_empty_dir(f->dir, NULL), ERR_OK);
	assert_int_equal(rmdir(f->dir), 0);
}

/* Leaves a part with the first `len` bytes of the body. */
static void
leave(struct folder *f, const struct sample *s, uint64_t len)
{
	struct spool_part part;

	assert_int_equal(spool_begin(f->spool, s->raw, &part, NULL), ERR_OK);
	assert_int_equal(spool_write(f->spool, &part, s->body, len, 0), ERR_OK);
	spool_leave(f->spool, &part);
}

/* The offset at which the part goes on; it is completed from there if `finish`. */
static uint64_t
go_on(struct folder *f, const struct sample *s, bool finish, double *squares)
{
	struct delta_body b = {.m = NULL};
	struct spool_part part;
	struct manifest m;
	struct stat st;

	assert_int_equal(
	    delta_resume(f->spool, s->m.task, s->m.device, &part, &m, &b, NULL), ERR_OK);
	uint64_t at = b.now.at;
	assert_int_equal(stat(f->part, &st), 0);
	assert_int_equal(st.st_size, SPOOLFILE_HEAD + at);
	if (finish) {
		assert_int_equal(delta_body_take(&b, s->body + at, BODY - at), PROBLEM_NONE);
		*squares = b.now.sum_squares;
	}
	spool_leave(f->spool, &part);
	delta_body_deinit(&b);
	return at;
}

static void
resumed(void **state)
{
	static const struct {
		uint64_t have, from;
	} cuts[] = {{0, 0}, {LEAVES - 1, 0}, {LEAVES, LEAVES}, {CHUNK(1) - 1, CHUNK(0)},
	    {CHUNK(1), CHUNK(1)}, {CHUNK(1) + 1, CHUNK(1)}, {CHUNK(2), CHUNK(2)},
	    {BODY - 1, CHUNK(2)}, {BODY, CHUNK(2)}};
	struct sample *s = *state;
	struct folder f = folder_new();
	struct delta_body b;
	double whole, squares;

	assert_int_equal(delta_body_init(&b, &s->m), ERR_OK);
	assert_int_equal(delta_body_take(&b, s->body, BODY), PROBLEM_NONE);
	whole = b.now.sum_squares;
	delta_body_deinit(&b);
	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		leave(&f, s, cuts[i].have);
		assert_int_equal(go_on(&f, s, true, &squares), cuts[i].from);
		assert_memory_equal(&squares, &whole, sizeof(whole));
	}
	/* Longer than the body, which only a foreign hand can make it. */
	assert_int_equal(truncate(f.part, SPOOLFILE_HEAD + BODY + 100), 0);
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(2));
	folder_free(&f);
}

static void
resumed_after_damage(void **state)
{
	static const struct {
		off_t at;
		uint64_t from;
	} flips[] = {
	    {LEAVES + 5, CHUNK(0)}, {CHUNK(1) + 5, CHUNK(1)}, {CHUNK(2) + 5, CHUNK(2)}, {5, 0}};
	struct sample *s = *state;
	struct folder f = folder_new();

	for (size_t i = 0; i < sizeof(flips) / sizeof(*flips); i++) {
		leave(&f, s, BODY);
		int fd = open(f.part, O_WRONLY);
		uint8_t bad = (uint8_t)(s->body[flips[i].at] ^ 1);
		assert_int_equal(pwrite(fd, &bad, 1, SPOOLFILE_HEAD + flips[i].at), 1);
		close(fd);
		assert_int_equal(go_on(&f, s, false, NULL), flips[i].from);
	}
	folder_free(&f);
}

/* What was hashed is not hashed again, however often a device asks, unless a foreign hand has been at the file. */
static void
resumed_again(void **state)
{
	struct sample *s = *state;
	struct folder f = folder_new();
	struct spool_part part;
	double first, again;

	leave(&f, s, BODY - 1);
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(2));
	assert_int_equal(go_on(&f, s, true, &first), CHUNK(2));
	/* Bytes of our own that nobody hashes show which are looked at. */
	uint8_t bad = (uint8_t)(s->body[LEAVES + 5] ^ 1);
	assert_int_equal(spool_resume(f.spool, s->m.task, s->m.device, &part, NULL), ERR_OK);
	usleep(20000);
	assert_int_equal(spool_write(f.spool, &part, &bad, 1, LEAVES + 5), ERR_OK);
	spool_leave(f.spool, &part);
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(2));
	assert_int_equal(spool_resume(f.spool, s->m.task, s->m.device, &part, NULL), ERR_OK);
	usleep(20000);
	assert_int_equal(spool_write(f.spool, &part, &bad, 1, LEAVES + 5), ERR_OK);
	/* This one is ended by a newer one. */
	assert_int_equal(go_on(&f, s, true, &again), CHUNK(2));
	assert_false(spool_verified_until(f.spool, &part, &(struct delta_watermark){.at = BODY}));
	spool_leave(f.spool, &part);
	assert_memory_equal(&again, &first, sizeof(first));
	int fd = open(f.part, O_WRONLY);
	usleep(20000);
	assert_int_equal(pwrite(fd, s->body, 1, SPOOLFILE_HEAD), 1);
	close(fd);
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(0));
	folder_free(&f);
}

/* A part with one wrong byte of our own, which nobody has hashed, at `at`. */
static void
spoil(struct folder *f, const struct sample *s, uint64_t at)
{
	const uint8_t bad = (uint8_t)(s->body[at] ^ 1);
	struct spool_part part;

	assert_int_equal(spool_resume(f->spool, s->m.task, s->m.device, &part, NULL), ERR_OK);
	usleep(20000);
	assert_int_equal(spool_write(f->spool, &part, &bad, 1, at), ERR_OK);
	spool_leave(f->spool, &part);
}

/* Of a body with a table only the chunk that holds it is hashed again; with what is remembered the rest is checked as if it had been. */
static void
resumed_with_table(void **state)
{
	struct sample *s = *state;
	struct folder f = folder_new();
	struct delta_body b;
	double whole, squares;

	assert_int_equal(delta_body_init(&b, &s->m), ERR_OK);
	assert_int_equal(delta_body_seen(&b), CHUNK(1));
	assert_int_equal(delta_body_take(&b, s->body, BODY), PROBLEM_NONE);
	whole = b.now.sum_squares;
	delta_body_deinit(&b);
	leave(&f, s, BODY - 1);
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(2));
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(go_on(&f, s, true, &squares), CHUNK(2));
		assert_memory_equal(&squares, &whole, sizeof(whole));
	}
	spoil(&f, s, CHUNK(1) + 5);
	assert_int_equal(go_on(&f, s, true, &squares), CHUNK(2));
	assert_memory_equal(&squares, &whole, sizeof(whole));
	spoil(&f, s, CHUNK(0) + 5);
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(0));
	folder_free(&f);
}

static void
nothing_to_resume(void **state)
{
	struct sample *s = *state;
	struct folder f = folder_new();
	struct delta_body b = {.m = NULL};
	struct spool_part part;
	struct manifest m;

	assert_int_equal(
	    delta_resume(f.spool, s->m.task, s->m.device, &part, &m, &b, NULL), ERR_NOTFOUND);
	delta_body_deinit(&b);
	/* A codec that this build does not handle. */
	s->m.codec = 999;
	manifest_encode(s->raw, &s->m);
	leave(&f, s, 100);
	assert_int_equal(
	    delta_resume(f.spool, s->m.task, s->m.device, &part, &m, &b, NULL), ERR_NOTFOUND);
	delta_body_deinit(&b);
	folder_free(&f);
}

/* --- encrypted */

#define LOST 5000 /* bytes after the first chunk that are cut off */

static void
read_raw(const struct folder *f, uint8_t *out, size_t len, uint64_t at)
{
	int fd = open(f->part, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, out, len, (off_t)(SPOOLFILE_HEAD + at)), len);
	close(fd);
}

/* At how many places two texts differ by as much as two others: who has two copies of the disk sees that at all of them if both were
 * encrypted by the same stream. */
static size_t
shown(const uint8_t *a, const uint8_t *b, const uint8_t *x, const uint8_t *y, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += (a[i] ^ b[i]) == (x[i] ^ y[i]);
	return n;
}

/* What was cut off and comes again as something else is encrypted by another stream, and so is what stays. */
static void
resumed_encrypted(void **state)
{
	static const uint8_t secret[32] = {7};
	static uint8_t before[CHUNK(1) + LOST], after[CHUNK(1) + LOST];
	struct sample *s = *state, *wrong = malloc(sizeof(*wrong));
	struct folder f = folder_with(secret);
	struct delta_body b = {.m = NULL};
	struct spool_part part;
	struct manifest m;

	assert_non_null(wrong);
	*wrong = *s;
	for (size_t i = 0; i < LOST; i++)
		wrong->body[CHUNK(1) + i] ^= (uint8_t)i;
	leave(&f, wrong, sizeof(before));
	read_raw(&f, before, sizeof(before), 0);
	assert_int_equal(
	    delta_resume(f.spool, s->m.task, s->m.device, &part, &m, &b, NULL), ERR_OK);
	assert_int_equal(b.now.at, CHUNK(1));
	assert_int_equal(
	    spool_write(f.spool, &part, s->body + CHUNK(1), BODY - CHUNK(1), CHUNK(1)), ERR_OK);
	read_raw(&f, after, sizeof(after), 0);
	assert_true(shown(before + CHUNK(1), after + CHUNK(1), wrong->body + CHUNK(1),
			s->body + CHUNK(1), LOST) < LOST / 10);
	assert_true(shown(before, after, wrong->body, s->body, CHUNK(1)) < CHUNK(1) / 10);
	/* And all of it is there. */
	assert_int_equal(delta_file_verify(&part.file, NULL), ERR_OK);
	spool_leave(f.spool, &part);
	delta_body_deinit(&b);
	/* Nothing to cut off: nothing is copied. */
	read_raw(&f, before, sizeof(before), 0);
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(2));
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(2));
	read_raw(&f, after, sizeof(after), 0);
	assert_int_not_equal(memcmp(before, after, sizeof(after)), 0);
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(2));
	read_raw(&f, before, sizeof(before), 0);
	assert_memory_equal(before, after, sizeof(after));
	folder_free(&f);
	free(wrong);
}

/* While what stays cannot be copied the part is what it was; later the device goes on where it was told to. */
static void
no_room_to_reseal(void **state)
{
	static const uint8_t secret[32] = {7};
	struct sample *s = *state;
	struct folder f = folder_with(secret);
	struct delta_body b = {.m = NULL};
	struct rlimit before, little;
	struct spool_part part;
	struct manifest m;
	double squares;

	leave(&f, s, BODY - 100);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	little = before;
	little.rlim_cur = CHUNK(1);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	for (int turn = 0; turn < 2; turn++) {
		enum err e = delta_resume(f.spool, s->m.task, s->m.device, &part, &m, &b, NULL);
		delta_body_deinit(&b);
		assert_int_not_equal(e, ERR_OK);
		assert_int_equal(files_in(f.dir), 1);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(go_on(&f, s, false, NULL), CHUNK(2));
	assert_int_equal(go_on(&f, s, true, &squares), CHUNK(2));
	assert_int_equal(files_in(f.dir), 1);
	folder_free(&f);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(any_cut),
	    cmocka_unit_test_setup_teardown(any_cut, setup_sparse, teardown),
	    cmocka_unit_test_setup_teardown(resumed, setup_sparse, teardown),
	    cmocka_unit_test_setup_teardown(resumed_with_table, setup_sparse, teardown),
	    WITH(refused),
	    WITH(resumed),
	    WITH(resumed_after_damage),
	    WITH(resumed_again),
	    WITH(nothing_to_resume),
	    WITH(resumed_encrypted),
	    WITH(no_room_to_reseal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
