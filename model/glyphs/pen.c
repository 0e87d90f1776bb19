#include "pen.h"

#include <math.h>
#include <stdbool.h>

#include "shapes.h"

#define PIECES 6 /* straight pieces of one stretch of curve */

/* Pixels around [low, high] that a stroke of this radius can touch. */
static void
range(double low, double high, double reach, unsigned side, unsigned *from, unsigned *to)
{
	double a = low - reach - 0.5, b = high + reach + 0.5;

	*from = a <= 0 ? 0 : a >= side ? side : (unsigned)a;
	*to = b <= 0 ? 0 : b >= side ? side : (unsigned)b + 1;
	*to = *to < side ? *to : side;
}

static double
distance(double px, double py, const struct pen_point *a, const struct pen_point *b)
{
	double dx = b->x - a->x, dy = b->y - a->y, length = dx * dx + dy * dy;
	double t = length > 0 ? ((px - a->x) * dx + (py - a->y) * dy) / length : 0;

	t = t < 0 ? 0 : t > 1 ? 1 : t;
	double ex = a->x + t * dx - px, ey = a->y + t * dy - py;
	return sqrt(ex * ex + ey * ey);
}

static void
line(const struct pen_picture *to, const struct pen_point *a, const struct pen_point *b)
{
	double reach = to->radius + 0.5;
	unsigned x0, x1, y0, y1;

	range(fmin(a->x, b->x), fmax(a->x, b->x), reach, to->side, &x0, &x1);
	range(fmin(a->y, b->y), fmax(a->y, b->y), reach, to->side, &y0, &y1);
	for (unsigned y = y0; y < y1; y++)
		for (unsigned x = x0; x < x1; x++) {
			double cover = reach - distance(x + 0.5, y + 0.5, a, b);
			uint8_t *pixel = &to->pixels[y * to->side + x];
			if (cover <= 0)
				continue;
			uint8_t grey = (uint8_t)(to->ink * (cover < 1 ? cover : 1) + 0.5);
			*pixel = grey > *pixel ? grey : *pixel;
		}
}

/* Catmull and Rom's curve from b to c, between neighbours a and d. */
static double
curve(double a, double b, double c, double d, double t)
{
	double linear = c - a, square = 2 * a - 5 * b + 4 * c - d, cube = 3 * (b - c) + d - a;

	return b + 0.5 * t * (linear + t * (square + t * cube));
}

static void
stretch(const struct pen_picture *to, const struct pen_point *const p[4])
{
	struct pen_point from = *p[1];

	for (int i = 1; i <= PIECES; i++) {
		double t = (double)i / PIECES;
		struct pen_point next = {
		    .x = curve(p[0]->x, p[1]->x, p[2]->x, p[3]->x, t),
		    .y = curve(p[0]->y, p[1]->y, p[2]->y, p[3]->y, t),
		};
		line(to, &from, &next);
		from = next;
	}
}

/* One stroke of n points. The curve has no neighbour beyond an end or a corner. */
static void
stroke(const struct pen_picture *to, const struct pen_point *s, size_t n)
{
	bool closed = s[n - 1].kind == SHAPES_CLOSE;
	size_t stretches = closed ? n : n - 1;

	for (size_t i = 0; i < stretches; i++) {
		const struct pen_point *b = &s[i], *c = &s[(i + 1) % n], *a = b, *d = c;
		if (b->kind != SHAPES_CORNER && (i > 0 || closed))
			a = &s[(i + n - 1) % n];
		if (c->kind != SHAPES_CORNER && (i + 2 < n || closed))
			d = &s[(i + 2) % n];
		stretch(to, (const struct pen_point *const[4]){a, b, c, d});
	}
}

void
pen_draw(const struct pen_picture *to, const struct pen_point *points, size_t count)
{
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		if (points[i].kind != SHAPES_END && points[i].kind != SHAPES_CLOSE)
			continue;
		stroke(to, points + first, i + 1 - first);
		first = i + 1;
	}
}
