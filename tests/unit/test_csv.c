/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "flush.h"
#include "gzip.h"

static enum err
csv(struct dataset *d, const char *text, const struct csv_form *how, struct why *why)
{
	struct flush f = flush_new(text, strlen(text));
	enum err e = csv_read(d, f.data, strlen(text), how, NULL, 0, why);

	flush_free(&f);
	return e;
}

static void
csv_plain(void **state)
{
	(void)state;
	static const char *const texts[] = {
	    "1,2,0\n-3.5,1e2,1\n0.25,.5,2\n",
	    "1;2;0\r\n-3.5;1e2;1\r\n0.25;.5;2",
	    "\357\273\277a,b,class\n1 ,\t2, 0\n\n-3.5,+100.0,1.0\n   \n0.25,\"0.5\",2\n",
	    "\"x \"\"1\"\"\", \"y,z\" ,c\n1,2,0\n-3.5,0.1e+3,1\n2.5e-1,5e-1,2\n",
	};
	static const float expected[] = {1, 2, -3.5f, 100, 0.25f, 0.5f};
	struct csv_form how = {0};

	for (size_t i = 0; i < 4; i++) {
		struct dataset d;
		struct why why = {""};
		assert_int_equal(csv(&d, texts[i], &how, &why), ERR_OK);
		assert_int_equal(d.count, 3);
		assert_int_equal(d.features, 2);
		assert_int_equal(d.dims, 1);
		assert_memory_equal(d.shape, ((uint32_t[]){2, 1, 1}), 12);
		assert_memory_equal(d.floats, expected, sizeof(expected));
		assert_memory_equal(d.labels, ((int32_t[]){0, 1, 2}), 12);
		assert_int_equal(d.classes, 3);
		assert_null(d.targets);
		assert_null(d.bytes);
		dataset_deinit(&d);
	}
}

/* RFC 4180: a line end in quotes is a part of the field. Reasons count the lines of the file. */
static void
csv_quoted_lines(void **state)
{
	static const char *const texts[] = {
	    "a,note,class\n1,\"x\ny\",0\n2,\"\n\n\",1\n",
	    "a,\"no\r\nte\",class\r\n1,\"x\r\n\r\ny\",0\r\n2,\"say \"\"hi,\n\"\"\",1",
	    "a;note;class\r1;\"x\ry\";0\r2;\"z;\n\";1\r",
	};
	struct csv_form how = {.columns = "a"};
	struct dataset d;
	struct why why = {""};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(csv(&d, texts[i], &how, &why), ERR_OK);
		assert_true(d.count == 2 && d.features == 1 && d.classes == 2);
		assert_memory_equal(d.floats, ((float[]){1, 2}), 8);
		assert_memory_equal(d.labels, ((int32_t[]){0, 1}), 8);
		dataset_deinit(&d);
	}
	assert_int_equal(csv(&d, "a,note,class\n1,\"x\n\ny\",0\nz,q,1\n", &how, &why), ERR_INVALID);
	assert_string_equal(why.text, "line 5, column 1: this is not a finite decimal number");
	assert_int_equal(csv(&d, "a,note,class\n1,\"x\n2,y,1\n", &how, &why), ERR_INVALID);
	assert_string_equal(why.text, "line 2, column 2: the quotes are wrong");
	how = (struct csv_form){.header = DATA_HEADER_NO};
	assert_int_equal(csv(&d, "1,\"x\ny\"\n2,b\n", &how, &why), ERR_INVALID);
	assert_string_equal(why.text, "line 1, column 2: the label has more than one line");
}

static void
csv_label_column(void **state)
{
	(void)state;
	static const struct {
		const char *label;
		int32_t first; /* -1: refused */
	} cases[] = {{NULL, 3}, {"last", 3}, {"0", 1}, {"1", 2}, {"2", 3}, {"kind", 2}, {"b c", 3},
	    {"3", -1}, {"none", -1}, {"-1", -1}, {"Kind", -1}};
	struct why why;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct csv_form how = {.label = cases[i].label};
		struct dataset d;
		int32_t *l;
		size_t n;
		static const char text[] = "a,kind,\"b c\"\n1,2,3\n4,5,6\n";
		enum err e = csv(&d, text, &how, &why);
		assert_int_equal(e, cases[i].first < 0 ? ERR_INVALID : ERR_OK);
		assert_int_equal(csv_labels(&l, &n, text, strlen(text), &how, NULL), e);
		if (e)
			continue;
		assert_int_equal(d.labels[0], cases[i].first);
		assert_true(d.floats[0] == (cases[i].first == 1 ? 2 : 1));
		assert_int_equal(n, 2);
		assert_int_equal(l[0], cases[i].first);
		assert_int_equal(l[1], cases[i].first + 3);
		free(l);
		dataset_deinit(&d);
	}
}

