/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "keys_archive.h"

/* Keys in one file, and back: what comes back is the same, and what is not whole, not ours or not alone is refused. */

struct place {
	char dir[64], state[80], other[80], aside[80];
	struct buf archive;
	struct why why;
};

static void
make_keys(struct place *p, const char *state_dir)
{
	bool fresh;

	assert_int_equal(keys_init(state_dir, NULL, 0, &fresh, &p->why), ERR_OK);
}

static int
setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	strcpy(p->dir, "/tmp/test_keys.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->state, sizeof(p->state), "%s/state", p->dir);
	snprintf(p->other, sizeof(p->other), "%s/other", p->dir);
	snprintf(p->aside, sizeof(p->aside), "%s/aside", p->dir);
	make_keys(p, p->state);
	buf_init(&p->archive, KEYS_ARCHIVE_MAX);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct place *p = *state;

	keys_archive_wipe(&p->archive);
	assert_int_equal(file_remove_dir(p->dir, &p->why), ERR_OK);
	free(p);
	return 0;
}

static void
pack(struct place *p)
{
	assert_int_equal(keys_archive_pack(p->state, &p->archive, &p->why), ERR_OK);
}

/* Into a fresh folder. */
static enum err
unpack(struct place *p)
{
	struct services_ca *ca = NULL;

	assert_int_equal(file_remove_dir(p->aside, &p->why), ERR_OK);
	enum err e = keys_archive_unpack(p->aside, &p->archive, &ca, &p->why);
	keys_free_ca(ca);
	return e;
}

