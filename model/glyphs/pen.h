#ifndef PEN_H
#define PEN_H
#include <stddef.h>
#include <stdint.h>

/* Draws strokes into a grey picture. Exactly rounded arithmetic and sqrt only. */

struct pen_picture {
	uint8_t *pixels; /* side x side, 0 is paper */
	unsigned side;
	double radius; /* half the width of a stroke, in pixels */
	double ink; /* grey of a full stroke, 0..255 */
};

struct pen_point {
	double x, y; /* in pixels; the centre of the first pixel is 0.5 */
	uint8_t kind; /* enum shapes_kind */
};

/* Strokes through the points; overlapping ink does not get darker. */
void pen_draw(const struct pen_picture *to, const struct pen_point *points, size_t count);

#endif