/* A header name wins over a number, and "last" may be a name too. */
static void
csv_header_wins(void **state)
{
	(void)state;
	struct csv_form how = {.label = "0"};
	struct dataset d;

	assert_int_equal(csv(&d, "x,0,last\n1,2,3\n", &how, NULL), ERR_OK);
	assert_int_equal(d.labels[0], 2);
	dataset_deinit(&d);
	how.label = "last";
	assert_int_equal(csv(&d, "last,x,y\n1,2,3\n", &how, NULL), ERR_OK);
	assert_int_equal(d.labels[0], 1);
	dataset_deinit(&d);
}

static void
csv_regression(void **state)
{
	(void)state;
	struct csv_form how = {.label = "0", .regression = true};
	static const char text[] = "-1.5,2\n1e3,4\n";
	struct dataset d;
	int32_t *l;
	size_t n;

	assert_int_equal(csv(&d, text, &how, NULL), ERR_OK);
	assert_int_equal(d.target_width, 1);
	assert_true(d.targets[0] == -1.5f && d.targets[1] == 1000);
	assert_true(d.floats[0] == 2 && d.floats[1] == 4);
	assert_null(d.labels);
	assert_int_equal(d.classes, 0);
	dataset_deinit(&d);
	assert_int_equal(csv_labels(&l, &n, text, strlen(text), &how, NULL), ERR_OK);
	assert_int_equal(n, 2);
	assert_int_equal(l[0], 0);
	free(l);
}

static void
csv_faults(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} cases[] = {
	    {"", "no rows"},
	    {"\n\n  \n", "no rows"},
	    {"a,b\n", "no rows"},
	    {"1\n2\n", "single column"},
	    {"1,2\n3,x\n", "line 2, column 2"},
	    {"1,2\n\n3,4\nx,4\n", "line 4, column 1"},
	    {"1,2\n,4\n", "line 2, column 1: the field is empty"},
	    {"1,2\n3,\n", "line 2, column 2: the field is empty"},
	    {"1,2\n3\n", "line 2 has fewer fields"},
	    {"1,2\n3,4,5\n", "line 2 has more fields"},
	    {"1,2\n3,4,\n", "line 2 has more fields"},
	    {"1,2\n1e999,4\n", "line 2, column 1"},
	    {"1,2\n1e39,4\n", "line 2, column 1: the number is too large"},
	    {"1,2\nnan,4\n", "line 2, column 1"},
	    {"1,2\n0x10,4\n", "line 2, column 1"},
	    {"1,2\n1.2.3,4\n", "line 2, column 1"},
	    {"1,2\n--1,4\n", "line 2, column 1"},
	    {"1,2\n.,4\n", "line 2, column 1"},
	    {"1,2\n-,4\n", "line 2, column 1"},
	    {"1,2\n3 4,4\n", "line 2, column 1"},
	    {"1,2\n\"3,4\n", "line 2, column 1: the quotes"},
	    {"1,2\n\"3\"x,4\n", "line 2, column 1: the quotes"},
	    {"1,2\n3,-1\n", "line 2, column 2: a class"},
	    {"1,2\n3,1.5\n", "line 2, column 2: a class"},
	    {"1,2\n3,4096\n", "line 2, column 2: a class"},
	    {"1;2\n3,5;1\n", "line 2, column 1"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct csv_form how = {0};
		struct why why = {""};
		struct dataset d;
		assert_int_equal(csv(&d, cases[i].text, &how, &why), ERR_INVALID);
		if (!strstr(why.text, cases[i].says))
			fail_msg(
			    "case %zu: \"%s\" does not say \"%s\"", i, why.text, cases[i].says);
	}
}

static void
csv_zero_byte(void **state)
{
	(void)state;
	struct csv_form how = {0};
	struct dataset d;
	struct why why;

	assert_int_equal(csv_read(&d, "1,2\n3\0,4\n", 10, &how, NULL, 0, &why), ERR_INVALID);
	assert_string_equal(why.text, "line 2 holds a zero byte");
}

