/* The coordinator's own data sets, shared by all who use them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "evalsets.h"

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_for_all),
	    cmocka_unit_test(of_ones_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
