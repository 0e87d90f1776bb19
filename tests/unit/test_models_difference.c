/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "codec.h"
#include "difference.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "job.h"
#include "jobs_inside.h"
#include "messages.h"
#include "modelfile.h"
#include "models_inside.h"
#include "services.h"
#include "steps.c"
#include "tasks_inside.h"

#define ELEMENTS 1000
#define MODELS 6
#define STEP_BYTES (DIFFERENCE_HEAD + ELEMENTS + 16 * 4) /* int8 */

/* Six models, each the one before plus an int8 difference. */
struct fixture {
	char dir[64];
	struct models *m;
	struct why why;
	uint8_t ids[MODELS][32];
	uint64_t bytes; /* of a model */
};

static void
put_step(struct fixture *f, size_t i, const struct buf *head, float *w)
{
	struct difference d = {.round = i,
	    .elements = ELEMENTS,
	    .seed = i,
	    .codec = codec_find_name("int8"),
	    .payload_bytes = STEP_BYTES - DIFFERENCE_HEAD};
	struct difference_tile t = difference_tile(&d, 0);
	uint8_t payload[STEP_BYTES];
	float step[ELEMENTS];

	for (int k = 0; k < ELEMENTS; k++)
		step[k] = (float)((k * 7 + (int)i) % 31) / 3;
	assert_int_equal(difference_tile_encode(&d, &t, step, payload), ERR_OK);
	assert_int_equal(difference_tile_decode(&d, &t, payload, step), ERR_OK);
	difference_add(w, step, ELEMENTS);
	assert_int_equal(models_put(f->m, head->data, head->len, w, ELEMENTS * sizeof(float),
			     f->ids[i], &f->why),
	    ERR_OK);
	memcpy(d.from, f->ids[i - 1], 32);
	memcpy(d.to, f->ids[i], 32);
	assert_int_equal(models_difference_put(f->m, &d, payload, &f->why), ERR_OK);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct tensor_table t = {.items = NULL};
	float w[ELEMENTS] = {0};
	struct buf head;

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_models_difference.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(models_open(&f->m, f->dir, &f->why), ERR_OK);
	assert_int_equal(tensor_table_add(&t, "w", (uint64_t[]){ELEMENTS}, 1, &f->why), ERR_OK);
	buf_init(&head, 65536);
	assert_int_equal(modelfile_header(&head, &t, NULL), ERR_OK);
	tensor_table_deinit(&t);
	f->bytes = head.len + sizeof(w);
	assert_int_equal(
	    models_put(f->m, head.data, head.len, w, sizeof(w), f->ids[0], &f->why), ERR_OK);
	for (size_t i = 1; i < MODELS; i++)
		put_step(f, i, &head, w);
	buf_deinit(&head);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	models_close(f->m);
	assert_int_equal(file_empty_dir(f->dir, &f->why), ERR_OK);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void
path_of(const struct fixture *f, size_t i, const char *suffix, char out[160])
{
	char hex[65];

	hex_encode(hex, f->ids[i], 32);
	snprintf(out, 160, "%s/%s%s", f->dir, hex, suffix);
}

/* A new process: nothing is known to be sound. */
static void
restart(struct fixture *f)
{
	models_close(f->m);
	assert_int_equal(models_open(&f->m, f->dir, &f->why), ERR_OK);
}

static enum err
get(struct fixture *f, size_t to, size_t from, struct models_map **map)
{
	return models_difference_get(f->m, f->ids[to], f->ids[from], map, &f->why);
}

/* Adds all differences of a map to the weights of `from`; they must be those of `to`. */
static void
follow(struct fixture *f, size_t to, size_t from, const struct models_map *way)
{
	struct models_map *map = NULL;
	float w[ELEMENTS], step[ELEMENTS];
	uint8_t at[32];

	assert_int_equal(models_get(f->m, f->ids[from], &map, &f->why), ERR_OK);
	memcpy(w, map->data + map->data_at, sizeof(w));
	models_map_release(map);
	memcpy(at, f->ids[from], 32);
	for (uint64_t i = 0; i < way->bytes; i += STEP_BYTES) {
		struct difference d;
		assert_int_equal(
		    difference_decode(&d, way->data + i, DIFFERENCE_HEAD, NULL), ERR_OK);
		assert_memory_equal(d.from, at, 32);
		memcpy(at, d.to, 32);
		struct difference_tile t = difference_tile(&d, 0);
		assert_int_equal(
		    difference_tile_decode(&d, &t, way->data + i + DIFFERENCE_HEAD, step), ERR_OK);
		difference_add(w, step, ELEMENTS);
	}
	assert_memory_equal(at, f->ids[to], 32);
	assert_int_equal(models_get(f->m, f->ids[to], &map, &f->why), ERR_OK);
	assert_memory_equal(w, map->data + map->data_at, sizeof(w));
	models_map_release(map);
}

/* One step or several, also after a restart; two readers share one map. */
static void
ways(void **state)
{
	struct fixture *f = *state;
	struct models_map *a = NULL, *b = NULL;

	for (size_t n = 1; n <= 3; n++) {
		assert_int_equal(get(f, 5, 5 - n, &a), ERR_OK);
		assert_int_equal(a->bytes, n * STEP_BYTES);
		follow(f, 5, 5 - n, a);
		assert_int_equal(get(f, 5, 5 - n, &b), ERR_OK);
		assert_ptr_equal(a, b);
		models_map_release(a);
		models_map_release(b);
		restart(f);
	}
	/* The model itself is another map. */
	assert_int_equal(get(f, 5, 4, &a), ERR_OK);
	assert_int_equal(models_get(f->m, f->ids[5], &b, &f->why), ERR_OK);
	assert_ptr_not_equal(a, b);
	assert_int_equal(b->bytes, f->bytes);
	models_map_release(a);
	models_map_release(b);
}

/* What is put together in memory has a limit in all, which single differences and readers of the same do not count for. */
static void
room(void **state)
{
	struct fixture *f = *state;
	struct models_map *a = NULL, *b = NULL, *c = NULL;
	char path[160], *bytes;
	size_t len;

	assert_int_equal(f->m->joined_max, MODELS_JOINED_MAX);
	f->m->joined_max = 4 * STEP_BYTES;
	assert_int_equal(get(f, 5, 3, &a), ERR_OK);
	assert_int_equal(get(f, 5, 2, &b), ERR_NOTFOUND);
	assert_int_equal(get(f, 5, 3, &b), ERR_OK);
	assert_ptr_equal(a, b);
	models_map_release(b);
	assert_int_equal(get(f, 4, 2, &b), ERR_OK);
	assert_int_equal(get(f, 3, 1, &c), ERR_NOTFOUND);
	assert_int_equal(get(f, 5, 4, &c), ERR_OK);
	models_map_release(c);
	models_map_release(a);
	assert_int_equal(get(f, 3, 1, &c), ERR_OK);
	follow(f, 3, 1, c);
	models_map_release(c);
	models_map_release(b);
	/* One that is found damaged gives its room back. */
	path_of(f, 4, MODELS_DIFFERENCE, path);
	assert_int_equal(file_read(path, 1 << 20, &bytes, &len, &f->why), ERR_OK);
	bytes[STEP_BYTES - 1] ^= 1;
	assert_int_equal(file_write(path, bytes, len, 0600, &f->why), ERR_OK);
	restart(f);
	for (int i = 0; i < 3; i++) {
		f->m->joined_max = 3 * STEP_BYTES;
		assert_int_equal(get(f, 5, 3, &a), ERR_CORRUPT);
	}
	bytes[STEP_BYTES - 1] ^= 1;
	assert_int_equal(file_write(path, bytes, len, 0600, &f->why), ERR_OK);
	free(bytes);
	f->m->joined_max = 2 * STEP_BYTES - 1;
	assert_int_equal(get(f, 5, 3, &a), ERR_NOTFOUND);
	f->m->joined_max++;
	assert_int_equal(get(f, 5, 3, &a), ERR_OK);
	models_map_release(a);
	assert_true(f->m->joined == 0);
}

static void
no_way(void **state)
{
	struct fixture *f = *state;
	static const uint8_t zeros[32];
	struct models_map *map = NULL;
	struct difference d;

	/* Four int8 steps are longer than f32. */
	assert_true(4 * STEP_BYTES > f->bytes);
	assert_int_equal(get(f, 5, 1, &map), ERR_NOTFOUND);
	assert_int_equal(get(f, 5, 5, &map), ERR_NOTFOUND);
	assert_int_equal(get(f, 4, 5, &map), ERR_NOTFOUND);
	assert_int_equal(get(f, 0, 1, &map), ERR_NOTFOUND);
	assert_int_equal(models_get(f->m, f->ids[5], &map, &f->why), ERR_OK);
	struct models_map *other = NULL;
	assert_int_equal(
	    models_difference_get(f->m, f->ids[5], zeros, &other, &f->why), ERR_NOTFOUND);
	models_map_release(map);
	/* A gap: what is behind it is out of reach, what is before it is not. */
	assert_int_equal(models_delete(f->m, f->ids[4]), ERR_OK);
	assert_int_equal(models_difference_head(f->m, f->ids[4], &d, NULL), ERR_NOTFOUND);
	assert_int_equal(get(f, 5, 3, &map), ERR_NOTFOUND);
	assert_int_equal(get(f, 5, 4, &map), ERR_OK);
	models_map_release(map);
}

/* One bit anywhere, a byte too few, another model's: never served, and found by check. */
static void
damaged(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL;
	const size_t places[] = {0, 40, 100, 200, 230, DIFFERENCE_HEAD, STEP_BYTES - 1};
	char path[160], other[160], *bytes;
	size_t len;

	path_of(f, 5, MODELS_DIFFERENCE, path);
	path_of(f, 4, MODELS_DIFFERENCE, other);
	assert_int_equal(file_read(path, 1 << 20, &bytes, &len, &f->why), ERR_OK);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places) + 1; i++) {
		bool cut = i == sizeof(places) / sizeof(*places);
		if (!cut)
			bytes[places[i]] ^= 4;
		assert_int_equal(file_write(path, bytes, len - cut, 0600, &f->why), ERR_OK);
		restart(f);
		assert_int_equal(get(f, 5, 4, &map), ERR_CORRUPT);
		int fd = open(path, O_RDONLY);
		assert_int_equal(models_difference_check(fd, f->ids[5], &f->why), ERR_CORRUPT);
		close(fd);
		if (!cut)
			bytes[places[i]] ^= 4;
	}
	assert_int_equal(file_write(path, bytes, len, 0600, &f->why), ERR_OK);
	restart(f);
	int fd = open(path, O_RDONLY);
	assert_int_equal(models_difference_check(fd, f->ids[5], &f->why), ERR_OK);
	assert_int_equal(models_difference_check(fd, f->ids[4], &f->why), ERR_CORRUPT);
	close(fd);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(get(f, 4, 3, &map), ERR_CORRUPT);
	free(bytes);
}

