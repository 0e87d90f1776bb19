#ifndef PLOT_H
#define PLOT_H
#include <stdbool.h>

#include "buf.h"

/*
 * Curves as text. Pure: the same arrays give the same bytes. Any number of points; neighbouring points are joined, so that a column that
 * stands for many rounds shows all values from the lowest to the highest.
 */
#define PLOT_LINES_MAX 8
#define PLOT_COLUMNS_MIN 40
#define PLOT_COLUMNS_MAX 400
#define PLOT_INTERVALS 4 /* intervals of the vertical axis, between its labels */

enum plot_style {
	PLOT_ASCII, /* a mark for each line; no byte above 0x7e, no colour */
	PLOT_BRAILLE, /* UTF-8, eight dots to a character, a colour for each line */
};

struct plot_line {
	const char *label;
	const double *x, *y; /* x ascending; y NaN, infinite or beyond AXIS_FAR: a gap */
	size_t count;
};

struct plot {
	const char *title, *x_name;
	double x_unit; /* labels of the x axis are divided by x_unit */
	const struct plot_line *lines;
	size_t count; /* 1 to PLOT_LINES_MAX */
	unsigned columns; /* of the text; clamped to PLOT_COLUMNS_MIN..PLOT_COLUMNS_MAX */
	unsigned rows; /* of text in each interval: 1 to 8 */
	enum plot_style style;
};

/* Appends the plot in lines of at most p->columns characters, or a line that says that no round has the value. Labels and titles must be
 * safe to show (shown.h) and one column wide per character. */
ERR_MUST_USE enum err plot_draw(struct buf *out, const struct plot *p);

#endif
