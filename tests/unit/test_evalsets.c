/* stages: gcc openssl address thread */
/* The coordinator's own data sets, shared by all who use them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "data_source.h"
#include "evalsets.h"
#include "file.h"
#include "job.h"
#include "log.h"
#include "shared.h"

static struct config *
config_of(const char *name)
{
	struct config *c = malloc(sizeof(*c));

	assert_non_null(c);
	config_defaults(c);
	c->data_count = 1;
	snprintf(c->data[0].name, sizeof(c->data[0].name), "%s", name);
	return c;
}

/* One copy for all, until the configuration changes; the older one stays while it is used. */
static void
one_for_all(void **state)
{
	struct shared *config = NULL;
	struct evalsets *s = NULL;
	struct evalsets_use *a = NULL, *b = NULL, *c = NULL;

	(void)state;
	assert_int_equal(shared_new(&config, config_of("first"), free), ERR_OK);
	assert_int_equal(evalsets_new(&s, config), ERR_OK);
	assert_int_equal(evalsets_take(s, config, &a), ERR_OK);
	assert_int_equal(evalsets_take(s, config, &b), ERR_OK);
	assert_ptr_equal(a->set, b->set);
	evalsets_give(b, config);
	assert_int_equal(shared_reserve(config), ERR_OK);
	shared_replace(config, config_of("second"));
	assert_int_equal(evalsets_take(s, config, &c), ERR_OK);
	assert_ptr_not_equal(a->set, c->set);
	assert_string_equal(a->config->data[0].name, "first");
	assert_string_equal(c->config->data[0].name, "second");
	evalsets_give(a, config);
	evalsets_give(c, config);
	assert_int_equal(evalsets_take(s, config, &b), ERR_OK);
	assert_string_equal(b->config->data[0].name, "second");
	evalsets_give(b, config);
	evalsets_give(NULL, config);
	evalsets_free(s);
	evalsets_free(NULL);
	shared_free(config);
}

static void
of_ones_own(void **state)
{
	struct shared *config = NULL;
	struct evalsets_use *a = NULL, *b = NULL;

	(void)state;
	assert_int_equal(shared_new(&config, config_of("first"), free), ERR_OK);
	assert_int_equal(evalsets_take(NULL, config, &a), ERR_OK);
	assert_int_equal(evalsets_take(NULL, config, &b), ERR_OK);
	assert_ptr_not_equal(a->set, b->set);
	evalsets_give(a, config);
	evalsets_give(b, config);
	shared_free(config);
}

/* --- files that somebody changes */

/* Pictures of 32 x 32, so many that they stay in their file. */
#define COUNT 70000
static const uint8_t images[16] = {
    0, 0, 8, 3, 0, COUNT >> 16, (uint8_t)(COUNT >> 8), (uint8_t)COUNT, 0, 0, 0, 32, 0, 0, 0, 32};
static const uint8_t labels[8] = {
    0, 0, 8, 1, 0, COUNT >> 16, (uint8_t)(COUNT >> 8), (uint8_t)COUNT};
static const char job_text[] =
    "{\"name\":\"j\",\"model\":{\"layers\":[{\"type\":\"flatten\"},"
    "{\"type\":\"linear\",\"name\":\"l\",\"out\":2}],\"loss\":\"cross_entropy\"},"
    "\"data\":{\"name\":\"d\",\"shape\":[1,32,32],\"classes\":2},"
    "\"local\":{\"optimizer\":{\"rate\":0.1}},\"round\":{\"goal\":1},"
    "\"evaluate\":{\"by\":\"coordinator\",\"data\":\"d\"}}";

static void
write_array(const char *path, const void *head, size_t len, size_t values)
{
	struct why why;

	assert_int_equal(file_write(path, head, len, 0600, &why), ERR_OK);
	assert_int_equal(truncate(path, (off_t)(len + values)), 0);
}

static bool
check(
    struct evalsets *s, struct shared *config, const struct recipe *recipe, struct evalset **which)
{
	struct evalsets_use *use = NULL;
	struct why why = {""};

	assert_int_equal(evalsets_take(s, config, &use), ERR_OK);
	*which = use->set;
	bool good = evalset_check(use->set, recipe, &why) == ERR_OK;
	assert_true(good || strstr(why.text, "/images"));
	evalsets_give(use, config);
	return good;
}

static void
changed_files(void **state)
{
	char dir[] = "/tmp/test_evalsets.XXXXXX", aside[64];
	struct shared *config = NULL;
	struct evalsets *s = NULL;
	struct evalset *first, *now;
	struct job_spec job;
	struct why why;

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	assert_non_null(mkdtemp(dir));
	struct config *c = config_of("d");
	struct data_source *from = &c->data[0].source;
	from->format = DATA_IDX;
	snprintf(from->images, sizeof(from->images), "%s/images", dir);
	snprintf(from->labels, sizeof(from->labels), "%s/labels", dir);
	snprintf(aside, sizeof(aside), "%s/aside", dir);
	write_array(from->images, images, sizeof(images), (size_t)COUNT * 1024);
	write_array(from->labels, labels, sizeof(labels), COUNT);
	assert_int_equal(job_parse(&job, job_text, strlen(job_text), &why), ERR_OK);
	assert_int_equal(shared_new(&config, c, free), ERR_OK);
	assert_int_equal(evalsets_new(&s, config), ERR_OK);
	assert_true(check(s, config, &job.recipe, &first));
	assert_true(check(s, config, &job.recipe, &now));
	assert_ptr_equal(now, first);
	/* One that is gone is still mapped. */
	assert_int_equal(rename(from->images, aside), 0);
	assert_true(check(s, config, &job.recipe, &now));
	assert_ptr_equal(now, first);
	/* Cut: of no use until it is whole again. */
	write_array(from->images, images, sizeof(images), 5000);
	assert_false(check(s, config, &job.recipe, &now));
	assert_false(check(s, config, &job.recipe, &now));
	assert_int_equal(rename(aside, from->images), 0);
	assert_true(check(s, config, &job.recipe, &first));
	assert_true(check(s, config, &job.recipe, &now));
	assert_ptr_equal(now, first);
	/* Cut in its place, and written to. */
	assert_int_equal(truncate(from->images, 5000), 0);
	assert_false(check(s, config, &job.recipe, &now));
	write_array(from->images, images, sizeof(images), (size_t)COUNT * 1024);
	assert_true(check(s, config, &job.recipe, &first));
	FILE *f = fopen(from->images, "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, 100, SEEK_SET), 0);
	assert_int_equal(fputc(7, f), 7);
	assert_int_equal(fclose(f), 0);
	struct evalsets_use *use = NULL;
	const char *name = "";
	assert_int_equal(evalsets_take(s, config, &use), ERR_OK);
	assert_false(evalset_stale(use->set, &name));
	evalsets_give(use, config);
	evalsets_free(s);
	job_deinit(&job);
	assert_int_equal(file_empty_dir(dir, &why), ERR_OK);
	assert_int_equal(rmdir(dir), 0);
	shared_free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_for_all),
	    cmocka_unit_test(of_ones_own),
	    cmocka_unit_test(changed_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