static struct job *
new_job(void)
{
	struct job *j = calloc(1, sizeof(*j));

	assert_non_null(j);
	change_facts(j)->work = j->work = calloc(1, sizeof(*j->work));
	assert_non_null(j->work);
	return j;
}

static void
free_job(struct job *j)
{
	free(j->work);
	free(j);
}

/* A job may begin with another's model: the way ends there. */
static void
another_job(void **state)
{
	struct fixture *f = *state;
	struct job *j = new_job();
	const struct services s = {.models = f->m};
	uint8_t bytes[STEP_BYTES];
	struct models_map *map = NULL;
	struct difference d;
	char path[160];

	path_of(f, 4, MODELS_DIFFERENCE, path);
	int fd = open(path, O_RDONLY);
	assert_int_equal(file_pread(fd, bytes, sizeof(bytes), 0), ERR_OK);
	close(fd);
	assert_int_equal(difference_decode(&d, bytes, DIFFERENCE_HEAD, NULL), ERR_OK);
	d.job[0] ^= 1;
	assert_int_equal(models_difference_put(f->m, &d, bytes + DIFFERENCE_HEAD, &f->why), ERR_OK);
	assert_int_equal(get(f, 5, 3, &map), ERR_NOTFOUND);
	assert_int_equal(get(f, 5, 4, &map), ERR_OK);
	models_map_release(map);
	assert_int_equal(get(f, 4, 3, &map), ERR_OK);
	models_map_release(map);
	memcpy(change_facts(j)->model, f->ids[5], 32);
	jobs_difference_load(s.models, j);
	assert_int_equal(j->work->differences.count, 1);
	free_job(j);
}

