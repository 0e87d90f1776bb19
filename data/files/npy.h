#ifndef NPY_H
#define NPY_H
#include "array.h"

/*
 * NPY, one array of NumPy (NEP 1; formats 1.0, 2.0 and 3.0), in C order, of numbers of 1 to 8 bytes in either order of bytes; plain or
 * gzip. 1 to 4 dimensions.
 */
#define NPY_HEAD_MAX 65536 /* bytes; NumPy's own limit is 10,000 */

/* Reads the head; the reader `io` is then at the first value. The reason of an error says which part of the head is wrong. */
ERR_MUST_USE enum err npy_head(struct array *out, struct unpack *io, struct why *why);

#endif
