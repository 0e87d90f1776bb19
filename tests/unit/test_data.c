/* stages: gcc clang openssl address */
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

#include "data.h"
#include "examples.h"
#include "file.h"
#include "json.h"

static char dir[64];

static int
set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test_data.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(file_empty_dir(dir, NULL), ERR_OK);
	return rmdir(dir);
}

/* 40 images of 2 x 2 whose first byte is their number, with labels number % 4. */
static void
write_idx(void)
{
	uint8_t images[16 + 160] = {0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 2},
			    labels[8 + 40] = {0, 0, 8, 1, 0, 0, 0, 40};
	char path[96];

	for (uint8_t i = 0; i < 40; i++) {
		images[16 + 4 * i] = i;
		labels[8 + i] = i % 4;
	}
	snprintf(path, sizeof(path), "%s/images", dir);
	assert_int_equal(file_write(path, images, sizeof(images), 0644, NULL), ERR_OK);
	snprintf(path, sizeof(path), "%s/labels", dir);
	assert_int_equal(file_write(path, labels, sizeof(labels), 0644, NULL), ERR_OK);
}

/* Every DIR in the text stands for the test's directory. */
static struct settings *
settings_of(const char *form)
{
	char text[512] = "";
	struct settings *s;
	struct why why = {""};

	for (const char *at; (at = strstr(form, "DIR")); form = at + 3) {
		strncat(text, form, (size_t)(at - form));
		strcat(text, dir);
	}
	strcat(text, form);
	if (settings_parse(&s, "data.conf", text, strlen(text), &why) != ERR_OK)
		fail_msg("%s", why.text);
	return s;
}

/* Shards of an IDX file: image and label stay together, and each image is in exactly one shard. */
static void
test_idx_shards(void **state)
{
	bool seen[40] = {false};

	(void)state;
	write_idx();
	struct settings *s =
	    settings_of("[data d]\nformat=idx\nimages=DIR/images\nlabels=DIR/labels\n");
	for (uint32_t by_label = 0; by_label < 2; by_label++) {
		memset(seen, 0, sizeof(seen));
		for (uint32_t i = 1; i <= 5; i++) {
			struct dataset d;
			s->data[0].shard = (struct shard){.index = i,
			    .count = 5,
			    .partition = by_label ? SHARD_LABEL : SHARD_IID,
			    .seed = 3};
			assert_int_equal(data_load(&d, &s->data[0], NULL), ERR_OK);
			assert_int_equal(d.count, 8);
			assert_int_equal(d.features, 4);
			for (size_t k = 0; k < d.count; k++) {
				uint8_t number = d.bytes[4 * k];
				assert_int_equal(d.labels[k], number % 4);
				assert_false(seen[number]);
				seen[number] = true;
			}
			dataset_deinit(&d);
		}
	}
	settings_free(s);
}

static void
test_csv(void **state)
{
	char path[96];
	struct dataset d;
	struct why why;
	static const char text[] = "a,b,kind\n1,2,0\n3,4,1\n5,6,1\n7,8,0\n";

	(void)state;
	snprintf(path, sizeof(path), "%s/t.csv", dir);
	assert_int_equal(file_write(path, text, sizeof(text) - 1, 0644, NULL), ERR_OK);
	struct settings *s =
	    settings_of("[data d]\nformat=csv\npath=DIR/t.csv\nlabel=kind\nclasses=no, yes\n");
	assert_int_equal(data_load(&d, &s->data[0], &why), ERR_OK);
	assert_int_equal(d.count, 4);
	assert_int_equal(d.features, 2);
	assert_int_equal(d.labels[1], 1);
	assert_true(d.floats[2] == 3.0f);
	dataset_deinit(&d);
	s->data[0].shard = (struct shard){.index = 2, .count = 2, .seed = 1};
	assert_int_equal(data_load(&d, &s->data[0], &why), ERR_OK);
	assert_int_equal(d.count, 2);
	dataset_deinit(&d);
	settings_free(s);
	/* Fewer names than classes. */
	s = settings_of("[data d]\nformat=csv\npath=DIR/t.csv\nclasses=no\n");
	assert_int_equal(data_load(&d, &s->data[0], &why), ERR_INVALID);
	settings_free(s);
}