static enum models_fate
keep_fifth(void *ctx, const uint8_t id[32], bool is_state)
{
	struct fixture *f = ctx;

	return !is_state && memcmp(id, f->ids[5], 32) == 0 ? MODELS_STAYS : MODELS_LEFTOVER;
}

/* What a crash before the commit leaves: both go. */
static void
recovery(void **state)
{
	struct fixture *f = *state;
	char path[160];
	uint64_t lost = 0;

	assert_int_equal(models_recover(f->m, keep_fifth, f, "/nowhere", &lost, &f->why), ERR_OK);
	assert_int_equal(lost, 0);
	for (size_t i = 0; i < MODELS; i++) {
		path_of(f, i, "", path);
		assert_int_equal(access(path, F_OK), i == 5 ? 0 : -1);
		path_of(f, i, MODELS_DIFFERENCE, path);
		assert_int_equal(access(path, F_OK), i == 5 ? 0 : -1);
	}
}

/* --- what the engine offers */

/* Which of the models a device holds the task names; MODELS: none. */
static size_t
offered(struct fixture *f, struct job *j, size_t base, const char *held, uint64_t *bytes)
{
	struct offer o = {.codecs = {"f32", "int8"}, .codec_count = 2};
	struct task t = {.wait = false};

	memcpy(change_facts(j)->row.base, f->ids[base], 32);
	hex_encode(t.model, f->ids[base], 32);
	for (const char *p = held; *p; p++)
		hex_encode(o.held_models[o.held_count++], f->ids[*p - '0'], 32);
	tasks_offer_difference(j, &o, &t);
	*bytes = t.from_bytes;
	for (size_t i = 0; i < MODELS; i++) {
		char hex[65];
		hex_encode(hex, f->ids[i], 32);
		if (strcmp(hex, t.from) == 0)
			return i;
	}
	assert_string_equal(t.from, "");
	return MODELS;
}

