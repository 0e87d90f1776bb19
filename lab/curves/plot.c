#include "plot.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axis.h"

#define TICK_COLUMNS 12 /* at least between figures along x */

static const char marks[PLOT_LINES_MAX + 1] = "*o+x#@%&";
static const char *const colours[PLOT_LINES_MAX] = {"36", "33", "35", "32", "34", "31", "96", "93"};

/* How each style draws. */
static const struct style {
	unsigned across, down; /* dots of a character */
	const char *upright, *tick, *corner, *level, *mark;
} styles[] = {
    [PLOT_ASCII] = {1, 1, " |", " +", " +", "-", "+"},
    [PLOT_BRAILLE] = {2, 4, " \u2502", " \u2524", " \u2514", "\u2500", "\u2534"},
};

struct cell {
	uint8_t dots; /* braille's numbering */
	uint8_t line;
};

struct canvas {
	const struct plot *plot;
	const struct style *style;
	struct axis x, y;
	bool whole; /* all places along x are */
	unsigned margin; /* columns of the figures at the left */
	unsigned width, height; /* characters of the drawing */
	struct cell *cells;
	struct buf *out;
	enum err err; /* sticky */
};

static void put(struct canvas *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
put(struct canvas *c, const char *fmt, ...)
{
	va_list ap;
	char text[256];

	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
	if (!c->err)
		c->err = buf_append(c->out, text, len);
}

static bool
drawn(const struct plot_line *l, size_t i)
{
	return fabs(l->y[i]) <= AXIS_FAR && fabs(l->x[i]) <= AXIS_FAR;
}

/* False: nothing to draw. */
static bool
find_ranges(struct canvas *c)
{
	double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};

	for (size_t k = 0; k < c->plot->count; k++) {
		const struct plot_line *l = &c->plot->lines[k];
		for (size_t i = 0; i < l->count; i++) {
			if (!drawn(l, i))
				continue;
			double at[2] = {l->x[i] / c->plot->x_unit, l->y[i]};
			c->whole = c->whole && at[0] == floor(at[0]);
			for (int d = 0; d < 2; d++) {
				low[d] = fmin(low[d], at[d]);
				high[d] = fmax(high[d], at[d]);
			}
		}
	}
	if (high[0] < low[0])
		return false;
	c->x = (struct axis){low[0], high[0], 0};
	c->y = axis_cover(low[1], high[1], PLOT_INTERVALS);
	return true;
}

static void
find_sizes(struct canvas *c)
{
	char label[AXIS_LABEL_MAX];
	unsigned columns = c->plot->columns, rows = c->plot->rows;

	columns = columns < PLOT_COLUMNS_MIN ? PLOT_COLUMNS_MIN : columns;
	columns = columns > PLOT_COLUMNS_MAX ? PLOT_COLUMNS_MAX : columns;
	rows = rows < 1 ? 1 : rows > 8 ? 8 : rows;
	for (unsigned i = 0; i <= PLOT_INTERVALS; i++) {
		unsigned n = (unsigned)axis_label(label, c->y.low + i * c->y.step, c->y.step);
		c->margin = n > c->margin ? n : c->margin;
	}
	c->width = columns - c->margin - 2;
	c->height = PLOT_INTERVALS * rows + 1;
	c->x = axis_within(c->x.low, c->x.high, c->width / TICK_COLUMNS + 1, c->whole);
}

/* A lone place along x stands in the middle. */
static unsigned
dot_x(const struct canvas *c, double x)
{
	double range = c->x.high - c->x.low, last = (double)c->width * c->style->across - 1;

	return (unsigned)lround(range > 0 ? (x - c->x.low) / range * last : last / 2);
}

/* The ends of the axis lie in the middle of the characters beside their figures. */
static unsigned
dot_y(const struct canvas *c, double y)
{
	double share = (c->y.high - y) / (c->y.high - c->y.low), down = c->style->down;

	return (unsigned)lround(share * (c->height - 1) * down + (down - 1) / 2);
}

static void
set_dot(struct canvas *c, unsigned x, unsigned y, size_t line)
{
	static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
	unsigned column = x / c->style->across, row = y / c->style->down;

	if (column >= c->width || row >= c->height)
		return;
	struct cell *cell = &c->cells[row * c->width + column];
	cell->dots |= bits[y % c->style->down][x % c->style->across];
	cell->line = (uint8_t)line;
}

static void
join(struct canvas *c, const unsigned from[2], const unsigned to[2], size_t line)
{
	int dx = (int)to[0] - (int)from[0], dy = (int)to[1] - (int)from[1];
	int steps = abs(dx) > abs(dy) ? abs(dx) : abs(dy);

	for (int i = 1; i <= steps; i++) {
		double share = (double)i / steps;
		set_dot(c, (unsigned)lround(from[0] + share * dx),
		    (unsigned)lround(from[1] + share * dy), line);
	}
}

static void
draw_line(struct canvas *c, size_t k)
{
	const struct plot_line *l = &c->plot->lines[k];
	unsigned before[2] = {0, 0};
	bool pen = false;

	for (size_t i = 0; i < l->count; i++) {
		bool here = drawn(l, i);
		if (here) {
			unsigned at[2] = {dot_x(c, l->x[i] / c->plot->x_unit), dot_y(c, l->y[i])};
			if (pen)
				join(c, before, at, k);
			else
				set_dot(c, at[0], at[1], k);
			memcpy(before, at, sizeof(at));
		}
		pen = here;
	}
}

