#ifndef PLANES_H
#define PLANES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct layer;

/*
 * Channels of a convolution in planes with zeros around them, such that what lies under each element of the kernel is the plane from
 * some place on: products of whole planes, without a look at edges. Elements and gradients of x whose rows and columns leave the same
 * remainders by the strides are one phase, since the same elements of the kernel reach them; each phase is a plane of its own.
 */
struct planes {
	size_t lead[2]; /* dy: zeros before it, rows and columns */
	size_t size[2]; /* of a plane of dy, and of a phase of x */
	size_t phases, residues; /* of x, those with elements; of x with its padding, all */
	/* Pictures may hold the planes of several examples, one behind the other: so many, and floats from one to the next of a channel or
	 * phase, and from one channel or phase to the next. */
	size_t examples, example, apart;
};

struct planes_phase {
	size_t from[2]; /* its first row and column in x */
	size_t size[2]; /* how many of them */
	size_t first[2],
	    count[2]; /* rows and columns of the kernel that reach it, a stride apart */
	size_t taps; /* their product */
};

/* A workspace, in floats: `past` stand behind each part, which has at most `most` and begins on a line of the cache. */
struct planes_room {
	size_t end, past, most;
};
/* The next part, of a * b * c floats, begins at *at. False if it is too large, or all are too many to count. */
bool planes_take(struct planes_room *room, size_t *at, size_t a, size_t b, size_t c);

struct planes planes_of(const struct layer *l);
struct planes_phase planes_phase(const struct layer *l, size_t index); /* below phases */
/* What lies under the first element of a phase of dx, in planes of dy: [out][taps], rows of the kernel ascending, columns descending. */
void planes_find(const struct planes *p, const struct layer *l, const struct planes_phase *phase,
    size_t out, uint32_t *at);
/* Weights [out][in][kernel] in that order: [in][out][taps]. */
struct planes_weights {
	size_t in, out;
	size_t first, count; /* the input channels that are turned */
	const float *from;
	float *to;
};
void planes_turn(
    const struct layer *l, const struct planes_phase *phase, const struct planes_weights *w);
/* Channels of dy, of all examples, into planes that hold zeros elsewhere. */
void planes_fill(
    const struct planes *p, const struct layer *l, size_t out, const float *dy, float *planes);
/* What lies under the first output, in the phases of `in` channels of x: [in][kernel]. */
void planes_find_x(const struct planes *p, const struct layer *l, size_t in, uint32_t *at);
/* Channels of x, likewise, into their phases: [in][residues]. */
void planes_fill_x(
    const struct planes *p, const struct layer *l, size_t in, const float *x, float *planes);
/* One channel of a phase of dx, from rows that lie `apart`, into dx or added to it. */
void planes_give(const struct layer *l, const struct planes_phase *phase, size_t first, size_t rows,
    const float *from, size_t apart, float *dx);
/* Rows of `width` floats. */
void planes_copy(
    float *to, size_t to_apart, const float *from, size_t from_apart, size_t rows, size_t width);

#endif