static void
csv_keep(void **state)
{
	(void)state;
	static const char text[] = "x,c\n10,0\n\n11,1\nbad,row,here\n13,3\n";
	static const uint32_t keep[] = {1, 3}, past[] = {0, 4}, back[] = {3, 1};
	struct csv_form how = {0};
	struct dataset d;
	int32_t *l;
	size_t n;

	assert_int_equal(csv_read(&d, text, strlen(text), &how, keep, 2, NULL), ERR_OK);
	assert_int_equal(d.count, 2);
	assert_true(d.floats[0] == 11 && d.floats[1] == 13);
	assert_int_equal(d.labels[1], 3);
	dataset_deinit(&d);
	assert_int_equal(csv_read(&d, text, strlen(text), &how, keep, 0, NULL), ERR_OK);
	assert_int_equal(d.count, 0);
	dataset_deinit(&d);
	assert_int_equal(csv_read(&d, text, strlen(text), &how, past, 2, NULL), ERR_INVALID);
	assert_int_equal(csv_read(&d, text, strlen(text), &how, back, 2, NULL), ERR_INVALID);
	assert_int_equal(csv_labels(&l, &n, text, strlen(text), &how, NULL), ERR_INVALID);
}

static void
csv_row_limit(void **state)
{
	(void)state;
	struct csv_form how = {.max_rows = 2};
	struct dataset d;
	int32_t *l;
	size_t n;

	assert_int_equal(csv(&d, "1,2\n3,4\n5,6\n", &how, NULL), ERR_LIMIT);
	assert_int_equal(csv_labels(&l, &n, "1,2\n3,4\n5,6\n", 12, &how, NULL), ERR_LIMIT);
	assert_int_equal(csv(&d, "1,2\n3,4\n\n", &how, NULL), ERR_OK);
	dataset_deinit(&d);
}

/* Against strtod in the C locale, which rounds correctly: random decimal texts of all shapes, in a locale with a decimal comma
 * where the machine has one. */
static void
csv_numbers(void **state)
{
	(void)state;
	struct csv_form how = {.regression = true};
	char text[128], number[64];

	srandom(1);
	for (int i = 0; i < 20000; i++) {
		int whole = (int)(random() % 18), behind = (int)(random() % 24), n = 0;
		n += sprintf(number + n, "%s", i % 3 ? "" : "-");
		for (int k = 0; k < whole; k++)
			number[n++] = (char)('0' + random() % 10);
		if (behind > 0)
			number[n++] = '.';
		for (int k = 0; k < behind; k++)
			number[n++] = (char)('0' + random() % 10);
		if (whole + behind == 0)
			number[n++] = '7';
		number[n] = '\0';
		float expected = (float)strtod(number, NULL);
		sprintf(text, "1,%s\n", number);
		struct dataset d;
		setlocale(LC_NUMERIC, "de_DE.UTF-8");
		enum err e = csv(&d, text, &how, NULL);
		setlocale(LC_NUMERIC, "C");
		assert_int_equal(e, ERR_OK);
		if (memcmp(d.targets, &expected, 4) != 0)
			fail_msg("%s", number);
		dataset_deinit(&d);
	}
}

/* 64 MiB of one line that never ends. */
static void
gzip_bomb(void **state)
{
	(void)state;
	size_t size = 64u << 20, packed;
	uint8_t *data = malloc(size);
	struct csv_form how = {0};
	struct dataset d;

	assert_non_null(data);
	memset(data, '1', size);
	uint8_t *gz = gzip(data, size, &packed);
	assert_int_equal(csv_read(&d, gz, packed, &how, NULL, 0, NULL), ERR_LIMIT);
	free(gz);
	free(data);
}