static void
put_sample(struct canvas *c, size_t line)
{
	if (c->plot->style == PLOT_ASCII)
		put(c, "%c ", marks[line]);
	else
		put(c, "\033[%sm\u2836\033[0m ", colours[line]);
}

/* "loss by round   * train   o eval", on as many lines as it takes. */
static void
put_title(struct canvas *c)
{
	const struct plot *p = c->plot;
	unsigned columns = c->margin + 2 + c->width, room = columns;

	int cut = (int)(columns / 2);
	put(c, "%.*s by %.*s", cut, p->title, cut - 4, p->x_name);
	size_t used = strnlen(p->title, (size_t)cut) + 4 + strnlen(p->x_name, (size_t)cut - 4);
	room -= (unsigned)used;
	for (size_t k = 0; k < p->count; k++) {
		int most = (int)columns - 5;
		unsigned wide = 5 + (unsigned)strnlen(p->lines[k].label, (size_t)most);
		if (wide > room) {
			put(c, "\n");
			room = columns;
		}
		put(c, "   ");
		put_sample(c, k);
		put(c, "%.*s", most, p->lines[k].label);
		room -= wide;
	}
	put(c, "\n");
}

static void
put_cell(struct canvas *c, const struct cell *cell, int *colour)
{
	bool ascii = c->plot->style == PLOT_ASCII;
	int wanted = cell->dots && !ascii ? cell->line : -1;

	if (wanted != *colour && *colour >= 0)
		put(c, "\033[0m");
	if (wanted != *colour && wanted >= 0)
		put(c, "\033[%sm", colours[wanted]);
	*colour = wanted;
	if (!cell->dots)
		put(c, " ");
	else if (ascii)
		put(c, "%c", marks[cell->line]);
	else
		/* U+2800 and the dots: three bytes. */
		put(c, "\xe2%c%c", 0xa0 | (cell->dots >> 6), 0x80 | (cell->dots & 0x3f));
}

/* Without blanks at its end. */
static void
put_row(struct canvas *c, unsigned row)
{
	const struct cell *cells = &c->cells[(size_t)row * c->width];
	unsigned rows = (c->height - 1) / PLOT_INTERVALS, used = c->width;
	char label[AXIS_LABEL_MAX] = "";
	int colour = -1;

	if (row % rows == 0)
		axis_label(label, c->y.high - row / rows * c->y.step, c->y.step);
	put(c, "%*s%s", (int)c->margin, label, row % rows ? c->style->upright : c->style->tick);
	while (used > 0 && !cells[used - 1].dots)
		used--;
	for (unsigned i = 0; i < used; i++)
		put_cell(c, &cells[i], &colour);
	put(c, "%s\n", colour >= 0 ? "\033[0m" : "");
}

/* The figures that have room, in `labels`; their columns in `ticks`. */
static void
place_ticks(const struct canvas *c, char *labels, bool *ticks)
{
	char label[AXIS_LABEL_MAX];
	size_t total = c->margin + 2 + c->width, free_from = 0;
	double first = ceil(c->x.low / c->x.step - 1e-9);

	memset(labels, ' ', total);
	for (double i = first; i * c->x.step <= c->x.high + c->x.step * 1e-9; i++) {
		size_t n = axis_label(label, i * c->x.step, c->x.step);
		size_t column = dot_x(c, i * c->x.step) / c->style->across;
		if (column >= c->width)
			continue;
		ticks[column] = true;
		size_t at = c->margin + 2 + column;
		at = at > n / 2 ? at - n / 2 : 0;
		if (at + n > total)
			at = total - n;
		if (at < free_from)
			continue;
		memcpy(labels + at, label, n);
		free_from = at + n + 1;
	}
	while (total > 0 && labels[total - 1] == ' ')
		total--;
	labels[total] = '\0';
}

static void
put_bottom(struct canvas *c)
{
	char labels[PLOT_COLUMNS_MAX + 1];
	bool ticks[PLOT_COLUMNS_MAX] = {false};

	place_ticks(c, labels, ticks);
	put(c, "%*s%s", (int)c->margin, "", c->style->corner);
	for (unsigned i = 0; i < c->width; i++)
		put(c, "%s", ticks[i] ? c->style->mark : c->style->level);
	put(c, "\n");
	for (const char *p = labels; *p; p += strnlen(p, 200))
		put(c, "%.200s", p);
	put(c, "\n");
}

enum err
plot_draw(struct buf *out, const struct plot *p)
{
	struct canvas c = {.plot = p, .style = &styles[p->style], .whole = true, .out = out};

	if (!find_ranges(&c)) {
		put(&c, "%.80s: no round has it\n", p->title);
		return c.err;
	}
	find_sizes(&c);
	c.cells = calloc((size_t)c.width * c.height, sizeof(*c.cells));
	if (!c.cells)
		return ERR_NOMEM;
	for (size_t k = 0; k < p->count && k < PLOT_LINES_MAX; k++)
		draw_line(&c, k);
	put_title(&c);
	for (unsigned row = 0; row < c.height; row++)
		put_row(&c, row);
	put_bottom(&c);
	free(c.cells);
	return c.err;
}
