/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "modelfile.h"
#include "patch.h"

#define A (DIFFERENCE_TILE + 5)
#define B 3000
#define ELEMENTS (A + B)
#define STEPS 3
static const struct tensor_rule rules[] = {{"fixed*", TENSOR_FROZEN}};

/* Models 0 to 3 as they should be, the differences between them, and files to work with. */
struct fixture {
	char dir[64], path[96];
	struct tensor_table table;
	struct buf models[STEPS + 1], way;
	uint8_t ids[STEPS + 1][32];
	size_t ends[STEPS]; /* of the differences in way */
	int base, diff, out;
};

static int
temp_file(struct fixture *f, const char *name)
{
	snprintf(f->path, sizeof(f->path), "%s/%s", f->dir, name);
	int fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void
fill(int fd, const void *data, size_t len)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(file_pwrite(fd, data, len, 0), ERR_OK);
}

/* Head, then the data section: the new model as the coordinator writes it. */
static void
put_model(struct fixture *f, size_t n, const float *vector, const void *rest)
{
	struct modelfile_meta meta = {.round = n};
	struct buf *b = &f->models[n];
	char *data = calloc(1, f->table.bytes);

	assert_non_null(data);
	memset(meta.job, 'a', 32);
	if (n > 0)
		hex_encode(meta.base, f->ids[n - 1], 32);
	buf_init(b, 1 << 22);
	assert_int_equal(modelfile_header(b, &f->table, &meta), ERR_OK);
	memcpy(data + f->table.items[0].begin, rest, 8);
	memcpy(data + f->table.items[2].begin, rest, 8);
	for (size_t i = 0; i < f->table.count; i++) {
		const struct tensor *t = &f->table.items[i];
		if (t->in_delta)
			memcpy(data + t->begin, vector + t->first, (size_t)(t->end - t->begin));
	}
	assert_int_equal(buf_append(b, data, f->table.bytes), ERR_OK);
	hash_sha256(f->ids[n], b->data, b->len);
	free(data);
}

static void
put_step(struct fixture *f, size_t n, const char *codec, float *vector, const void *rest)
{
	struct difference d = {.round = n, .elements = ELEMENTS, .seed = n};
	static float step[DIFFERENCE_TILE];
	uint8_t head[DIFFERENCE_HEAD], *payload;

	d.codec = codec_find_name(codec);
	d.payload_bytes = difference_payload_bytes(d.codec, ELEMENTS);
	payload = malloc(d.payload_bytes);
	assert_non_null(payload);
	for (uint64_t i = 0; i * DIFFERENCE_TILE < ELEMENTS; i++) {
		struct difference_tile t = difference_tile(&d, i);
		for (size_t k = 0; k < t.count; k++)
			step[k] = sinf((float)(t.first + k) * (float)n) / 10;
		assert_int_equal(difference_tile_encode(&d, &t, step, payload + t.at), ERR_OK);
		assert_int_equal(difference_tile_decode(&d, &t, payload + t.at, step), ERR_OK);
		difference_add(vector + t.first, step, t.count);
	}
	put_model(f, n, vector, rest);
	memset(d.job, 0xaa, sizeof(d.job));
	memcpy(d.from, f->ids[n - 1], 32);
	memcpy(d.to, f->ids[n], 32);
	hash_sha256(d.payload_hash, payload, d.payload_bytes);
	difference_encode(head, &d);
	hash_sha256(d.tag, head, DIFFERENCE_TAGGED);
	difference_encode(head, &d);
	assert_int_equal(buf_append(&f->way, head, sizeof(head)), ERR_OK);
	assert_int_equal(buf_append(&f->way, payload, d.payload_bytes), ERR_OK);
	f->ends[n - 1] = f->way.len;
	free(payload);
}

