#ifndef ELEMENTS_H
#define ELEMENTS_H
#include <stdbool.h>
#include <stddef.h>

/* Work element by element on arrays, cut into pieces for the threads of a pass. */
struct team;

/* to = f(a, b), or to += f(a, b); b may be NULL for one that does not look at it. */
typedef void elements_fn(float *to, const float *a, const float *b, size_t n, bool add);

struct elements {
	elements_fn *fn;
	float *to;
	const float *a, *b;
	size_t n;
	bool add;
	bool curve; /* worth more threads than moving memory is */
};

void elements_run(struct team *t, const struct elements *e);

#endif