/* Names as labels: sorted over the whole file, or as the owner lists them. */
static void
csv_names(void **state)
{
	(void)state;
	static const char text[] = "a,kind\n1,pear\n2,apple\n3,\"pear\"\n4,fig\n";
	static const uint32_t keep[] = {0, 3};
	struct csv_form how = {0};
	struct dataset d;
	struct why why = {""};
	int32_t *l;
	size_t n;

	assert_int_equal(csv(&d, text, &how, &why), ERR_OK);
	assert_memory_equal(d.labels, ((int32_t[]){2, 0, 2, 1}), 16);
	assert_int_equal(d.classes, 3);
	assert_string_equal(d.names, "apple\nfig\npear\n");
	dataset_deinit(&d);
	/* A share numbers them like the whole. */
	assert_int_equal(csv_read(&d, text, strlen(text), &how, keep, 2, NULL), ERR_OK);
	assert_memory_equal(d.labels, ((int32_t[]){2, 1}), 8);
	dataset_deinit(&d);
	assert_int_equal(csv_labels(&l, &n, text, strlen(text), &how, NULL), ERR_OK);
	assert_true(n == 4 && l[0] == 2 && l[1] == 0);
	free(l);
	how.classes = "pear, fig ,apple";
	assert_int_equal(csv(&d, text, &how, NULL), ERR_OK);
	assert_memory_equal(d.labels, ((int32_t[]){0, 2, 0, 1}), 16);
	dataset_deinit(&d);
	how.classes = "pear, apple";
	assert_int_equal(csv(&d, text, &how, &why), ERR_INVALID);
	assert_string_equal(why.text, "line 5, column 2: the label is none of the classes");
	/* A first line of numbers and one name may be either. */
	how = (struct csv_form){0};
	assert_int_equal(csv(&d, "1,2,pear\n1,2,fig\n", &how, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "header"));
	how.header = DATA_HEADER_NO;
	assert_int_equal(csv(&d, "1,2,pear\n1,2,fig\n", &how, &why), ERR_OK);
	assert_true(d.count == 2 && d.labels[0] == 1);
	dataset_deinit(&d);
}

static void
csv_columns(void **state)
{
	(void)state;
	static const char text[] =
	    "id\tage\tnote\tweight\tsick\nx7\t30\tsome, text\t70\t1\nx8\t\t\t60\t0\n";
	struct csv_form how = {.columns = "weight, 1", .label = "sick"};
	struct dataset d;
	struct why why = {""};

	assert_int_equal(csv(&d, text, &how, &why), ERR_INVALID);
	assert_string_equal(
	    why.text, "line 3, column 2: the field is empty; \"missing\" says what to do");
	how.missing = "-1";
	assert_int_equal(csv(&d, text, &how, &why), ERR_OK);
	assert_int_equal(d.features, 2);
	assert_memory_equal(d.floats, ((float[]){70, 30, 60, -1}), 16);
	dataset_deinit(&d);
	how.columns = "weight, height";
	assert_int_equal(csv(&d, text, &how, &why), ERR_INVALID);
	assert_string_equal(why.text, "there is no column \"height\" for a feature");
}

/* Lines without a value do not count in any pass, so that all agree which row is which. */
static void
csv_missing(void **state)
{
	(void)state;
	static const char text[] =
	    "a,b,site,y\n1,2,s,0\n3,NA,s,1\n5,6,t,1\n7,8,,1\n9,10,s,?\n11,12,t,0\n";
	static const uint32_t last[] = {2};
	struct csv_form how = {.missing = "skip", .group = "site"};
	struct dataset d;
	int32_t *l;
	size_t n;

	assert_int_equal(csv(&d, text, &how, NULL), ERR_OK);
	assert_true(d.count == 3 && d.features == 2);
	assert_memory_equal(d.floats, ((float[]){1, 2, 5, 6, 11, 12}), 24);
	dataset_deinit(&d);
	assert_int_equal(csv_labels(&l, &n, text, strlen(text), &how, NULL), ERR_OK);
	assert_true(n == 3 && l[1] == 1 && l[2] == 0);
	free(l);
	assert_int_equal(csv_groups(&l, &n, text, strlen(text), &how, NULL), ERR_OK);
	assert_true(n == 3 && l[0] == 0 && l[1] == 1 && l[2] == 1);
	free(l);
	assert_int_equal(csv_read(&d, text, strlen(text), &how, last, 1, NULL), ERR_OK);
	assert_true(d.floats[0] == 11);
	dataset_deinit(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(csv_plain),
	    cmocka_unit_test(csv_quoted_lines),
	    cmocka_unit_test(csv_label_column),
	    cmocka_unit_test(csv_header_wins),
	    cmocka_unit_test(csv_regression),
	    cmocka_unit_test(csv_faults),
	    cmocka_unit_test(csv_zero_byte),
	    cmocka_unit_test(csv_keep),
	    cmocka_unit_test(csv_row_limit),
	    cmocka_unit_test(csv_numbers),
	    cmocka_unit_test(gzip_bomb),
	    cmocka_unit_test(csv_names),
	    cmocka_unit_test(csv_columns),
	    cmocka_unit_test(csv_missing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
