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

#include "config.h"
#include "data.h"
#include "evalset.h"
#include "file.h"
#include "settings.h"
#include "source.h"

/* Files of examples as the coordinator and a device load them: both go through source.h, and both are as strict. */

static char dir[] = "/tmp/test_source.XXXXXX";

static void
write_in(const char *name, const void *data, size_t len)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write(path, data, len, 0644, NULL), ERR_OK);
}

static int
set_up(void **state)
{
	static const uint8_t images[16 + 8] = {
	    0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8};
	static const uint8_t labels[8 + 2] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};
	static const uint8_t three[8 + 3] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 0, 2};
	(void)state;

	if (!mkdtemp(dir) || chdir(dir) != 0)
		return -1;
	write_in("images", images, sizeof(images));
	write_in("labels", labels, sizeof(labels));
	write_in("three", three, sizeof(three));
	write_in("table", "1,2,3,4,1\n5,6,7,8,0\n", 20);
	write_in("empty", "", 0);
	write_in("damaged", "\x1f\x8bno gzip at all", 16);
	write_in("large", "", 0);
	if (truncate("large", (off_t)DATASET_BYTES_MAX + 1) != 0)
		return -1;
	return mkfifo("fifo", 0600) || mkdir("folder", 0700) || symlink("/dev/zero", "zeros");
}

static int
tear_down(void **state)
{
	char command[64];
	(void)state;

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* A [data d] with these files; "label = 4" is the last column of the table. */
static void
section(char out[512], const char *images, const char *labels, const char *table)
{
	if (table)
		snprintf(out, 512,
		    "[data d]\nformat = csv\npath = %s/%s\nlabel = 4\nshape = 1, 2, 2\n", dir,
		    table);
	else
		snprintf(out, 512, "[data d]\nformat = idx\nimages = %s/%s\nlabels = %s/%s\n", dir,
		    images, dir, labels);
}

static enum err
on_device(const char *text, struct why *why)
{
	struct settings *s;
	struct dataset d;

	assert_int_equal(settings_parse(&s, "device.conf", text, strlen(text), why), ERR_OK);
	enum err e = data_load(&d, &s->data[0], why);
	if (!e) {
		assert_int_equal(d.count, 2);
		assert_int_equal(d.labels[0], 1);
		assert_int_equal(d.classes, 2);
		dataset_deinit(&d);
	}
	settings_free(s);
	return e;
}

static uint32_t wanted[3] = {1, 2, 2}; /* of the coordinator's job */

static enum err
on_coordinator(const char *text, struct why *why)
{
	static struct config c;
	struct layer_spec flat = {
	    .type = LAYER_FLATTEN, .name = "flat", .inputs = {LAYER_INPUT}, .input_count = 1};
	struct recipe r = {
	    .net = {.layers = &flat, .layer_count = 1, .loss = LOSS_MSE, .target_input = true},
	    .data = {.dims = 3},
	    .evaluate_data = "d"};
	struct evalset *s;

	memcpy(r.data.shape, wanted, sizeof(wanted));
	memcpy(r.net.input, wanted, sizeof(wanted));
	assert_int_equal(config_parse(&c, "rivuletd.conf", text, strlen(text), why), ERR_OK);
	assert_int_equal(evalset_new(&s, &c), ERR_OK);
	enum err e = evalset_check(s, &r, why);
	evalset_free(s);
	return e;
}

static enum err (*const sides[])(const char *, struct why *) = {on_device, on_coordinator};

static void
test_both_load(void **state)
{
	char text[512];
	struct why why = {""};
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		section(text, "images", "labels", NULL);
		assert_int_equal(sides[i](text, &why), ERR_OK);
		section(text, NULL, NULL, "table");
		assert_int_equal(sides[i](text, &why), ERR_OK);
	}
}

static void
names_once(const char *why, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	const char *found = strstr(why, path);
	if (!found || strstr(found + 1, path))
		fail_msg("\"%s\" does not name %s once", why, path);
}

/* Each in the place of the images, the labels and the table, on both sides. A side that waits for a writer of the FIFO, or reads
 * zeros without end, never gets here. */
static void
test_bad_files(void **state)
{
	static const struct {
		const char *name;
		enum err e;
		const char *why;
	} cases[] = {
	    {"missing", ERR_NOTFOUND, "No such file"},
	    {"fifo", ERR_INVALID, "not a regular file"},
	    {"folder", ERR_INVALID, "not a regular file"},
	    {"zeros", ERR_INVALID, "not a regular file"},
	    {"empty", ERR_INVALID, "is empty"},
	    {"large", ERR_LIMIT, "larger than"},
	    {"damaged", ERR_INVALID, "gzip"},
	};
	char text[512];
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t k = 0; k < 6; k++) {
			struct why why = {""};
			const char *bad = cases[i].name;
			section(text, k / 2 == 0 ? bad : "images", k / 2 == 1 ? bad : "labels",
			    k / 2 == 2 ? bad : NULL);
			assert_int_equal(sides[k % 2](text, &why), cases[i].e);
			names_once(why.text, bad);
			assert_non_null(strstr(why.text, cases[i].why));
		}
	}
}

static void
test_counts_differ(void **state)
{
	char text[512];
	struct why why;
	(void)state;

	section(text, "images", "three", NULL);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(sides[i](text, &why), ERR_INVALID);
		names_once(why.text, "images");
		assert_non_null(strstr(why.text, ": 3 labels for 2 images"));
	}
}

/* Pixels of another order are as many. */
static void
test_another_shape(void **state)
{
	char text[512];
	struct why why = {""};
	(void)state;

	section(text, "images", "labels", NULL);
	memcpy(wanted, (uint32_t[]){2, 2, 1}, sizeof(wanted));
	assert_int_equal(on_coordinator(text, &why), ERR_INVALID);
	memcpy(wanted, (uint32_t[]){1, 2, 2}, sizeof(wanted));
	assert_non_null(strstr(why.text, "shape [1, 2, 2], data.shape is [2, 2, 1]"));
}

/* A line of a table has the shape that the owner says. */
static void
test_shape_of_lines(void **state)
{
	static const char *const bad[][2] = {{"2, 2", "one number, or channels"},
	    {"1, 2, 2, 1", "one number, or channels"}, {"2, 2, 2", "of the 4 features"},
	    {"0, 2, 2", "of the 4 features"}};
	char text[512];
	struct why why = {""};
	(void)state;

	for (size_t i = 0; i < 4; i++) {
		snprintf(text, sizeof(text),
		    "[data d]\nformat = csv\npath = %s/table\nlabel = 4\nshape = %s\n", dir,
		    bad[i][0]);
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(sides[k](text, &why), ERR_INVALID);
			assert_non_null(strstr(why.text, bad[i][1]));
		}
	}
	snprintf(text, sizeof(text), "[data d]\nformat = csv\npath = %s/table\nlabel = 4\n", dir);
	assert_int_equal(on_coordinator(text, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "shape [4], data.shape is [1, 2, 2]"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_both_load),
	    cmocka_unit_test(test_bad_files),
	    cmocka_unit_test(test_counts_differ),
	    cmocka_unit_test(test_another_shape),
	    cmocka_unit_test(test_shape_of_lines),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
