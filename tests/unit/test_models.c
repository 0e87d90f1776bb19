/* stages: gcc clang openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "files_in.h"
#include "hash.h"
#include "hex.h"
#include "modelfile.h"
#include "models.h"
#include "models_fixture.h"
#include "models_inside.h"

static void
put_and_get(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL;
	uint8_t id[32], digest[32];
	char path[160], *bytes;
	struct stat st;
	size_t len;

	put(f, 0.5f, id);
	assert_int_equal(files_in(f->dir), 1);
	path_of(f, id, "", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(file_read(path, 65536, &bytes, &len, &f->why), ERR_OK);
	hash_sha256(digest, bytes, len);
	assert_memory_equal(digest, id, 32);
	free(bytes);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
	assert_memory_equal(map->id, id, 32);
	assert_int_equal(map->bytes, f->head.len + sizeof(f->data));
	assert_int_equal(map->data_at, f->head.len);
	assert_memory_equal(map->data + map->data_at, f->data, sizeof(f->data));
	assert_int_equal(map->table.count, 2);
	assert_int_equal(map->table.bytes, sizeof(f->data));
	assert_string_equal(map->table.items[1].name, "fc.bias");
	models_map_release(map);
	models_map_release(NULL);
}

static void
same_bytes_same_id(void **state)
{
	struct fixture *f = *state;
	uint8_t a[32], b[32], c[32];

	put(f, 1, a);
	put(f, 1, b);
	put(f, 2, c);
	assert_memory_equal(a, b, 32);
	assert_memory_not_equal(a, c, 32);
	assert_int_equal(files_in(f->dir), 2);
}

/* Everyone who has a model has the same map; it goes with the last of them. */
static void
shared(void **state)
{
	struct fixture *f = *state;
	struct models_map *a = NULL, *b = NULL, *other = NULL;
	uint8_t id[32], second[32];

	put(f, 1, id);
	put(f, 2, second);
	assert_int_equal(models_get(f->m, id, &a, &f->why), ERR_OK);
	assert_int_equal(models_get(f->m, second, &other, &f->why), ERR_OK);
	assert_int_equal(models_get(f->m, id, &b, &f->why), ERR_OK);
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, other);
	models_map_release(a);
	/* The last reference: the bytes are there still (the highest of 1.0f). */
	assert_int_equal(a->data[a->data_at + 3], 0x3f);
	models_map_release(a);
	assert_int_equal(models_get(f->m, id, &a, &f->why), ERR_OK);
	models_map_release(other);
	models_map_release(a);
}

/* Who reads a model while it is deleted reads on. */
static void
deleted(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL, *again = NULL;
	uint8_t id[32];

	put(f, 1, id);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
	assert_int_equal(models_delete(f->m, id), ERR_OK);
	assert_int_equal(files_in(f->dir), 0);
	assert_memory_equal(map->data + map->data_at, f->data, sizeof(f->data));
	models_map_release(map);
	assert_int_equal(models_get(f->m, id, &again, &f->why), ERR_NOTFOUND);
	assert_null(again);
	/* Deleting twice is no failure. */
	assert_int_equal(models_delete(f->m, id), ERR_OK);
}

static void
damaged(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL;
	uint8_t id[32];
	char path[160];

	put(f, 1, id);
	path_of(f, id, "", path);
	static const off_t lengths[] = {0, 7, 8, 20};
	int fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	/* A header of another length than the file holds. */
	assert_int_equal(file_pwrite(fd, "\xff\xff\0\0\0\0\0\0", 8, 0), ERR_OK);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_CORRUPT);
	assert_int_equal(file_pwrite(fd, f->head.data, f->head.len, 0), ERR_OK);
	assert_int_equal(file_pwrite(fd, "}", 1, 8), ERR_OK);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_CORRUPT);
	assert_int_equal(file_pwrite(fd, "{", 1, 8), ERR_OK);
	/* Data cut off, or more than the header says. */
	assert_int_equal(ftruncate(fd, (off_t)(f->head.len + sizeof(f->data) - 1)), 0);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_CORRUPT);
	assert_int_equal(ftruncate(fd, (off_t)(f->head.len + sizeof(f->data) + 1)), 0);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_CORRUPT);
	for (int i = 3; i >= 0; i--) {
		assert_int_equal(ftruncate(fd, lengths[i]), 0);
		enum err e = models_get(f->m, id, &map, &f->why);
		if (e != ERR_CORRUPT)
			fail_msg("%ld bytes: %s", (long)lengths[i], err_name(e));
	}
	close(fd);
	assert_null(map);
	/* Put again, the model is whole. */
	put(f, 1, id);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
	models_map_release(map);
}

/* --- uploads */