static void
offers(void **state)
{
	struct fixture *f = *state;
	struct job *j = new_job();
	const struct services s = {.models = f->m};
	uint64_t bytes;

	strcpy(j->work->spec.download.codec, "int8");
	change_facts(j)->model_bytes = f->bytes;
	memcpy(change_facts(j)->model, f->ids[5], 32);
	jobs_difference_load(s.models, j);
	assert_int_equal(j->work->differences.count, 5);
	assert_int_equal(offered(f, j, 5, "4", &bytes), 4);
	assert_int_equal(bytes, STEP_BYTES);
	assert_int_equal(offered(f, j, 5, "023", &bytes), 3);
	assert_int_equal(bytes, 2 * STEP_BYTES);
	assert_int_equal(offered(f, j, 5, "2", &bytes), 2);
	assert_int_equal(offered(f, j, 5, "01", &bytes), MODELS); /* too far */
	assert_int_equal(offered(f, j, 5, "", &bytes), MODELS);
	assert_int_equal(offered(f, j, 5, "345", &bytes), MODELS); /* it has the model */
	/* A round on an older base. */
	assert_int_equal(offered(f, j, 3, "2", &bytes), 2);
	assert_int_equal(offered(f, j, 3, "45", &bytes), MODELS);
	strcpy(j->work->spec.download.codec, "int4"); /* the device does not know it */
	assert_int_equal(offered(f, j, 5, "4", &bytes), MODELS);
	strcpy(j->work->spec.download.codec, "int8");
	/* A new round on that base: what was between is no way any more. */
	jobs_difference_add(j, f->ids[3], f->ids[0], 100);
	assert_int_equal(j->work->differences.count, 1);
	assert_int_equal(offered(f, j, 0, "3", &bytes), 3);
	assert_int_equal(offered(f, j, 0, "2", &bytes), MODELS);
	for (int i = 0; i < 40; i++)
		jobs_difference_add(j, f->ids[i % 2], f->ids[(i + 1) % 2], 100);
	assert_int_equal(j->work->differences.count, ENGINE_DIFFERENCES);
	free_job(j);
}