static int
setup(void **state)
{
	static const char *const codecs[STEPS] = {"int8", "int4", "f16"};
	static const uint64_t shapes[][1] = {{2}, {A}, {2}, {B}};
	static const char *const names[] = {"fixed0", "a", "fixed1", "b"};
	struct fixture *f = calloc(1, sizeof(*f));
	float *vector = calloc(ELEMENTS, sizeof(float));

	assert_true(f && vector);
	strcpy(f->dir, "/tmp/test_patch.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(tensor_table_add(&f->table, names[i], shapes[i], 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(&f->table, rules, 1, NULL), ERR_OK);
	for (int i = 0; i < ELEMENTS; i++)
		vector[i] = cosf((float)i);
	buf_init(&f->way, 1 << 22);
	put_model(f, 0, vector, "fixed as");
	for (size_t n = 1; n <= STEPS; n++)
		put_step(f, n, codecs[n - 1], vector, "fixed as");
	f->base = temp_file(f, "base");
	f->diff = temp_file(f, "diff");
	f->out = temp_file(f, "out");
	fill(f->diff, f->way.data, f->way.len);
	free(vector);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	close(f->base);
	close(f->diff);
	close(f->out);
	assert_int_equal(file_empty_dir(f->dir, NULL), ERR_OK);
	assert_int_equal(rmdir(f->dir), 0);
	for (size_t n = 0; n <= STEPS; n++)
		buf_deinit(&f->models[n]);
	buf_deinit(&f->way);
	tensor_table_deinit(&f->table);
	free(f);
	return 0;
}

/* The differences [from, to) of the way as a file of their own, applied to model `from`. */
static enum err
patched(struct fixture *f, size_t from, size_t to, uint64_t *bytes)
{
	const struct patch_files files = {f->base, f->out, rules, 1};
	size_t at = from > 0 ? f->ends[from - 1] : 0;
	struct patch p;

	fill(f->diff, f->way.data + at, f->ends[to - 1] - at);
	fill(f->base, f->models[from].data, f->models[from].len);
	assert_int_equal(ftruncate(f->out, 0), 0);
	enum err e = patch_open(&p, f->diff, f->ends[to - 1] - at, f->ids[from], f->ids[to], NULL);
	return e ? e : patch_apply(&p, &files, bytes, NULL);
}

/* One step or several, of different codecs: the very file, head and frozen tensors included. */
static void
the_same_file(void **state)
{
	struct fixture *f = *state;
	uint8_t hash[HASH_LEN];
	uint64_t bytes;

	for (size_t from = 0; from < STEPS; from++)
		for (size_t to = from + 1; to <= STEPS; to++) {
			assert_int_equal(patched(f, from, to, &bytes), ERR_OK);
			assert_int_equal(bytes, f->models[to].len);
			assert_int_equal(hash_file(f->out, hash), ERR_OK);
			assert_memory_equal(hash, f->ids[to], sizeof(hash));
		}
}

static enum err
opened(struct fixture *f, uint64_t bytes, size_t from, size_t to)
{
	struct patch p;

	return patch_open(&p, f->diff, bytes, f->ids[from], f->ids[to], NULL);
}

static void
bad_ways(void **state)
{
	struct fixture *f = *state;
	const size_t spoiled[] = {0, 30, 40, 70, 100, 115, 130, 170, 230, DIFFERENCE_HEAD, 5000};

	assert_int_equal(opened(f, f->way.len, 0, STEPS), ERR_OK);
	assert_int_equal(opened(f, f->ends[1], 0, 2), ERR_OK);
	assert_int_equal(opened(f, f->way.len, 0, 2), ERR_CORRUPT);
	assert_int_equal(opened(f, f->way.len, 1, STEPS), ERR_CORRUPT);
	assert_int_equal(opened(f, 0, 0, 0), ERR_CORRUPT);
	assert_int_equal(opened(f, f->way.len + 1, 0, STEPS), ERR_CORRUPT);
	for (uint64_t less = 1; less < 400; less += 50)
		assert_int_equal(opened(f, f->way.len - less, 0, STEPS), ERR_CORRUPT);
	for (size_t i = 0; i < sizeof(spoiled) / sizeof(*spoiled); i++)
		for (size_t step = 0; step < STEPS; step++) {
			size_t at = spoiled[i] + (step ? f->ends[step - 1] : 0);
			f->way.data[at] = (char)(f->way.data[at] ^ 1);
			fill(f->diff, f->way.data, f->way.len);
			if (opened(f, f->way.len, 0, STEPS) != ERR_CORRUPT)
				fail_msg("byte %zu of step %zu", spoiled[i], step);
			f->way.data[at] = (char)(f->way.data[at] ^ 1);
		}
}

/* What the base lacks shows in the result's hash, or makes the base unusable; nothing is read past its end. */
static void
bad_bases(void **state)
{
	struct fixture *f = *state;
	const struct patch_files files = {f->base, f->out, rules, 1},
				 all = {f->base, f->out, NULL, 0};
	uint8_t hash[HASH_LEN];
	struct patch p;
	uint64_t bytes;

	assert_int_equal(patched(f, 0, 1, &bytes), ERR_OK);
	assert_int_equal(patch_open(&p, f->diff, f->ends[0], f->ids[0], f->ids[1], NULL), ERR_OK);
	size_t last = f->models[0].len - 1;
	f->models[0].data[last] = (char)(f->models[0].data[last] ^ 1);
	fill(f->base, f->models[0].data, f->models[0].len);
	assert_int_equal(patch_apply(&p, &files, &bytes, NULL), ERR_OK);
	assert_int_equal(hash_file(f->out, hash), ERR_OK);
	assert_memory_not_equal(hash, f->ids[1], sizeof(hash));
	/* Without the job's roles the vector is longer than the difference. */
	assert_int_equal(patch_apply(&p, &all, &bytes, NULL), ERR_CORRUPT);
	fill(f->base, f->models[0].data, last);
	assert_int_not_equal(patch_apply(&p, &files, &bytes, NULL), ERR_OK);
	fill(f->base, "", 0);
	assert_int_not_equal(patch_apply(&p, &files, &bytes, NULL), ERR_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_same_file, setup, teardown),
	    cmocka_unit_test_setup_teardown(bad_ways, setup, teardown),
	    cmocka_unit_test_setup_teardown(bad_bases, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