static void
test_failures_name_the_file(void **state)
{
	char path[96];
	struct dataset d;
	struct why why;

	(void)state;
	struct settings *s =
	    settings_of("[data d]\nformat=idx\nimages=DIR/images\nlabels=DIR/labels\n");
	assert_int_equal(data_load(&d, &s->data[0], &why), ERR_NOTFOUND);
	assert_non_null(strstr(why.text, "/labels"));
	write_idx();
	snprintf(path, sizeof(path), "%s/images", dir);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_not_equal(data_load(&d, &s->data[0], &why), ERR_OK);
	assert_non_null(strstr(why.text, "/images"));
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(data_load(&d, &s->data[0], &why), ERR_INVALID);
	settings_free(s);
}

static void
test_split(void **state)
{
	struct dataset all, train, held, again, held_again;

	(void)state;
	write_idx();
	struct settings *s =
	    settings_of("[data d]\nformat=idx\nimages=DIR/images\nlabels=DIR/labels\n");
	assert_int_equal(data_load(&all, &s->data[0], NULL), ERR_OK);
	assert_int_equal(examples_split(&train, &held, &all, 0.25, 7), ERR_OK);
	assert_int_equal(held.count, 10);
	assert_int_equal(train.count, 30);
	bool seen[40] = {false};
	for (size_t i = 0; i < 40; i++) {
		uint8_t number = i < 10 ? held.bytes[4 * i] : train.bytes[4 * (i - 10)];
		assert_false(seen[number]);
		seen[number] = true;
	}
	assert_int_equal(examples_split(&again, &held_again, &all, 0.25, 7), ERR_OK);
	assert_memory_equal(held.bytes, held_again.bytes, 40);
	dataset_deinit(&again);
	dataset_deinit(&held_again);
	assert_int_equal(examples_split(&again, &held_again, &all, 0.25, 8), ERR_OK);
	assert_memory_not_equal(held.bytes, held_again.bytes, 40);
	dataset_deinit(&again);
	dataset_deinit(&held_again);
	dataset_deinit(&train);
	dataset_deinit(&held);
	/* A tiny share is still one example; no share is none. */
	assert_int_equal(examples_split(&train, &held, &all, 0.001, 7), ERR_OK);
	assert_int_equal(held.count, 1);
	dataset_deinit(&train);
	dataset_deinit(&held);
	assert_int_equal(examples_split(&train, &held, &all, 0, 7), ERR_OK);
	assert_int_equal(held.count, 0);
	dataset_deinit(&train);
	dataset_deinit(&all);
	settings_free(s);
}

static void
test_fits(void **state)
{
	struct dataset d = {.count = 4, .shape = {1, 2, 2}, .dims = 3, .features = 4, .classes = 3};
	int32_t labels[4] = {0, 1, 2, 0};
	struct settings_data from = {.name = "d"};
	struct recipe r = {.data = {.shape = {1, 2, 2}, .dims = 3, .class_count = 3}};
	struct json *names = json_array();
	struct why why;

	(void)state;
	d.labels = labels;
	assert_int_equal(data_fits(&d, &from, &r, &why), ERR_OK);
	r.data.shape[2] = 3;
	assert_int_equal(data_fits(&d, &from, &r, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "shape [1, 2, 2], the job wants [1, 2, 3]"));
	r.data.shape[2] = 2;
	/* As many pixels in another order. */
	memcpy(r.data.shape, (uint32_t[]){2, 2, 1}, sizeof(r.data.shape));
	assert_int_equal(data_fits(&d, &from, &r, &why), ERR_INVALID);
	memcpy(r.data.shape, d.shape, sizeof(d.shape));
	r.data.class_count = 2;
	assert_int_equal(data_fits(&d, &from, &r, &why), ERR_INVALID);
	r.data.class_count = 3;
	d.labels = NULL;
	assert_int_equal(data_fits(&d, &from, &r, &why), ERR_INVALID);
	d.labels = labels;
	/* The same names in another order would train the wrong thing. */
	json_push(names, json_new_string("x"));
	json_push(names, json_new_string("y"));
	json_push(names, json_new_string("z"));
	r.data.classes = names;
	strcpy(from.source.classes, "x, y ,z");
	assert_int_equal(data_fits(&d, &from, &r, &why), ERR_OK);
	strcpy(from.source.classes, "y,x,z");
	assert_int_equal(data_fits(&d, &from, &r, &why), ERR_INVALID);
	strcpy(from.source.classes, "x,y");
	assert_int_equal(data_fits(&d, &from, &r, &why), ERR_INVALID);
	json_free(names);
}