/* What a task names can be had: the longest way, and none beyond it. */
static void
the_longest_way(void **state)
{
	struct fixture *f = *state;
	struct job *j = new_job();
	const struct services s = {.models = f->m};
	const struct codec *codec = codec_find_name("int8");
	struct difference d = {.round = 1,
	    .elements = 1,
	    .codec = codec,
	    .payload_bytes = difference_payload_bytes(codec, 1)};
	struct offer o = {.codecs = {"int8"}, .codec_count = 1, .held_count = 1};
	uint8_t ids[ENGINE_DIFFERENCES + 2][32], payload[64] = {0};
	struct models_map *map = NULL;
	struct task t = {.wait = false};
	char path[160];

	assert_true(d.payload_bytes <= sizeof(payload));
	memcpy(ids[0], f->ids[5], 32);
	for (unsigned char i = 1; i < ENGINE_DIFFERENCES + 2; i++) {
		memset(ids[i], 100 + i, 32);
		memcpy(d.from, ids[i], 32);
		memcpy(d.to, ids[i - 1], 32);
		assert_int_equal(models_difference_put(f->m, &d, payload, &f->why), ERR_OK);
	}
	/* A model that is longer than so many steps. */
	path_of(f, 5, "", path);
	assert_int_equal(truncate(path, 1 << 20), 0);
	strcpy(j->work->spec.download.codec, "int8");
	change_facts(j)->model_bytes = 1 << 20;
	memcpy(change_facts(j)->model, ids[0], 32);
	memcpy(change_facts(j)->row.base, ids[0], 32);
	jobs_difference_load(s.models, j);
	hex_encode(t.model, ids[0], 32);
	hex_encode(o.held_models[0], ids[ENGINE_DIFFERENCES], 32);
	tasks_offer_difference(j, &o, &t);
	assert_string_equal(t.from, o.held_models[0]);
	assert_int_equal(
	    models_difference_get(f->m, ids[0], ids[ENGINE_DIFFERENCES], &map, &f->why), ERR_OK);
	assert_int_equal(map->bytes, t.from_bytes);
	models_map_release(map);
	assert_int_equal(
	    models_difference_get(f->m, ids[0], ids[ENGINE_DIFFERENCES + 1], &map, &f->why),
	    ERR_NOTFOUND);
	free_job(j);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(ways, setup, teardown),
	    cmocka_unit_test_setup_teardown(room, setup, teardown),
	    cmocka_unit_test_setup_teardown(no_way, setup, teardown),
	    cmocka_unit_test_setup_teardown(damaged, setup, teardown),
	    cmocka_unit_test_setup_teardown(another_job, setup, teardown),
	    cmocka_unit_test_setup_teardown(recovery, setup, teardown),
	    cmocka_unit_test_setup_teardown(offers, setup, teardown),
	    cmocka_unit_test_setup_teardown(the_longest_way, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