static void
adopted(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL;
	char temp[160], other[160];
	uint8_t id[32], hash[32];

	put(f, 1, id);
	assert_int_equal(models_delete(f->m, id), ERR_OK);
	models_temp_path(f->m, temp, sizeof(temp));
	models_temp_path(f->m, other, sizeof(other));
	assert_string_not_equal(temp, other);
	int fd = open(temp, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(file_pwrite(fd, f->head.data, f->head.len, 0), ERR_OK);
	assert_int_equal(file_pwrite(fd, f->data, sizeof(f->data), f->head.len), ERR_OK);
	assert_int_equal(hash_file(fd, hash), ERR_OK);
	assert_memory_equal(hash, id, 32);
	assert_int_equal(models_adopt(f->m, fd, temp, id, &f->why), ERR_OK);
	close(fd);
	assert_int_equal(files_in(f->dir), 1);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
	models_map_release(map);
}

/* A crash leaves files under construction; after a restart their names are free again. */
static void
leftovers(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL;
	char temp[160];
	uint8_t id[32];

	put(f, 1, id);
	for (int i = 0; i < 3; i++) {
		models_temp_path(f->m, temp, sizeof(temp));
		assert_int_equal(file_write(temp, "x", 1, 0600, &f->why), ERR_OK);
	}
	models_close(f->m);
	f->m = NULL;
	assert_int_equal(models_open(&f->m, f->dir, &f->why), ERR_OK);
	assert_int_equal(files_in(f->dir), 1);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
	models_map_release(map);
	put(f, 2, id);
	assert_int_equal(files_in(f->dir), 2);
}

static void
folder_gone(void **state)
{
	struct fixture *f = *state;
	uint8_t id[32];

	assert_int_equal(rmdir(f->dir), 0);
	assert_int_equal(
	    models_put(f->m, f->head.data, f->head.len, f->data, sizeof(f->data), id, &f->why),
	    ERR_NOTFOUND);
	assert_non_null(strstr(f->why.text, f->dir));
	assert_int_equal(mkdir(f->dir, 0700), 0);
}

/* --- optimizer states */

static void
optimizer_state(void **state)
{
	struct fixture *f = *state;
	float v[4] = {1, -2, 3.5f, 0}, out[4] = {0};
	uint8_t hash[32], other[32] = {1};
	char path[160];

	assert_int_equal(models_state_put(f->m, v, 4, hash, &f->why), ERR_OK);
	assert_int_equal(files_in(f->dir), 1);
	path_of(f, hash, ".state", path);
	assert_int_equal(access(path, R_OK), 0);
	assert_int_equal(models_state_get(f->m, hash, out, 4, &f->why), ERR_OK);
	assert_memory_equal(out, v, sizeof(v));
	/* As bytes, and not as a model. */
	struct models_map *map = NULL, *again = NULL, *model = NULL;
	assert_int_equal(models_state_map(f->m, hash, &map, &f->why), ERR_OK);
	assert_int_equal(map->bytes, sizeof(v));
	assert_memory_equal(map->data, v, sizeof(v));
	assert_int_equal(models_state_map(f->m, hash, &again, &f->why), ERR_OK);
	assert_ptr_equal(again, map);
	assert_int_equal(models_get(f->m, hash, &model, &f->why), ERR_NOTFOUND);
	models_map_release(again);
	models_map_release(map);
	assert_int_equal(models_state_map(f->m, other, &map, &f->why), ERR_NOTFOUND);
	/* Another model's state, or another job's. */
	assert_int_equal(models_state_get(f->m, hash, out, 3, &f->why), ERR_CORRUPT);
	assert_int_equal(models_state_get(f->m, other, out, 4, &f->why), ERR_NOTFOUND);
	int fd = open(path, O_WRONLY);
	assert_int_equal(file_pwrite(fd, "\1", 1, 15), ERR_OK);
	close(fd);
	assert_int_equal(models_state_get(f->m, hash, out, 4, &f->why), ERR_CORRUPT);
	assert_non_null(strstr(f->why.text, "hash"));
	assert_int_equal(truncate(path, 12), 0);
	assert_int_equal(models_state_get(f->m, hash, out, 4, &f->why), ERR_CORRUPT);
	assert_int_equal(models_state_delete(f->m, hash), ERR_OK);
	assert_int_equal(models_state_delete(f->m, hash), ERR_OK);
	assert_int_equal(files_in(f->dir), 0);
}

/* Devices ask for a state one after the other: its bytes are hashed once, and again when somebody has written to the file. */
static void
state_hashed_once(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL;
	float v[4] = {1, -2, 3.5f, 0};
	uint8_t hash[32];
	char path[160];

	assert_int_equal(models_state_put(f->m, v, 4, hash, &f->why), ERR_OK);
	assert_int_equal(models_state_map(f->m, hash, &map, &f->why), ERR_OK);
	models_map_release(map);
	assert_int_equal(f->m->judged_count, 1);
	assert_int_equal(models_state_map(f->m, hash, &map, &f->why), ERR_OK);
	models_map_release(map);
	path_of(f, hash, ".state", path);
	flip(path);
	assert_int_equal(models_state_map(f->m, hash, &map, &f->why), ERR_CORRUPT);
	models_close(f->m);
	assert_int_equal(models_open(&f->m, f->dir, &f->why), ERR_OK);
	assert_int_equal(models_state_map(f->m, hash, &map, &f->why), ERR_CORRUPT);
	assert_int_equal(models_state_delete(f->m, hash), ERR_OK);
	/* One that went is looked at again when it comes back. */
	assert_int_equal(models_state_put(f->m, v, 4, hash, &f->why), ERR_OK);
	assert_int_equal(models_state_map(f->m, hash, &map, &f->why), ERR_OK);
	models_map_release(map);
	assert_int_equal(models_state_delete(f->m, hash), ERR_OK);
	assert_int_equal(file_write(path, "otherwise...", 12, 0600, &f->why), ERR_OK);
	assert_int_equal(models_state_map(f->m, hash, &map, &f->why), ERR_CORRUPT);
	assert_int_equal(models_state_delete(f->m, hash), ERR_OK);
}

/* --- many at once */

struct reader {
	struct fixture *f;
	const uint8_t (*ids)[32];
	unsigned failures;
};

static void *
read_all(void *arg)
{
	struct reader *r = arg;
	struct why why;

	for (int i = 0; i < 200; i++) {
		struct models_map *map;
		if (models_get(r->f->m, r->ids[i % 3], &map, &why) != ERR_OK) {
			r->failures++;
			continue;
		}
		float first;
		memcpy(&first, map->data + map->data_at, sizeof(first));
		r->failures += first != (float)(i % 3);
		models_map_release(map);
	}
	return NULL;
}

static void
readers_at_once(void **state)
{
	struct fixture *f = *state;
	uint8_t ids[3][32];
	struct reader r[4];
	pthread_t threads[4];

	for (int i = 0; i < 3; i++)
		put(f, (float)i, ids[i]);
	for (int i = 0; i < 4; i++) {
		r[i] = (struct reader){f, (const uint8_t(*)[32])ids, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, read_all, &r[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(r[i].failures, 0);
	}
}

/* Every byte of a file that an earlier process wrote is looked at before its first use, and only whole files pass. */
static void
flipped_before_start(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL;
	uint8_t id[32], other[32];
	char path[160], byte;

	put(f, 1, id);
	put(f, 2, other);
	path_of(f, id, "", path);
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	for (uint64_t at = 0; at < f->head.len + sizeof(f->data); at += 5) {
		models_close(f->m);
		assert_int_equal(models_open(&f->m, f->dir, &f->why), ERR_OK);
		assert_int_equal(file_pread(fd, &byte, 1, at), ERR_OK);
		byte ^= 1;
		assert_int_equal(file_pwrite(fd, &byte, 1, at), ERR_OK);
		assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_CORRUPT);
		assert_non_null(strstr(f->why.text, "does not match its name"));
		byte ^= 1;
		assert_int_equal(file_pwrite(fd, &byte, 1, at), ERR_OK);
		assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
		models_map_release(map);
	}
	close(fd);
	assert_int_equal(models_get(f->m, other, &map, &f->why), ERR_OK);
	models_map_release(map);
}

/* The list of what was checked grows in place or not, as the allocator likes: its room is what was asked for, either way. */
static void
many_sound(void **state)
{
	struct fixture *f = *state;
	uint8_t id[32] = {0};

	for (unsigned i = 0; i < 5000; i++) {
		memcpy(id, &i, sizeof(i));
		models_found(f->m, id, "", &(struct stamp){.inode = i}, true);
		assert_int_equal(f->m->judged_count, i + 1);
		assert_true(f->m->judged_room > i);
	}
	for (unsigned i = 0; i < 5000; i++) {
		memcpy(id, &i, sizeof(i));
		const struct stamp stamp = {.inode = i};
		assert_int_equal(models_judged(f->m, id, "", &stamp), MODELS_SOUND);
		assert_int_equal(models_judged(f->m, id, ".state", &stamp), MODELS_UNKNOWN);
		models_forget(f->m, id, "");
		assert_int_equal(models_judged(f->m, id, "", &stamp), MODELS_UNKNOWN);
	}
	assert_int_equal(f->m->judged_count, 0);
}

#define WITH_MODELS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_MODELS(many_sound),
	    WITH_MODELS(put_and_get),
	    WITH_MODELS(same_bytes_same_id),
	    WITH_MODELS(shared),
	    WITH_MODELS(deleted),
	    WITH_MODELS(damaged),
	    WITH_MODELS(flipped_before_start),
	    WITH_MODELS(adopted),
	    WITH_MODELS(leftovers),
	    WITH_MODELS(folder_gone),
	    WITH_MODELS(optimizer_state),
	    WITH_MODELS(state_hashed_once),
	    WITH_MODELS(readers_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
