#ifndef PLOT_H
#define PLOT_H
#include <stdbool.h>

#include "buf.h"

/*
 * Curves as text. Pure: the same arrays give the same bytes. Any number of points; each two that follow one another are joined, so that
 * what many rounds in one column do is seen from its lowest to its highest.
 */
#define PLOT_LINES_MAX 8
#define PLOT_COLUMNS_MIN 40
#define PLOT_COLUMNS_MAX 400
#define PLOT_INTERVALS 4 /* between the figures of the upright axis */

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
	double x_unit; /* figures along x are divided by it */
	const struct plot_line *lines;
	size_t count; /* 1 to PLOT_LINES_MAX */
	unsigned columns; /* of the text; brought within the bounds above */
	unsigned rows; /* of each interval: 1 to 8 */
	enum plot_style style;
};

/* Appends lines of at most p->columns characters, or one that says that no round has it. Texts are to be shown as they stand
 * (shown.h) and one column wide per character. */
ERR_MUST_USE enum err plot_draw(struct buf *out, const struct plot *p);

#endif
