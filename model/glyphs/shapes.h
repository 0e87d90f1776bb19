#ifndef SHAPES_H
#define SHAPES_H
#include <stddef.h>
#include <stdint.h>

/*
 * How people write the digits: per digit some ways, each a list of strokes through points. x runs right, y down,
 * both in percent of the digit's box.
 */
enum shapes_kind {
	SHAPES_SMOOTH, /* the curve runs through without a corner */
	SHAPES_CORNER, /* the pen turns here */
	SHAPES_END, /* the pen lifts */
	SHAPES_CLOSE, /* the curve runs on smoothly to the first point of its stroke */
};

struct shapes_point {
	uint8_t x, y;
	uint8_t kind;
};

#define SHAPES_POINTS_MAX 24
#define SHAPES_WAYS_MAX 3

struct shapes_way {
	size_t count;
	struct shapes_point points[SHAPES_POINTS_MAX]; /* the last ends or closes a stroke */
};

struct shapes_digit {
	size_t ways;
	struct shapes_way way[SHAPES_WAYS_MAX];
};

extern const struct shapes_digit shapes_digits[10];

#endif
