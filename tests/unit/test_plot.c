/* stages: gcc clang openssl address */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "axis.h"
#include "plot.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The text; the caller frees it. */
static char *
drawn(const struct plot *p)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	assert_int_equal(plot_draw(&out, p), ERR_OK);
	return out.data;
}

static void
expect(const struct plot *p, const char *text)
{
	char *got = drawn(p);

	if (strcmp(got, text) != 0)
		print_message("%s", got);
	assert_string_equal(got, text);
	free(got);
}

/* In characters: what is no continuation byte, and no part of a colour. */
static size_t
widest(const char *text)
{
	size_t most = 0, n = 0;

	for (const char *p = text; *p; p++) {
		if (*p == '\033') {
			p += strcspn(p, "m");
			continue;
		}
		n = *p == '\n' ? 0 : n + (((unsigned char)*p & 0xc0) != 0x80);
		most = n > most ? n : most;
	}
	return most;
}

static const double rounds[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
static const double falling[] = {2.3, 1.5, 1.1, 0.8, 0.6, 0.5, 0.45, 0.4, 0.37, 0.35};
static const double slower[] = {2.31, 1.9, 1.6, 1.4, 1.2, 1.05, 0.95, 0.9, 0.85, 0.8};
static const struct plot_line two[] = {
    {"train", rounds, falling, COUNT(falling)}, {"eval", rounds, slower, COUNT(slower)}};

static void
test_ascii(void **state)
{
	const struct plot p = {"loss", "round", 1, two, 2, 80, 3, PLOT_ASCII};
	(void)state;

	expect(&p,
	    "loss by round   * train   o eval\n"
	    "2.4 +oo\n"
	    "    |* oo\n"
	    "    | ** ooo\n"
	    "1.8 +   **  ooooo\n"
	    "    |     **     ooooooooo\n"
	    "    |       ***           oooooooo\n"
	    "1.2 +          ****               oooooooo\n"
	    "    |              *******                ooooooooooooooooo\n"
	    "    |                     ********                         ooooooooooooooooooooo\n"
	    "0.6 +                             ********\n"
	    "    |                                     **************************************\n"
	    "    |\n"
	    "0.0 +\n"
	    "    +--------+----------------+---------------+----------------+---------------+\n"
	    "             2                4               6                8              10\n");
}

static void
test_braille(void **state)
{
	const struct plot p = {"loss", "round", 1, two, 2, 40, 2, PLOT_BRAILLE};
	(void)state;

	expect(&p,
	    "loss by round   \033[36m⠶\033[0m train   \033[33m⠶\033[0m eval\n"
	    "2.4 ┤\033[33m⡀\033[0m\n"
	    "    │\033[33m⠘⢕⠤⣀\033[0m\n"
	    "1.8 ┤  \033[36m⠣⡀\033[0m\033[33m⠑⠢⢄⡀\033[0m\n"
	    "    │   \033[36m⠘⢄⡀\033[0m \033[33m⠈⠑⠢⠤⣀⡀\033[0m\n"
	    "1.2 ┤     \033[36m⠈⠢⢄\033[0m    \033[33m⠈⠑⠒⠤⢄⣀⡀\033[0m\n"
	    "    │        \033[36m⠉⠒⠤⣀⡀\033[0m     \033[33m⠈⠉⠉⠒⠒⠒⠒⠤⠤⠤⠤⠤⠤⠤⢄⣀⣀\033[0m\n"
	    "0.6 ┤            \033[36m⠈⠑⠒⠤⠤⢄⣀⣀⣀\033[0m\n"
	    "    │                     \033[36m⠉⠉⠉⠉⠉⠉⠉⠉⠒⠒⠒⠒⠒⠒\033[0m\n"
	    "0.0 ┤\n"
	    "    └───────────────┴──────────────────┴\n"
	    "                    5                 10\n");
}

static void
test_one_round(void **state)
{
	const struct plot_line line = {"train", rounds, falling, 1};
	const struct plot p = {"loss", "round", 1, &line, 1, 40, 1, PLOT_ASCII};
	(void)state;

	expect(&p,
	    "loss by round   * train\n"
	    "2.48 +\n"
	    "2.40 +\n"
	    "2.32 +                 *\n"
	    "2.24 +\n"
	    "2.16 +\n"
	    "     +-----------------+----------------\n"
	    "                       1\n");
}

static void
test_nothing(void **state)
{
	const double gaps[] = {NAN, INFINITY, 1e301};
	const struct plot_line line = {"train", rounds, gaps, COUNT(gaps)};
	struct plot p = {"loss", "round", 1, &line, 1, 80, 3, PLOT_ASCII};
	(void)state;

	expect(&p, "loss: no round has it\n");
	p.count = 0;
	expect(&p, "loss: no round has it\n");
}

/* Nothing is drawn across a gap; a value between two of them is a dot. */
static void
test_gaps(void **state)
{
	const double y[] = {1, 1, 1, NAN, NAN, 1, NAN, 1, 1, 1};
	const struct plot_line line = {"train", rounds, y, COUNT(y)};
	const struct plot p = {"loss", "round", 1, &line, 1, 40, 1, PLOT_ASCII};
	(void)state;

	expect(&p,
	    "loss by round   * train\n"
	    "1.050 +\n"
	    "1.025 +\n"
	    "1.000 +********          *      ********\n"
	    "0.975 +\n"
	    "0.950 +\n"
	    "      +--------------+-----------------+\n"
	    "                     5                10\n");
}

/* A spike of one round among a hundred thousand is seen, and the text is no larger. */
static void
test_many_rounds(void **state)
{
	size_t n = 100000, marked = 0;
	double *x = malloc(n * sizeof(*x)), *y = malloc(n * sizeof(*y));
	const struct plot_line line = {"train", x, y, n};
	const struct plot p = {"loss", "round", 1, &line, 1, 80, 3, PLOT_ASCII};
	(void)state;

	assert_true(x && y);
	for (size_t i = 0; i < n; i++) {
		x[i] = (double)i + 1;
		y[i] = i == 50000 ? 9.5 : 1;
	}
	char *text = drawn(&p);
	for (char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n'))
		marked += strcspn(at + 1, "*") < strcspn(at + 1, "\n");
	assert_true(marked > 9);
	free(text);
	text = drawn(&p);
	assert_true(strlen(text) < 81 * 16);
	assert_non_null(strstr(text, "100000"));
	free(text);
	free(x);
	free(y);
}

static void
test_widths(void **state)
{
	static const unsigned widths[] = {0, 40, 41, 79, 132, 400, 10000};
	const char *name = "a-job-with-a-name-as-long-as-names-may-be-which-is-63-characters";
	struct plot_line lines[PLOT_LINES_MAX];
	struct plot p = {name, "round", 1, lines, PLOT_LINES_MAX, 0, 3, PLOT_ASCII};
	(void)state;

	for (size_t i = 0; i < PLOT_LINES_MAX; i++)
		lines[i] = (struct plot_line){name, rounds, falling, COUNT(falling)};
	for (size_t i = 0; i < COUNT(widths); i++)
		for (int style = PLOT_ASCII; style <= PLOT_BRAILLE; style++) {
			p.columns = widths[i];
			p.style = (enum plot_style)style;
			unsigned most = widths[i] < 40 ? 40 : widths[i] > 400 ? 400 : widths[i];
			char *text = drawn(&p);
			assert_true(widest(text) <= most);
			free(text);
		}
}

/* Whatever the numbers, the axis covers them in so many steps. */
static void
test_cover(void **state)
{
	static const double cases[][2] = {{0, 1}, {0.97, 0.98}, {-3, 5}, {1e-12, 2e-12},
	    {-1e300, 1e300}, {5, 5}, {0, 0}, {1e15, 1e15 + 1}, {0.1, 0.3}, {2.31, 0.35}, {-7, -7},
	    {1e-300, 1e-300}};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		double low = fmin(cases[i][0], cases[i][1]), high = fmax(cases[i][0], cases[i][1]);
		struct axis a = axis_cover(low, high, 4);
		assert_true(a.low <= low + a.step * 1e-6 && a.high >= high - a.step * 1e-6);
		assert_true(a.high > a.low && isfinite(a.low) && isfinite(a.high));
		assert_true(high <= low || a.high - a.low <= fmax(4 * (high - low), fabs(high)));
	}
}

static void
test_labels(void **state)
{
	static const struct {
		double v, step;
		const char *text;
	} cases[] = {{0.5, 0.25, "0.50"}, {2, 1, "2"}, {1e-17, 0.1, "0.0"},
	    {100000, 20000, "100000"}, {1.5e7, 5e6, "1.5e+07"}, {-0.5, 0.5, "-0.5"},
	    {3e-9, 1e-9, "3e-09"}};
	char text[AXIS_LABEL_MAX];
	const char *name;
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(
		    axis_label(text, cases[i].v, cases[i].step), strlen(cases[i].text));
		assert_string_equal(text, cases[i].text);
	}
	assert_true(axis_time_unit(90, &name) == 1 && strcmp(name, "seconds") == 0);
	assert_true(axis_time_unit(120, &name) == 60 && strcmp(name, "minutes") == 0);
	assert_true(axis_time_unit(1e6, &name) == 86400 && strcmp(name, "days") == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ascii),
	    cmocka_unit_test(test_braille),
	    cmocka_unit_test(test_one_round),
	    cmocka_unit_test(test_nothing),
	    cmocka_unit_test(test_gaps),
	    cmocka_unit_test(test_many_rounds),
	    cmocka_unit_test(test_widths),
	    cmocka_unit_test(test_cover),
	    cmocka_unit_test(test_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