static void
there_and_back(void **state)
{
	struct place *p = *state;
	char path[KEYS_PATH_MAX];
	struct stat st;
	size_t moved;

	assert_int_equal(keys_begin_rotation(p->state, &p->why), ERR_OK);
	keys_path(p->state, "ca.crt.abcdef", path);
	assert_int_equal(file_write(path, "left by a crash", 15, 0600, &p->why), ERR_OK);
	pack(p);
	assert_int_equal(unpack(p), ERR_OK);
	assert_int_equal(keys_archive_compare(p->aside, p->state, &p->why), ERR_OK);
	assert_int_equal(keys_archive_compare(p->state, p->aside, &p->why), ERR_OK);
	keys_path(p->aside, "ca.crt.abcdef", path);
	assert_int_equal(access(path, F_OK), -1);
	keys_path(p->aside, "ca-2.key", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* The same keys may be put where they are, one that is missing comes, and all come where there are none. */
	keys_path(p->state, "task.key", path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(keys_archive_adopt(p->aside, p->state, &moved, &p->why), ERR_OK);
	assert_int_equal(moved, 1);
	assert_int_equal(unpack(p), ERR_OK);
	assert_int_equal(file_mkdirs(p->other, 0700, &p->why), ERR_OK);
	assert_int_equal(keys_archive_adopt(p->aside, p->other, &moved, &p->why), ERR_OK);
	assert_int_equal(moved, 11);
	assert_int_equal(keys_archive_compare(p->other, p->state, &p->why), ERR_OK);
}

static void
other_keys_stay(void **state)
{
	struct place *p = *state;
	char path[KEYS_PATH_MAX];
	size_t moved = 7;

	pack(p);
	make_keys(p, p->other);
	keys_path(p->other, "sign.key", path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unpack(p), ERR_OK);
	assert_int_equal(keys_archive_adopt(p->aside, p->other, &moved, &p->why), ERR_EXISTS);
	assert_non_null(strstr(p->why.text, "/keys/ca.crt is there, and is another one"));
	assert_int_equal(moved, 0);
	assert_int_equal(access(path, F_OK), -1);
	/* Keys of after the archive: the next CA's are in no older archive. */
	assert_int_equal(keys_begin_rotation(p->state, &p->why), ERR_OK);
	assert_int_equal(keys_archive_adopt(p->aside, p->state, &moved, &p->why), ERR_EXISTS);
	assert_non_null(strstr(p->why.text, "/keys/ca-1.crt"));
}

/* One file of the archive is another one's, or gone. */
static void
exchange(struct place *p, const char *name, bool gone)
{
	char from[KEYS_PATH_MAX], to[KEYS_PATH_MAX];

	keys_path(p->other, name, from);
	keys_path(p->state, name, to);
	assert_int_equal(gone ? unlink(to) : rename(from, to), 0);
}

/* A start, a check and an export refuse them alike: all ask keys_check. */
static void
mixed_keys(void **state)
{
	static const char *const mixed[][3] = {
	    {"ca.key", NULL, "ca.crt is not for ca.key"},
	    {"server.key", "server.crt", "server.crt is not of the CA there"},
	    {"sign.key", "sign.crt", "sign.crt is not of the CA there"},
	    {"sign.key", NULL, "sign.crt is not for sign.key"},
	};
	struct place *p = *state;

	for (size_t i = 0; i < sizeof(mixed) / sizeof(mixed[0]); i++) {
		assert_int_equal(file_remove_dir(p->state, &p->why), ERR_OK);
		assert_int_equal(file_remove_dir(p->other, &p->why), ERR_OK);
		make_keys(p, p->state);
		make_keys(p, p->other);
		exchange(p, mixed[i][0], false);
		if (mixed[i][1])
			exchange(p, mixed[i][1], false);
		assert_int_equal(keys_archive_pack(p->state, &p->archive, &p->why), ERR_CORRUPT);
		assert_non_null(strstr(p->why.text, mixed[i][2]));
	}
	assert_int_equal(file_remove_dir(p->state, &p->why), ERR_OK);
	make_keys(p, p->state);
	exchange(p, "task.key", true);
	assert_int_equal(keys_archive_pack(p->state, &p->archive, &p->why), ERR_NOTFOUND);
}

/* --- archives that are none */

static void
add(struct place *p, const char *name, size_t len)
{
	static const char data[2 * KEYS_FILE_MAX];
	struct ustar_file file = {.data = data, .len = len, .mode = 0600};

	snprintf(file.name, sizeof(file.name), "%s", name);
	assert_int_equal(ustar_put(&p->archive, &file), ERR_OK);
}

static void
names_that_are_none(void **state)
{
	static const char *const names[] = {"../ca.crt", "/etc/passwd", "keys/ca.crt", ".ca.crt",
	    "", "ca.crt ", "ca\x1b.crt", "ca.crt.abcdef", "ca-0.crt", "ca-01.crt", "ca-10001.crt",
	    "ca-99999999999999999999.crt", "ca-2.crt.key", "ca-.key", "rivulet.db"};
	struct place *p = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		buf_reset(&p->archive);
		add(p, names[i], 100);
		assert_int_equal(ustar_end(&p->archive), ERR_OK);
		if (unpack(p) != ERR_INVALID)
			fail_msg("\"%s\" is taken", names[i]);
	}
	buf_reset(&p->archive);
	add(p, "task.key", 32);
	add(p, "task.key", 32);
	assert_int_equal(ustar_end(&p->archive), ERR_OK);
	assert_int_equal(unpack(p), ERR_INVALID);
	assert_non_null(strstr(p->why.text, "task.key is in it twice"));
	buf_reset(&p->archive);
	add(p, "task.key", KEYS_FILE_MAX + 1);
	assert_int_equal(ustar_end(&p->archive), ERR_OK);
	assert_int_equal(unpack(p), ERR_LIMIT);
	buf_reset(&p->archive);
	assert_int_equal(ustar_end(&p->archive), ERR_OK);
	assert_int_equal(unpack(p), ERR_NOTFOUND);
}

/* Reads all of it, whose bytes end where no others may be touched. */
static enum err
read_all(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct ustar_reader r = {copy, len};
	struct ustar_file file;
	struct why why;

	assert_non_null(copy);
	memcpy(copy, data, len);
	enum err e = ERR_OK;
	while (!e)
		e = keys_archive_next(&r, &file, &why);
	free(copy);
	return e;
}

static void
damage(void **state)
{
	struct place *p = *state;

	pack(p);
	uint8_t *data = (uint8_t *)p->archive.data;
	size_t len = p->archive.len;
	assert_int_equal(read_all(data, len), ERR_NOTFOUND);
	for (size_t cut = 0; cut < len - USTAR_BLOCK; cut += 64)
		assert_int_equal(read_all(data, cut), ERR_INVALID);
	/* Each bit of the first header. */
	for (size_t bit = 0; bit < (size_t)USTAR_BLOCK * 8; bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(read_all(data, len), ERR_NOTFOUND);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	data[len - 1] = 1;
	assert_int_equal(read_all(data, len), ERR_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(there_and_back, setup, teardown),
	    cmocka_unit_test_setup_teardown(other_keys_stay, setup, teardown),
	    cmocka_unit_test_setup_teardown(mixed_keys, setup, teardown),
	    cmocka_unit_test_setup_teardown(names_that_are_none, setup, teardown),
	    cmocka_unit_test_setup_teardown(damage, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
