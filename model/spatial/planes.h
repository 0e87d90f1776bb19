#ifndef PLANES_H
#define PLANES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct layer;

/*
 * Channels of a convolution in planes with zeros around them. The inputs of one element of the kernel are then the plane from some offset
 * on, so that products are of whole planes and need no check of edges. Elements of x (and their gradients) whose rows and columns leave the
 * same remainders by the strides are one phase: the same elements of the kernel reach them. Each phase is a plane of its own.
 */
struct planes {
	size_t lead[2]; /* rows and columns of zeros before dy */
	size_t size[2]; /* rows and columns of a plane of dy, and of a phase of x */
	/* phases: those of x that have elements; residues: all phases of x with its padding. */
	size_t phases, residues;
	/* Planes may hold several examples one behind the other: how many, floats from one example to the next, and floats from one
	 * channel or phase to the next. */
	size_t examples, example, apart;
};

struct planes_phase {
	size_t from[2]; /* the phase's first row and column in x */
	size_t size[2]; /* the number of its rows and columns */
	/* Rows and columns of the kernel that reach the phase, a stride apart. */
	size_t first[2], count[2];
	size_t taps; /* count[0] * count[1] */
};

/* A workspace that is divided into parts, each on a cache line. In floats: where it ends so far, what is left free behind each part, and
 * the most that a part may have. */
struct planes_room {
	size_t end, past, most;
};
/* Takes the next part, of a * b * c floats, which begins at *at. False if the part is too large, or the workspace overflows. */
bool planes_take(struct planes_room *room, size_t *at, size_t a, size_t b, size_t c);

struct planes planes_of(const struct layer *l);
struct planes_phase planes_phase(const struct layer *l, size_t index); /* below phases */
/* at[out][taps]: where in planes of dy the elements lie that the first element of a phase of dx reaches; rows of the kernel ascending,
 * columns descending. */
void planes_find(const struct planes *p, const struct layer *l, const struct planes_phase *phase,
    size_t out, uint32_t *at);
/* Turns weights [out][in][kernel] to [in][out][taps], taps in the order of planes_find. */
struct planes_weights {
	size_t in, out;
	size_t first, count; /* the input channels to turn */
	const float *from;
	float *to;
};
void planes_turn(
    const struct layer *l, const struct planes_phase *phase, const struct planes_weights *w);
/* Copies `out` channels of dy, of all examples, into planes that hold zeros elsewhere. */
void planes_fill(
    const struct planes *p, const struct layer *l, size_t out, const float *dy, float *planes);
/* at[in][kernel]: where in the phases of `in` channels of x the inputs of the first output lie. */
void planes_find_x(const struct planes *p, const struct layer *l, size_t in, uint32_t *at);
/* Copies `in` channels of x, of all examples, into their phases [in][residues], which hold zeros elsewhere. */
void planes_fill_x(
    const struct planes *p, const struct layer *l, size_t in, const float *x, float *planes);
/* Writes rows [first, first + rows) of one channel of a phase to dx, or adds them; `from` has its rows `apart` floats apart. */
void planes_give(const struct layer *l, const struct planes_phase *phase, size_t first, size_t rows,
    const float *from, size_t apart, float *dx);
/* Copies rows of `width` floats. */
void planes_copy(
    float *to, size_t to_apart, const float *from, size_t from_apart, size_t rows, size_t width);

#endif
