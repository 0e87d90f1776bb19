#ifndef ELEMENTS_H
#define ELEMENTS_H
#include <stdbool.h>
#include <stddef.h>

/* Work element by element on arrays, cut into pieces for the threads of a pass. */
struct team;

/* to = f(a, b), or to += f(a, b) with `add`; b may be NULL for a function that does not read it. */
typedef void elements_fn(float *to, const float *a, const float *b, size_t n, bool add);

struct elements {
	elements_fn *fn;
	float *to;
	const float *a, *b;
	size_t n;
	bool add;
	/* Fn computes a curve: an element is more work than a copy, and worth more threads. */
	bool curve;
};

void elements_run(struct team *t, const struct elements *e);

#endif