static enum err
guarded(const char *form)
{
	struct settings *s = settings_of(form);
	struct why why = {""};

	enum err e = data_guard(s, &s->data[0], &why);
	assert_int_equal(e == ERR_DENIED, strstr(why.text, "[trainer t] may write there") != NULL);
	settings_free(s);
	return e;
}

#define TRAINER(write) "[trainer t]\nkinds=train\nexec=/bin/true\nwrite=" write "\n"

/* What a confined trainer may put a link in the place of is not read: by its name, by a link to it, by a link on the way. */
static void
test_guard(void **state)
{
	char at[3][96];

	(void)state;
	snprintf(at[0], sizeof(at[0]), "%s/open", dir);
	snprintf(at[1], sizeof(at[1]), "%s/way", dir);
	snprintf(at[2], sizeof(at[2]), "%s/open/away", dir);
	assert_true(mkdir(at[0], 0700) == 0 && symlink(at[0], at[1]) == 0);
	assert_int_equal(symlink(dir, at[2]), 0);
	assert_int_equal(
	    guarded("[data d]\nformat=text\npath=DIR/labels\n" TRAINER("DIR/open")), ERR_OK);
	assert_int_equal(
	    guarded("[data d]\nformat=text\npath=DIR/opened\n" TRAINER("DIR/open")), ERR_OK);
	assert_int_equal(
	    guarded("[data d]\nformat=text\npath=DIR/labels\n" TRAINER("/nonexistent")), ERR_OK);
	assert_int_equal(
	    guarded("[data d]\nformat=text\npath=DIR/open/x\n" TRAINER("DIR/open")), ERR_DENIED);
	assert_int_equal(
	    guarded("[data d]\nformat=text\npath=DIR/way/x\n" TRAINER("/tmp/none DIR/open")),
	    ERR_DENIED);
	assert_int_equal(
	    guarded("[data d]\nformat=text\npath=DIR/open/away/labels\n" TRAINER("DIR/way")),
	    ERR_DENIED);
	assert_int_equal(
	    guarded("[data d]\nformat=text\npath=DIR/labels\n" TRAINER("/")), ERR_DENIED);
	assert_int_equal(
	    guarded(
		"[data d]\nformat=idx\nimages=DIR/images\nlabels=DIR/open/l\n" TRAINER("DIR/open")),
	    ERR_DENIED);
	assert_int_equal(
	    guarded("[data d]\nformat=external\nexamples=3\npath=DIR/open/x\n" TRAINER("DIR/open")),
	    ERR_OK);
	assert_int_equal(
	    guarded("[data d]\nformat=text\npath=DIR/open/x\n" TRAINER("DIR/open") "confine=no\n"),
	    ERR_OK);
	assert_true(unlink(at[2]) == 0 && unlink(at[1]) == 0 && rmdir(at[0]) == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_idx_shards, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_csv, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_failures_name_the_file, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_split, set_up, tear_down),
	    cmocka_unit_test(test_fits),
	    cmocka_unit_test_setup_teardown(test_guard, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
